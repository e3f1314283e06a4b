"""`attndyn doctor`: what it says, and that it notices what does not work."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from attndyn import __version__, doctor, verbs
from tests.command import call


def test_all_is_well_here(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    code, out, err = call(capsys, "doctor", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["attndyn"] == __version__
    assert found["engine"]["torch"] == torch.__version__
    assert found["memory"]["total"] > 0
    assert found["disk"]["free"] > 0
    assert found["corpora"]["sms_spam"] == "package"
    assert found["corpora"]["imdb"] is None
    assert found["self-test"]["problem"] is None


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "self_test", lambda: {"seconds": 0.1, "problem": None})


@pytest.mark.usefixtures("no_training")
def test_missing_extras_are_no_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def requires(name: str) -> list[str]:
        return ["torch>=2.6", 'no-such-package>=3; extra == "hub"', 'attndyn[hub]; extra == "dev"', "numpy"]

    monkeypatch.setattr(metadata, "requires", requires)
    code, out, _ = call(capsys, "doctor")
    assert code == 0
    assert "[hub]      no-such-package missing" in out
    assert f"numpy {metadata.version('numpy')}" in out
    assert "passed: two runs left the same bytes" in out


@pytest.mark.usefixtures("no_training")
def test_it_works_where_attndyn_is_not_installed_and_data_are_damaged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ATTNDYN_DATA", str(tmp_path / "gone"))
    code, out, _ = call(capsys, "doctor")
    assert code == 0
    assert "not installed as a package" in out
    assert "$ATTNDYN_DATA ~/gone: there is no such folder" in out
    assert str(tmp_path) not in out


def test_other_bytes_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def another_seed(study: str, *, out: Path, **settings: Any) -> Any:
        return verbs.run(study, out=out, **settings | {"lr": 0.1 if out.name == "second" else 0.2})

    monkeypatch.setattr(doctor, "run", another_seed)
    code, out, err = call(capsys, "doctor")
    assert code == 1
    assert "self-test  failed: two runs of the same study left other bytes in" in out
    assert err.startswith("attndyn: the self-test failed: ")
    assert "metrics.parquet" in err
    assert len(err.splitlines()) == 1


def test_without_torch_it_still_speaks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    code, out, err = call(capsys, "doctor")
    assert code == 1
    assert "torch      ModuleNotFoundError: import of torch halted" in out
    assert "Traceback" not in err


@pytest.mark.parametrize(("word", "says"), [("now", "doctor takes no 'now'"), ("--jsn", "did you mean '--json'?")])
def test_a_mistake_is_one_sentence(word: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "doctor", word)
    assert (code, out) == (2, "")
    assert says in err
