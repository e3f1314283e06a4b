"""Conditions × seeds as replicas: none knows its neighbours, observing changes nothing, interrupted = uninterrupted.

"Equal" here means bitwise: the bytes of the metrics file and of every trace are compared.
"""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attndyn import plan as planning
from attndyn import runner as module
from attndyn.measures.readings import Answers, Attention, Keep, Lexical, MeanState
from attndyn.models import Learned, Seq2Seq, Uniform
from attndyn.plan import Replica, Unit
from attndyn.runner import Runner, Worker
from attndyn.store.folder import METRICS
from attndyn.store.metrics import Row, from_parquet
from attndyn.tasks import Permutations, Subsets
from attndyn.training.condition import Adam, Condition, Likelihood
from attndyn.training.precision import Precision
from attndyn.training.recorder import Recorder

READINGS = tuple(kind(every=3) for kind in (Answers, Attention, Lexical, MeanState, Keep))
HARD = Condition(
    name="hard", task=Permutations(3), model=Seq2Seq(8), seeds=(0, 1, 2, 3), steps=10, batch=4, evaluation=3,
    optimiser=Adam(lr=1e-2), readings=READINGS,
)  # fmt: skip
EASY = replace(HARD, name="easy", task=Subsets(3, of=5), seeds=(0, 1), steps=7, rule=Uniform())
BROKEN = replace(HARD, name="broken", seeds=(5,), optimiser=Adam(lr=1e38))
BOTH = (HARD, EASY)


def unit_of(condition: Condition, *seeds: int, first: int = 0) -> Unit:
    return Unit(tuple(Replica(condition, seed, first + row) for row, seed in enumerate(seeds)))


def silent(done: int, total: int, seconds: float, rows: Sequence[Row]) -> None:
    pass


def make(folder: Path, conditions: Sequence[Condition] = BOTH, progress: Any = silent) -> Runner:
    return Runner(conditions, Recorder(folder), "cpu", progress)


