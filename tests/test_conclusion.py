"""The end of a run: what is kept when all is judged, whatever breaks it off, and what is not judged at all."""

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch

import attndyn
from attndyn import verbs
from attndyn.errors import Busy, RunError, UserError
from attndyn.store import atomic
from attndyn.store.folder import CHOSEN, FOLDERS
from attndyn.studies import find
from attndyn.studies.salient_words import SalientWords
from attndyn.training.loop import Trainer
from attndyn.training.recorder import Recorder
from tests.studies.tiny import TINY


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "own.tsv"
    texts = (f"{'yes' if n % 2 else 'no'}\tword{n % 5} and {'fine' if n % 2 else 'dull'} {n % 7}\n" for n in range(120))
    path.write_text("".join(texts))
    return path


@pytest.fixture
def study(corpus: Path) -> SalientWords:
    found = find("salient-words").at("demo", **TINY["salient-words"] | {"corpus": str(corpus), "batch": 8})
    assert isinstance(found, SalientWords)
    return found


def left(folder: Path) -> dict[str, bytes]:
    """All that a run leaves, but for its times."""
    info = json.loads((folder / "run.json").read_text())
    assert info["status"] == "finished"
    files = {path for path in folder.rglob("*") if path.is_file() and path.name not in ("run.json", ".lock")}
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class Killed(BaseException):
    """As good as the end of the process: nothing here catches it."""


@pytest.mark.slow
def test_a_run_that_is_broken_off_at_its_end_ends_the_same(
    study: SalientWords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each write, renaming and removal from the moment when all is judged, one after the other."""
    whole = left(attndyn.run(study, device="cpu", out=tmp_path / "whole", page=False).path)
    acts = [(atomic, "write_bytes"), (Path, "unlink"), (Path, "rename"), (shutil, "rmtree")]
    done = at = 0

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*words: Any, **named: Any) -> Any:
            nonlocal done
            done += 1
            if done == at:
                raise Killed
            return act(*words, **named)

        return counting

    def judged(recorder: Recorder, *words: Any) -> None:
        for where, name in acts if at else ():
            patch.setattr(where, name, counted(getattr(where, name)))
        if not at:
            raise Killed
        choose(recorder, *words)

    choose = Recorder.choose
    for at in range(100):  # at 0: trained and compared, nothing chosen yet; all others begin there
        folder, done = tmp_path / f"run-{at}", 0
        if at:
            shutil.copytree(tmp_path / "run-0", folder)
        with monkeypatch.context() as patch:
            patch.setattr(Recorder, "choose", judged)
            try:
                attndyn.run(study, device="cpu", out=folder, page=False)
            except Killed:
                broken = True
            else:
                broken = False
        if at:
            attndyn.run(study, device="cpu", out=folder, page=False)
            assert left(folder) == whole
        if not broken:
            break
    assert at > 10
    assert CHOSEN in FOLDERS  # what clears a folder knows it


@pytest.mark.parametrize("condition", ["standard", "uniform attention", "frozen β", "linear scoring", "proxy"])
def test_a_run_that_diverged_is_named_and_nothing_is_compared(
    study: SalientWords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    real = Trainer._learn

    def spoilt(self: Trainer, drawn: object) -> None:
        if self.condition.name == condition and self.step == 0:
            with torch.no_grad():
                next(self.model.parameters())[0].fill_(float("nan"))
        real(self, drawn)

    monkeypatch.setattr(Trainer, "_learn", spoilt)
    for _ in range(2):
        with pytest.raises(
            RunError, match=rf"seed \d+ of '{condition}' met a loss or gradient that is not finite at step"
        ):
            attndyn.run(study, device="cpu", out=tmp_path / "run")
    run = attndyn.Run(tmp_path / "run")
    assert run.info["status"] == "diverged"
    assert run.claims == []
    assert run.metrics.num_rows
    assert not (tmp_path / "run" / "report.html").exists()
    with pytest.raises(UserError, match="nothing was compared, so there is no page"):
        run.report()


def test_another_process_that_begins_a_finished_run_anew_is_left_to_it(
    study: SalientWords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attndyn.run(study, device="cpu", out=tmp_path / "run", page=False)
    real = verbs.lock

    def meanwhile(folder: Path) -> AbstractContextManager[None]:
        verbs.clear(folder)
        return real(folder)

    monkeypatch.setattr(verbs, "lock", meanwhile)
    with pytest.raises(Busy, match="another process has begun"):
        attndyn.run(study, device="cpu", out=tmp_path / "run", page=False)


def test_what_is_compared_on_a_cpu_hangs_on_no_number_of_cores(
    study: SalientWords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, compare = [], SalientWords.from_traces

    def counting(*given: Any) -> Any:
        found.append(torch.get_num_threads())
        yield from compare(*given)

    monkeypatch.setattr(SalientWords, "from_traces", counting)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        attndyn.run(study, device="cpu", out=tmp_path / "run", page=False)
        assert (found, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)
