"""Sweeps in this process, on tiny budgets: what they leave, what they never do twice, and how they fail."""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import attndyn
from attndyn import provenance, runner
from attndyn.errors import Busy, RunError, UserError
from attndyn.store.folder import lock
from attndyn.studies import find
from attndyn.studies.base import Study
from attndyn.sweeping import cells as module
from attndyn.sweeping.cells import Told, Way, cell_of, in_order
from tests import command as commands
from tests.studies.tiny import TINY
from tests.sweeping.tiny import SETTINGS, contents, options, tables

GRID: dict[str, list[Any]] = {"seeds": [1, 2], "lr": [1e-3, 3e-3]}
WORDS = ["--grid", "seeds=1,2", "lr=1e-3,3e-3"]
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return partial(commands.call, capsys)


class Heard(Told):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    attndyn.sweep("copying", GRID, out=folder, device="cpu", **SETTINGS)
    return folder


@pytest.fixture
def swept(made: Path, tmp_path: Path) -> Path:
    """A copy to work on."""
    return shutil.copytree(made, tmp_path / "sweep")


def command(folder: Path, *grid: str) -> list[str]:
    return ["sweep", "copying", *options(SETTINGS), "--device", "cpu", *(grid or WORDS), "--out", str(folder)]


def test_the_command_makes_the_same_sweep(made: Path, tmp_path: Path, call: Call) -> None:
    code, out, err = call(*command(tmp_path / "s"))
    assert code == 0, err
    assert tables(tmp_path / "s") == tables(made)
    assert contents(tmp_path / "s") == contents(made)
    assert "4 cells, 4 of them to be run" in err
    assert out.count("finished") == 4
    assert str(tmp_path / "s" / "sweep.csv") in out


def test_the_live_line_of_a_cell_is_gone_before_the_next_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from attndyn.console import Live

    begin = Live.__init__

    def in_a_terminal(self: Live, *given: Any) -> None:
        begin(self, *given)
        self.terminal = True

    monkeypatch.setattr(Live, "__init__", in_a_terminal)
    code, _, shown = commands.call(capsys, *command(tmp_path / "sweep", "--grid", "seeds=1,2"))
    assert code == 0
    ends = [line.rsplit("\r\x1b[K", 1)[-1] for line in shown.split("\n")]
    assert not any("step" in end for end in ends), "what stays of each line is no live line"
    assert "step" in shown


def test_the_table_has_a_row_for_each_cell_in_the_order_of_the_grid(made: Path) -> None:
    rows = list(csv.DictReader((made / "sweep.csv").read_text().splitlines()))
    assert [(row["seeds"], row["lr"]) for row in rows] == [
        ("1", "0.001"),
        ("1", "0.003"),
        ("2", "0.001"),
        ("2", "0.003"),
    ]
    whole = json.loads((made / "sweep.json").read_text())
    assert whole["code"] == provenance.code()
    for row, cell in zip(rows, whole["cells"], strict=True):
        claims = json.loads((made / "cells" / row["cell"] / "claims.json").read_text())
        assert [(row[f"{c['id']} measured"], row[f"{c['id']} verdict"]) for c in claims] == [
            (c["measured"], c["verdict"]) for c in claims
        ]
        assert [c["id"] for c in cell["claims"]] == [c["id"] for c in claims]
        assert cell["settings"] == {"seeds": int(row["seeds"]), "lr": float(row["lr"])}


def test_the_metrics_are_means_over_seeds_of_the_last_values(made: Path) -> None:
    rows = csv.DictReader((made / "metrics.csv").read_text().splitlines())
    row = next(r for r in rows if r["seeds"] == "2" and r["metric"] == "accuracy" and r["condition"] == "4 of 6")
    table = attndyn.Run(made / "cells" / row["cell"]).metrics.to_pylist()
    values = [
        one["value"] for one in table
        if (one["condition"], one["metric"], one["step"]) == ("4 of 6", "accuracy", int(row["step"]))
    ]  # fmt: skip
    assert int(row["n"]) == len(values) == 2
    assert float(row["mean"]) == sum(values) / 2


def test_a_cell_is_an_ordinary_run(swept: Path, tmp_path: Path, call: Call) -> None:
    cell = swept / "cells" / json.loads((swept / "sweep.json").read_text())["cells"][1]["cell"]
    code, _, err = call(
        "run", "copying", *options(SETTINGS | {"lr": 3e-3, "seeds": 1}), "--device", "cpu", "--out", tmp_path / "run"
    )
    assert code == 0, err
    for name in ("metrics.parquet", "claims.json"):
        assert (cell / name).read_bytes() == (tmp_path / "run" / name).read_bytes()
    assert call("runs", "compare", cell, tmp_path / "run")[0] == 0
    assert call("report", cell)[0] == 0
    assert (cell / "report.html").exists()
    assert len(json.loads(call("runs", "list", "--under", swept, "--json")[1])) == 4


