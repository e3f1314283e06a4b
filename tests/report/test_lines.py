"""Points on their predicted line, and trajectories over a field."""

import dataclasses
import math
from pathlib import Path

import pyarrow as pa
import pytest

from attndyn.report import figures, page
from attndyn.report.lines import phase_chart, points_chart
from attndyn.report.parts import NothingToShow, Phase, Points

from .conftest import FakeRun, make_run
from .test_browser import CHROMIUM, FLAGS

POINTS = Points(
    name="law", title="t", caption="c", metric="error", predicted="law", x_title="width", y_title="error", log="xy"
)
PHASE = Phase(
    name="phase", title="t", caption="c", x="x", y="y", x_title="x", y_title="y", x_domain=(-1.0, 1.0),
    y_domain=(0.0, 4.0), arrows=((0.0, 1.0, 1.0, 2.0), (0.5, 1.0, 0.0, 0.0)), boundary=((-1.0, 0.0), (1.0, 4.0)),
    boundary_label="edge",
)  # fmt: skip


def table(*rows: tuple[str, int, int, str, float]) -> pa.Table:
    names = ("condition", "replica", "step", "metric", "value")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def widths(*values: float) -> pa.Table:
    rows = [("a", seed, 64, "error", value) for seed, value in enumerate(values)]
    return table(*rows, ("a", 0, 64, "law", 1.0), ("a", 0, 256, "law", 0.5), ("b", 0, 64, "error", 3.0))


def records(spec: dict) -> list[dict]:
    return next(data for data in spec["datasets"].values() if "condition" in data[0])


def test_points_have_their_mean_its_interval_and_the_prediction() -> None:
    spec = points_chart(POINTS, widths(1.0, 2.0, 3.0)).to_dict()
    first, foreseen, alone = records(spec)
    assert first["values"] == [1.0, 2.0, 3.0]
    assert first["mean"] == 2.0
    assert first["high"] - 2 == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)  # Student's t with 2 degrees of freedom
    assert first["low"] == 1.0, "an interval that leaves a logarithmic axis ends at the lowest point"
    assert first["predicted"] == 1.0
    assert (foreseen["x"], foreseen["mean"], foreseen["predicted"]) == (256.0, None, 0.5)
    assert (alone["condition"], alone["low"], alone["predicted"]) == ("b", None, None)
    assert spec["layer"][0]["encoding"]["x"]["axis"]["values"] == [64.0, 256.0]


def test_two_equal_values_have_no_interval() -> None:
    spec = points_chart(POINTS, widths(2.0, 2.0)).to_dict()
    first, *_ = records(spec)
    assert (first["mean"], first["low"], first["high"]) == (2.0, None, None)
    assert "low" not in {layer["encoding"]["y"]["field"] for layer in spec["layer"]}
    there = points_chart(POINTS, widths(2.0, 3.0)).to_dict()
    assert "low" in {layer["encoding"]["y"]["field"] for layer in there["layer"]}


def test_a_point_tells_another_metric_and_points_of_other_runs_stand_beside() -> None:
    measured = [("a", 0, 5, "far", 0.1), ("a", 0, 5, "error", 1.0), ("a", 0, 5, "λ", 0.003), ("b", 0, 5, "error", 2.0)]
    plane = dataclasses.replace(POINTS, predicted="", log="", x="far", told="λ")
    beside = dataclasses.replace(plane, elsewhere=(("there", "SST", 0.5, 3.0), ("nearby", "IMDB", 0.6, 4.0)))
    (own,) = records(points_chart(plane, table(*measured)).to_dict())
    assert own["note"] == "0.003"
    spec = points_chart(beside, table(*measured)).to_dict()
    assert records(spec)[0] == own
    assert [(one["condition"], one["note"], one["x"], one["mean"]) for one in records(spec)[1:]] == [
        ("there", "SST", 0.5, 3.0), ("nearby", "IMDB", 0.6, 4.0),
    ]  # fmt: skip
    encoding = spec["layer"][-1]["encoding"]
    assert encoding["color"]["legend"]["values"] == ["a", "there", "nearby"]
    assert {"field": "note", "title": "λ", "type": "nominal"} in encoding["tooltip"]


def test_more_conditions_than_colours_differ_in_shape() -> None:
    names = [f"c{n}" for n in range(figures.COLOURS + 2)]
    rows = [(name, 0, 5, "error", 1.0 + n) for n, name in enumerate(names)]
    plain = dataclasses.replace(POINTS, predicted="", log="")
    encoding = points_chart(plain, table(*rows)).to_dict()["layer"][-1]["encoding"]
    assert encoding["shape"]["scale"]["domain"] == encoding["color"]["scale"]["domain"] == names
    assert encoding["shape"]["scale"]["range"] == ["circle"] * figures.COLOURS + ["triangle-up"] * 2
    assert encoding["color"]["legend"]["values"] == names
    assert "legend" not in encoding["shape"]  # it is one legend, which the page fits to its width
    assert "shape" not in points_chart(plain, table(*rows[:3])).to_dict()["layer"][-1]["encoding"]


def test_every_replica_can_stand_at_its_own_place() -> None:
    measured = [("a", 0, 5, "far", 0.1), ("a", 0, 5, "error", 1.0), ("a", 1, 5, "far", 0.4), ("a", 1, 5, "error", 2.0)]
    plane = dataclasses.replace(POINTS, predicted="", log="", x="far")
    (together,) = records(points_chart(plane, table(*measured)).to_dict())
    assert (together["x"], together["mean"]) == (0.25, 1.5)
    apart = records(points_chart(dataclasses.replace(plane, each=True), table(*measured)).to_dict())
    assert [(one["x"], one["mean"], one["low"]) for one in apart] == [(0.1, 1.0, None), (0.4, 2.0, None)]


