"""Heat maps hold the numbers they were given, in their places."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from attndyn.report.heat import Heat, heat_chart

ROOT = Path(__file__).resolve().parents[2]


def texts(panel: Heat) -> dict[tuple[int, int], str]:
    """What the one panel of a chart writes into each cell."""
    (cells,) = heat_chart([panel]).to_dict()["datasets"].values()
    return {(cell["row"], cell["column"]): cell["text"] for cell in cells}


def test_each_cell_shows_its_number() -> None:
    values = np.array([[0.5, 2.0, 0.25], [np.nan, 0.0, 1.255]])
    panel = Heat("C", values, ["a", "b"], ["x", "y", "x"], "input", "output", digits=3)
    assert texts(panel) == {(0, 0): ".50", (0, 1): "2", (0, 2): ".25", (1, 1): "0", (1, 2): "1.255"}


def test_equal_labels_keep_their_own_columns() -> None:
    axis = heat_chart([Heat("β", np.eye(2), ["the", "the"], ["das", "das"], "t", "l")]).to_dict()
    encoding = axis["hconcat"][0]["layer"][0]["encoding"]
    assert encoding["x"]["axis"]["labelExpr"] == '["das", "das"][datum.value]'
    assert encoding["x"]["scale"]["domain"] == [0, 1]


def test_many_cells_are_one_picture() -> None:
    labels = [str(i) for i in range(60)]
    panel = heat_chart([Heat("C", np.eye(60), labels, labels, "i", "o")]).to_dict()["hconcat"][0]
    assert panel["mark"]["type"] == "image"
    assert panel["encoding"]["x"]["axis"]["values"] == [0, 9, 19, 29, 39, 49, 59]


def test_all_zero_can_be_drawn() -> None:
    assert texts(Heat("C", np.zeros((1, 1)), ["a"], ["b"], "i", "o")) == {(0, 0): "0"}


def test_labels_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"2 × 1 labels for values of shape \(1, 1\)"):
        Heat("C", np.zeros((1, 1)), ["a", "b"], ["x"], "i", "o")


def test_negative_values_are_refused() -> None:
    with pytest.raises(ValueError, match="none is negative"):
        Heat("Δ", np.array([[-0.1]]), ["a"], ["b"], "i", "o")


def test_the_pictures_of_the_docs_are_drawn_and_shown(tmp_path: Path) -> None:
    """The example runs, and docs/count-tables.md shows every picture it makes."""
    path = ROOT / "docs" / "examples" / "count_tables.py"
    spec = importlib.util.spec_from_file_location("count_tables", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(str(tmp_path))
    names = list(example.pictures())
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        f"{name}.{kind}" for name in names for kind in ("svg", "png")
    )
    page = (ROOT / "docs" / "count-tables.md").read_text(encoding="utf-8")
    for name in names:
        assert f"images/count-tables/{name}.svg" in page
        shown = (ROOT / "docs" / "images" / "count-tables" / f"{name}.svg").read_text(encoding="utf-8")
        assert shown.count("<text") == (tmp_path / f"{name}.svg").read_text(encoding="utf-8").count("<text")
    published = example.pictures()["figure-1"][1]
    assert published[0].values.tolist() == [[0.04, 0.32, 0.04, 0.03]]
    np.testing.assert_allclose(published[1].values, [[0.093, 0.744, 0.093, 0.070]], atol=5e-4)
