"""Several checkpoints are compared at once with what one after the other gives."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from attndyn.measures.agreement import agreement, chance
from attndyn.measures.estimates import interval
from attndyn.studies import read_part
from attndyn.studies.read_part import ReadPart, chosen_apart, chosen_by_own, highest

LENGTHS, STEPS, SEEDS = np.array([3, 1, 6, 2]), [0, 10, 20, 30, 40], (4, 7)


class Drawn:
    """A run whose arrays are random numbers."""

    def array(self, condition: str, seed: int, step: int, name: str) -> np.ndarray:
        draw = np.random.default_rng([seed, step, len(condition), len(name)])
        return draw.integers(-3, 4, int(LENGTHS.sum())).astype(np.float32)


def part() -> ReadPart:
    curves = SimpleNamespace(curves=lambda condition, name: SimpleNamespace(steps=np.array(STEPS)))
    study: Any = SimpleNamespace(seeds_of=lambda condition: SEEDS)
    made = ReadPart(study, curves, Drawn(), "cpu", "train")  # type: ignore[arg-type]
    made.prepare(LENGTHS, "standard")
    return made


@pytest.mark.parametrize("size", [2, 5, 9])
def test_checkpoints_at_once(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    u = {"u": torch.arange(12.0), "w": torch.tensor([2.0, 1, 3] * 4)}
    peaks = {key: part().rows.peaks(values) for key, values in u.items()}
    agreed, taus = part().agreeing(peaks, "uniform", "beta"), part().taus(u, "uniform", SEEDS[1:], "beta", 2)
    monkeypatch.setattr(read_part, "at_once", lambda device, positions: size)
    for found, again in ((agreed, part().agreeing(peaks, "uniform", "beta")),
                         (taus, part().taus(u, "uniform", SEEDS[1:], "beta", 2))):  # fmt: skip
        assert found.keys() == again.keys() == u.keys()
        for key, values in found.items():
            np.testing.assert_array_equal(values, again[key])
    assert agreed["u"].shape == (2, 5, 4)
    assert taus["u"].shape == (1, 5, 2)
    assert len(np.unique(taus["u"])) > 3


def test_a_gpu_takes_as_many_as_fill_it() -> None:
    assert [read_part.at_once("cuda", n) for n in (read_part.POSITIONS // 7, 2 * read_part.POSITIONS)] == [7, 1]
    assert read_part.at_once("cpu", 10) == 1


def test_chance_counts_equal_values() -> None:
    values = torch.tensor([3.0, 1, 3, 7, 2, 2, 2, 1, 0, 0, 5, 4])
    rows = [values[:3], values[3:4], values[4:10], values[10:]]
    wanted = [chance(row).values.item() for row in rows]
    assert part().chance_of(values).tolist() == pytest.approx(wanted)
    assert wanted == pytest.approx([2 / 3, 1, 3 / 6, 1 / 2])
    assert part().chance_of(torch.arange(12.0)).tolist() == pytest.approx(part().chance.tolist())


def test_what_each_half_chooses_itself_is_no_lower() -> None:
    found = np.random.default_rng(0).random((3, 6, 40))
    own, apart = chosen_by_own(found, np.arange(40)), chosen_apart(found, np.arange(40))
    for half in (slice(0, None, 2), slice(1, None, 2)):
        assert own[:, half].mean(axis=1) == pytest.approx(found[:, :, half].mean(axis=2).max(axis=1))
        assert (own[:, half].mean(axis=1) >= apart[:, half].mean(axis=1)).all()
    assert own.mean() > apart.mean() + 0.03  # of noise a maximum adds much


def test_random_orders_find_as_many_as_chance_says() -> None:
    made = ReadPart(part().study, part().metrics, Drawn(), "cpu", "train")  # type: ignore[arg-type]
    made.prepare(np.array([40] * 30 + [7] * 30), "standard")
    values = torch.randperm(len(made.rows.text), generator=torch.Generator().manual_seed(3)).float()
    agreed = made.at_random(values)
    assert agreed.shape == (read_part.ORDERS, 60)
    draw = torch.Generator().manual_seed(0)
    for row in agreed:
        order = torch.rand(len(values), generator=draw)
        texts = zip(order.split(made.rows.lengths.tolist()), values.split(made.rows.lengths.tolist()), strict=True)
        wanted = [agreement(u[None], v[None]).values.item() for u, v in texts]
        np.testing.assert_array_equal(row, wanted)
    low, high = interval(agreed.astype(float))
    assert low < made.chance.mean() < high


def test_each_half_is_judged_where_the_other_is_largest() -> None:
    found = np.array([[[1.0, 0, 0, 0], [0, 5, 0, 5]]])  # [seed, step, row]: the odd rows are largest at step 1
    assert chosen_apart(found, np.arange(4)).tolist() == [[0, 0, 0, 0]]
    assert chosen_apart(found, np.array([0, 0, 0, 1])).tolist() == [[0, 5, 0, 5]]


def test_what_is_not_known_chooses_nothing() -> None:
    found = np.full((1, 2, 4), np.nan)
    found[0, :, 0] = 1, 2
    assert np.isnan(chosen_apart(found, np.arange(4))).tolist() == [[False, True, True, True]]


def test_noise_is_not_above_zero_by_being_chosen() -> None:
    """Of 25 checkpoints of noise the largest lies above 0 with its interval, as a rule; where the other half chooses,
    it does not."""
    above = {highest: 0, chosen_apart: 0}
    for seed in range(20):
        found = np.random.default_rng(seed).normal(size=(6, 25, 200))
        above[highest] += interval(highest(found)).low > 0
        above[chosen_apart] += interval(chosen_apart(found, np.arange(200))).low > 0
    assert above[highest] >= 10
    assert above[chosen_apart] <= 3


def test_a_checkpoint_at_which_every_row_is_constant_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    u, usual = {"u": torch.arange(12.0)}, part().taus({"u": torch.arange(12.0)}, "uniform", SEEDS, "beta", 1)["u"]
    drawn = Drawn.array

    def constant(self: Drawn, condition: str, seed: int, step: int, name: str) -> np.ndarray:
        found = drawn(self, condition, seed, step, name)
        return np.zeros_like(found) if step in gone else found

    monkeypatch.setattr(Drawn, "array", constant)
    gone = [20]
    found = part().taus(u, "uniform", SEEDS, "beta", 1)["u"]
    assert np.isnan(found[:, 2]).all()
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(found[:, others], usual[:, others])
    np.testing.assert_array_equal(highest(found), highest(usual[:, others]))
    groups = np.arange(4)
    np.testing.assert_array_equal(chosen_apart(found, groups), chosen_apart(usual[:, others], groups))
    gone = STEPS
    found = part().taus(u, "uniform", SEEDS, "beta", 1)["u"]
    assert np.isnan(found).all()
    assert np.isnan(highest(found)).all()
    assert np.isnan(chosen_apart(found, groups)).all()
    assert np.isnan(interval(highest(found))).all()  # which no rule takes for an answer
