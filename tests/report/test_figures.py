import dataclasses
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from attndyn.report import figures
from attndyn.report.maps import read_panels
from attndyn.report.parts import Curves, Maps, NothingToShow
from attndyn.report.series import POINTS_PER_CHART, lines, thinned

from .conftest import CONDITIONS, FakeRun, make_metrics, make_parts

LOSS = Curves(name="loss", title="t", caption="c", metric="loss", y_title="loss")
STAGES = next(part for part in make_parts() if part.name == "stages")
MAPS = next(part for part in make_parts() if isinstance(part, Maps))


def records(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return next(data for data in spec["datasets"].values() if "seed" in data[0])


def table(*rows: tuple[str, int, int, str, float]) -> pa.Table:
    names = ("condition", "replica", "step", "metric", "value")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def test_one_line_per_replica_and_one_median_per_condition(run: FakeRun) -> None:
    spec = figures.chart(LOSS, run.metrics).to_dict()
    assert len(records(spec)) == 2 * 8
    replica, median = spec["layer"]
    assert replica["encoding"]["detail"]["field"] == "seed"
    assert median["encoding"]["y"]["aggregate"] == "median"
    assert {layer["encoding"]["color"]["field"] for layer in spec["layer"]} == {"condition"}


def test_values_are_those_of_the_table_to_four_digits(run: FakeRun) -> None:
    line = next(r for r in lines(LOSS, run.metrics) if (r["condition"], r["seed"]) == (CONDITIONS[1], 4))
    wanted = [
        row["value"]
        for row in run.metrics.to_pylist()
        if (row["condition"], row["replica"], row["metric"]) == (CONDITIONS[1], 4, "loss")
    ]
    assert line["step"] == list(range(0, 200, 2))
    assert line["value"] == pytest.approx(wanted, rel=1e-3)


def test_a_condition_keeps_its_colour_where_it_is_alone(run: FakeRun) -> None:
    part = dataclasses.replace(LOSS, conditions=CONDITIONS[1:])
    spec = figures.chart(part, run.metrics).to_dict()
    colour = spec["layer"][0]["encoding"]["color"]
    assert {r["condition"] for r in records(spec)} == {CONDITIONS[1]}
    assert colour["scale"]["domain"] == list(CONDITIONS)
    assert colour["legend"]["values"] == [CONDITIONS[1]]


def test_more_conditions_than_colours_are_told_apart_by_dashes() -> None:
    metrics = make_metrics(tuple(f"λ = {i}" for i in range(10)), range(1), range(0, 20, 10))
    encoding = figures.chart(LOSS, metrics).to_dict()["layer"][0]["encoding"]
    dashes = encoding["strokeDash"]["scale"]["range"]
    assert len(dashes) == 10
    assert dashes[0] != dashes[-1]


def test_metrics_that_share_a_chart_get_one_small_multiple_a_condition(run: FakeRun) -> None:
    spec = figures.chart(STAGES, run.metrics).to_dict()
    assert spec["facet"]["sort"] == list(CONDITIONS)
    assert spec["spec"]["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["attention α", "probe β"]
    assert len(records(spec)) == 2 * 2 * 8


def test_reference_and_domain(run: FakeRun) -> None:
    part = dataclasses.replace(LOSS, reference=1.5, reference_label="theory", y_domain=(1.0, 2.0))
    replica, _, rule, text = figures.chart(part, run.metrics).to_dict()["layer"]
    assert rule["encoding"]["y"]["datum"] == 1.5
    assert text["encoding"]["text"]["value"] == "theory"
    assert replica["encoding"]["y"]["scale"]["domain"] == [1.0, 2.0]
    assert replica["mark"]["clip"], "curves that leave the domain must not leave the plot"


def test_steps_on_a_logarithmic_scale_keep_step_0(run: FakeRun) -> None:
    part = Curves(name="c", title="t", caption="c", metric="agreement", y_title="y", x_log=True)
    x = figures.chart(part, run.metrics).to_dict()["layer"][0]["encoding"]["x"]
    assert x["scale"]["type"] == "symlog"
    assert x["axis"]["values"] == [0, 10, 30, 100]


def test_undefined_values_leave_a_gap_and_never_become_zero() -> None:
    metrics = table(*(("a", 0, step, "loss", value) for step, value in enumerate([2.0, math.nan, math.inf, 1.0])))
    assert lines(LOSS, metrics)[0]["value"] == [2.0, None, None, 1.0]


def test_nothing_recorded_says_so(run: FakeRun) -> None:
    with pytest.raises(NothingToShow, match="No values of bleu"):
        figures.chart(dataclasses.replace(LOSS, metric="bleu"), run.metrics)
    with pytest.raises(NothingToShow, match="No values of loss"):
        figures.chart(LOSS, table(("a", 0, 0, "loss", math.nan)))
    with pytest.raises(NothingToShow, match="for elsewhere"):
        figures.chart(dataclasses.replace(LOSS, conditions=("elsewhere",)), run.metrics)


def test_long_runs_are_thinned_and_keep_both_ends() -> None:
    metrics = table(*(("a", seed, step, "loss", 1.0) for seed in range(50) for step in range(2000)))
    curves = lines(LOSS, metrics)
    assert sum(len(curve["step"]) for curve in curves) <= POINTS_PER_CHART
    assert {(curve["step"][0], curve["step"][-1]) for curve in curves} == {(0, 1999)}


@pytest.mark.parametrize(("count", "limit"), [(0, 3), (1, 3), (3, 3), (4, 3), (100, 3), (1000, 299)])
def test_thinned(count: int, limit: int) -> None:
    kept = thinned(count, limit)
    assert len(kept) == min(count, limit) == len(set(kept))
    assert count == 0 or (kept[0], kept[-1]) == (0, count - 1)


def test_small_weights_stay_visible(run: FakeRun) -> None:
    run.trace = lambda *_: {  # type: ignore[method-assign]
        name: value * 0 + 1 / 41 if name in ("alpha", "beta") else value
        for name, value in FakeRun.trace(run, CONDITIONS[0], 0, 0).items()
    }
    level = read_panels(run, MAPS, 10**6)[0].levels["alpha"][0, 0, 0]
    assert 35 <= level <= 45
    assert (level / 255) ** 2 == pytest.approx(1 / 41, abs=1e-3)


def test_map_frames_are_thinned_to_their_bytes(run: FakeRun) -> None:
    panels = read_panels(run, MAPS, max_bytes=2 * 10 * 2 * 21 * 21)
    assert [levels.shape for levels in panels[0].levels.values()] == [(10, 21, 21)] * 2
    assert (panels[0].steps[0], panels[0].steps[-1]) == (0, 198)


def test_padding_is_cut_off(run: FakeRun) -> None:
    whole = FakeRun.trace(run, CONDITIONS[0], 0, 0)
    whole["source"][:, 5:] = -1
    whole["target"][:, 7:] = -1
    run.trace = lambda *_: whole  # type: ignore[method-assign]
    panel = read_panels(run, MAPS, 10**6)[0]
    assert (len(panel.outputs), len(panel.inputs)) == (7, 5)
    assert panel.levels["alpha"].shape[1:] == (7, 5)


def test_missing_traces_say_so(run: FakeRun) -> None:
    run.kept = []
    with pytest.raises(NothingToShow, match=f"No traces were kept for {CONDITIONS[1]}, seed 0"):
        read_panels(run, MAPS, 10**6)


def test_all_formats_are_written(run: FakeRun, tmp_path: Path) -> None:
    maps = figures.map_chart(MAPS, read_panels(run, MAPS, 10**6))
    for chart, name in ((maps, "maps"), (figures.chart(STAGES, run.metrics), "stages")):
        chart.to_dict(validate=True)
        svg, png, pdf = figures.save(chart, tmp_path / "figures", name, ("svg", "png", "pdf"))
        assert svg.read_text().startswith("<svg")
        assert png.read_bytes().startswith(b"\x89PNG")
        assert pdf.read_bytes().startswith(b"%PDF")
    assert sorted(p.name for p in (tmp_path / "figures").iterdir())[0] == "maps.pdf"