def test_nothing_is_made_twice_and_a_larger_grid_only_adds(swept: Path, call: Call) -> None:
    before = {path: path.stat().st_mtime_ns for path in (swept / "cells").rglob("*") if path.is_file()}
    before = {path: when for path, when in before.items() if path.name != ".lock"}
    code, out, err = call(*command(swept), "--json")
    assert (code, err) == (0, "4 cells, 0 of them to be run\n")
    assert json.loads(out) == json.loads((swept / "sweep.json").read_text())
    code, _, err = call(*command(swept, "--grid", "seeds=2,1", "lr=1e-3,2e-3,3e-3"))
    assert code == 0
    assert "6 cells, 2 of them to be run" in err
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_the_key_is_settings_scale_computing_and_code(tmp_path: Path) -> None:
    way = {"scale": "demo", "device": "cpu", "precision": "fp32", "deterministic": True, "code": {"torch": "1"}}
    study = find("copying").at("demo")
    others = {"scale": "paper", "device": "cuda", "precision": "tf32", "deterministic": False, "code": {"torch": "2"}}
    names = [Way(**way).name(study), Way(**way).name(find("copying").at("demo", seeds=3))]
    names += [Way(**way | {name: other}).name(study) for name, other in others.items()]
    assert len(set(names)) == len(names)
    assert Way(**way).name(find("copying").at("demo")) == names[0]


def test_the_code_is_that_which_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = provenance.code()
    copy = shutil.copytree(Path(provenance.__file__).parent, tmp_path / "attndyn")
    monkeypatch.setattr(provenance, "__file__", str(copy / "provenance.py"))
    assert provenance.code() == here
    (copy / "report" / "theme.py").write_text("# other colours\n")
    (copy / "cli.py").write_text("# other words\n")
    assert provenance.code() == here
    with (copy / "training" / "adam.py").open("a") as file:
        file.write("# another step\n")
    assert provenance.code()["source"] != here["source"]


