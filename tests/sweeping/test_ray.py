"""A real Ray cluster on this machine: a head and two workers, each a raylet process of its own with one CPU. Workers
are killed while cells are in progress, which is seen in the temporary folder that each of them has for itself."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

import attndyn
from tests.sweeping.tiny import LEARNABILITY, contents, options, tables

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sockets,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install 'attndyn[ray]'"),
]
SOURCE = Path(attndyn.__file__).parents[1]
WORDS = ["sweep", "learnability", *options(LEARNABILITY | {"steps": 40}), "--grid", "seeds=1,2", "lr=1e-3,3e-3"]
CELLS = 4
TOKEN = secrets.token_hex(32)


def environment(**more: str) -> dict[str, str]:
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}  # not the user's, who may have one or none
    usual = {"PYTHONPATH": str(SOURCE), "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **usual, **own, **more}


def wait_for(what: str, found: Callable[[], object], seconds: float = 90) -> object:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if answer := found():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"no {what} within {seconds} s")


@dataclass
class Node:
    """One `ray start --block`, in a session of its own."""

    process: subprocess.Popen[bytes]
    scratch: Path

    @property
    def raylet(self) -> int:
        return next(pid for pid, words in self.below() if words[0].endswith("raylet/raylet"))

    @property
    def cell(self) -> int:
        """The process that works on a cell."""
        return next(pid for pid, words in self.below() if words[0].startswith("ray::cell"))

    def below(self) -> list[tuple[int, list[str]]]:
        """(process id, command line) of all that this node started."""
        import psutil

        found = psutil.Process(self.process.pid).children(recursive=True)
        lines = []
        for one in found:
            try:
                lines.append((one.pid, one.cmdline() or [""]))
            except psutil.NoSuchProcess:
                continue
        return lines

    def in_progress(self) -> str | None:
        """The cell that is being trained here, some steps after its beginning."""
        saves = sorted(self.scratch.glob("attndyn-*/*/run.json"))
        return next((path.parent.name for path in saves if json.loads(path.read_text())["status"] == "running"), None)

    def end(self) -> None:
        import psutil

        if self.process.poll() is None:
            below = psutil.Process(self.process.pid).children(recursive=True)
            for one in (*below, psutil.Process(self.process.pid)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
        self.process.wait(timeout=30)


class OneMachine:
    """A cluster of processes."""

    def __init__(self, folder: Path) -> None:
        import socket

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder, self.nodes = folder, list[Node]()
        self.address = f"127.0.0.1:{self.port}"

    def start(self, name: str, *words: str) -> None:
        scratch = self.folder / name
        scratch.mkdir()
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--object-store-memory=100000000"]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                env=environment(TMPDIR=str(scratch)),
            )  # fmt: skip
        self.nodes.append(Node(process, scratch))
        # one after the other: two that start at once on one machine take the same names
        wait_for(f"Ray on {name}", lambda: b"Ray runtime started" in (self.folder / f"{name}.log").read_bytes())


@pytest.fixture
def cluster() -> Iterator[OneMachine]:
    folder = Path(f"/tmp/attndyn-ray-{os.getpid()}")  # short: Ray puts sockets below it
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    made = OneMachine(folder)
    try:
        made.start("head", "--head", f"--port={made.port}", "--num-cpus=0", "--include-dashboard=false",
                   f"--temp-dir={folder}/ray")  # fmt: skip
        for name in ("one", "two"):
            made.start(name, f"--address={made.address}", "--num-cpus=1")
        yield made
    finally:
        for node in reversed(made.nodes):
            node.end()
        shutil.rmtree(folder, ignore_errors=True)


def start(out: Path, *more: str, source: Path = SOURCE) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "attndyn", *WORDS, "--device", "cpu", "--out", str(out), *more]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(PYTHONPATH=str(source))
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    assert "Traceback" not in err
    return err if code else out


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep made in one process."""
    folder = tmp_path_factory.mktemp("whole")
    finish(start(folder))
    return folder


def assert_same(folder: Path, whole: Path) -> None:
    assert tables(folder) == tables(whole)
    assert contents(folder) == contents(whole)
    assert len(list((folder / "cells").glob("*/claims.json"))) == CELLS