def test_a_logarithmic_axis_takes_no_zero_and_no_axis_takes_infinity() -> None:
    values = records(points_chart(POINTS, widths(0.0, 2.0, math.inf, math.nan)).to_dict())[0]["values"]
    assert values == [2.0]
    linear = dataclasses.replace(POINTS, log="")
    assert records(points_chart(linear, widths(0.0, 2.0, math.inf)).to_dict())[0]["values"] == [0.0, 2.0]


def test_the_place_may_be_a_metric_of_its_own() -> None:
    part = dataclasses.replace(POINTS, x="depth", log="")
    metrics = table(("a", 0, 0, "error", 1.0), ("a", 0, 0, "depth", 2.5), ("a", 0, 1, "error", 1.0))
    assert [record["x"] for record in records(points_chart(part, metrics).to_dict())] == [2.5]


def test_many_places_are_marked_at_round_numbers() -> None:
    metrics = table(*(("a", 0, step, "error", 10.0**-step) for step in range(1, 12)))
    axes = points_chart(POINTS, metrics).to_dict()["layer"][0]["encoding"]
    assert axes["x"]["axis"]["values"] == [1.0, 2.0, 5.0, 10.0]
    assert axes["y"]["axis"]["values"] == pytest.approx([10.0**-power for power in range(11, 0, -1)])


def test_a_path_runs_in_the_order_of_its_steps() -> None:
    rows = [("a", 0, step, name, value) for step in (2, 0, 1) for name, value in (("x", step / 4), ("y", 2.0 * step))]
    spec = phase_chart(PHASE, table(*rows, ("a", 0, 3, "x", 0.9), ("a", 0, 4, "x", math.nan))).to_dict()
    data = list(spec["datasets"].values())
    path = next(rows for rows in data if "first" in rows[0])
    assert [(row["step"], row["x"], row["y"]) for row in path] == [(0, 0.0, 0.0), (1, 0.25, 2.0), (2, 0.5, 4.0)]
    assert [row["first"] for row in path] == [True, False, False]
    arrows = next(rows for rows in data if "dx" in rows[0])
    assert arrows == [{"x": 0.0, "y": 1.0, "dx": 0.5, "dy": 0.5}], "at rest there is no arrow"
    assert spec["layer"][-1]["encoding"]["text"]["value"] == "edge", "on top of the paths"


def test_nothing_recorded_says_so() -> None:
    with pytest.raises(NothingToShow, match="No values of bleu"):
        points_chart(dataclasses.replace(POINTS, metric="bleu"), widths(1.0))
    with pytest.raises(NothingToShow, match="for elsewhere"):
        points_chart(dataclasses.replace(POINTS, conditions=("elsewhere",)), widths(1.0))
    with pytest.raises(NothingToShow, match="No values of x and y"):
        phase_chart(PHASE, widths(1.0))


def test_both_are_charts_of_the_page_and_files(run: FakeRun, tmp_path: Path) -> None:
    path = [("a", 0, step, name, 0.1 * step) for step in range(4) for name in ("x", "y")]
    run.metrics = pa.concat_tables([widths(1.0, 2.0), table(*path)])
    text = page.build(run, [POINTS, PHASE], "finding").read_text(encoding="utf-8")
    assert text.count('<div class="chart"') == 2
    assert {path.name for path in (run.path / "figures").iterdir()} == {
        "law.png", "law.svg", "phase.png", "phase.svg",
    }  # fmt: skip
    (file,) = figures.save(phase_chart(PHASE, run.metrics), tmp_path, "phase", ("svg",))
    assert "edge" in file.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium; set $CHROMIUM to one")
def test_points_and_phases_are_drawn(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    run = make_run(tmp_path, seeds=3, steps=20)
    points = Points(
        name="points", title="t", caption="c", metric="agreement", predicted="probe", x_title="x", y_title="y", log="y"
    )
    phase = Phase(
        name="phase", title="t", caption="c", x="probe", y="agreement", x_title="x", y_title="y", x_domain=(0.0, 1.0),
        y_domain=(0.0, 1.0), arrows=((0.5, 0.5, 1.0, 0.0), (0.5, 0.2, 1.0, 1.0)), boundary=((0.0, 0.5), (1.0, 0.5)),
    )  # fmt: skip
    path = page.build(run, [points, phase], "The finding.", formats=())
    troubles: list[str] = []
    with playwright.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        opened = browser.new_context(viewport={"width": 1100, "height": 900}, offline=True).new_page()
        opened.on("console", lambda message: troubles.append(message.text))
        opened.on("pageerror", lambda error: troubles.append(str(error)))
        opened.goto(path.as_uri())
        opened.wait_for_selector(".chart >> nth=1 >> svg")
        first, second = opened.locator(".chart").all()
        assert first.locator(".mark-symbol[class*=layer] path").count() == 2 * 10 * (3 + 1), "each seed, each mean"
        assert first.locator(".mark-rule[class*=layer] line").count() == 2 * 10
        arrows = second.locator(".layer_0_marks path")
        level, rising = arrows.evaluate_all("paths => paths.map(path => path.getAttribute('transform'))")
        assert "rotate(90)" in level
        assert 45 < float(rising.split("rotate(")[1].rstrip(")")) < 90, "flatter than on a square: the plot is wide"
        browser.close()
    assert troubles == []
