"""A run folder, read; what is broken says so in one sentence that names the file."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from attndyn.errors import UserError
from attndyn.store import checkpoint
from attndyn.store.folder import CLAIMS, INFO, METRICS, Run, lock, read_info
from attndyn.store.metrics import Row, to_parquet, to_table

ROWS = [Row("easy", 0, 0, "loss", 2.0), Row("easy", 4, 0, "loss", 1.0)]
TRACE = "traces/chunk-001/step-000010.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    info = {
        "study": "copying",
        "replicas": [
            {"condition": "easy", "replica": 0, "chunk": 0},
            {"condition": "easy", "replica": 4, "chunk": 1},
            {"condition": "hard", "replica": 0, "chunk": 1},
        ],
        "tokens": {"easy": ["1", "2", "</s>", "<s>"]},
    }
    (tmp_path / INFO).write_text(json.dumps(info))
    (tmp_path / METRICS).write_bytes(to_parquet(ROWS))
    (tmp_path / CLAIMS).write_text('[{"id": "copying.1"}]')
    for step, places in ((0, (1, 2)), (10, (1, 2)), (20, (1,))):
        path = tmp_path / "traces" / "chunk-001" / f"step-{step:06d}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        tensors = {}
        for place in places:
            tensors[f"{place}.alpha"] = np.full((1, 1, 2, 2), place + step, np.float16)
            tensors[f"{place}.source"] = np.array([[place, step]], np.int32)
        save_file(tensors, path)
    return tmp_path


def names_file(path: Path) -> str:
    return re.escape(str(path))


def test_a_run_is_read(folder: Path) -> None:
    run = Run(str(folder))
    assert run.info["study"] == "copying"
    assert run.metrics.equals(to_table(ROWS))
    assert run.claims == [{"id": "copying.1"}]
    assert run.tokens("easy") == ["1", "2", "</s>", "<s>"]


def test_a_trace_is_found_by_condition_and_seed(folder: Path) -> None:
    run = Run(folder)
    assert run.trace_steps("easy", 4) == [0, 10, 20]
    assert run.trace_steps("hard", 0) == [0, 10]
    assert run.trace_steps("easy", 0) == []  # chunk 0 kept nothing
    trace = run.trace("hard", 0, 10)
    assert set(trace) == {"alpha", "source"}
    assert trace["source"].tolist() == [[2, 10]]
    assert (trace["alpha"] == 12).all()
    assert run.trace("easy", 4, 10)["source"].tolist() == [[1, 10]]


@pytest.mark.parametrize(
    ("condition", "replica", "there"),
    [
        ("easy", 1, "its replicas are 0, 4"),
        ("esay", 0, "the nearest conditions are 'easy', 'hard'"),
        ("hared", 0, "the nearest conditions are 'hard', 'easy'"),
    ],
)
def test_an_unknown_replica_raises(folder: Path, condition: str, replica: int, there: str) -> None:
    with pytest.raises(KeyError, match=f"no replica {replica} of '{condition}' in .*; {there}"):
        Run(folder).trace(condition, replica, 0)


def test_an_unfinished_run_shows_its_last_save(folder: Path) -> None:
    (folder / METRICS).unlink()
    (folder / CLAIMS).unlink()
    assert Run(folder).metrics.num_rows == 0
    assert Run(folder).claims == []
    checkpoint.write(folder, checkpoint.Save(1, 0, 0.0, to_parquet(ROWS[:1]), {}))
    assert Run(folder).metrics.equals(to_table(ROWS[:1]))


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"no folder {names_file(tmp_path / 'none')}"):
        Run(tmp_path / "none")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(UserError, match=names_file(tmp_path / "file")):
        Run(tmp_path / "file")


def test_no_run_json(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{names_file(tmp_path)} is not a run folder: it has no run.json"):
        Run(tmp_path)


@pytest.mark.parametrize("content", [b'{"study": "copy', b"", b"\xff\xfe\x00", b"not json"])
def test_broken_run_json(folder: Path, content: bytes) -> None:
    (folder / INFO).write_bytes(content)
    with pytest.raises(UserError, match=f"{names_file(folder / INFO)} cannot be read"):
        Run(folder)


@pytest.mark.parametrize("content", ["[]", "{}", "3", "null"])
def test_run_json_of_something_else(folder: Path, content: str) -> None:
    (folder / INFO).write_text(content)
    with pytest.raises(UserError, match=f"{names_file(folder / INFO)} does not describe a run"):
        read_info(folder)


@pytest.mark.parametrize(("name", "read"), [(METRICS, "metrics"), (CLAIMS, "claims")])
def test_a_finished_run_without_a_file(folder: Path, name: str, read: str) -> None:
    (folder / name).unlink()
    assert len(getattr(Run(folder), read)) == 0
    (folder / INFO).write_text(json.dumps(read_info(folder) | {"status": "finished"}))
    with pytest.raises(UserError, match=f"{names_file(folder / name)} is missing, though the run is finished"):
        getattr(Run(folder), read)
    (folder / INFO).write_text(json.dumps(read_info(folder) | {"files": [INFO]}))  # a diagnosis has neither
    assert len(getattr(Run(folder), read)) == 0


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_truncated_metrics(folder: Path, kept: float) -> None:
    data = (folder / METRICS).read_bytes()
    (folder / METRICS).write_bytes(data[: int(kept * len(data))])
    run = Run(folder)
    with pytest.raises(UserError, match=f"{names_file(folder / METRICS)} cannot be read"):
        _ = run.metrics


def test_broken_claims(folder: Path) -> None:
    (folder / CLAIMS).write_text("[{")
    with pytest.raises(UserError, match=f"{names_file(folder / CLAIMS)} cannot be read"):
        _ = Run(folder).claims


@pytest.mark.parametrize("kept", [0, 4, -1])
def test_a_broken_trace(folder: Path, kept: int) -> None:
    data = (folder / TRACE).read_bytes()
    (folder / TRACE).write_bytes(data[:kept])
    for read in (lambda run: run.trace("easy", 4, 10), lambda run: run.trace_steps("easy", 4)):
        with pytest.raises(UserError, match=f"{names_file(folder / TRACE)} cannot be read as a trace"):
            read(Run(folder))


def test_a_missing_trace(folder: Path) -> None:
    (folder / TRACE).unlink()
    with pytest.raises(UserError, match=names_file(folder / TRACE)):
        Run(folder).trace("easy", 4, 10)


def test_a_notebook_shows_the_page_or_how_to_make_it(folder: Path) -> None:
    assert "run.report()" in Run(folder)._repr_html_()
    (folder / "report.html").write_text('<p class="x">page</p>')
    shown = Run(folder)._repr_html_()
    assert '<iframe srcdoc="&lt;p class=&quot;x&quot;&gt;page' in shown


HOLDER = """if True:
    import sys, time
    from pathlib import Path
    from attndyn.store.folder import lock
    with lock(Path(sys.argv[1])):
        print("locked", flush=True)
        time.sleep(60)
