"""A study declares; what it does not declare has a sensible default."""

import runpy
from pathlib import Path

import pytest

import attndyn
from attndyn.errors import UserError
from attndyn.studies import find
from attndyn.studies.base import Claim, Judgement, Statement
from attndyn.studies.copying import Copying

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "own_task.py"


def test_field_defaults_are_the_papers() -> None:
    paper = Copying.at("paper")
    assert paper == Copying()
    assert (paper.length, paper.words, paper.hidden, paper.batch, paper.steps, paper.seeds) == (
        40,
        60,
        256,
        128,
        200,
        20,
    )
    assert paper.caveat == ""
    assert "length 12" in Copying.at("demo").caveat


def test_unknown_settings_scales_and_studies_are_refused() -> None:
    with pytest.raises(UserError, match="no setting 'sedes'"):
        Copying.at("demo", sedes=3)
    with pytest.raises(UserError, match="no scale 'huge'"):
        Copying.at("huge")
    with pytest.raises(UserError, match="did you mean 'copying'"):
        find("copyin")


def test_the_example_of_an_own_task_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = runpy.run_path(str(EXAMPLE))
    study = module["MyWords"](counts=(50, 20, 20, 10), seeds=2, steps=4)
    run = attndyn.run(study)
    assert run.path == next((tmp_path / "runs" / "my-words").iterdir()).relative_to(tmp_path)
    assert run.claims == []
    assert "as frequent as mine" in run.info["finding"]
    assert (run.path / "report.html").exists()
    drawn = module["Counted"](6, (50, 20, 20, 10)).build([0]).batch(0, 2000).source[..., :-1]
    shares = drawn.flatten().bincount(minlength=4) / drawn.numel()
    assert shares.tolist() == pytest.approx([0.5, 0.2, 0.2, 0.1], abs=0.02)
    with pytest.raises(UserError, match="no study 'my-words'"):
        run.report()


def test_an_interval_of_nan_is_not_written() -> None:
    """JSON has no NaN."""
    statement = Statement(id="A-01", source="", statement="", published="", rule="")
    written = [
        Claim(statement, Judgement(measured="", verdict="inconclusive", interval=one)).as_json("demo")["interval"]
        for one in ((float("nan"), float("nan")), (0.1, 0.2), None)
    ]
    assert written == [None, [0.1, 0.2], None]
