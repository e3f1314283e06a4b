"""Every measure on what is hardly an input: rows of padding alone, one position, all values equal, one word."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attndyn.measures import divergence, focus, scores
from attndyn.measures.agreement import agreement, chance, kendall_tau, shuffled_chance
from attndyn.measures.chunking import count, f1
from attndyn.measures.flat import Texts
from attndyn.measures.readings import Reading, Values
from attndyn.runner import Runner
from attndyn.store.folder import METRICS
from attndyn.training.condition import Likelihood
from attndyn.training.recorder import Recorder
from tests.test_runner import HARD, silent

Rows = Callable[[Tensor, Tensor, Tensor], Tensor]
ROWS: dict[str, Rows] = {
    "agreement": lambda u, v, mask: agreement(u, v, mask).values,
    "chance": lambda u, v, mask: chance(v, mask).values,
    "Kendall's τ": lambda u, v, mask: kendall_tau(u, v, mask).values,
    "JSD": divergence.jsd,
    "KL": divergence.kl,
    "TVD": divergence.total_variation,
}
"""One value a row of u and v."""
UNDEFINED_ALONE = {"Kendall's τ": "undefined in all of the 1 rows"}
"""What a measure says where its only row has one position."""
weights = st.lists(st.integers(1, 9), min_size=2, max_size=5).filter(lambda row: len(set(row)) > 1)


def padded(rows: list[list[int]], extra: int) -> tuple[Tensor, Tensor]:
    """Distributions with garbage behind them, a row of nothing but padding at the end, and the mask."""
    longest = max(map(len, rows)) + extra
    values = torch.full((len(rows) + 1, longest), 77.0, dtype=torch.float64)
    mask = torch.zeros(len(rows) + 1, longest, dtype=torch.bool)
    for place, row in enumerate(rows):
        values[place, : len(row)] = torch.tensor(row, dtype=torch.float64) / sum(row)
        mask[place, : len(row)] = True
    return values, mask


@pytest.mark.parametrize("name", ROWS)
@given(rows=st.lists(weights, min_size=1, max_size=4), extra=st.integers(0, 3))
def test_a_padded_batch_is_its_rows_one_by_one(name: str, rows: list[list[int]], extra: int) -> None:
    u, mask = padded(rows, extra)
    v, _ = padded([row[::-1] for row in rows], extra)
    found = ROWS[name](u, v, mask)
    for place, row in enumerate(rows):
        alone = ROWS[name](*(one[place : place + 1, : len(row)] for one in (u, v, mask)))
        torch.testing.assert_close(found[place : place + 1], alone, rtol=1e-12, atol=1e-12, equal_nan=True)
    of_padding = found[-1]
    assert of_padding.isnan() if name in ("agreement", "chance", "Kendall's τ") else of_padding == 0


def test_rows_of_padding_count_nowhere() -> None:
    u, mask = padded([[1, 2, 3], [4, 1, 1]], extra=2)
    for measure in (lambda: agreement(u, u, mask), lambda: chance(u, mask), lambda: kendall_tau(u, u, mask)):
        assert (measure().n, measure().n_undefined) == (2, 0)
    with pytest.raises(ValueError, match="undefined in all of the 0 rows"):
        agreement(u[-1:], u[-1:], mask[-1:])


@pytest.mark.parametrize("name", ROWS)
def test_one_position(name: str) -> None:
    one, mask = torch.ones(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.bool)
    if name in UNDEFINED_ALONE:
        with pytest.raises(ValueError, match=UNDEFINED_ALONE[name]):
            ROWS[name](one, one, mask)
        return
    wanted = 1.0 if name in ("agreement", "chance") else 0.0
    assert ROWS[name](one, one, mask).tolist() == [wanted]


@pytest.mark.parametrize("length", [2, 7, 40])
def test_all_values_equal(length: int) -> None:
    """A tie agrees, so chance is certain; no order can be compared; nothing peaks; nothing differs."""
    flat, mask = torch.full((3, length), 1 / length, dtype=torch.float64), torch.ones(3, length, dtype=torch.bool)
    assert agreement(flat, flat, mask).mean == chance(flat, mask).mean == shuffled_chance(flat, mask).mean == 1
    with pytest.raises(ValueError, match="undefined in all of the 3 rows"):
        kendall_tau(flat, flat, mask)
    for measure in (divergence.jsd, divergence.kl, divergence.total_variation):
        assert measure(flat, flat, mask).abs().max() < 1e-12
    alpha, align = flat[None, :, None], torch.zeros(1, 3, 1, dtype=torch.int64)
    assert focus.normalised_entropy(alpha).item() == pytest.approx(1)
    assert focus.peak_share(alpha, align).item() == 0
    assert focus.mass(alpha, align).item() == focus.mass_on_last(alpha).item() == pytest.approx(1 / length)
    texts = Texts(torch.full((3,), length))
    with pytest.raises(ValueError, match="undefined in all of the 3 texts"):
        texts.kendall_tau(flat.flatten(), flat.flatten())
    assert texts.agreement(texts.peaks(flat.flatten()), flat.flatten(), texts.limits(flat.flatten())).all()


def test_one_word() -> None:
    """Whoever knows one word only is always right, and has nothing to learn."""
    logits, target = torch.randn(2, 3, 4, 1), torch.zeros(2, 3, 4, dtype=torch.int64)

    @dataclass
    class Targets:
        target: Tensor
        target_mask: None = None

    assert scores.accuracy(logits, target).tolist() == [1, 1]
    assert Likelihood()(logits, torch.ones(2, 3, 1, 4, 1), Targets(target)).tolist() == [0, 0]
    source, values = torch.zeros(1, 2, 3, dtype=torch.int64), torch.rand(1, 2, 3, 3)
    assert focus.peak_on_word(values, source, torch.zeros_like(source)).tolist() == [1], "it stands everywhere"


def test_no_chunk_anywhere_has_no_f1() -> None:
    nothing = torch.zeros(1, 2, 3, dtype=torch.int64)
    counts = count(nothing, nothing, ("O", "B-NP"), torch.ones(1, 2, 3, dtype=torch.bool))
    assert [int(one) for one in counts] == [0, 0, 0]
    assert f1(*(one.double() for one in counts)).isnan().item()


@dataclass(frozen=True, kw_only=True)
class Fails(Reading):
    """A measure that cannot be computed at one checkpoint."""

    def run(self, trace: Any) -> Values:
        yield "entropy", focus.normalised_entropy(trace.alpha[:, :, 0, :, :1])


def test_a_measure_that_fails_stops_the_run_and_is_no_number(tmp_path: Path) -> None:
    from dataclasses import replace

    condition = replace(HARD, readings=(*HARD.readings, Fails(every=4)))
    with pytest.raises(ValueError, match="fewer than two positions is not defined"):
        Runner([condition], Recorder(tmp_path), "cpu", silent).execute()
    assert not (tmp_path / METRICS).exists()
