"""Parts of the tables of salient-words on made arrays, and the tables of its page."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from attndyn.store.metrics import Row
from attndyn.studies.read_part import entry
from attndyn.studies.salient_appendix import rise_and_fall
from attndyn.studies.salient_columns import Columns
from attndyn.studies.salient_entries import difference
from attndyn.studies.salient_names import CODE, COLUMNS, KENDALL, SUMMARY, TRAIN
from attndyn.studies.salient_page import Tables
from attndyn.studies.salient_part import Part
from attndyn.studies.salient_tables import facts, kendall
from attndyn.studies.salient_words import SalientWords
from attndyn.tasks.vocabulary import LONGEST
from tests.studies.test_salient_claims import STUDY, metrics, published

STEPS = [0, 10, 100, 1000]


def named(rows: Any) -> dict[str, float]:
    return {row.metric: row.value for row in rows}


def test_an_interval_is_as_wide_as_the_seeds_are_apart() -> None:
    """Each seed is the same in every text: the interval over texts alone would have no width."""
    gold = np.broadcast_to(np.array([0.0, 0.2, 0.4, 0.6])[:, None, None], (4, 2, 50))
    found = named(difference("gap", gold, np.zeros((1, 1, 50))))
    assert found["gap"] == pytest.approx(0.3)
    assert found["gap low"] < 0.15 < 0.45 < found["gap high"]
    spread = named(entry("table", "A", gold, np.full(50, 0.1)))
    assert spread["A above low"] == pytest.approx(spread["A low"] - 0.1)


def curves(peak: float, last: float, texts: int = 400) -> np.ndarray:
    """[gold, seed, step, text]: .1, .3, then a peak and an end."""
    draw = np.random.default_rng(0)
    means = np.array([0.1, 0.3, peak, last])
    return draw.random((6, 3, 4, texts)) < means[:, None]


def test_a_fall_is_judged_on_other_texts_than_those_that_choose_the_peak() -> None:
    found = named(rise_and_fall(curves(0.6, 0.3), STEPS))
    assert found["peak step of A(α, β_uf)"] == 100
    assert 0.2 < found["fall of A(α, β_uf) low"] < 0.3 < found["fall of A(α, β_uf) high"] < 0.4
    assert 0.4 < found["rise of A(α, β_uf) low"] < 0.5 < found["rise of A(α, β_uf) high"] < 0.6
    assert found["inflation of A(α, β_uf)"] == 0  # both halves choose the same step
    level = curves(0.4, 0.4, 40)
    judged = level[..., 1::2].mean(axis=(0, 1, 3))
    flat = named(rise_and_fall(level, STEPS))
    at = STEPS.index(int(flat["peak step of A(α, β_uf)"]))
    assert at == 1 + level[:, :, 1:3, ::2].mean(axis=(0, 1, 3)).argmax()
    assert flat["peak of A(α, β_uf)"] == judged[at]
    assert flat["fall of A(α, β_uf) low"] <= 0
    assert flat["inflation of A(α, β_uf)"] > 0.005  # what each run's own maximum adds, though nothing rises
    one = named(rise_and_fall(curves(0.6, 0.3, 1), STEPS))
    assert np.isfinite(list(one.values())).all()


def test_noise_and_what_only_rises_do_not_fall() -> None:
    draw = np.random.default_rng(0)
    ends = "rise of A(α, β_uf) low", "rise of A(α, β_uf) high", "fall of A(α, β_uf) low", "fall of A(α, β_uf) high"
    decided = 0
    for _ in range(20):
        noise = named(rise_and_fall(draw.random((4, 3, 4, 40)) < 0.3, STEPS))
        low, high, below, above = (noise[end] for end in ends)
        decided += low > 0 or high < 0 or below > 0 or above < 0
    assert decided <= 4, "of 40 intervals"
    rising = named(rise_and_fall(curves(0.5, 0.9), STEPS))
    assert rising["peak step of A(α, β_uf)"] == 100
    assert rising["fall of A(α, β_uf) high"] < 0
    still = named(rise_and_fall(np.zeros((2, 2, 4, 40)), STEPS))
    assert [still[end] for end in ends] == [0, 0, 0, 0]


def test_a_proxy_has_no_gold_run_though_there_are_as_many() -> None:
    """Two proxies that agree in 20 and 60 %: ξ of both gold runs is where 40 % are passed."""
    columns = Columns.__new__(Columns)
    columns.part = SimpleNamespace(chance=np.full(10, 0.1))  # type: ignore[assignment]
    columns.seeds = [0, 1]
    agreed = np.stack([np.arange(10) < 2, np.arange(10) < 6])[:, None]
    columns.by_code = lambda name, take=None: agreed  # type: ignore[assignment, method-assign]
    curve = np.array([[0.1, 0.3, 0.5, 0.7]]), np.array([[0.5, 0.6, 0.7, 0.8]])
    columns.others = lambda g, reading, without=None: curve  # type: ignore[method-assign]
    found = [row for row in columns._column(CODE, COLUMNS[1], CODE) if row.metric == f"ξ of {COLUMNS[1]}"]
    assert found == [Row(CODE, seed, 0, f"ξ of {COLUMNS[1]}", 0.7) for seed in (0, 1)]
    of_golds = [row.value for row in columns._column(CODE, COLUMNS[0], CODE) if row.metric == f"ξ of {COLUMNS[0]}"]
    assert of_golds == [0.6, 0.8]


def test_a_text_without_tau_counts_once() -> None:
    undefined = np.zeros((2, 4, 5))  # [seed, step, text]
    undefined[:, :, 1] = np.nan
    undefined[0, :, 3] = np.nan
    part = Part.__new__(Part)
    vars(part).update(
        pairs=range(5), steps=STEPS, proxies=[torch.zeros(1)], scores=lambda *of: torch.zeros(1),
        accuracy=lambda name: np.array([[0.5, 0.6, 0.7, 0.8]] * 2), study=SimpleNamespace(seeds_of=lambda name: [0, 1]),
        taus=lambda scorings, condition, seeds, name, every: dict.fromkeys(scorings, undefined[: len(seeds)]),
    )  # fmt: skip
    found = named(kendall(part))
    assert [found[f"{name} undefined"] for name in COLUMNS[:3]] == [2, 2, 2]
    assert found["texts"] == 5


@pytest.mark.parametrize(
    ("gone", "found"),
    [("nothing", 0.6), ("attention at the second checkpoint", 0.7), ("all of the attention", np.nan), ("τ", np.nan)],
)
def test_where_tau_is_undefined_in_every_text_there_is_a_verdict_all_the_same(gone: str, found: float) -> None:
    """Kendall's τ of the attention with the gold attention passes that of the columns at the second checkpoint."""

    def taus(scorings: Any, condition: str, seeds: list[int], name: str, every: int) -> dict[Any, np.ndarray]:
        if name != "alpha":
            return dict.fromkeys(scorings, np.full((len(seeds), 4, 5), np.nan if gone == "τ" else 0.3))
        along = np.broadcast_to(np.array([0.1, 0.5, 0.6, 0.7])[:, None], (1, 4, 5)).copy()
        along[:, {"attention at the second checkpoint": [1], "all of the attention": [0, 1, 2, 3]}.get(gone, [])] = (
            np.nan
        )
        return dict.fromkeys(scorings, along)

    part = Part.__new__(Part)
    vars(part).update(
        pairs=range(5), steps=STEPS, proxies=[torch.zeros(1)], scores=lambda *of: torch.zeros(1), taus=taus,
        accuracy=lambda name: np.array([[0.5, 0.6, 0.7, 0.8]] * 2), study=SimpleNamespace(seeds_of=lambda name: [0, 1]),
    )  # fmt: skip
    made = named(kendall(part))
    assert [made[f"ξ of {name}"] for name in COLUMNS] == pytest.approx([found] * 4, nan_ok=True)


