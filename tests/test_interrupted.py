"""Interrupted = uninterrupted: by Ctrl-C, a crash or a damaged save, before, between and within readings.

"Equal" here means bitwise: the bytes of the metrics file and of every trace are compared.
"""

import os
import signal
import threading
import time
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
from attndyn.measures.readings import Answers
from attndyn.models.specs import Tagger
from attndyn.store import checkpoint
from attndyn.tasks.grammar import MadeChunks
from tests.test_runner import HARD, interrupting, make, results, run


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return run(tmp_path_factory.mktemp("uninterrupted"))


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
