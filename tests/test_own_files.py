"""Files of one's own: a run is found again from anywhere, and text that was edited is noticed in every study."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attndyn
from attndyn.errors import UserError
from attndyn.store.folder import INFO, METRICS, Run
from attndyn.studies import find
from tests.studies.tiny import TINY

LINES = [f"{('no', 'yes')[n % 2]}\tword{n % 5} {('dull', 'fine')[n % 2]} thing{n % 7} and {n}\n" for n in range(80)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a command is given: own.tsv lies there."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "own.tsv").write_text("".join(LINES))
    monkeypatch.chdir(folder)
    return folder


def classified(out: Path | str, corpus: str = "own.tsv") -> Run:
    settings = TINY["salient-words"] | {"corpus": corpus, "batch": 8}
    return attndyn.run("salient-words", out=out, **settings)


def page(folder: Path) -> bytes:
    (folder / "report.html").unlink()
    return attndyn.Run(folder).report().read_bytes()


def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")


def changed(folder: Path, **entries: Any) -> None:
    """run.json with other entries; None: without it."""
    info = json.loads((folder / INFO).read_text()) | entries
    (folder / INFO).write_text(json.dumps({name: value for name, value in info.items() if value is not None}))


def test_a_run_that_was_moved_finds_its_files_here(here: Path, tmp_path: Path) -> None:
    run = classified("run")
    before = (run.path / "report.html").read_bytes()
    shutil.copytree(run.path, tmp_path / "far" / "away" / "run")
    assert page(tmp_path / "far" / "away" / "run") == before


def test_a_run_behind_a_link_finds_its_files(here: Path, tmp_path: Path) -> None:
    (tmp_path / "disk" / "deep").mkdir(parents=True)
    Path("runs").symlink_to(tmp_path / "disk" / "deep")
    run = classified("runs/run")
    before = (run.path / "report.html").read_bytes()
    assert page(Path("runs/run")) == before


def test_a_run_that_does_not_say_where_it_was_begun(here: Path) -> None:
    run = classified("run")
    before = (run.path / "report.html").read_bytes()
    changed(run.path, **{"begun from": None})
    assert page(run.path) == before


def test_an_unfinished_run_that_does_not_say_it_goes_on(tmp_path: Path) -> None:
    def stop(*where: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attndyn.run("copying", out=tmp_path / "run", page=False, progress=stop, **TINY["copying"])
    changed(tmp_path / "run", **{"begun from": None})
    assert attndyn.run("copying", out=tmp_path / "run", page=False, **TINY["copying"]).info["status"] == "finished"


def test_what_is_made_here_is_no_file(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The made language is the same from everywhere."""
    run = attndyn.run("tagger-adversary", out="run", **TINY["tagger-adversary"])
    before, folder = (run.path / "report.html").read_bytes(), run.path.resolve()
    elsewhere(tmp_path, monkeypatch)
    assert page(folder) == before


