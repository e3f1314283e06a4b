"""Killed at any moment and continued, a run ends in the same bytes as one that was never stopped."""

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


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sigkill_at_random_moments(tmp_path: Path) -> None:
    started = time.monotonic()
    finish(tmp_path / "whole")
    whole = time.monotonic() - started
    moments = random.Random(20)
    rounds = finished = 0
    while rounds < KILLS:
        folder = tmp_path / f"killed-{finished}"
        process = start(folder, "inside" if rounds == 3 else "plain")
        try:
            process.wait(timeout=None if rounds == 3 else moments.uniform(0.3, 1.1) * whole)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        if process.returncode == 0:  # it was quicker than the axe: take a new folder
            finished += 1
            continue
        assert process.returncode == -9
        rounds += 1
        if (folder / "run.json").exists():
            attndyn.Run(folder).metrics  # noqa: B018 (loads, whatever was killed)
    for number in range(finished + 1):
        finish(tmp_path / f"killed-{number}")
        for name in ("metrics.parquet", "claims.json"):
            assert (tmp_path / f"killed-{number}" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        traces = {path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole" / "traces").rglob("*.*")}
        assert traces
        for trace in traces:
            assert (tmp_path / f"killed-{number}" / trace).read_bytes() == (tmp_path / "whole" / trace).read_bytes()
