"""Theory beside measurement: points on their predicted line, and trajectories over the field that drives them."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from attndyn.measures.verdicts import mean_interval
from attndyn.report.figures import COLOURS, HEIGHT, WIDTH, legend
from attndyn.report.parts import NothingToShow, Phase, Points
from attndyn.report.series import conditions_of
from attndyn.report.theme import vega_config

if TYPE_CHECKING:
    import altair as alt
    import pyarrow as pa


SHAPES = ("circle", "triangle-up", "square")
"""Of points, where conditions are more than colours."""


def points_chart(part: Points, metrics: "pa.Table") -> "alt.LayerChart":
    """A point for each replica, their mean with its interval, and the predicted line."""
    import altair as alt

    shown = _shown(part, metrics)
    records = [record for name in shown for record in _records(part, metrics, name)]
    if not any(record["values"] for record in records):
        where = f" for {', '.join(part.conditions)}" if part.conditions else ""
        raise NothingToShow(f"No values of {part.metric} were recorded{where}.")
    records += [_elsewhere(*point) for point in part.elsewhere]
    present = {record["condition"] for record in records}
    shown = [name for name in (*shown, *dict.fromkeys(name for name, *_ in part.elsewhere)) if name in present]

    across = [record["x"] for record in records]
    up = [value for record in records for value in (*record["values"], record["predicted"]) if value is not None]
    x = alt.X("x:Q", title=part.x_title, **_ruler(across, "x" in part.log))
    y = {"title": part.y_title, **_ruler(up, "y" in part.log)}
    base = alt.Chart().encode(x=x, **_marks(metrics, shown))
    tips: list[Any] = ["condition:N", alt.Tooltip("x:Q", title=part.x_title), alt.Tooltip("mean:Q", title=part.y_title)]
    if any("note" in record for record in records):
        tips.insert(1, alt.Tooltip("note:N", title=part.told or "run"))
    several = any(len(record["values"]) > 1 for record in records)
    layers = []
    if part.predicted:
        layers.append(base.mark_line(strokeWidth=1.6, strokeDash=[6, 3]).encode(y=alt.Y("predicted:Q", **y)))
    if several:
        seeds = (
            base.transform_filter("length(datum.values)")
            .transform_flatten(["values"])
            .mark_point(filled=True, size=14, opacity=0.35)
        )
        layers.append(seeds.encode(y=alt.Y("values:Q", **y)))
    if any(record["low"] is not None for record in records):  # Vega warns of a layer that draws nothing
        bars = base.mark_rule(strokeWidth=2).transform_filter("isValid(datum.low)")
        layers.append(bars.encode(y=alt.Y("low:Q", **y), y2="high:Q"))
    means = base.transform_filter("isValid(datum.mean)").mark_point(filled=True, size=52 if several else 30, opacity=1)
    layers.append(means.encode(y=alt.Y("mean:Q", **y), tooltip=tips))
    figure = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, description=part.title)
    figure = figure.configure(**vega_config())
    figure.data = alt.InlineData(values=records)
    return figure


def phase_chart(part: Phase, metrics: "pa.Table") -> "alt.LayerChart":
    """Grey arrows of one length, each condition's paths from their starting points, and on top the dashed line."""
    import altair as alt

    shown = _shown(part, metrics)
    paths = [record for name in shown for record in _path(part, metrics, name)]
    if not paths:
        raise NothingToShow(f"No values of {part.x} and {part.y} were recorded.")

    wide, high = part.x_domain[1] - part.x_domain[0], part.y_domain[1] - part.y_domain[0]
    x = alt.X("x:Q", title=part.x_title, scale=alt.Scale(domain=list(part.x_domain), nice=False))
    y = alt.Y("y:Q", title=part.y_title, scale=alt.Scale(domain=list(part.y_domain), nice=False))
    arrows = [{"x": x, "y": y, "dx": dx / wide, "dy": dy / high} for x, y, dx, dy in part.arrows if dx or dy]
    # The angle on the paper depends on the plot's own width and height, which the page may change.
    field = alt.Chart(alt.InlineData(values=arrows)).transform_calculate(
        angle="90 - atan2(datum.dy * height, datum.dx * width) * 180 / PI"
    )
    field = field.mark_point(shape="arrow", size=60, filled=True, color="#8a939c", opacity=0.65, strokeWidth=0.6)
    layers: list[Any] = [field.encode(x=x, y=y, angle=alt.Angle("angle:Q", scale=None))]
    colour = _colour(metrics, shown, "stroke")
    base = alt.Chart(alt.InlineData(values=paths)).encode(x=x, y=y, color=colour, tooltip=["condition:N"])
    several = any(record["seed"] != paths[0]["seed"] for record in paths)
    layers.append(
        base.mark_line(strokeWidth=1.2 if several else 2.4, clip=True).encode(order="step:Q", detail="seed:N")
    )
    starts = base.transform_filter("datum.first").mark_point(filled=True, size=60, opacity=1, clip=True)
    layers.append(starts)
    if part.boundary:
        line = [{"x": x, "y": y, "order": i} for i, (x, y) in enumerate(part.boundary)]
        edge = alt.Chart(alt.InlineData(values=line)).mark_line(strokeDash=[6, 4], strokeWidth=1.6, color="#7A7A7A")
        layers.append(edge.encode(x=x, y=y, order="order:Q"))
        label = alt.Chart(alt.InlineData(values=line[:1])).mark_text(align="left", baseline="bottom", dx=10, dy=-4)
        layers.append(label.encode(x=x, y=y, text=alt.value(part.boundary_label)))
    figure = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, description=part.title)
    return figure.configure(**vega_config())


