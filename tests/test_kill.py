"""Killed at any moment and continued, a run ends in the same bytes as one that was never stopped."""

import itertools
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import attndyn

SETTINGS = [
    "--length",
    "5",
    "--words",
    "8",
    "--hidden",
    "16",
    "--batch",
    "16",
    "--seeds",
    "3",
    "--steps",
    "300",
    "--every",
    "10",
]
KILLS = 20

DRIVER = """
import os, signal, sys
from attndyn import cli, runner
from attndyn.cli import main
cli.has_charts = lambda: False  # the page is not what is tested
runner.SAVE_SECONDS, runner.SEGMENT_SECONDS, runner.CHUNK = 0.1, 0.05, 4
if sys.argv[1] == "inside":  # dies with a save half written
    from attndyn.store import atomic
    write, calls = atomic.write_bytes, iter(range(10**6))
    def dying(path, data):
        if path.name == "rows.parquet" and next(calls) == 2:
            path.write_bytes(data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        write(path, data)
    atomic.write_bytes = dying
main(sys.argv[2:])
"""


def command(folder: Path, mode: str = "plain") -> list[str]:
    return [sys.executable, "-c", DRIVER, mode, "run", "copying", *SETTINGS, "--out", str(folder)]


def start(folder: Path, mode: str = "plain") -> subprocess.Popen[bytes]:
    return subprocess.Popen(command(folder, mode), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finish(folder: Path) -> None:
    done = subprocess.run(command(folder), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def assert_same(folder: Path, whole: Path) -> None:
    traces = [path.relative_to(whole) for path in (whole / "traces").rglob("*.safetensors")]
    assert traces
    for name in ("metrics.parquet", "claims.json", *traces):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sigkill_at_random_moments(tmp_path: Path) -> None:
    started = time.monotonic()
    finish(tmp_path / "whole")
    whole = time.monotonic() - started
    moments = random.Random(20)
    folders = (tmp_path / f"killed-{number}" for number in itertools.count())
    kills, folder = 0, next(folders)
    while kills < KILLS:
        inside = kills == 3
        process = start(folder, "inside" if inside else "plain")
        try:
            process.wait(timeout=None if inside else moments.uniform(0.3, 0.9) * whole)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        if process.returncode == 0:  # what was left was done before the axe fell
            assert_same(folder, tmp_path / "whole")
            folder = next(folders)
            continue
        assert process.returncode == -9
        kills += 1
        if (folder / "run.json").exists():
            attndyn.Run(folder).metrics  # noqa: B018 (loads, whatever was killed)
    finish(folder)
    assert_same(folder, tmp_path / "whole")
