"""What a machine of a cluster does with a cell, here without a cluster: the files that travel, and what is refused."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attndyn
from attndyn import process, provenance
from attndyn.errors import RunError, UserError
from attndyn.studies import find
from attndyn.studies.base import Study
from attndyn.sweeping import remote
from attndyn.sweeping.cells import Way
from attndyn.sweeping.files import pack, unpack
from attndyn.sweeping.on_ray import Cluster, task
from tests.studies.tiny import TINY
from tests.sweeping.tiny import SETTINGS, contents, tables

WAY = Way("demo", "cpu", "fp32", True, provenance.code())


@pytest.fixture
def _cores_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_most", None)


def order(study: Study) -> dict[str, Any]:
    settings = json.loads(json.dumps(provenance.settings_of(study)))
    needs = [WAY.name(need) for need in study.needs()]
    what = {"study": study.name, "settings": settings, "name": WAY.name(study), "needs": needs}
    return what | {"way": vars(WAY), "cpus": 1, "before": {}}


COPYING = find("copying").at("demo", seeds=2, **SETTINGS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    attndyn.sweep("copying", {"seeds": [2]}, out=folder, device="cpu", **SETTINGS)
    return folder


@pytest.mark.usefixtures("_cores_stay")
def test_a_cell_comes_back_as_it_would_have_been_made_here(made: Path, tmp_path: Path) -> None:
    asked = order(COPYING)
    answer = task()(asked)
    assert set(answer) == {"files"}
    unpack(answer["files"], tmp_path / "cells" / asked["name"])
    assert contents(tmp_path) == contents(made)
    attndyn.sweep("copying", {"seeds": [2]}, out=tmp_path, device="cpu", **SETTINGS)
    assert tables(tmp_path) == tables(made)
    info = attndyn.Run(tmp_path / "cells" / asked["name"]).info
    assert info["device"].startswith("cpu (1 cores"), "it was told to use one"


@pytest.mark.usefixtures("_cores_stay")
def test_a_cell_gets_the_runs_it_needs(tmp_path: Path) -> None:
    settings = TINY["counterfactual-attention"]
    study = find("counterfactual-attention").at("demo", **settings)
    asked, need = order(study), remote.answer(order(next(study.needs())), [])
    assert "it needs" in remote.answer(asked, [{"problem": "no luck"}])["problem"]
    answer = remote.answer(asked, [need])
    unpack(need["files"], tmp_path / asked["needs"][0])
    unpack(answer["files"], tmp_path / asked["name"])
    run = attndyn.Run(tmp_path / asked["name"])
    assert [one.path for one in run.needed] == [tmp_path / asked["needs"][0]]
    other = attndyn.sweep("counterfactual-attention", {"seeds": [2]}, out=tmp_path / "here", device="cpu",
                          **{name: value for name, value in settings.items() if name != "seeds"})  # fmt: skip
    assert (tmp_path / "here" / "cells" / other.cells[0]["cell"] / "claims.json").read_bytes() == answer["files"][
        "claims.json"
    ]


@pytest.mark.usefixtures("_cores_stay")
def test_a_cell_that_was_begun_here_is_continued_there(tmp_path: Path, made: Path) -> None:
    """A finished run without its end stands for one: what is kept is not measured again."""
    asked = order(COPYING)
    folder = shutil.copytree(made / "cells" / asked["name"], tmp_path / asked["name"])
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | {"status": "running", "started": "long ago"}))
    answer = remote.answer(asked | {"before": pack(folder)}, [])
    assert json.loads(answer["files"]["run.json"])["started"] == "long ago"
    assert answer["files"]["metrics.parquet"] == (made / "cells" / asked["name"] / "metrics.parquet").read_bytes()


def test_a_cell_that_cannot_be_made_says_why() -> None:
    asked = order(COPYING)
    asked["settings"] |= {"corpus": "none"}
    with pytest.raises(UserError, match="has no setting 'corpus'"):
        remote.answer(asked, [])
    asked = order(find("feature-importance").at("demo", **TINY["feature-importance"], corpus="imdb"))
    assert "imdb" in remote.answer(asked, [])["problem"]


def test_another_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = order(COPYING)
    monkeypatch.setattr(remote, "code", lambda: WAY.code | {"torch": "1.0", "source": "abc"})
    refusal = remote.answer(asked, [])["refusal"]
    assert f"torch 1.0 instead of {WAY.code['torch']}" in refusal
    assert f"source abc instead of {WAY.code['source']}" in refusal
    monkeypatch.setitem(sys.modules, "attndyn.sweeping.remote", None)
    assert "has no attndyn that can run cells" in task()(asked)["refusal"]


@pytest.mark.parametrize("name", ["../run.json", "/etc/passwd", "traces/../../x", "thesis.tex", ".lock"])
def test_a_file_that_belongs_to_no_run_is_not_written(
    name: str, made: Path, tmp_path: Path, listing: Callable[[Path], list[str]]
) -> None:
    files = pack(next((made / "cells").iterdir()))
    with pytest.raises(RunError, match="belongs to no run"):
        unpack(files | {name: b""}, tmp_path / "a" / "cell")
    assert listing(tmp_path) == []


def test_an_arrival_cut_short_leaves_a_cell_that_is_made_again(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attndyn.sweeping import files as module

    cell = next((made / "cells").iterdir())
    files, write = pack(cell), module.atomic.write_bytes

    def full(path: Path, data: bytes) -> None:
        if path.name == "metrics.parquet":
            raise OSError(28, "No space left on device", str(path))
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(module.atomic, "write_bytes", full)
        with pytest.raises(OSError, match="No space"):
            unpack(files, tmp_path / "cells" / cell.name)
    attndyn.sweep("copying", {"seeds": [2]}, out=tmp_path, device="cpu", **SETTINGS)
    assert tables(tmp_path) == tables(made)
    assert contents(tmp_path) == contents(made)


def test_without_ray_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'attndyn\[ray\]'"):
        attndyn.sweep("copying", {"seeds": [2]}, out=tmp_path / "s", engine="ray", **SETTINGS)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(("cpus", "gpus"), [(0, 1.0), (-1, 1.0), (1, 0.0), (1, -0.5)])
def test_resources_below_nothing_are_refused(cpus: int, gpus: float) -> None:
    with pytest.raises(UserError, match="per-cell must be"):
        Cluster("auto", cpus, gpus)
