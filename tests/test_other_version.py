"""A run that another version of attndyn made: it is shown with a word about it, and never ends in a traceback."""

import json
from pathlib import Path

import pytest

import attndyn
from attndyn.cli import main
from attndyn.errors import UserError
from attndyn.studies.gated_toy import GatedToy
from attndyn.verbs import report


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return attndyn.run("gated-toy", out=tmp_path_factory.mktemp("run") / "toy", page=False).path


def by(code: str | None, run: Path) -> None:
    info = json.loads((run / "run.json").read_text(encoding="utf-8"))
    if code is None:
        info.pop("code", None)
    else:
        info["code"] = code
    (run / "run.json").write_text(json.dumps(info), encoding="utf-8")


@pytest.mark.parametrize("code", ["0123456789ab", None])
def test_it_is_shown_and_said(code: str | None, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = json.loads((made / "run.json").read_text(encoding="utf-8"))["code"]
    try:
        by(code, made)
        main(["run", "gated-toy", "--out", str(made)])
        assert f"{made} is a run of another version of attndyn; --fresh runs it again" in capsys.readouterr().err
    finally:
        by(own, made)
    main(["run", "gated-toy", "--out", str(made)])
    assert capsys.readouterr().err == ""


def test_what_it_did_not_record_is_one_sentence(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GatedToy, "figures", lambda study, metrics: [metrics.curves("a", "measure of now")])
    with pytest.raises(KeyError):  # by this very version: a mistake of ours
        report(made)
    own = json.loads((made / "run.json").read_text(encoding="utf-8"))["code"]
    by("0123456789ab", made)
    with pytest.raises(UserError, match=r"another version of attndyn made the run in .*'measure of now'.*--fresh"):
        report(made)
    by(own, made)
