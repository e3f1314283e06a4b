"""`attndyn watch`: a model that is watched after training, over its stored checkpoints."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import attndyn
from attndyn.cli import main
from attndyn.store.metrics import Metrics
from attndyn.watching import posthoc
from tests.watching.models import bert, padded, tokens

CLASSES = torch.tensor([0, 1, 2, 0, 1])

BUILDER = """
import torch
from tests.watching.models import bert
def model():
    return bert()
def broken():
    raise OSError("no such card")
def number():
    return 3
"""


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    from safetensors.torch import save_file

    torch.manual_seed(0)
    model = bert()
    for step in (0, 20, 100):
        with torch.no_grad():
            model.classifier.bias += step
        path = tmp_path / f"step-{step}.safetensors"
        if step == 20:
            path = path.with_suffix(".pt")
            torch.save({"state_dict": model.state_dict()}, path)
        else:
            save_file(model.state_dict(), path)
    examples = {name: values.tolist() for name, values in padded(tokens()).items()} | {"targets": CLASSES.tolist()}
    (tmp_path / "examples.json").write_text(json.dumps(examples), encoding="utf-8")
    (tmp_path / "stored_builder.py").write_text(BUILDER, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "stored_builder", raising=False)
    return [
        "watch", "--checkpoints", str(tmp_path / "step-*"), "--builder", "stored_builder:model",
        "--examples", str(tmp_path / "examples.json"), "--out", str(tmp_path / "run"), "--query", "0", "--probe", "2",
    ]  # fmt: skip


@pytest.mark.usefixtures("no_page")
def test_stored_checkpoints_are_watched(stored: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(stored)
    assert "3 readings up to step 100" in capsys.readouterr().out
    run = attndyn.Run(tmp_path / "run")
    assert run.trace_steps("words", 0) == [0, 20, 100]
    assert Metrics(run.metrics).curves("layer 0 head 0", "A(α, β)").steps.tolist() == [0, 20, 100]


@pytest.mark.usefixtures("no_page")
def test_the_same_command_shows_a_finished_run_and_makes_the_page_that_it_lacks(
    stored: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(*given: object) -> None:
        raise KeyboardInterrupt

    page, drawn = tmp_path / "run" / "report.html", []

    def draw(run: attndyn.Run, *rest: object) -> Path:
        drawn.append(run.path)
        page.write_text("page")
        return page

    with monkeypatch.context() as patch:
        patch.setattr("attndyn.report.page.build", broken_off)
        with pytest.raises(SystemExit, match="130"):
            main(stored)
    metrics = attndyn.Run(tmp_path / "run").metrics
    monkeypatch.setattr(posthoc, "build", broken_off)
    monkeypatch.setattr("attndyn.report.page.build", draw)
    for _ in range(2):
        capsys.readouterr()
        main(stored)
        said = capsys.readouterr().out
        assert "3 readings up to step 100" in said
        assert f"page  {page}" in said
    assert drawn == [tmp_path / "run"]
    assert attndyn.Run(tmp_path / "run").metrics.equals(metrics)
    (tmp_path / "run" / "metrics.parquet").unlink()
    with pytest.raises(SystemExit, match="2"):
        main(stored)
    assert "metrics.parquet is missing, though the run is finished; --fresh" in capsys.readouterr().err


@pytest.mark.usefixtures("no_page")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "step-30.safetensors").write_bytes((folder / "step-0.safetensors").read_bytes()),
         "the checkpoint of step 30;"),
        (lambda folder: (folder / "step-0.safetensors").unlink(), "the checkpoint of step 0;"),
        (lambda folder: (folder / "step-0.safetensors").write_bytes((folder / "step-100.safetensors").read_bytes()),
         "the checkpoint of step 0;"),
        (lambda folder: [(folder / f"step-{n}.pt").write_bytes(b"") for n in (1, 2, 3, 4, 5)],
         "the checkpoint of step 1, the checkpoint of step 2, the checkpoint of step 3 and 2 more;"),
        (lambda folder: (folder / "examples.json").write_text((folder / "examples.json").read_text() + " "),
         "--examples;"),
        (lambda folder: (folder / "stored_builder.py").write_text(BUILDER + "# other"), "the source of --builder;"),
        (lambda folder: ["--query", "1"], "--query;"),
        (lambda folder: ["--tokens", str(folder / "examples.json")], "--tokens;"),
    ],
)  # fmt: skip
def test_a_finished_run_is_not_shown_for_anything_else(
    change: Callable[[Path], Any], said: str, stored: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(stored)
    more = change(tmp_path)
    words = [*stored, *more] if isinstance(more, list) and "--" in str(more[0]) else stored
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert f"was made from has changed since: {said} --fresh makes it again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--checkpoints", "nowhere-*", "no file fits 'nowhere-*'"),
        ("--builder", "stored_builder", "--builder is module:function"),
        ("--builder", "no_such_module:f", "there is no module 'no_such_module'"),
        ("--builder", "stored_builder:modle", "did you mean 'model'"),
        ("--builder", "stored_builder:broken", "failed: OSError: no such card"),
        ("--builder", "stored_builder:number", "returned a int"),
        ("--examples", "nowhere.json", "there is no file nowhere.json"),
        ("--tokens", "nowhere.txt", "nowhere.txt cannot be read"),
    ],
)
def test_mistakes_in_the_command(
    flag: str, value: str, said: str, stored: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*stored, flag, value]
    if flag in stored:
        words = stored.copy()
        words[words.index(flag) + 1] = value
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code in (1, 2)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_of_another_model_or_with_code_in_it(
    stored: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Code:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    for name, content, said in (
        ("step-0.pt", {"a": torch.zeros(2)}, "has no weight"),
        ("step-0.pt", {"a": Code()}, "holds more than weights"),
        ("step-0.pt", [1, 2], "holds no table of weights"),
    ):
        other = tmp_path / "other"
        other.mkdir(exist_ok=True)
        torch.save(content, other / name)
        stored[2] = str(other / "step-*")
        with pytest.raises(SystemExit) as stopped:
            main(stored)
        assert stopped.value.code == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()