def test_other_code_makes_other_cells(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attndyn.sweeping import sweep

    monkeypatch.setattr(sweep, "code", lambda: provenance.code() | {"torch": "0"})
    heard = Heard()
    attndyn.sweep("copying", {"seeds": [1]}, out=swept, device="cpu", told=heard, lr=1e-3, **SETTINGS)
    assert heard.lines[0] == "1 cell, 1 of them to be run"


def test_a_failing_cell_is_named_the_others_go_on_and_it_is_tried_again(
    tmp_path: Path, made: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = module.run

    def failing(study: Study, **choices: Any) -> Any:
        if (study.seeds, study.lr) == (1, 3e-3):
            raise ZeroDivisionError("one by\nnothing")
        return run(study, **choices)

    with monkeypatch.context() as patch:
        patch.setattr(module, "run", failing)
        code, out, err = call(*command(tmp_path / "s"))
    assert code == 1
    last = err.splitlines()[-1]
    assert last.startswith("attndyn: not made: copying at seeds 1, lr 0.003 (ZeroDivisionError: one by)")
    assert "Traceback" not in err
    rows = list(csv.DictReader((tmp_path / "s" / "sweep.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == ["finished", "failed", "finished", "finished"]
    assert out.count("finished") == 3
    code, _, err = call(*command(tmp_path / "s"))
    assert code == 0
    assert "4 cells, 1 of them to be run" in err
    assert tables(tmp_path / "s") == tables(made)


def test_a_cell_that_diverges_is_a_result(tmp_path: Path, call: Call) -> None:
    words = [*command(tmp_path, "--grid", "lr=1e-3,1e30"), "--seeds", "1"]
    for _ in range(2):
        code, out, err = call(*words)
        assert code == 0, err
        assert "diverged" in out
    assert "2 cells, 0 of them to be run" in err


def test_a_cell_that_another_process_has_is_left_to_it(swept: Path, made: Path, call: Call) -> None:
    cells = json.loads((swept / "sweep.json").read_text())["cells"]
    busy, free = (swept / "cells" / cells[index]["cell"] for index in (0, 3))
    shutil.rmtree(busy)
    shutil.rmtree(free)
    with lock(busy):
        code, _, err = call(*command(swept))
    assert code == 1
    assert "copying at seeds 1, lr 0.001 (another process is working on it" in err.splitlines()[-1]
    assert (free / "claims.json").exists()
    assert call(*command(swept))[0] == 0
    assert tables(swept) == tables(made)


def test_a_cell_that_lost_its_claims_is_named_and_made_again_once_it_is_deleted(
    swept: Path, made: Path, call: Call
) -> None:
    cell = swept / "cells" / json.loads((swept / "sweep.json").read_text())["cells"][2]["cell"]
    (cell / "claims.json").unlink()
    code, _, err = call(*command(swept))
    assert code == 2
    assert err == (
        f"attndyn: {cell}/claims.json is missing, though the run is finished; "
        f"the same command makes it again once {cell} is deleted\n"
    )
    assert tables(swept) == tables(made)
    shutil.rmtree(cell)
    assert call(*command(swept))[0] == 0
    assert tables(swept) == tables(made)


def test_an_interrupted_sweep_continues_to_the_same_bytes(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(runner, "SAVE_SHARE", float("inf"))

    class Stopping(Told):
        begun = 0

        def progress(self, study: Study) -> Any:
            self.begun += 1

            def stop(done: int, *rest: object) -> None:
                if self.begun == 2 and done > 5:
                    raise KeyboardInterrupt

            return stop

    with pytest.raises(KeyboardInterrupt):
        attndyn.sweep("copying", GRID, out=tmp_path, device="cpu", told=Stopping(), **SETTINGS)
    assert len(list((tmp_path / "cells").glob("*/claims.json"))) == 1
    assert len(list((tmp_path / "cells").glob("*/checkpoints/save-*"))) > 0
    assert not (tmp_path / "sweep.csv").exists()
    heard = Heard()
    attndyn.sweep("copying", GRID, out=tmp_path, device="cpu", told=heard, **SETTINGS)
    assert heard.lines[0] == "4 cells, 3 of them to be run"
    assert tables(tmp_path) == tables(made)
    assert contents(tmp_path) == contents(made)


def test_runs_that_cells_need_are_cells_too_and_made_once(tmp_path: Path) -> None:
    settings = TINY["deceptive-attention"]
    heard = Heard()
    swept = attndyn.sweep(
        "deceptive-attention", {"guided": [True, False]}, out=tmp_path, device="cpu", told=heard, **settings
    )
    assert heard.lines == [
        "3 cells, 3 of them to be run",
        heard.lines[1],
        "2 of 3: deceptive-attention at guided False",
        "3 of 3: deceptive-attention at guided True",
    ]
    assert heard.lines[1].startswith("1 of 3: feature-importance-")
    assert [cell["settings"] for cell in swept.cells] == [{"guided": True}, {"guided": False}]
    assert len(list((tmp_path / "cells").iterdir())) == 3


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("mine")
    with pytest.raises(UserError, match=r"is not a folder of a sweep \(it holds metrics.csv\)"):
        attndyn.sweep("copying", GRID, out=tmp_path, device="cpu", **SETTINGS)
    with pytest.raises(UserError, match="is a file, not a folder of a sweep"):
        attndyn.sweep("copying", GRID, out=tmp_path / "metrics.csv", device="cpu", **SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.csv"]
    assert (tmp_path / "metrics.csv").read_text() == "mine"


def test_what_needs_a_failed_cell_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def failing(study: Study, **choices: Any) -> None:
        begun.append(study.name)
        raise RunError("no luck")

    monkeypatch.setattr(module, "run", failing)
    settings = TINY["counterfactual-attention"]
    swept = attndyn.sweep("counterfactual-attention", {"batch": [256, 512]}, out=tmp_path, device="cpu",
                          **{name: value for name, value in settings.items() if name != "batch"})  # fmt: skip
    assert begun == ["feature-importance"] * 2
    assert sum("it needs feature-importance" in problem for problem in swept.problems.values()) == 2
    assert swept.problems_in_words().count("no luck") == 4


def test_a_single_value_stands_for_itself(swept: Path) -> None:
    heard = Heard()
    attndyn.sweep("copying", {"seeds": 2, "lr": 1e-3}, out=swept, device="cpu", told=heard, **SETTINGS)
    assert heard.lines == ["1 cell, 0 of them to be run"]


def test_several_studies_share_a_grid(tmp_path: Path) -> None:
    swept = attndyn.sweep(["copying", "permuted-copying"], {"seeds": [1]}, out=tmp_path, device="cpu", **SETTINGS)
    assert [cell["study"] for cell in swept.cells] == ["copying", "permuted-copying"]
    rows = list(csv.DictReader((tmp_path / "sweep.csv").read_text().splitlines()))
    assert rows[0]["S-22 verdict"] != ""
    assert rows[1]["S-22 verdict"] == "", "the other study has no such claim"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "sweep needs the name of a study"),
        (["--grid", "lr=1"], "sweep needs the name of a study, before anything else"),
        (["copyng", "--grid", "lr=1"], "did you mean 'copying'"),
        (["copying"], "sweep needs a grid"),
        (["copying", "--grid"], "at least one NAME=VALUE"),
        (["copying", "--grid", "lr"], "--grid takes NAME=VALUE"),
        (["copying", "--gird", "lr=1"], "did you mean '--grid'"),
        (["copying", "--grid", "lrr=1"], "did you mean 'lr'"),
        (["copying", "--grid", "seeds=many"], "copying cannot use 'many' for seeds; it takes int"),
        (["copying", "--grid", "seeds=1,2,1"], "the grid has seeds 1 twice"),
        (["copying", "--grid", "seeds=1", "seeds=2"], "--grid has seeds twice"),
        (["copying", "--grid", "seeds=1", "--seeds", "2"], "both in --grid and as --seeds"),
        (["copying", "--grid", "controls=true", "--no-controls"], "both in --grid and as --controls"),
        (["copying", "--grid", "seeds=1,0"], "copying at seeds 0: seeds must be at least 1"),
        (["copying", "--grid", "length=4,20"], "cannot draw 20 different words"),
        (["copying", "gated-toy", "--grid", "lr=1"], "gated-toy has no setting 'lr'"),
        (["copying", "copying", "--grid", "lr=1"], "named twice"),
        (["copying", "--grid", "lr=1", "--sead", "3"], "did you mean '--seeds'"),
        (["copying", "--grid", "lr=1", "--precision", "tf32", "--device", "cpu"], "needs a GPU"),
    ],
)
def test_a_mistake_is_answered_in_one_sentence(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = call("sweep", *words)
    assert code == 2
    assert says in err
    assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir()), "a refused command leaves nothing"


def test_a_folder_of_something_else_is_refused_before_anything_runs(tmp_path: Path, call: Call) -> None:
    words = [*command(tmp_path, "--grid", "lr=1e-3,3e-3"), "--seeds", "1"]
    way = Way("demo", "cpu", "fp32", True, provenance.code())
    second = tmp_path / "cells" / way.name(find("copying").at("demo", lr=3e-3, seeds=1, **SETTINGS))
    second.mkdir(parents=True)
    (second / "thesis.tex").write_text("precious")
    code, _, err = call(*words)
    assert code == 2
    assert "is not a run folder (it holds thesis.tex)" in err
    assert list((tmp_path / "cells").iterdir()) == [second]


def test_help(call: Call) -> None:
    code, out, _ = call("sweep", "--help")
    assert code == 0
    assert out.startswith("  attndyn sweep STUDY")
    code, out, _ = call("sweep", "copying", "--help")
    assert code == 0
    assert "--grid NAME=VALUE" in out
    assert "Independent training runs" in out
    assert "--cpus-per-cell" in out


def test_the_api_refuses_what_the_command_refuses(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'ray'"):
        attndyn.sweep("copying", {"lr": [1.0]}, out=tmp_path, engine="rya")
    with pytest.raises(UserError, match="has no setting 'lrr'"):
        attndyn.sweep("copying", {"seeds": [1]}, out=tmp_path, lrr=1.0)
    for lr in ("0.001", ["0.001"]):
        with pytest.raises(UserError, match=r"lr must be a number, not '0\.001'"):
            attndyn.sweep("copying", {"lr": lr}, out=tmp_path)


def test_mistakes_need_no_torch() -> None:
    program = "import sys\nfrom attndyn.cli import main\ntry:\n main(sys.argv[1:])\nexcept SystemExit: pass\n"
    program += "print('torch' in sys.modules or 'ray' in sys.modules)"
    words = ["sweep", "copying", "--grid", "seeds=many"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_no_bit_depends_on_the_number_of_threads(tmp_path: Path) -> None:
    """`attndyn run initial-derivative` alone gave other last bits with two threads for its linear algebra."""
    for threads in ("1", "2"):
        words = [
            "sweep",
            "initial-derivative",
            "--grid",
            "seeds=2",
            "--device",
            "cpu",
            "--out",
            str(tmp_path / threads),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "attndyn", *words], capture_output=True, text=True, timeout=120,
            env={**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    assert tables(tmp_path / "1") == tables(tmp_path / "2")


def test_in_order_puts_needs_first(tmp_path: Path) -> None:
    way = Way("demo", "cpu", "fp32", True, {})
    study = find("deceptive-attention").at("demo", guided=True)
    ordered = in_order([cell_of(study, tmp_path, way, ["guided"])])
    assert [cell.study.name for cell in ordered] == ["feature-importance", "deceptive-attention", "deceptive-attention"]
    assert ordered[-1].label == "deceptive-attention at guided True"
    for place, cell in enumerate(ordered):
        assert {need.name for need in cell.needs} <= {one.name for one in ordered[:place]}


def test_busy_is_raised_not_counted_as_failed(tmp_path: Path) -> None:
    way = Way("demo", "cpu", "fp32", True, {})
    cell = cell_of(find("copying").at("demo", **SETTINGS), tmp_path, way)
    with lock(cell.folder), pytest.raises(Busy):
        module.carry_out(cell, way)
