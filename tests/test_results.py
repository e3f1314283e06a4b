"""The results on record can be made again: each command is one that attndyn still takes, and its claims are known."""

import importlib.util
import json
from pathlib import Path

import pytest

from attndyn.studies import find

RESULTS = Path(__file__).parents[1] / "docs" / "results"
NAMES = sorted(path.parent.name for path in RESULTS.glob("*/run.json"))


def script(name: str):
    spec = importlib.util.spec_from_file_location(name, RESULTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_the_command_on_record_is_still_a_command(name: str) -> None:
    study = json.loads((RESULTS / name / "run.json").read_text(encoding="utf-8"))["study"]
    folder = script("rerun").folder(name)
    assert folder.parts[:2] == ("runs", study)
    assert folder.name.startswith("paper-")


@pytest.mark.parametrize("name", NAMES)
def test_the_claims_on_record_are_those_of_the_study(name: str) -> None:
    info, claims = (
        json.loads((RESULTS / name / f"{file}.json").read_text(encoding="utf-8")) for file in ("run", "claims")
    )
    assert [claim["id"] for claim in claims] == [statement.id for statement in find(info["study"]).statements]
    assert name in (RESULTS / "README.md").read_text(encoding="utf-8")
