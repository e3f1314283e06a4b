"""What the engine does with a study that trains nothing: measure, save, continue, judge."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import attndyn
from attndyn import runner
from attndyn.errors import UserError
from attndyn.store.metrics import Metrics, Row
from attndyn.studies.base import Judgement, Piece, Statement, Study

CALLS: list[tuple[str, int]] = []
STOP_AT: set[tuple[str, int]] = set()
NAMES = ["b", "a"]


@dataclass(frozen=True, kw_only=True)
class Squares(Study):
    name: ClassVar[str] = "squares"
    title: ClassVar[str] = "Squares"
    headline: ClassVar[str] = "square"
    statements: ClassVar[tuple[Statement, ...]] = (
        Statement(id="Q-1", source="s", statement="squares grow", published="always", rule="the last is the largest"),
    )
    seeds: int = 3

    def pieces(self) -> Iterator[Piece]:
        for name in NAMES:
            for seed in range(self.seeds):
                yield Piece(condition=name, replica=seed, measure=lambda n=name, s=seed: self.measure(n, s))

    def measure(self, name: str, seed: int) -> Iterator[tuple[int, str, float]]:
        CALLS.append((name, seed))
        yield 0, "square", 0.0
        if (name, seed) in STOP_AT:
            raise KeyboardInterrupt
        yield 2, "square", 4.0 + seed

    def analyse(self, metrics: Metrics) -> Iterator[Row]:
        for name in metrics.conditions:
            yield Row(name, 0, 2, "mean", float(metrics.curves(name, "square").last.mean()))

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        yield "Q-1", Judgement(measured=f"{metrics.curves('a', 'mean').last[0]:g}", verdict="holds")


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    STOP_AT.clear()
    monkeypatch.setattr(runner, "SAVE_SECONDS", 0.0)


def test_a_study_without_conditions_runs(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    run = attndyn.run(Squares(), out=tmp_path, progress=lambda done, total, seconds, rows: told.append((done, total)))
    assert run.info["status"] == "finished"
    assert run.info["seeds"] == [0, 1, 2]
    assert run.info["device"].startswith("cpu")
    assert run.metrics["condition"].unique().to_pylist() == ["b", "a"], "in the order of the pieces"
    assert run.metrics.num_rows == 2 * 3 * 2 + 2
    assert run.claims[0]["measured"] == "5"
    assert told[-1] == (1000, 1000)
    assert (tmp_path / "report.html").exists()
    assert not (tmp_path / "checkpoints").exists()


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    whole = attndyn.run(Squares(), out=tmp_path / "whole", page=False)
    CALLS.clear()
    STOP_AT.add(("a", 1))
    with pytest.raises(KeyboardInterrupt):
        attndyn.run(Squares(), out=tmp_path / "stopped", page=False)
    unfinished = attndyn.Run(tmp_path / "stopped")
    assert unfinished.info["status"] == "running"
    assert unfinished.metrics.num_rows == 4 * 2, "whole pieces only"
    CALLS.clear()
    STOP_AT.clear()
    attndyn.run(Squares(), out=tmp_path / "stopped", page=False)
    assert CALLS == [("a", 1), ("a", 2)]
    for name in ("metrics.parquet", "claims.json"):
        assert (tmp_path / "stopped" / name).read_bytes() == (whole.path / name).read_bytes()


def test_other_data_is_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    STOP_AT.add(("a", 1))
    with pytest.raises(KeyboardInterrupt):
        attndyn.run(Squares(), out=tmp_path, page=False)
    monkeypatch.setattr(sys.modules[__name__], "NAMES", ["b", "c"])
    with pytest.raises(UserError, match=r"was begun with other data \(a, c\)"):
        attndyn.run(Squares(), out=tmp_path, page=False)
