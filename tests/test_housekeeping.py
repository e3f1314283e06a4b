"""`attndyn runs`, on real tiny runs: what it says of them, what it refuses, and what it must never remove."""

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from attndyn import runner, verbs
from attndyn.store.folder import lock
from attndyn.store.metrics import Row, to_parquet
from tests import command

TINY: dict[str, Any] = {"length": 4, "words": 6, "hidden": 8, "batch": 8, "seeds": 2, "steps": 6}
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return partial(command.call, capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: two finished ones that differ in the rate, and one that was stopped."""
    top = tmp_path_factory.mktemp("made")
    verbs.run("copying", out=top / "slow", page=False, **TINY)
    verbs.run("copying", out=top / "fast", page=False, lr=0.05, **TINY)

    def stop(done: int, *rest: object) -> None:
        if done > 10:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "SAVE_SECONDS", 0.0)
        patch.setattr(runner, "SAVE_SHARE", float("inf"))
        with pytest.raises(KeyboardInterrupt):
            verbs.run("copying", out=top / "deep" / "stopped", page=False, progress=stop, **{**TINY, "steps": 600})
    return top


@pytest.fixture
def runs(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to work on, in the `runs` folder of the current one."""
    shutil.copytree(made, tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    return Path("runs")


def everything(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def edit(folder: Path, **changes: Any) -> None:
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | changes))


def test_list_names_every_run_and_its_state(runs: Path, call: Call) -> None:
    (runs / "broken").mkdir()
    (runs / "broken" / "run.json").write_text("{")
    (runs / "linked").symlink_to((runs / "slow").absolute())
    with lock(runs / "beginning"), lock(runs / "fast"):
        code, out, _ = call("runs", "list", "--json")
        text = call("runs", "list")[1]
    assert code == 0
    listed = {entry["folder"]: entry for entry in json.loads(out)}
    assert {folder: (entry["status"], entry["locked"]) for folder, entry in listed.items()} == {
        "runs/beginning": ("starting", True),
        "runs/broken": ("damaged", False),
        "runs/deep/stopped": ("unfinished", False),
        "runs/fast": ("finished", True),
        "runs/slow": ("finished", False),
    }
    slow = listed["runs/slow"]
    assert (slow["study"], slow["scale"], slow["seeds"]) == ("copying", "demo", 2)
    assert slow["size"] == sum(path.stat().st_size for path in (runs / "slow").rglob("*") if path.is_file())
    assert slow["started"] == json.loads((runs / "slow" / "run.json").read_text())["started"]
    assert "finished, locked" in text
    assert "damaged: runs/broken/run.json cannot be read" in text


@pytest.mark.parametrize("columns", ["40", "300"])
def test_the_folder_of_a_run_stands_in_one_line(
    columns: str, runs: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    named = runs / ("with a long name " * 8).strip()
    (runs / "slow").rename(named)
    assert str(named) in call("runs", "list")[1]


def test_tables_are_as_wide_as_asked_for(runs: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = {}
    for columns in ("70", "150"):
        monkeypatch.setenv("COLUMNS", columns)
        wide[columns] = max(map(len, call("runs", "show", runs / "slow")[1].split("\n claim", 1)[1].splitlines()))
    assert wide["70"] <= 70 < wide["150"] <= 150


def test_a_run_at_work_is_running(runs: Path, call: Call) -> None:
    with lock(runs / "deep" / "stopped"):
        listed = json.loads(call("runs", "list", "--under", runs / "deep", "--json")[1])
    assert [(entry["status"], entry["locked"]) for entry in listed] == [("running", True)]


@pytest.mark.parametrize("name", ["claims.json", "metrics.parquet"])
@pytest.mark.parametrize("how", ["missing", "not whole"])
def test_a_finished_run_that_lost_something_is_damaged(name: str, how: str, runs: Path, call: Call) -> None:
    command = json.loads((runs / "slow" / "run.json").read_text())["command"].split()[1:]
    gone = runs / "slow" / name
    if how == "missing":
        gone.unlink()
    else:
        gone.write_bytes(gone.read_bytes()[:-9])
    told = f"runs/slow/{name} is {how}, though the run is finished"
    text = call("runs", "list")[1]
    assert f"damaged: {told}" in text
    listed = {entry["folder"]: entry["status"] for entry in json.loads(call("runs", "list", "--json")[1])}
    assert (listed["runs/slow"], listed["runs/fast"]) == ("damaged", "finished")
    before = everything(runs / "slow")
    for words in ([*command, "--out", "runs/slow"], ["report", "runs/slow"]):
        code, _, err = call(*words)
        assert code == 2
        assert told in err
        assert "--out runs/slow --fresh makes it again" in err
    assert everything(runs / "slow") == before
    assert call(*command, "--out", "runs/slow", "--fresh")[0] == 0
    assert call("runs", "list")[1].count("damaged") == 0


def test_a_run_without_its_traces_is_whole_and_its_page_says_what_it_lacks(runs: Path, call: Call) -> None:
    shutil.rmtree(runs / "slow" / "traces")
    assert call("report", "runs/slow")[0] == 0
    assert "damaged" not in call("runs", "list")[1]
    page = (runs / "slow" / "report.html").read_text(encoding="utf-8")
    assert "No trace" in page


def test_traces_may_lie_elsewhere_and_beside_other_files(runs: Path, call: Call) -> None:
    (runs / "slow" / "traces" / ".DS_Store").write_text("theirs")
    shutil.move(runs / "slow" / "traces", runs / "elsewhere")
    (runs / "slow" / "traces").symlink_to((runs / "elsewhere").absolute())
    assert "damaged" not in call("runs", "list")[1]


def test_no_runs_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("runs", "list") == (0, "no runs below runs\n", "")
    assert call("runs", "list", "--json")[1] == "[]\n"
    assert call("runs", "clean")[1] == "would free 0 bytes in 0 runs\n"
    assert not list(tmp_path.iterdir())


def test_show_says_what_was_run_and_what_came_out(runs: Path, call: Call) -> None:
    info = json.loads((runs / "slow" / "run.json").read_text())
    code, out, _ = call("runs", "show", runs / "slow")
    assert code == 0
    for part in (info["finding"], info["command"], info["device"], info["versions"]["torch"], "S-22", "evaluation"):
        assert part in out
    shown = json.loads(call("runs", "show", runs / "slow", "--json")[1])
    assert shown["settings"] == info["settings"]
    assert shown["versions"] == info["versions"]
    assert shown["claims"] == json.loads((runs / "slow" / "claims.json").read_text())
    assert "no finding is recorded" in call("runs", "show", runs / "deep" / "stopped")[1]


def test_compare_sets_the_differences_side_by_side(runs: Path, call: Call) -> None:
    import pyarrow.parquet as pq

    claims = json.loads((runs / "fast" / "claims.json").read_text())
    before = claims[0]["verdict"]
    claims[0]["verdict"] = "another"
    (runs / "fast" / "claims.json").write_text(json.dumps(claims))
    code, out, _ = call("runs", "compare", runs / "slow", runs / "fast", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["settings"] == {"lr": [0.002, 0.05]}
    assert found["made by"] == {}
    assert found["verdicts"][claims[0]["id"]] == [before, "another"]
    loss = next(one for one in found["metrics"] if (one["condition"], one["metric"]) == ("4 of 6", "loss"))
    means = []
    for name in ("slow", "fast"):
        rows = pq.read_table(runs / name / "metrics.parquet").to_pylist()
        last = [
            row["value"]
            for row in rows
            if (row["condition"], row["metric"], row["step"]) == ("4 of 6", "loss", TINY["steps"])
        ]
        means.append(sum(last) / len(last))
    assert loss["mean"] == pytest.approx(means, rel=1e-12)
    assert loss["difference"] == pytest.approx(means[1] - means[0], rel=1e-9)
    assert (loss["step"], loss["seeds"]) == ([6, 6], [2, 2])
    text = call("runs", "compare", runs / "slow", runs / "fast")[1]
    assert "made in the same way" in text
    assert f"{means[0]:.4g}" in text
    assert "another" in text


def test_compare_with_itself_and_with_an_unfinished_run(runs: Path, call: Call) -> None:
    text = call("runs", "compare", runs / "slow", runs / "slow")[1]
    assert "the settings are the same" in text
    assert "of which 0 differ" in text
    found = json.loads(call("runs", "compare", runs / "slow", runs / "deep" / "stopped", "--json")[1])
    assert found["settings"] == {"steps": [6, 600]}
    assert found["made by"] == {"status": ["finished", "running"]}
    assert found["metrics"]
    assert found["claims in both"] == 0


def test_a_seed_counts_with_its_own_last_value_and_no_nan(runs: Path, call: Call) -> None:
    rows = [("x", 0, 2, 1.0), ("x", 0, 1, 9.0), ("x", 1, 1, 2.0), ("x", 2, 2, float("nan")), ("y", 0, 1, float("nan"))]
    for name in ("slow", "fast"):
        table = to_parquet([Row("c", seed, step, metric, value) for metric, seed, step, value in rows])
        (runs / name / "metrics.parquet").write_bytes(table)
    [entry] = json.loads(call("runs", "compare", runs / "slow", runs / "fast", "--json")[1])["metrics"]
    assert (entry["metric"], entry["mean"], entry["seeds"], entry["step"]) == ("x", [1.5, 1.5], [2, 2], [2, 2])


def test_clean_says_what_it_would_do_and_does_nothing(runs: Path, call: Call) -> None:
    shutil.copytree(runs / "deep" / "stopped" / "checkpoints", runs / "slow" / "checkpoints")
    before = everything(runs)
    code, out, _ = call("runs", "clean", "--unfinished")
    assert code == 0
    size = sum(path.stat().st_size for path in (runs / "slow" / "checkpoints").rglob("*") if path.is_file())
    assert f"would remove  runs/slow: checkpoints of a finished run, {size / 1e3:.1f} kB" in out
    assert "would remove  runs/deep/stopped: an unfinished run" in out
    assert out.endswith("in 2 runs; --yes does it\n")
    assert everything(runs) == before


def test_clean_removes_checkpoints_and_with_unfinished_whole_runs(runs: Path, call: Call) -> None:
    shutil.copytree(runs / "deep" / "stopped" / "checkpoints", runs / "slow" / "checkpoints")
    before = everything(runs)
    code, out, _ = call("runs", "clean", "--yes")
    assert code == 0
    assert "kept          runs/deep/stopped: unfinished" in out
    assert everything(runs) == {path: data for path, data in before.items() if "slow/checkpoints" not in path}
    assert call("runs", "clean", "--yes", "--unfinished")[0] == 0
    assert not (runs / "deep" / "stopped").exists()
    assert everything(runs / "slow").keys() == {
        path for path in before if "slow/" in path and "checkpoints" not in path
    }


def test_clean_keeps_what_is_not_the_runs(runs: Path, call: Call) -> None:
    stopped = runs / "deep" / "stopped"
    (stopped / "notes.txt").write_text("mine")
    (stopped / ".run.json.x.part").write_text("half")
    shutil.copytree(runs / "slow", stopped / "inside")
    out = call("runs", "clean", "--yes", "--unfinished")[1]
    assert sorted(os.listdir(stopped)) == [".lock", "inside", "notes.txt"]
    assert "it holds .lock, inside, notes.txt" in out
    assert (stopped / "inside" / "metrics.parquet").exists()


def test_clean_leaves_locked_folders_alone(runs: Path, call: Call) -> None:
    shutil.copytree(runs / "deep" / "stopped" / "checkpoints", runs / "slow" / "checkpoints")
    before = everything(runs)
    with lock(runs / "slow"), lock(runs / "deep" / "stopped"):
        code, out, _ = call("runs", "clean", "--yes", "--unfinished")
    assert code == 0
    assert out.count("another process is working there") == 2
    assert everything(runs) == before


def test_clean_leaves_others_files_alone(runs: Path, call: Call) -> None:
    stopped = runs / "deep" / "stopped"
    for name, content in (("broken", "{"), ("list", "[]"), ("other", '{"study": "mine", "status": "running"}')):
        shutil.copytree(stopped, runs / name)
        (runs / name / "run.json").write_text(content)
    shutil.copytree(stopped, runs / "plain")
    (runs / "plain" / "run.json").unlink()
    shutil.copytree(stopped, runs / "unknown")
    edit(runs / "unknown", status="paused")
    shutil.rmtree(stopped)
    before = everything(runs)
    code, out, _ = call("runs", "clean", "--yes", "--unfinished")
    assert code == 0
    assert out.count("left alone") == 4
    assert everything(runs) == before


def test_clean_follows_no_link(runs: Path, tmp_path: Path, call: Call) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(runs / "deep", elsewhere)
    stopped = elsewhere / "stopped"
    (runs / "deep").symlink_to(elsewhere)
    (runs / "slow" / "checkpoints").symlink_to(stopped / "checkpoints")
    (runs / "linked").mkdir()
    (runs / "linked" / "run.json").symlink_to(stopped / "run.json")
    shutil.copytree(stopped, runs / "half")
    shutil.rmtree(runs / "half" / "traces")
    (runs / "half" / "traces").symlink_to(stopped / "traces")
    (runs / "half" / "checkpoints" / "link").symlink_to(stopped / "checkpoints")
    shutil.copytree(stopped, runs / "locked")
    (runs / "locked" / ".lock").unlink()
    (runs / "locked" / ".lock").symlink_to(tmp_path / "new")
    before = everything(elsewhere)
    code, out, _ = call("runs", "clean", "--yes", "--unfinished")
    assert code == 0
    assert everything(elsewhere) == before
    assert not (tmp_path / "new").exists()
    assert "cannot write to runs/locked" in out
    assert os.listdir(runs / "linked") == ["run.json"]
    assert sorted(os.listdir(runs / "half")) == [".lock", "traces"]


def test_a_folder_that_cannot_be_cleaned_is_named(runs: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(shutil, "rmtree", refuse)
    code, out, err = call("runs", "clean", "--yes", "--unfinished")
    assert code == 1
    assert "failed        runs/deep/stopped/" in out
    assert err == "attndyn: 1 run folder could not be cleaned\n"
    assert (runs / "deep" / "stopped" / "run.json").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "runs needs one of: list, show, compare, clean"),
        (["lst"], "did you mean 'list'?"),
        (["list", "slow"], "runs list takes no 'slow'"),
        (["list", "--under"], "--under needs a folder"),
        (["list", "--under", "nowhere"], "there is no folder nowhere"),
        (["list", "--yes"], "there is no option '--yes' here"),
        (["show"], "needs one run folder"),
        (["show", "nowhere"], "there is no folder nowhere"),
        (["show", "runs"], "runs is not a run folder"),
        (["show", "runs/slow", "--under", "runs"], "there is no option '--under' here"),
        (["compare", "runs/slow"], "needs two run folders"),
        (["compare", "runs/slow", "runs"], "runs is not a run folder"),
        (["clean", "runs/slow"], "runs clean takes no 'runs/slow'"),
        (["clean", "--under", "runs/slow/run.json"], "there is no folder runs/slow/run.json"),
        (["clean", "--ye"], "did you mean '--yes'?"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], says: str, runs: Path, call: Call) -> None:
    before = everything(runs)
    code, _, err = call("runs", *words)
    assert code == 2
    assert says in err
    assert len(err.splitlines()) == 1
    assert everything(runs) == before


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("run.json", "{"),
        ("run.json", '{"study": "copying"}'),
        ("run.json", '{"study": "a", "status": 1, "versions": {}, "settings": {}, "seeds": 3}'),
        ("claims.json", "["),
        ("claims.json", '[{"id": "S-01"}]'),
        ("claims.json", None),
        ("metrics.parquet", "no table"),
        ("metrics.parquet", None),
    ],
)
def test_a_damaged_run_is_named(file: str, content: str | None, runs: Path, call: Call) -> None:
    (runs / "slow" / file).unlink()
    if content is not None:
        (runs / "slow" / file).write_text(content)
    code, _, err = call("runs", "compare", runs / "fast", runs / "slow")
    assert code == 2
    assert f"runs/slow/{file}" in err
    assert len(err.splitlines()) == 1