def finished(folder: Path, cell: str) -> bool:
    return (folder / "cells" / cell / "claims.json").exists()


def test_machines_and_processes_die_and_the_table_is_that_of_one_process(
    cluster: OneMachine, whole: Path, tmp_path: Path
) -> None:
    sweep = start(tmp_path, "--engine", "ray", "--address", cluster.address)
    _, one, two = cluster.nodes
    lost = str(wait_for("cell on the first machine", one.in_progress))
    os.kill(one.raylet, signal.SIGKILL)
    assert sweep.poll() is None
    assert not finished(tmp_path, lost)
    one.process.wait(timeout=60)
    again = str(wait_for("cell on the second machine", two.in_progress))
    before = two.cell
    os.kill(before, signal.SIGKILL)
    assert sweep.poll() is None
    assert not finished(tmp_path, again)
    printed = finish(sweep)
    assert printed.count("finished") == CELLS
    assert_same(tmp_path, whole)
    assert before not in [pid for pid, _ in two.below()]
    asked = start(tmp_path, "--engine", "ray", "--address", cluster.address)
    finish(asked)
    assert_same(tmp_path, whole)


def test_ctrl_c_leaves_a_sweep_that_either_engine_continues(cluster: OneMachine, whole: Path, tmp_path: Path) -> None:
    sweep = start(tmp_path, "--engine", "ray", "--address", cluster.address)
    wait_for("finished cell", lambda: list((tmp_path / "cells").glob("*/claims.json")))
    sweep.send_signal(signal.SIGINT)
    err = finish(sweep, 130)
    assert err.strip().splitlines()[-1] == "attndyn: stopped; the same command again continues from here"
    kept = [path.parent.name for path in (tmp_path / "cells").glob("*/claims.json")]
    assert 0 < len(kept) < CELLS
    wait_for("end of all cells", lambda: not any(busy(node) for node in cluster.nodes))
    times = {name: (tmp_path / "cells" / name / "run.json").stat().st_mtime_ns for name in kept}
    finish(start(tmp_path))
    assert {name: (tmp_path / "cells" / name / "run.json").stat().st_mtime_ns for name in kept} == times
    assert_same(tmp_path, whole)


def busy(node: Node) -> bool:
    return any(words[0].startswith("ray::cell") for _, words in node.below())


def test_another_code_is_refused_and_no_cell_is_made(cluster: OneMachine, tmp_path: Path) -> None:
    source = shutil.copytree(SOURCE / "attndyn", tmp_path / "source" / "attndyn").parent
    with (source / "attndyn" / "training" / "adam.py").open("a") as file:
        file.write("# another step\n")
    out = tmp_path / "sweep"
    err = finish(start(out, "--engine", "ray", "--address", cluster.address, source=source), 2)
    assert "would compute with another code (source " in err.splitlines()[-1]
    assert not list(out.glob("cells/*/run.json"))


def test_a_cell_that_fails_there_is_named_here(cluster: OneMachine, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attndyn", "sweep", "feature-importance", "--seeds", "1", "--averages", "1",
               "--epochs", "1", "--evaluation", "30", "--grid", "corpus=sms_spam,imdb"]  # fmt: skip
    command += ["--out", str(tmp_path), "--engine", "ray", "--address", cluster.address, "--device", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300)
    assert done.returncode == 1, done.stderr
    assert "feature-importance at corpus imdb (the corpus imdb is not here" in done.stderr.splitlines()[-1]
    found = json.loads((tmp_path / "sweep.json").read_text())
    assert [cell["status"] for cell in found["cells"]] == ["finished", "failed"]


@pytest.mark.parametrize(
    ("address", "says"), [("127.0.0.1:1", "no Ray cluster answers"), ("nonsense", "no Ray cluster answers at nonsense")]
)
def test_an_address_without_a_cluster_is_refused_soon(address: str, says: str, tmp_path: Path) -> None:
    started = time.monotonic()
    err = finish(start(tmp_path / "sweep", "--engine", "ray", "--address", address), 2)
    assert time.monotonic() - started < 40
    assert says in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "sweep").exists()