def _shown(part: Points | Phase, metrics: "pa.Table") -> list[str]:
    every = conditions_of(metrics)
    return [name for name in part.conditions or every if name in every]


def _colour(metrics: "pa.Table", shown: list[str], symbol: str) -> "alt.Color":
    """A condition keeps its colour on all charts of a page, as long as there are colours for all."""
    import altair as alt

    every = list(dict.fromkeys([*conditions_of(metrics), *shown]))
    domain = every if len(every) <= COLOURS else shown
    return alt.Color("condition:N", scale=alt.Scale(domain=domain), legend=legend(shown, symbol))


def _marks(metrics: "pa.Table", shown: list[str]) -> dict[str, Any]:
    """Colours, and where there are too few of them another shape for each further round of them."""
    import altair as alt

    colour = _colour(metrics, shown, "circle")
    if len(shown) <= COLOURS:
        return {"color": colour}
    scale = alt.Scale(domain=shown, range=[SHAPES[min(i // COLOURS, len(SHAPES) - 1)] for i in range(len(shown))])
    # one legend for both: what it says stands once, since the page changes it on a narrow screen
    colour = alt.Color("condition:N", scale=alt.Scale(domain=shown), legend=legend(shown, alt.Undefined))
    return {"color": colour, "shape": alt.Shape("condition:N", scale=scale)}


def _elsewhere(name: str, note: str, x: float, y: float) -> dict[str, Any]:
    alone = {"condition": name, "note": note, "x": x, "values": [y], "mean": y}
    return alone | {"low": None, "high": None, "predicted": None}


def _records(part: Points, metrics: "pa.Table", condition: str) -> list[dict[str, Any]]:
    """One record for each place of a condition: {condition, x, values: […], mean, low, high, predicted}."""
    measured = _values(metrics, condition, part.metric)
    predicted = _values(metrics, condition, part.predicted)
    places, told = _values(metrics, condition, part.x), _values(metrics, condition, part.told)
    if part.each:
        measured, predicted, places, told = (_apart(found) for found in (measured, predicted, places, told))
    records = []
    for step in sorted(measured.keys() | predicted.keys()) if measured else ():
        x = _mean(places.get(step, {}).values(), "x" in part.log) if part.x else float(step)
        values = [value for value in measured.get(step, {}).values() if _fits(value, "y" in part.log)]
        if x is None or not _fits(x, "x" in part.log):
            continue
        low, high = mean_interval(values) if len(values) > 1 else (None, None)
        if high is not None and math.isinf(high):  # of two equal values no interval is known
            low = high = None
        if low is not None and not _fits(low, "y" in part.log):
            low = min(values)  # an interval that leaves a logarithmic axis
        foreseen = _mean(predicted.get(step, {}).values(), "y" in part.log)
        record = {"condition": condition, "x": x, "values": values, "mean": _mean(values, "y" in part.log)}
        note = _mean(told.get(step, {}).values(), log=False)
        record |= {} if note is None else {"note": f"{note:g}"}
        records.append(record | {"low": low, "high": high, "predicted": foreseen})
    return records


def _path(part: Phase, metrics: "pa.Table", condition: str) -> list[dict[str, Any]]:
    across, up = _values(metrics, condition, part.x), _values(metrics, condition, part.y)
    both = sorted(across.keys() & up.keys())
    return [
        {"condition": condition, "seed": seed, "step": step, "x": value, "y": up[step][seed], "first": step == both[0]}
        for step in both
        for seed, value in across[step].items()
        if seed in up[step] and math.isfinite(value) and math.isfinite(up[step][seed])
    ]


def _values(metrics: "pa.Table", condition: str, metric: str) -> dict[int, dict[int, float]]:
    """{step: {replica: value}}"""
    import pyarrow.compute as pc

    chosen = metrics.filter(pc.and_(pc.equal(metrics["condition"], condition), pc.equal(metrics["metric"], metric)))
    values: dict[int, dict[int, float]] = {}
    columns = (chosen[name].to_pylist() for name in ("step", "replica", "value"))
    for step, replica, value in zip(*columns, strict=True):
        values.setdefault(step, {})[replica] = value
    return values


def _apart(values: dict[int, dict[int, float]]) -> dict[Any, dict[int, float]]:
    """{(step, replica): {0: value}}"""
    return {(step, replica): {0: value} for step, found in values.items() for replica, value in found.items()}


def _mean(values: Iterable[float], log: bool) -> float | None:
    """The mean of those that the axis can show."""
    shown = [value for value in values if _fits(value, log)]
    return sum(shown) / len(shown) if shown else None


def _fits(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def _ruler(values: list[float], log: bool) -> dict[str, Any]:
    """Scale and axis. A logarithmic one is marked at the places themselves where they are few and round, else at 1, 2,
    5, 10 … or, over more than three decades, at powers of ten."""
    import altair as alt

    if not log:
        return {"scale": alt.Scale(zero=False, nice=False, padding=8), "axis": alt.Axis(format="~g")}
    marks, numbers = sorted(set(values)), "~g"
    if len(marks) > 8 or any(float(f"{mark:.3g}") != mark for mark in marks):
        first, last = math.floor(math.log10(marks[0])), math.ceil(math.log10(marks[-1]))
        digits = (1, 2, 5) if last - first <= 3 else (1,)
        every = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
        marks = [mark for mark in every if marks[0] <= mark <= marks[-1]]
        numbers = "~s" if marks and marks[-1] >= 10_000 else "~g"
    axis = alt.Axis(format=numbers, values=marks, tickCount=len(marks), labelOverlap=True)
    return {"scale": alt.Scale(type="log", nice=False, padding=8), "axis": axis}