def results(runner: Runner) -> dict[str, bytes]:
    """The files that a finished run leaves, by name."""
    folder = runner.recorder.folder
    runner.recorder.finish([condition.name for condition in runner.conditions])
    paths = [folder / METRICS, *(folder / "traces").rglob("*.safetensors")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def run(folder: Path, conditions: Sequence[Condition] = BOTH) -> dict[str, bytes]:
    runner = make(folder, conditions)
    runner.execute()
    return results(runner)


def rows_of(found: dict[str, bytes], condition: str, replica: int | None = None) -> list[str]:
    """As text, since NaN is not equal to itself; repr gives every bit of a float."""
    rows = [Row(**row) for row in from_parquet(found[METRICS]).to_pylist()]
    return [repr(row) for row in rows if row.condition == condition and replica in (None, row.replica)]


def interrupting(at: int, number: signal.Signals = signal.SIGINT) -> Callable[..., None]:
    """A progress that sends this process a signal when it is told for the nth time of what was done."""
    assert threading.current_thread() is threading.main_thread()
    calls = 0

    def progress(done: int, total: int, seconds: float, rows: Sequence[Row]) -> None:
        nonlocal calls
        calls += bool(rows)
        if calls == at:
            os.kill(os.getpid(), number)

    return progress


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return run(tmp_path_factory.mktemp("uninterrupted"))


# What is recorded


def test_every_reading_is_recorded_at_its_steps(uninterrupted: dict[str, bytes]) -> None:
    rows = [Row(**row) for row in from_parquet(uninterrupted[METRICS]).to_pylist()]
    metrics = {row.metric for row in rows}
    assert {"accuracy", "loss", "attention entropy", "probe right", "mean state spread"} < metrics
    wanted = [
        (condition.name, seed, step, metric)
        for condition, steps in ((HARD, (0, 3, 6, 9, 10)), (EASY, (0, 3, 6, 7)))
        for seed in condition.seeds
        for step in steps
        for metric in sorted(metrics)
    ]
    assert [row[:4] for row in rows] == wanted
    names = {f"traces/chunk-000/step-{step:06d}.safetensors" for step in (0, 3, 6, 7, 9, 10)}
    assert set(uninterrupted) == {METRICS, *names}


def test_recorded_values_are_those_of_the_trainer(uninterrupted: dict[str, bytes]) -> None:
    worker = Worker(unit_of(HARD, 2), "cpu")
    for _ in range(9):
        worker.trainer.advance()
    with torch.no_grad():
        (examples,) = worker.examples["valid"]
        logits, alpha = worker.trainer.model.eval()(examples, HARD.rule)
        loss = float(Likelihood()(logits, alpha, examples)[0])
    (row,) = [row for row in rows_of(uninterrupted, "hard", 2) if "step=9, metric='loss'" in row]
    assert row == repr(Row("hard", 2, 9, "loss", loss))


def test_progress_is_told_all_the_way(tmp_path: Path) -> None:
    told: list[tuple[int, int, int]] = []
    runner = make(tmp_path, progress=lambda done, total, seconds, rows: told.append((done, total, len(rows))))
    runner.execute()
    whole = sum(len(one.seeds) * Unit((Replica(one, 0, 0),)).effort[-1] for one in BOTH)
    assert {total for _, total, _ in told} == {whole}
    assert told[-1][0] == whole >= 4 * 10 + 2 * 7
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[0] == (0, whole, 0)
    assert told[1][2] > 0
    assert runner.diverged == []


def test_replicas_with_more_steps_take_more_at_once_and_all_end_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: dict[str, list[int]] = {"hard": [], "easy": []}
    advance = Worker.advance

    def watched(worker: Worker, steps: int, stop: threading.Event) -> list[Any]:
        before = worker.trainer.step
        seen = advance(worker, steps, stop)
        taken[worker.unit.condition.name].append(worker.trainer.step - before)
        return seen

    monkeypatch.setattr(Worker, "advance", watched)
    monkeypatch.setattr(module, "SEGMENT_SECONDS", float("inf"))  # every segment is twice the one before
    make(tmp_path, [replace(HARD, seeds=(1,)), replace(EASY, seeds=(1,), steps=5)]).execute()
    assert taken == {"hard": [1, 2, 4, 3], "easy": [1, 1, 2, 1]}


# A replica does not know its neighbours


def test_a_seed_alone_gives_what_it_gives_among_others(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    alone = run(tmp_path, [replace(HARD, seeds=(2,))])
    assert rows_of(alone, "hard") == rows_of(uninterrupted, "hard", 2)
    assert rows_of(alone, "hard") != [
        row.replace("replica=1", "replica=2") for row in rows_of(uninterrupted, "hard", 1)
    ]


@pytest.mark.parametrize("cores", [1, 3])
def test_the_number_of_cores_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: dict[str, bytes], cores: int
) -> None:
    monkeypatch.setattr(module, "cores", lambda: cores)
    assert run(tmp_path) == uninterrupted


@pytest.mark.parametrize("chunk", [1, 5])
def test_the_size_of_a_chunk_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: dict[str, bytes], chunk: int
) -> None:
    monkeypatch.setattr(planning, "CHUNK", chunk)
    found = run(tmp_path)
    assert found[METRICS] == uninterrupted[METRICS]
    assert len(found) > len(uninterrupted)  # the traces lie in more folders


