"""The public names, as a notebook uses them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import attndyn
from attndyn import spec
from attndyn.studies import find


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> attndyn.Run:
    folder = tmp_path_factory.mktemp("api") / "run"
    tiny = {"length": 4, "words": 6, "hidden": 8, "batch": 8, "seeds": 2, "steps": 4}
    return attndyn.run("copying", out=folder, **tiny)


def test_a_run_is_plain_objects(run: attndyn.Run) -> None:
    assert isinstance(run.metrics, pa.Table)
    assert {claim["id"] for claim in run.claims} >= {"S-01", "S-22"}
    assert run.trace("4 of 6", 1, step=2)["alpha"].shape == (1, 1, 5, 5)
    assert run.trace_steps("4 of 6", 1) == [0, 2, 4]


def test_the_page_is_built_again_and_shown(run: attndyn.Run) -> None:
    page = run.path / "report.html"
    page.unlink()
    assert "has no page yet" in run._repr_html_()
    assert run.report() == page
    shown = run._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "</script>" not in shown, "the page is escaped inside the notebook's"


def test_every_public_name_is_what_it_says_after_a_run(run: attndyn.Run) -> None:
    """A submodule that was imported meanwhile must not stand in for a function of its name."""
    assert callable(attndyn.run)
    assert callable(attndyn.reproduce)
    assert set(attndyn.__all__) <= set(dir(attndyn))
    for name in attndyn.__all__:
        assert not hasattr(getattr(attndyn, name), "__path__"), f"attndyn.{name} is a package"


def test_mistakes_raise(tmp_path: Path) -> None:
    with pytest.raises(attndyn.UserError, match="did you mean 'copying'"):
        attndyn.run("copyng")
    with pytest.raises(attndyn.UserError, match="did you mean 'seeds'"):
        attndyn.run("copying", sedes=3)
    with pytest.raises(attndyn.UserError, match="there is no folder"):
        attndyn.Run(tmp_path / "nowhere")
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        attndyn.trian  # noqa: B018


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"seeds": "x"}, "seeds must be a whole number, not 'x'"),
        ({"seeds": 2.5}, "seeds must be a whole number, not 2.5"),
        ({"lr": True}, "lr must be a number, not True"),
    ],
)
def test_values_of_another_kind_are_refused_before_anything_is_written(
    settings: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(attndyn.UserError, match=re.escape(sentence)):
        attndyn.run("copying", out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_another_device_or_flag_is_refused_where_types_are_not_checked(tmp_path: Path) -> None:
    """As they are in tests, where the call itself would not be let through."""
    tried = [
        ("device", "tpu", "device is one of auto, cpu, cuda, not 'tpu'"),
        ("precision", "fp8", "precision is one of auto, fp32, tf32, bf16, not 'fp8'"),
        ("deterministic", "yes", "deterministic must be True or False, not 'yes'"),
        ("fresh", "no", "fresh must be True or False, not 'no'"),
        ("page", 0, "page must be True or False, not 0"),
    ]
    program = f"""
import attndyn, torch
def watched():
    model = torch.nn.TransformerEncoderLayer(4, 1, batch_first=True)
    return attndyn.watch(model, torch.ones(1, 2, 4), out={str(tmp_path / "w")!r})
for name, value, _ in {tried!r}:
    try:
        attndyn.run("copying", out={str(tmp_path / "run")!r}, **{{name: value}})
    except attndyn.UserError as error:
        print(error)
for wrong in (
    lambda: attndyn.load_labelled("sms", rule="Count"),
    lambda: attndyn.watch(torch.nn.Identity(), torch.ones(1), out={str(tmp_path / "run")!r}, fresh="no"),
    lambda: attndyn.sweep("copying", {{"lr": 1e-3}}, out={str(tmp_path / "run")!r}, deterministic="no"),
    lambda: watched().step("a"),
    lambda: watched().close(1.5),
):
    try:
        wrong()
    except attndyn.UserError as error:
        print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        *(sentence for *_, sentence in tried),
        "there is no rule 'Count' for the vocabulary; did you mean 'count'?",
        "fresh must be True or False, not 'no'",
        "deterministic must be True or False, not 'no'",
        "step must be a whole number, not 'a'",
        "step must be a whole number, not 1.5",
    ]
    assert not (tmp_path / "run").exists()


def test_one_study_may_be_named_without_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {claim["study"] for claim in attndyn.reproduce("gated-toy")} == {"gated-toy"}


def test_equal_settings_are_equal_however_they_are_written() -> None:
    plain = find("salient-words").at("paper", early=(5, 10), lr=1.0, corpus="a/b", vectors=None)
    again = find("salient-words").at("paper", early=[np.int64(5), 10], lr=1, corpus=Path("a/b"), vectors=None)
    assert spec.digest(plain) == spec.digest(again)
    assert find("salient-words").at("paper", lr=np.float32(0.5), seeds=np.array(3)) == find("salient-words").at(
        "paper", lr=0.5, seeds=3
    )
    for settings, kind in (({"early": "10"}, "several of: a whole number"), ({"traces": "some"}, "shown or all"),
                           ({"seeds": np.array(2.7)}, "a whole number"), ({"seeds": True}, "a whole number"),
                           ({"vectors": 3}, "text or None")):  # fmt: skip
        with pytest.raises(attndyn.UserError, match=f"must be {kind}, not"):
            find("salient-words").at("paper", **settings)