def test_a_data_folder_is_found_again(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine").mkdir()
    run = attndyn.run("salient-words", out="run", data_dir="mine", **TINY["salient-words"])
    before, folder = (run.path / "report.html").read_bytes(), run.path.resolve()
    elsewhere(tmp_path, monkeypatch)
    assert page(folder) == before


def inputs_and_outputs() -> dict[str, Any]:
    Path("in.txt").write_text("".join(f"a{n % 5} b{n % 3}\n" for n in range(30)))
    Path("out.txt").write_text("".join(f"c{n % 5} d{n % 3}\n" for n in range(30)))
    return TINY["initial-derivative"] | {"inputs": "in.txt", "outputs": "out.txt"}


def labelled() -> dict[str, Any]:
    return TINY["topic-words"] | {"texts": ("own.tsv",), "text_seeds": 2, "text_epochs": 100, "patience": 100}


def test_a_file_that_is_gone_is_not_taken_for_one_whose_name_begins_alike(here: Path) -> None:
    Path("own.tsv").rename("own")
    Path("own.txt").write_text("".join(f"word{n} {n} 1 -1\n" for n in range(5)))
    chosen = TINY["salient-words"] | {"corpus": "own", "batch": 8, "vectors": "own.txt"}
    first = attndyn.run("salient-words", out="run", page=False, **chosen)
    Path("own.txt").unlink()
    assert attndyn.run("salient-words", out="run", page=False, **chosen).info["finding"] == first.info["finding"]


def test_a_page_that_shows_texts_says_that_it_needs_them(here: Path) -> None:
    run = classified("run")
    Path("own.tsv").unlink()
    with pytest.raises(UserError, match=r"the page of run shows its texts, and these cannot be read: 'own\.tsv'"):
        run.report()
    assert (run.path / "report.html").exists()


@pytest.mark.parametrize(
    ("study", "settings", "edited"),
    [("initial-derivative", inputs_and_outputs, "in.txt"), ("topic-words", labelled, "own.tsv")],
)
def test_edited_text_is_noticed_where_nothing_is_trained_by_the_engine(
    here: Path, study: str, settings: Callable[[], dict[str, Any]], edited: str
) -> None:
    chosen = settings()
    first = attndyn.run(study, out="run", page=False, **chosen)
    assert attndyn.run(study, out="run", page=False, **chosen).info == first.info
    lines = Path(edited).read_text().splitlines(keepends=True)
    Path(edited).write_text("".join([*lines[1:], lines[0]]))
    with pytest.raises(UserError, match=r"the files of --\w+ that run was trained on have changed since; .* --out run"):
        attndyn.run(study, out="run", page=False, **chosen)
    changed(here / "run", status="running")
    with pytest.raises(UserError, match="have changed since"):
        attndyn.run(study, out="run", page=False, **chosen)
    Path(edited).unlink()
    changed(here / "run", status="finished")
    assert attndyn.run(study, out="run", page=False, **chosen).info["finding"] == first.info["finding"]


def test_text_that_can_no_longer_be_read_has_changed(here: Path) -> None:
    classified("run")
    with Path("own.tsv").open("a") as file:
        file.write("a line without a tab\n")
    with pytest.raises(UserError, match=r"what run was made from has changed since: own\.tsv, line 81"):
        classified("run")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"precision": "bf16"}, "was made with precision fp32, not bf16"),
        ({"device": "cuda"}, "was made with device cpu, not cuda"),
        ({"deterministic": True}, None),  # a CPU always is
    ],
)
def test_a_finished_run_is_not_shown_for_another_way_to_compute(
    here: Path, asked: dict[str, Any], message: str | None
) -> None:
    first = attndyn.run("copying", out="run", page=False, device="cpu", **TINY["copying"])
    if message is None:
        assert attndyn.run("copying", out="run", page=False, **asked, **TINY["copying"]).info == first.info
        return
    with pytest.raises(UserError, match=message):
        attndyn.run("copying", out="run", page=False, **asked, **TINY["copying"])


@pytest.mark.parametrize("left", ["nothing", "checkpoints"])
def test_clearing_that_is_broken_off_is_ended(here: Path, monkeypatch: pytest.MonkeyPatch, left: str) -> None:
    first = (attndyn.run("copying", out="run", page=False, device="cpu", **TINY["copying"]).path / METRICS).read_bytes()
    if left == "checkpoints":  # of the run that is to go
        (here / "run" / "checkpoints" / "save-000001").mkdir(parents=True)

    def broken_off(path: Path, **how: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("attndyn.verbs.shutil.rmtree", broken_off)
        with pytest.raises(KeyboardInterrupt):
            attndyn.run("copying", out="run", page=False, device="cpu", fresh=True, **TINY["copying"])
    assert Run(here / "run").info["status"] == "being cleared"
    again = attndyn.run("copying", out="run", page=False, device="cpu", **TINY["copying"])
    assert again.info["status"] == "finished"
    assert (again.path / METRICS).read_bytes() == first
    assert not (here / "run" / "checkpoints").exists()


@pytest.mark.parametrize("info", ['{"study": "copying"}', '{"study": "copying", "status": "finished"}'])
def test_run_json_with_too_little_in_it(here: Path, info: str) -> None:
    Path("run").mkdir()
    Path("run", INFO).write_text(info)
    with pytest.raises(UserError, match=r"run\.json does not describe a run of attndyn"):
        attndyn.run("copying", out="run", page=False, **TINY["copying"])
    with pytest.raises(UserError, match=r"is not finished|does not describe a run"):
        Run(Path("run")).report()


def test_the_settings_of_every_study_are_no_files(here: Path) -> None:
    from attndyn.own_files import own_files

    assert not any(own_files(find(name).at(scale)) for name in TINY for scale in ("demo", "paper"))
    assert os.listdir(here) == ["own.tsv"]
