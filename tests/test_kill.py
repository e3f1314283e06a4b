"""Killed at any moment and continued, a run ends in the same bytes as one that was never stopped."""

import itertools
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
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


def assert_loads(folder: Path) -> None:
    """Whatever was killed: there is no run yet, or it can be read, down to the last trace."""
    if not (folder / "run.json").exists():
        return
    run = attndyn.Run(folder)
    metrics = run.metrics
    assert metrics.column_names == ["condition", "replica", "step", "metric", "value"]
    assert isinstance(run.claims, list)
    for entry in run.info["replicas"]:
        condition, replica = entry["condition"], entry["replica"]
        for step in run.trace_steps(condition, replica):
            trace = run.trace(condition, replica, step)
            assert all(np.isfinite(trace[name]).all() for name in ("alpha", "beta"))


def assert_no_part(folder: Path) -> None:
    assert [path for path in folder.rglob("*") if path.name.endswith(".part")] == []


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
        assert_loads(folder)
    finish(folder)
    assert_same(folder, tmp_path / "whole")
    for last in tmp_path.iterdir():
        assert_no_part(last)


AT_EVERY_WRITE = """
import os, signal, sys
from pathlib import Path
import pyarrow.parquet, safetensors.torch, scipy.special, scipy.stats  # once, not in every child
import tests.test_kill as here
from attndyn import runner
from attndyn.verbs import run

folder, first, stride = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
runner.SAVE_SECONDS, runner.SAVE_SHARE, runner.SEGMENT_SECONDS = 0.0, float("inf"), 1e-9

def carry_out(name):
    run("copying", out=folder / name, page=False, length=3, words=5, hidden=4, batch=2, seeds=1, steps=3, every=2)

def kill_at(last):
    count = 0
    def counted(name):
        act = getattr(os, name)
        def counting(*given, **named):
            nonlocal count
            count += 1
            if count == last:
                if name == "fsync" and count % 2:  # as where the kernel had written a part of it
                    size = os.fstat(given[0]).st_size
                    if not os.path.isdir(f"/proc/self/fd/{given[0]}"):
                        os.ftruncate(given[0], size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*given, **named)
        setattr(os, name, counting)
    for name in ("fsync", "replace", "unlink", "rmdir", "mkdir"):
        counted(name)
    carry_out(f"killed-{last}")

def in_a_child(act, *given):
    child = os.fork()  # this process has no threads, and torch is loaded already
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        act(*given)
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

def take_up(last):
    killed = folder / f"killed-{last}"
    here.assert_loads(killed)
    carry_out(killed.name)
    here.assert_same(killed, folder / "whole")
    here.assert_no_part(killed)

assert in_a_child(carry_out, "whole") == 0
kills, last = 0, first
while (code := in_a_child(kill_at, last)) == -9:
    assert in_a_child(take_up, last) == 0, last
    kills, last = kills + 1, last + stride
assert code == 0, code
print(kills)
"""


@pytest.mark.parametrize(
    ("first", "stride", "fewest"), [(3, 17, 4), pytest.param(1, 1, 80, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_sigkill_at_every_write(tmp_path: Path, first: int, stride: int, fewest: int) -> None:
    """Before each call that changes the disk, until a run comes to its end: not one of them leaves a folder that does
    not load, or that continues to other bytes."""
    words = [sys.executable, "-c", AT_EVERY_WRITE, str(tmp_path), str(first), str(stride)]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= fewest
