"""Stages: what is trained next may depend on what was measured, and an interruption does not show."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from attndyn import runner as module
from attndyn import verbs
from attndyn.errors import UserError
from attndyn.measures.readings import Answers
from attndyn.models import Seq2Seq
from attndyn.runner import Runner
from attndyn.store.folder import METRICS, Run
from attndyn.store.metrics import Metrics, Row
from attndyn.studies.base import Study
from attndyn.tasks import Permutations
from attndyn.training.condition import Condition
from attndyn.training.recorder import Recorder

FIRST = Condition(
    name="first", task=Permutations(3), model=Seq2Seq(8), seeds=(0, 1, 2), steps=6, batch=4, evaluation=3,
    readings=(Answers(every=2),),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Staged(Study):
    """Three seeds, then two more of them, then the seed with the lowest loss so far under another name."""

    name: ClassVar[str] = "staged"
    title: ClassVar[str] = "In stages"
    seeds: int = 3

    def conditions(self) -> Iterator[Condition]:
        yield FIRST

    def then(self, metrics: Metrics) -> Iterator[Condition]:
        loss = metrics.curves("first", "loss")
        if len(loss.replicas) == 3:
            yield replace(FIRST, seeds=(3, 4))
        elif "second" not in metrics:
            yield replace(FIRST, name="second", seeds=(int(loss.replicas[loss.last.argmin()]),), steps=8)


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return verbs.run(Staged(), out=tmp_path_factory.mktemp("whole"), page=False)


def test_later_stages_are_trained_and_named(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    run = verbs.run(Staged(), out=tmp_path, page=False, progress=lambda *where: told.append(where[:2]))
    metrics = Metrics(run.metrics)
    assert metrics.curves("first", "accuracy").replicas.tolist() == [0, 1, 2, 3, 4]
    assert metrics.curves("second", "accuracy").steps.tolist() == [0, 2, 4, 6, 8]
    losses = metrics.curves("first", "loss").last
    assert metrics.curves("second", "accuracy").replicas.tolist() == [losses.argmin()]
    info = json.loads((tmp_path / "run.json").read_text())
    assert list(info["conditions"]) == ["first", "second"]
    assert info["later"] == ["second"]
    assert [(entry["condition"], entry["chunk"]) for entry in info["replicas"]] == [
        ("first", 0), ("first", 0), ("first", 0), ("first", 1), ("first", 1), ("second", 2),
    ]  # fmt: skip
    assert told[-1][0] == told[-1][1] >= 5 * 6 + 8


def test_more_seeds_of_a_condition_are_those_it_would_have_had(tmp_path: Path, whole: Run) -> None:
    class AtOnce(Staged):
        def conditions(self) -> Iterator[Condition]:
            yield replace(FIRST, seeds=(0, 1, 2, 3, 4))

    assert verbs.run(AtOnce(), out=tmp_path, page=False).metrics == whole.metrics


@pytest.mark.parametrize(("after", "stages"), [(10, 1), (30, 2), (45, 3)])
def test_a_run_interrupted_in_any_stage_continues_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Run, after: int, stages: int
) -> None:
    """`after` is the work done, of 3 × 8, 2 × 8 and 10 with the readings."""
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(module, "SAVE_SHARE", 1e9)

    def stop(done: int, total: int, seconds: float, rows: Sequence[Row]) -> None:
        if done >= after:
            raise Stop

    with pytest.raises(Stop):
        verbs.run(Staged(), out=tmp_path, page=False, progress=stop)
    assert len({entry["chunk"] for entry in Run(tmp_path).info["replicas"]}) == stages
    continued = verbs.run(Staged(), out=tmp_path, page=False)
    assert (tmp_path / METRICS).read_bytes() == (whole.path / METRICS).read_bytes()
    for name in ("replicas", "conditions", "later", "tokens"):
        assert continued.info[name] == whole.info[name]


def test_a_seed_is_not_trained_twice(tmp_path: Path) -> None:
    runner = Runner([FIRST], Recorder(tmp_path), "cpu", lambda *where: None)
    with pytest.raises(UserError, match="seed 2 of 'first' was trained in an earlier stage"):
        runner.follow([replace(FIRST, seeds=(2, 3))])


def test_other_data_are_still_refused(tmp_path: Path) -> None:
    def stop(*where: Any) -> None:
        raise Stop

    with pytest.raises(Stop):
        verbs.run(Staged(), out=tmp_path, page=False, progress=stop)

    class Other(Staged):
        def conditions(self) -> Iterator[Condition]:
            yield replace(FIRST, name="other")

    with pytest.raises(UserError, match=r"was begun with other data \(first, other\)"):
        verbs.run(Other(), out=tmp_path, page=False)
    assert Run(tmp_path).info["status"] == "running"
