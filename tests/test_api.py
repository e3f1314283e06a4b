"""The public names, as a notebook uses them."""

from pathlib import Path

import pyarrow as pa
import pytest

import attndyn


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