def test_seeds_as_one_unit_give_what_they_give_alone(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    """As on a GPU: to float tolerance. The traces carry the same names."""
    from safetensors.torch import load

    runner = make(tmp_path)
    runner.chunks = [[unit_of(HARD, *HARD.seeds), unit_of(EASY, *EASY.seeds, first=4)]]
    runner.execute()
    stacked = results(runner)
    assert set(stacked) == set(uninterrupted)
    for one, other in zip(
        *(from_parquet(found[METRICS]).to_pylist() for found in (stacked, uninterrupted)), strict=True
    ):
        assert one == {**other, "value": pytest.approx(other["value"], rel=1e-4, abs=1e-5)}
    for name in set(stacked) - {METRICS}:
        one, other = load(stacked[name]), load(uninterrupted[name])
        assert set(one) == set(other)
        for key, value in other.items():
            torch.testing.assert_close(one[key], value, rtol=1e-2, atol=1e-3)


def test_each_seed_may_have_its_own_learning_rate(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    found = run(tmp_path, [replace(HARD, optimiser=Adam(lr=(1e-3, 1e-1, 1e-2, 1e-4)))])
    assert rows_of(found, "hard", 2) == rows_of(uninterrupted, "hard", 2)
    assert rows_of(found, "hard", 1) != rows_of(uninterrupted, "hard", 1)


# Observing changes nothing


def final_weights(folder: Path, monkeypatch: pytest.MonkeyPatch, readings: tuple[Any, ...]) -> list[Tensor]:
    made: list[Worker] = []

    class Noted(Worker):
        def __init__(self, unit: Unit, device: str, precision: Precision, beside: int | None) -> None:
            super().__init__(unit, device, precision, beside)
            made.append(self)

    with monkeypatch.context() as patch:
        patch.setattr(module, "Worker", Noted)
        make(folder, [replace(condition, readings=readings) for condition in BOTH]).execute()
    assert [worker.trainer.step for worker in made] == [10] * 4 + [7] * 2
    return [worker.trainer.optimiser.values for worker in made]


def test_readings_on_off_or_more_often_end_in_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    often = tuple(replace(reading, every=1) for reading in READINGS)
    runs = [
        final_weights(tmp_path / str(number), monkeypatch, readings)
        for number, readings in enumerate([(), READINGS, often])
    ]
    for without, some, many in zip(*runs, strict=True):
        assert torch.equal(without, some)
        assert torch.equal(without, many)


def test_a_run_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    random, threads = torch.get_rng_state(), torch.get_num_threads()
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    make(tmp_path).execute()
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.get_num_threads() == threads
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


# A replica that breaks


@dataclass(frozen=True)
class BreaksAt:
    """Likelihood, but for NaN where seed 1 of `HARD` comes to one step; known by its batch, so it needs no counter."""

    step: int

    def __call__(self, logits: Tensor, alpha: Tensor, batch: Any) -> Tensor:
        losses = Likelihood()(logits, alpha, batch)
        words = HARD.task.build([1]).batch(self.step, HARD.batch).source
        broken = [bool(torch.equal(source, words[0])) for source in batch.source]
        return losses.masked_fill(torch.tensor(broken), torch.nan)


def test_a_replica_that_breaks_is_reported_and_the_others_do_not_notice(
    tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    runner = make(tmp_path, [replace(HARD, objective=BreaksAt(5)), EASY])
    runner.execute()
    found = results(runner)
    assert runner.diverged == [{"condition": "hard", "replica": 1, "step": 5}]
    for condition, seed in (("hard", 0), ("hard", 2), ("hard", 3), ("easy", 0), ("easy", 1)):
        assert rows_of(found, condition, seed) == rows_of(uninterrupted, condition, seed)
    # up to the break it is like any other; behind it only the break itself is recorded
    sound = [row for row in rows_of(uninterrupted, "hard", 1) if "step=0" in row or "step=3" in row]
    broken = [row for row in rows_of(found, "hard", 1) if "'diverged'" not in row]
    assert broken == sound


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_broken_replica_is_still_reported_after_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setattr(planning, "CHUNK", 1)
    conditions = [BROKEN, EASY]
    whole = run(tmp_path / "whole", conditions)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "run", conditions, interrupting(at)).execute()
    runner = make(tmp_path / "run", conditions)
    runner.execute()
    assert runner.diverged == [{"condition": "broken", "replica": 5, "step": 1}]
    assert results(runner) == whole


def test_a_broken_replica_records_the_same_steps_in_a_unit_with_others(tmp_path: Path) -> None:
    condition = replace(HARD, objective=BreaksAt(5), rule=Learned())
    alone, together = make(tmp_path / "alone", [condition]), make(tmp_path / "together", [condition])
    together.chunks = [[unit_of(condition, *condition.seeds)]]
    steps = []
    for runner in (alone, together):
        runner.execute()
        assert runner.diverged == [{"condition": "hard", "replica": 1, "step": 5}]
        steps.append(sorted({row.step for row in runner.recorder.rows if row[1] == 1 and row.metric == "loss"}))
    assert steps == [[0, 3], [0, 3]]
