"""Disks that are full or read-only, and folders with unusual names."""

import errno
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import attndyn
from attndyn import cli, runner
from tests.test_cli import call
from tests.test_kill import assert_loads, assert_no_part

SMALL = ["--length", "4", "--words", "6", "--hidden", "4", "--batch", "8", "--seeds", "2", "--steps", "12"]
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs the command line, saving after every segment of steps and drawing nothing."""
    monkeypatch.setattr(runner, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(runner, "SAVE_SHARE", float("inf"))
    monkeypatch.setattr(runner, "SEGMENT_SECONDS", 0.01)
    monkeypatch.setattr(cli, "has_charts", lambda: False)
    return lambda *words: call(capsys, *words)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0755", "tmpfs", str(folder)]
    if shutil.which("mount") is None or (done := subprocess.run(mount, capture_output=True, text=True)).returncode:
        reason = done.stderr.strip() if shutil.which("mount") else "there is no mount command"
        pytest.skip(f"a tmpfs cannot be mounted here: {reason}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def sentences(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("attndyn:")]


def fill(folder: Path, left: int) -> Path:
    """A file that leaves about so many bytes."""
    path, state = folder / "ballast", os.statvfs(folder)
    path.write_bytes(b"x" * max(0, state.f_bavail * state.f_frsize - left))
    return path


@pytest.mark.parametrize("left", [0, 40_960, 102_400, 163_840])
def test_a_disk_that_fills_up(left: int, small_disk: Path, tmp_path: Path, command: Call) -> None:
    """At the first file, in a save, between two saves: one sentence with the folder and the bytes; what was saved can
    be read, and the same command ends in the same bytes once there is room."""
    folder = small_disk / "run"
    ballast = fill(small_disk, left)
    code, _, err = command("run", "copying", *SMALL, "--out", folder)
    assert code == 1
    (sentence,) = sentences(err)
    assert str(folder) in sentence
    assert re.search(r"No space left on device for the [\d,]+ bytes of \S+; what was saved before", sentence)
    assert "Traceback" not in err
    assert_no_part(small_disk)
    assert_loads(folder)
    if left >= 102_400:
        assert any((folder / "checkpoints").glob("save-*")), "something had been saved"
        assert attndyn.Run(folder).metrics.num_rows
    ballast.unlink()
    assert command("run", "copying", *SMALL, "--out", folder)[0] == 0
    assert command("run", "copying", *SMALL, "--out", tmp_path / "whole")[0] == 0
    for name in ("metrics.parquet", "claims.json"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert_no_part(small_disk)


@pytest.mark.parametrize("at", [0, 7, 25])
def test_a_disk_that_says_it_is_full(at: int, tmp_path: Path, command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where nothing can be mounted."""
    fsync, calls = os.fsync, iter(range(10**6))

    def full(handle: int) -> None:
        if next(calls) >= at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        code, _, err = command("run", "copying", *SMALL, "--out", folder)
    assert code == 1
    (sentence,) = sentences(err)
    assert str(folder) in sentence
    assert re.search(r"No space left on device for the [\d,]+ bytes of \S+; what was saved before", sentence)
    assert_no_part(folder)
    assert_loads(folder)


def test_a_full_disk_in_the_page_keeps_the_numbers(
    small_disk: Path, command: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small_disk / "run"
    assert command("run", "copying", *SMALL, "--out", folder)[0] == 0
    numbers = (folder / "metrics.parquet").read_bytes()
    monkeypatch.setattr(cli, "has_charts", lambda: True)
    ballast = fill(small_disk, 100_000)
    code, _, err = command("run", "copying", *SMALL, "--out", folder)
    assert code == 1
    assert "bytes of " in sentences(err)[0]
    assert not (folder / "report.html").exists()
    assert (folder / "metrics.parquet").read_bytes() == numbers
    assert_no_part(folder)
    ballast.unlink()
    assert command("run", "copying", *SMALL, "--out", folder)[0] == 0
    assert (folder / "report.html").exists()


def test_a_read_only_disk(small_disk: Path, command: Call) -> None:
    """Nothing new can begin there, and what is there can still be read."""
    folder = small_disk / "run"
    assert command("run", "copying", *SMALL, "--out", folder)[0] == 0
    (small_disk / "train.de").write_text("ja\nnein\n")
    (small_disk / "train.en").write_text("yes\nno\n")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for words in (["run", "copying", *SMALL, "--out", small_disk / "new"], ["report", folder]):
        code, _, err = command(*words)
        assert code == 2
        assert sentences(err) == [f"attndyn: cannot write to {words[-1]}: Read-only file system"]
    assert attndyn.Run(folder).metrics.num_rows
    code, out, _ = command("runs", "show", folder)
    assert (code, "copying" in out) == (0, True)
    code, out, _ = command(
        "diagnose", "--source", small_disk / "train.de", "--target", small_disk / "train.en", "--json"
    )
    assert code == 0
    assert json.loads(out)


NAMES = {
    "spaces": " two  words ",
    "other scripts": "Größe 大小 μέγεθος",
    "quotes": "a'b\"c$(touch made)`touch made`;&",
    "as long as can be": "n" * 255,
}


@pytest.mark.parametrize("kind", NAMES)
def test_unusual_names(kind: str, tmp_path: Path, command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / NAMES[kind] / "run"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "has_charts", lambda: kind == "quotes")
    code, out, _ = command("run", "copying", *SMALL, "--out", folder)
    assert code == 0
    assert str(folder) in out
    assert attndyn.Run(folder).metrics.num_rows
    if kind == "quotes":
        (folder / "report.html").unlink()
        assert command("report", folder)[0] == 0
        assert (folder / "report.html").exists()
    code, out, _ = command("runs", "list", "--under", tmp_path, "--json")
    assert code == 0
    assert [entry["folder"] for entry in json.loads(out)] == [str(folder)]
    source, target = folder.parent / NAMES[kind][:250], folder.parent / "train.en"
    source.write_text("ja\nnein\n")
    target.write_text("yes\n")
    code, _, err = command("diagnose", "--source", source, "--target", target)
    assert code == 2
    assert f"{source} has 2 lines but {target} has 1" in err
    assert not list(tmp_path.rglob("made"))


@pytest.mark.parametrize("name", ["n" * 256, "é" * 128, "/".join(["n" * 200] * 25)], ids=["256", "bytes", "path"])
def test_a_name_that_is_too_long_is_one_sentence(name: str, tmp_path: Path, command: Call) -> None:
    code, _, err = command("run", "copying", *SMALL, "--out", tmp_path / name)
    assert code in (1, 2)
    (sentence,) = sentences(err)
    assert "File name too long" in sentence
    assert not list(tmp_path.iterdir())