"""
TAKER = """if True:
    import sys
    from pathlib import Path
    from attndyn.errors import UserError
    from attndyn.store.folder import lock
    try:
        with lock(Path(sys.argv[1])):
            print("locked")
    except UserError as error:
        print("refused", error)
"""


def take(folder: Path) -> str:
    command = [sys.executable, "-c", TAKER, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_one_writer_a_folder(tmp_path: Path) -> None:
    with lock(tmp_path / "new"):
        assert take(tmp_path / "new").startswith(f"refused another process is working in {tmp_path / 'new'}")
        assert take(tmp_path / "other") == "locked"
    assert take(tmp_path / "new") == "locked"


def test_the_lock_is_released_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), lock(tmp_path):
        raise RuntimeError
    with lock(tmp_path):
        pass


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "locked\n"
            with pytest.raises(UserError, match="another process"), lock(tmp_path):
                pass
        finally:
            os.kill(holder.pid, signal.SIGKILL)
        assert holder.wait(30) == -signal.SIGKILL
    with lock(tmp_path):
        pass


def test_what_a_killed_writer_left_is_removed_by_the_next_and_nothing_else(tmp_path: Path, listing) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".mine.part").write_text("linked")
    (tmp_path / "figures").symlink_to(tmp_path / "other")
    kept = [".download.part", "notes.part", "traces/chunk-000/step-000000.safetensors"]
    left = [f".{INFO}.ab12.part", f".{METRICS}.part", "traces/chunk-000/.step-000002.safetensors.x_9.part",
            "checkpoints/.save-000003.part/state.safetensors"]  # fmt: skip
    for name in (*kept, *left):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("half")
    with lock(tmp_path):
        assert listing(tmp_path) == sorted([*kept, ".lock", "other/.mine.part"])


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(UserError, match=f"cannot write to {names_file(tmp_path / 'file')}"), lock(tmp_path / "file"):
        pass
