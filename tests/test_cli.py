"""The real commands on a tiny budget: what they leave, what they say, and how they refuse."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from attndyn import __version__, verbs
from attndyn.cli import main
from attndyn.console import EARLIER, print_claims
from attndyn.studies import STUDIES, find
from tests.command import call
from tests.studies.tiny import make_tiny

TINY = ["--length", "4", "--words", "6", "--hidden", "8", "--batch", "8", "--seeds", "2", "--steps", "6"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "run"
    main(["run", "copying", *TINY, "--controls", "--longer", "2", "--out", str(folder)])
    return folder


def test_a_run_leaves_claims_metrics_and_page(finished: Path) -> None:
    import pyarrow.parquet as pq

    names = {path.name for path in finished.iterdir()}
    assert {"claims.json", "metrics.parquet", "report.html", "run.json", "figures", "traces"} <= names
    assert "checkpoints" not in names
    table = pq.read_table(finished / "metrics.parquet")
    assert table.column_names == ["condition", "replica", "step", "metric", "value"]
    assert set(table["condition"].to_pylist()) == {
        "permutations of 4",
        "4 of 6",
        "mixture of 2 × 4",
        "4 i.i.d. words",
        "permutations, uniform attention",
        "permutations, no context",
    }
    assert max(table["step"].to_pylist()) == 12  # twice as long
    info = json.loads((finished / "run.json").read_text())
    assert info["status"] == "finished"
    assert info["settings"]["hidden"] == 8
    assert info["command"].startswith("attndyn run copying --scale demo")
    assert {path.suffix for path in (finished / "figures").iterdir()} == {".svg", ".png"}


def test_every_statement_has_an_entry(finished: Path) -> None:
    claims = json.loads((finished / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [
        "S-01", "S-03", "S-22", "S-23", "S-24", "S-25", "B-10", "B-11", "B-13", "O-09",
    ]  # fmt: skip
    fields = {
        "id",
        "source",
        "statement",
        "rule",
        "published",
        "measured",
        "interval",
        "of",
        "n",
        "scale",
        "verdict",
        "why",
    }
    assert all(set(claim) == fields for claim in claims)
    assert all(claim["verdict"] != "not judged at this scale" for claim in claims), "the controls were trained"


@pytest.mark.parametrize("study", STUDIES)
def test_the_statements_are_those_of_the_catalogue(study: str) -> None:
    catalogue = Path(__file__).resolve().parents[2] / "shared" / "claims.md"
    if not catalogue.exists():
        pytest.skip("the catalogue of claims is not beside this checkout")
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in catalogue.read_text().splitlines()]
    named = {row[1] for row in rows if len(row) == 7 and study in row[5].split(", ")}
    assert named
    published = {statement.id for statement in find(study).statements if statement.source != "this study"}
    assert published == named


def test_untried_statements_are_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "run", "copying", *TINY, "--out", tmp_path / "run")[0] == 0
    claims = {claim["id"]: claim for claim in json.loads((tmp_path / "run" / "claims.json").read_text())}
    for untried in ("S-25", "B-11", "O-09"):
        assert claims[untried]["verdict"] == "not judged at this scale"


def test_the_same_command_shows_the_finished_run(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.name != ".lock"}
    words = ["run", "copying", *TINY, "--controls", "--longer", "2", "--out", finished]
    code, out, _ = call(capsys, *words)
    assert code == 0
    assert "seeds learned" in out
    assert str(finished / "report.html") in out
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.name != ".lock"} == before


def test_another_run_is_byte_identical(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "copying", *TINY, "--controls", "--longer", "2", "--out", tmp_path / "again"]
    assert call(capsys, *words)[0] == 0
    for name in ("metrics.parquet", "claims.json"):
        assert (tmp_path / "again" / name).read_bytes() == (finished / name).read_bytes()


def test_fresh_starts_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert call(capsys, "run", "copying", *TINY, "--out", folder)[0] == 0
    first = (folder / "run.json").read_text()
    (folder / "mine.txt").write_text("not the run's")
    assert call(capsys, "run", "copying", *TINY, "--steps", "4", "--out", folder, "--fresh")[0] == 0
    assert (folder / "run.json").read_text() != first
    assert (folder / "mine.txt").exists()


def test_report_builds_the_page_again(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (finished / "report.html").read_bytes()
    (finished / "report.html").unlink()
    assert call(capsys, "report", finished)[0] == 0
    assert (finished / "report.html").read_bytes() == page
    assert call(capsys, "report", finished, "--pdf")[0] == 0
    assert (finished / "figures" / "accuracy.pdf").read_bytes().startswith(b"%PDF")


def test_the_repeating_command_repeats(finished: Path) -> None:
    from attndyn.cli import parse_run
    from attndyn.provenance import settings_of
    from attndyn.studies.copying import Copying

    info = json.loads((finished / "run.json").read_text())
    _, study = parse_run(Copying, info["command"].split()[3:])
    assert settings_of(study) == info["settings"]


def test_list_and_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version")[1] == f"attndyn {__version__}\n"
    assert "attndyn run STUDY" in call(capsys)[1]
    assert "copying" in call(capsys, "list")[1]
    listed = json.loads(call(capsys, "list", "--json")[1])
    assert [study["name"] for study in listed["studies"]] == list(STUDIES)
    for verb in ("list", "reproduce", "report", "doctor", "bench"):
        code, out, _ = call(capsys, verb, "--help")
        assert code == 0
        assert out.startswith(f"  attndyn {verb}"), verb
        assert out.count("  attndyn ") == 1, verb
    assert "NAME is one of: agreement, alignment, audit, copying" in call(capsys, "bench", "--help")[1]
    code, out, _ = call(capsys, "run", "copying", "--help")
    assert code == 0
    assert "Independent training runs" in out


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_reproduce_prints_the_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_tiny(monkeypatch)
    monkeypatch.chdir(tmp_path)
    code, out, _ = call(capsys, "reproduce", "copying", "--json")
    assert code == 0
    claims = json.loads(out)
    assert {"study", "id", "published", "measured", "verdict"} <= set(claims[0])
    assert {claim["study"] for claim in claims} == {"copying"}
    by_id = {claim["id"]: claim for claim in claims}
    assert by_id["S-22"]["recorded"]["scale"] == "paper"  # docs/results of this checkout
    assert {claim["study"] for claim in json.loads(call(capsys, "reproduce", "--json")[1])} == set(STUDIES)
    code, out, err = call(capsys, "reproduce", "learnability", "copying")
    assert code == 0
    shown = [f"{study.name}: {study.title}" for study in (find("learnability"), find("copying"))]
    assert [line for line in out.splitlines() if line in shown] == shown
    assert out.count("at paper scale") == 2
    both = len(find("learnability").statements) + len(find("copying").statements)
    assert out.splitlines()[-1].startswith(f"{both} claims: ")
    assert err.splitlines() == ["learnability, 1 of 2", "copying, 2 of 2"]  # both are finished: nothing is run again


def test_what_was_recorded_elsewhere_or_by_an_earlier_rule_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    claims = verbs.recorded(find("copying"))
    assert (claims["B-10"]["on"], claims["B-10"]["earlier_rule"]) == ("", False)
    other = verbs.recorded(find("feature-importance"))["J-01"]
    assert other["on"] == "sst"  # the study's own corpus has no published values
    changed = replace(find("copying").statements[0], rule="another one")
    kind = type("Changed", (find("copying"),), {"statements": (changed,)})
    assert verbs.recorded(kind)[changed.id]["earlier_rule"]
    print_claims([{**other, "recorded": other | {"earlier_rule": True}}])
    shown = capsys.readouterr().out
    assert "at paper scale" in shown  # the mark of an earlier rule leaves the columns wide enough to be read
    assert "sst: " in shown
    assert f"{other['verdict']}*" in shown
    assert EARLIER in shown
    print_claims([{**other, "recorded": other | {"earlier_rule": False}}])
    assert "*" not in capsys.readouterr().out
    assert verbs.recorded(type("Unknown", (find("copying"),), {"name": "unknown"})) == {}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rum"], "did you mean 'run'"),
        (["run"], "needs the name of a study"),
        (["run", "copyng"], "did you mean 'copying'"),
        (["run", "--seeds", "3"], "the study comes first"),
        (["run", "copying", "--sead", "3"], "did you mean '--seeds'"),
        (["run", "copying", "--scale", "huge"], "there is no scale 'huge'"),
        (["run", "copying", "--length", "0"], "length must be at least 1"),
        (["run", "copying", "--length", "9", "--words", "8"], "cannot draw 9 different words out of 8"),
        (["run", "copying", "--seeds", "0"], "seeds must be at least 1"),
        (["run", "copying", "--hidden", "0"], "hidden must be at least 1"),
        (["run", "copying", "--batch", "-1"], "batch must be at least 1"),
        (["run", "copying", "--lr", "nan"], "lr must be a number above 0"),
        (["list", "--jsn"], "did you mean '--json'"),
        (["report"], "needs one run folder"),
        (["report", "no-such-folder"], "there is no folder no-such-folder"),
        (["reproduce", "copyng"], "did you mean 'copying'"),
        (["reproduce", "--scale", "huge"], "--scale is one of"),
        (["audit", "step-1.pt", "step-2.pt"], "there is no file or folder step-1.pt"),
        (["bench", "copyng"], "did you mean 'copying'"),
    ],
)
def test_a_mistake_is_answered_in_one_sentence(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = call(capsys, *words)
    assert code == 2
    assert says in err
    assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir()), "a refused command leaves nothing"


def test_a_bad_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "run", "copying", "--seeds", "many")
    assert code == 2
    assert "--seeds" in err
    assert "Traceback" not in err


def test_no_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    code, _, err = call(capsys, "run", "copying", *TINY, "--device", "cuda", "--out", tmp_path / "run")
    assert code == 2
    assert "no CUDA device" in err
    assert not (tmp_path / "run").exists()


def test_other_settings_are_refused_by_name(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "run", "copying", *TINY, "--controls", "--lr", "0.1", "--out", finished)
    assert code == 2
    assert "lr 0.002 instead of 0.1" in err
    assert "longer 2 instead of 1" in err


def test_a_folder_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    for fresh in ([], ["--fresh"]):
        code, _, err = call(capsys, "run", "copying", *TINY, "--out", tmp_path, *fresh)
        assert code == 2
        assert "is not a run folder (it holds thesis.tex)" in err
    (tmp_path / "file").write_text("")
    for fresh in ([], ["--fresh"]):
        code, _, err = call(capsys, "run", "copying", *TINY, "--out", tmp_path / "file", *fresh)
        assert code == 2
        assert "is a file" in err


@pytest.mark.parametrize("content", ["", "{", "[]", '{"study": "copying"', '{"other": 1}'])
def test_a_broken_run_json_is_named(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text(content)
    for words in (["report", tmp_path], ["run", "copying", *TINY, "--out", tmp_path]):
        code, _, err = call(capsys, *words)
        assert code == 2
        assert "run.json" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to a read-only folder")
def test_a_read_only_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    code, _, err = call(capsys, "run", "copying", *TINY, "--out", tmp_path / "run")
    assert code == 2
    assert "cannot write" in err


def test_a_full_gpu_is_known_by_the_error_behind_the_last_one() -> None:
    from attndyn.cli import is_full

    broken = RuntimeError("CUDA error: operation failed due to a previous error during capture")
    assert not is_full(broken)
    broken.__context__ = RuntimeError("CUDA out of memory. Tried to allocate 16.00 GiB.")
    assert is_full(broken)


def test_a_folder_below_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = call(capsys, "run", "copying", *TINY, "--out", tmp_path / "file" / "run")
    assert code == 2
    assert "cannot write" in err


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 1022.00 MiB."),
        ("AcceleratorError", "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation'"),
        ("RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_a_full_gpu_ends_in_one_sentence_and_is_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str, message: str
) -> None:
    import torch

    from attndyn.training.loop import Trainer

    advance, taken = Trainer.advance, 0

    def fails(trainer: Trainer, *given: object) -> object:
        nonlocal taken
        taken += 1
        if taken == 9:
            raise getattr(torch, kind, RuntimeError)(message)
        return advance(trainer, *given)

    command = ["run", "copying", *TINY, "--out", str(tmp_path / "run")]
    monkeypatch.setattr(Trainer, "advance", fails)
    code, _, said = call(capsys, *command)
    assert code == 1
    assert said.splitlines()[-1].startswith("attndyn: the memory of the GPU is full")
    assert "Traceback" not in said
    monkeypatch.undo()
    assert call(capsys, *command)[0] == 0


def test_a_full_disk_ends_in_one_sentence_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import errno

    from attndyn import runner

    monkeypatch.setattr(runner, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(runner, "SAVE_SHARE", float("inf"))
    words = ["run", "copying", *TINY, "--steps", "60", "--out"]
    fsync, calls = os.fsync, iter(range(10**6))

    def full(handle: int) -> None:
        if next(calls) > 40:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        code, _, err = call(capsys, *words, tmp_path / "run")
    assert code == 1
    assert "No space left on device" in err
    assert len([line for line in err.splitlines() if line.startswith("attndyn:")]) == 1
    assert "Traceback" not in err
    assert any((tmp_path / "run" / "checkpoints").glob("save-*"))
    assert not list((tmp_path / "run").rglob("*.part"))
    assert call(capsys, *words, tmp_path / "run")[0] == 0
    assert call(capsys, *words, tmp_path / "other")[0] == 0
    assert (tmp_path / "run" / "metrics.parquet").read_bytes() == (tmp_path / "other" / "metrics.parquet").read_bytes()


def test_a_diverging_run_exits_1_and_names_the_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "copying", *TINY, "--lr", "1e30", "--out", tmp_path / "run"]
    code, _, err = call(capsys, *words)
    assert code == 1
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    assert info["status"] == "diverged"
    assert {(entry["condition"], entry["replica"]) for entry in info["diverged"]} == {
        (condition, seed) for condition in ("permutations of 4", "4 of 6") for seed in (0, 1)
    }
    assert f"at step {info['diverged'][0]['step']}" in err
    assert (tmp_path / "run" / "report.html").exists()
    assert call(capsys, *words)[0] == 1, "asked again, it says so again"


def test_runs_without_altair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from attndyn import cli

    monkeypatch.setattr(cli, "has_charts", lambda: False)
    code, out, _ = call(capsys, "run", "copying", *TINY, "--out", tmp_path / "run")
    assert code == 0
    assert f"attndyn report {tmp_path / 'run'}" in out
    assert not (tmp_path / "run" / "report.html").exists()


def test_a_second_process_is_refused_and_ctrl_c_saves(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "attndyn", "run", "copying", *TINY, "--steps", "100000", "--out", str(tmp_path)]
    first = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert first.stderr is not None
    assert first.stderr.readline() == "reading everything once, before the first step\n"
    assert "of work on this machine" in first.stderr.readline()
    second = subprocess.run(words, capture_output=True, text=True)
    assert second.returncode == 2
    assert second.stderr.strip().splitlines() == [
        f"attndyn: another process is working in {tmp_path}; wait for it or choose another --out"
    ]
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=60)
    assert first.returncode == 130
    assert err.strip().splitlines()[-1] == "attndyn: stopped; the same command again continues from here"
    assert list((tmp_path / "checkpoints").glob("save-*"))
    import attndyn

    assert attndyn.Run(tmp_path).metrics.num_rows > 0, "an unfinished run can be read"