def test_a_text_that_is_cut_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation texts are drawn from the test texts: here all of them."""
    long = " ".join(["w"] * (LONGEST + 1))
    for split, lengthy in (("train", 2), ("test", 1)):
        lines = [f"{label}\t{long if n < lengthy else 'w w'}\n" for label in ("bad", "good") for n in range(5)]
        (tmp_path / f"{split}.tsv").write_text("".join(lines))
    study = SalientWords(corpus=str(tmp_path), width=4, hidden=4, batch=5)
    twin = SimpleNamespace(chosen=SimpleNamespace(accuracy=0.5))
    part = Part.__new__(Part)
    vars(part).update(study=study, twin=twin, pairs=study.task.data.valid, chance=np.full(10, 0.5))
    for rest in ("at_the_start_and_at_gold", "bag_of_words"):
        monkeypatch.setattr(f"attndyn.studies.salient_tables.{rest}", lambda part: ())
    assert {split: known.cut for split, known in study.task.data.parts.items()} == {"train": 4, "valid": 2, "test": 2}
    assert named(facts(part))["texts cut"] == 6


def test_the_tables_of_the_page() -> None:
    made = published() | {(SUMMARY, "evaluation examples"): 1114, (SUMMARY, "texts cut"): 0, (KENDALL, "texts"): 557}
    made |= {(SUMMARY, "texts with words left out"): 372}
    for table in (CODE, TRAIN, "validation, by the text"):
        made |= {(table, f"ξ of {name}"): [0.8] * 6 for name in COLUMNS} | {(table, "ξ*"): [0.9] * 6}
        made |= {(f"{table}, by gold run", COLUMNS[0]): [0.4] * 6, (table, "chance"): 0.07 if table == TRAIN else 0.08}
    made |= {("validation, by the text", name + end): made[CODE, name + end]
             for name in COLUMNS for end in ("", " low", " high")}  # fmt: skip
    for name in COLUMNS:
        made |= {(KENDALL, name + end): 0.1 for end in ("", " low", " high")}
        made |= {(KENDALL, f"ξ of {name}"): float("nan"), (KENDALL, f"{name} undefined"): 3}
    tables = Tables(STUDY, metrics(made))
    code, _, train = tables.table_one().rows
    assert code[1] == "45.00 (40.00–50.00)"
    assert (code[5], train[5]) == (8.0, 7.0)
    parts = {table.name: table for table in tables.more_tables()}
    assert parts["kendall"].rows[0] == ("τ(α, β_uf)", 0.1, 0.1, 0.1, "never", 3)
    corpus = {str(name): (measured, known) for name, measured, known in parts["corpus"].rows}
    assert corpus["test texts"] == (1114, None)
    assert corpus["words seen three times"] == (2614, 4691)
    assert corpus["words seen three times or with a vector"] == (None, 4691)
