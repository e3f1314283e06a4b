"""Conditions × seeds as replicas: none knows its neighbours, observing changes nothing, interrupted = uninterrupted.

"Equal" here means bitwise: the bytes of the metrics file and of every trace are compared.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from attndyn import plan as planning
from attndyn import process
from attndyn import runner as module
from attndyn.measures.readings import Answers, Attention, Keep, Lexical, MeanState
from attndyn.models import Learned, Seq2Seq, Uniform
from attndyn.models.specs import Tagger
from attndyn.plan import Replica, Unit
from attndyn.runner import Runner, Worker
from attndyn.store import checkpoint
from attndyn.store.folder import METRICS
from attndyn.store.metrics import Row, from_parquet
from attndyn.tasks import Permutations, Subsets
from attndyn.tasks.grammar import MadeChunks
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
    assert {total for _, total, _ in told} == {4 * 10 + 2 * 7}
    assert told[-1][0] == 54
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[0] == (0, 54, 0)
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


# Interrupted = uninterrupted


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


@pytest.mark.parametrize("chunk", [2, 16])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_an_interrupted_run_continues_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, chunk: int
) -> None:
    monkeypatch.setattr(planning, "CHUNK", chunk)
    whole = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "run", progress=interrupting(at)).execute()
    assert checkpoint.latest(tmp_path / "run") is not None
    assert run(tmp_path / "run") == whole


def test_a_run_may_be_interrupted_again_and_again(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    """At every first progress: each part trains one step."""
    interruptions = 0
    while True:
        runner = make(tmp_path, progress=interrupting(1))
        try:
            runner.execute()
        except KeyboardInterrupt:
            interruptions += 1
        else:
            break
    assert interruptions == 10
    assert results(runner) == uninterrupted


def test_being_asked_to_end_saves_too(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, progress=interrupting(2, signal.SIGTERM)).execute()
    assert run(tmp_path) == uninterrupted


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_who_waits_for_the_end_is_told_what_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], patience: float
) -> None:
    monkeypatch.setattr(process, "UNTOLD_SECONDS", patience)
    with process.stop_requests() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(10)
        said = "" if patience else process.STOPPING + "\n"
        deadline = time.monotonic() + 10
        while (found := capsys.readouterr().err) != said and time.monotonic() < deadline:
            time.sleep(0.01)
        assert found == said
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_finished_training_is_not_trained_again(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    run(tmp_path)
    runner = make(tmp_path, progress=lambda *where: pytest.fail("trained again"))
    runner.execute()
    assert results(runner) == uninterrupted


def test_the_working_time_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, progress=interrupting(2)).execute()
    save = checkpoint.latest(tmp_path)
    assert 0 < save.seconds < 60
    checkpoint.write(tmp_path, replace(save, number=save.number + 1, seconds=1000.0))
    runner = make(tmp_path)
    runner.execute()
    assert 1000 < runner.seconds < 1060


def save_after_each_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(module, "SAVE_SHARE", 1e9)


@pytest.mark.parametrize(("share", "fewest", "most"), [(1e9, 4, 10), (1e-9, 1, 1)])
def test_saving_takes_no_more_than_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, fewest: int, most: int
) -> None:
    """Where a save would take more than its share, the one at the end of the chunk is the only one."""
    save_after_each_segment(monkeypatch)
    monkeypatch.setattr(module, "SAVE_SHARE", share)
    saves, write = [], checkpoint.write
    monkeypatch.setattr(checkpoint, "write", lambda folder, save: (saves.append(save.number), write(folder, save)))
    make(tmp_path).execute()
    assert saves == list(range(1, len(saves) + 1))
    assert fewest <= len(saves) <= most


class Crash(Exception):
    """The process dies: nothing is saved on the way out."""


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_a_crash_loses_only_what_came_after_the_last_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: dict[str, bytes], at: int
) -> None:
    save_after_each_segment(monkeypatch)
    calls = 0

    def progress(*where: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise Crash

    with pytest.raises(Crash):
        make(tmp_path, progress=progress).execute()
    assert (checkpoint.latest(tmp_path) is not None) == (at > 2)
    assert run(tmp_path) == uninterrupted


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_crash_between_traces_and_save_is_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: dict[str, bytes], at: int
) -> None:
    save_after_each_segment(monkeypatch)
    calls, write = 0, checkpoint.write

    def crash(folder: Path, save: checkpoint.Save) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise Crash
        write(folder, save)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write", crash)
        with pytest.raises(Crash):
            make(tmp_path).execute()
    assert list((tmp_path / "traces").rglob("*.safetensors"))
    assert run(tmp_path) == uninterrupted


def test_a_damaged_newest_save_is_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: dict[str, bytes]
) -> None:
    save_after_each_segment(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, progress=interrupting(3)).execute()
    newest = max((tmp_path / "checkpoints").glob("save-*"))
    (newest / checkpoint.STATE).write_bytes(b"damaged")
    assert run(tmp_path) == uninterrupted


def test_a_run_stopped_before_its_first_step_records_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: dict[str, bytes]
) -> None:
    """Ctrl-C while the models are made, or while a replica still waits for a core."""

    @contextmanager
    def already_asked() -> Any:
        stop = threading.Event()
        stop.set()
        yield stop

    with monkeypatch.context() as patch:
        patch.setattr(module, "stop_requests", already_asked)
        with pytest.raises(KeyboardInterrupt):
            make(tmp_path).execute()
    assert run(tmp_path) == uninterrupted


@dataclass(frozen=True, kw_only=True)
class Asking(Answers):
    """The run is asked to stop while the nth slice is read, counted over all readings."""

    nth: int
    asked: ClassVar[threading.Event]
    slices: ClassVar[int]

    def run(self, trace: Any) -> Any:
        if Asking.slices == self.nth:
            Asking.asked.set()
        Asking.slices += 1
        yield from super().run(trace)


@pytest.mark.parametrize(("at", "broken_off"), [(0, True), (2, False), (4, True), (8, False), (13, True), (14, False)])
def test_a_reading_that_is_broken_off_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, broken_off: bool
) -> None:
    """Five readings of three slices: before the first step, while training, and after the last step."""
    monkeypatch.setattr(module, "TOKENS", 1)
    alone = replace(
        HARD, task=MadeChunks(sentences=60), model=Tagger(width=8, hidden=8, heads=2), seeds=(0,),
        readings=(Asking(every=3, nth=at),), best=("lowest loss",),
    )  # fmt: skip

    def results_of(folder: Path) -> tuple[dict[str, bytes], dict[str, Tensor]]:
        runner = make(folder, [alone])
        runner.execute()
        return results(runner), runner.recorder.kept(0, 0, "lowest loss")

    Asking.asked, Asking.slices = threading.Event(), at + 1
    whole, best = results_of(tmp_path / "whole")
    Asking.slices = 0

    @contextmanager
    def asked() -> Any:
        yield Asking.asked

    with monkeypatch.context() as patch:
        patch.setattr(module, "stop_requests", asked)
        with pytest.raises(KeyboardInterrupt):
            make(tmp_path / "run", [alone]).execute()
    assert Asking.slices == at + 1
    save = checkpoint.latest(tmp_path / "run")
    assert save is not None
    assert bool(save.state["0.owed"]) == broken_off
    found, kept = results_of(tmp_path / "run")
    assert found == whole
    assert all(torch.equal(kept[name], best[name]) for name in best)


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
