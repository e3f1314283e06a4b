"""The results on record can be made again: each command is one that attndyn still takes, and its claims are known."""

import importlib
import json
import sys
import tarfile
from pathlib import Path

import pytest

from attndyn.cli import main
from attndyn.errors import UserError
from attndyn.studies import find

RESULTS = Path(__file__).parents[1] / "docs" / "results"
NAMES = sorted(path.parent.name for path in RESULTS.glob("*/run.json"))


def script(name: str):
    if str(RESULTS) not in sys.path:
        sys.path.append(str(RESULTS))
    return importlib.import_module(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_command_on_record_is_still_a_command(name: str) -> None:
    study = json.loads((RESULTS / name / "run.json").read_text(encoding="utf-8"))["study"]
    folder, *needed = script("rerun").folders(name)
    assert folder.parts[:2] == ("runs", study)
    assert folder.name.startswith("paper-")
    assert len(needed) == {"deceptive-attention": 2, "counterfactual-attention": 1}.get(study, 0)


def test_a_command_on_record_may_be_run_otherwise() -> None:
    rerun, name = script("rerun"), "word-translation-tatoeba-de"
    assert rerun.command(name, "--uniform 2")[-2:] == ["--uniform", "2"]
    assert rerun.folders(name, "--uniform 2") != rerun.folders(name) == rerun.folders(name, "--uniform 1")


@pytest.mark.parametrize("name", NAMES)
def test_the_claims_on_record_are_those_of_the_study(name: str) -> None:
    info, claims = (
        json.loads((RESULTS / name / f"{file}.json").read_text(encoding="utf-8")) for file in ("run", "claims")
    )
    assert [claim["id"] for claim in claims] == [statement.id for statement in find(info["study"]).statements]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_result_shows_the_claims_on_record(name: str) -> None:
    shown = (RESULTS / name / "README.md").read_text(encoding="utf-8")
    assert shown == script("record").described(RESULTS / name)


def test_the_table_of_results_shows_what_is_recorded() -> None:
    assert (RESULTS / "README.md").read_text(encoding="utf-8") == script("record").listed()


def test_what_is_said_of_the_recorded_intervals_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    script("wider").main()
    first, *others = capsys.readouterr().out.splitlines()
    stay, every = (int(word) for word in first.split()[:3:2])
    alone = [line for line in others if "tatoeba" in line]
    text = " ".join((RESULTS / "README.md").read_text(encoding="utf-8").split())
    assert f"Of the {every} verdicts by such an interval {stay} would stand even so." in text
    assert f"names the others: {len(alone)} of Tatoeba" in text
    assert f"and {len(others) - len(alone)} that may not be decided" in text


def test_what_a_run_needs_is_packed_although_the_run_itself_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rerun = script("rerun")
    folder, first, second = rerun.folders("deceptive-attention-sst")
    for made in (folder, first, second):
        (made / "weights").mkdir(parents=True)
        (made / "weights" / "heavy.npz").touch()
    for finished in (first, second):
        (finished / "claims.json").write_text("[]")
    rerun.pack(["deceptive-attention-sst"], tmp_path / "packed.tar.xz")
    with tarfile.open(tmp_path / "packed.tar.xz") as tar:
        names = [name for name in tar.getnames() if "/" in name]
    assert names == [f"deceptive-attention-sst-needs-{n}/claims.json" for n in (1, 2)]


def test_a_finished_run_is_judged_again_from_its_metrics(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["--seeds", "2", "--averages", "1", "--epochs", "1", "--width", "8", "--hidden", "8", "--evaluation", "20"]
    main(["run", "feature-importance", *words, "--device", "cpu", "--out", str(folder)])
    before = {name: (folder / name).read_text(encoding="utf-8") for name in ("claims.json", "run.json")}
    claims = json.loads(before["claims.json"])
    old = [claim | {"verdict": "holds", "rule": "of another time"} for claim in claims]
    (folder / "claims.json").write_text(json.dumps(old), encoding="utf-8")
    (folder / "run.json").write_text(json.dumps(json.loads(before["run.json"]) | {"finding": "old"}), encoding="utf-8")
    script("rejudge").rejudge(folder)
    assert {name: json.loads((folder / name).read_text(encoding="utf-8")) for name in before} == {
        name: json.loads(text) for name, text in before.items()
    }
    (folder / "run.json").write_text(json.dumps(json.loads(before["run.json"]) | {"status": "running"}))
    with pytest.raises(UserError, match="is not finished"):
        script("rejudge").rejudge(folder)
