"""Figures: one Altair chart each, saved as SVG, PNG or PDF through vl-convert."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attndyn.report.maps import PanelFrames, picture
from attndyn.report.parts import Curves, Maps
from attndyn.report.series import conditions_of, lines, thinned
from attndyn.report.theme import CATEGORIES, RAMPS, vega_config
from attndyn.store.atomic import write_bytes

if TYPE_CHECKING:
    import altair as alt
    import pyarrow as pa

    Chart = alt.LayerChart | alt.FacetChart | alt.VConcatChart | alt.HConcatChart

# Pixels; with axes this is one column of a paper.
WIDTH, HEIGHT = 340, 210
MAP_SIDE = 126
COLOURS = len(CATEGORIES["light"])


def chart(part: Curves, metrics: "pa.Table") -> "Chart":
    """The curves of one part."""
    import altair as alt

    records = lines(part, metrics)
    present = {record["condition"] for record in records}
    every = conditions_of(metrics)
    shown = [condition for condition in part.conditions or every if condition in present]
    if isinstance(part.metric, str):
        # A condition keeps its colour on all charts of a page, as long as there are colours for all.
        field, domain, named = "condition", every if len(every) <= COLOURS else shown, shown
    else:
        field, named = "label", [label for _, label in part.metric]
        domain = named

    layers = _curve_layers(part, records, field, domain, named)
    if part.reference is not None:
        layers += _reference_layers(part, part.reference, records)
    figure: Chart = alt.layer(*layers)
    if field == "label" and len(shown) > 1:
        small = figure.properties(width=0.6 * WIDTH, height=0.7 * HEIGHT)
        header = alt.Facet("condition:N", sort=shown, title=None)
        figure = small.facet(header, data=alt.NamedData(name="curves"), columns=2)
    else:
        figure = figure.properties(width=WIDTH, height=HEIGHT)
    figure = figure.transform_flatten(["step", "value"]).properties(description=part.title)
    figure = figure.configure(**vega_config())
    figure.data = alt.InlineData(values=records)  # last: each call above copies all that the chart holds
    return figure


def _curve_layers(
    part: Curves, records: list[dict[str, Any]], field: str, domain: list[str], named: list[str]
) -> "list[alt.Chart]":
    """A thin line for each replica and a thick one for their median, coloured by `field`."""
    import altair as alt

    curve = alt.Chart().encode(
        x=alt.X("step:Q", title=part.x_title, **_x(part, max(record["step"][-1] for record in records))),
        color=alt.Color(f"{field}:N", scale=alt.Scale(domain=domain), legend=legend(named)),
    )
    if len(domain) > COLOURS:
        dashes = [[1, 0] if i < COLOURS else [6, 3] for i in range(len(domain))]
        dash_scale = alt.Scale(domain=domain, range=dashes)
        curve = curve.encode(strokeDash=alt.StrokeDash(f"{field}:N", scale=dash_scale))
    names = ["condition:N"] if field == "condition" else ["condition:N", "label:N"]
    clip = _leaves_plot(records, part.y_domain)
    replicas = curve.mark_line(strokeWidth=0.9, strokeOpacity=0.45, clip=clip).encode(
        y=alt.Y("value:Q", **_y(part)), detail="seed:N", tooltip=[*names, "seed:N"]
    )
    median = curve.mark_line(strokeWidth=2.8, clip=clip).encode(y=alt.Y("median(value):Q", **_y(part)), tooltip=names)
    return [replicas, median]


def _x(part: Curves, last: int) -> dict[str, Any]:
    axis: dict[str, Any] = {"format": "~s" if last >= 10_000 else "d"}
    if not part.x_log:
        return {"scale": {"nice": False}, "axis": axis}
    # As a logarithm from the tenth step on, and nearly linear before, where Vega would draw ticks for late steps only.
    ticks = [0, *(times * 10**power for power in range(1, 9) for times in (1, 3) if times * 10**power <= last)]
    return {"scale": {"nice": False, "type": "symlog", "constant": 10}, "axis": axis | {"values": ticks}}


def _y(part: Curves) -> dict[str, Any]:
    scale = {"zero": False} if part.y_domain is None else {"domain": list(part.y_domain)}
    return {"title": part.y_title, "scale": scale}


def _leaves_plot(records: list[dict[str, Any]], domain: tuple[float, float] | None) -> bool:
    """Clipping costs half a second a PNG, so it is done only where a curve needs it."""
    if domain is None:
        return False
    values = (value for record in records for value in record["value"] if value is not None)
    return any(not domain[0] <= value <= domain[1] for value in values)


def legend(values: list[str], symbol: Any = "stroke") -> "alt.Legend":
    """Above the plot, in as many columns as fit, so that the plot keeps the figure's width."""
    import altair as alt

    columns = max(1, WIDTH // (40 + 7 * max(map(len, values))))
    size = 160 if symbol == "stroke" else 60
    return alt.Legend(title=None, orient="top", values=values, columns=columns, symbolType=symbol, symbolSize=size)


def _reference_layers(part: Curves, height: float, records: list[dict[str, Any]]) -> "list[alt.Chart]":
    """A dashed rule, labelled at the end of the plot where the curves are farther from it."""
    import altair as alt

    def distance(end: int) -> float:
        values = [record["value"][end] for record in records]
        return sum(abs(value - height) for value in values if value is not None)

    base = alt.Chart(alt.InlineData(values=[{}])).encode(y=alt.YDatum(height, **_y(part)))
    rule = base.mark_rule(strokeDash=[5, 4], strokeWidth=1.2)
    if distance(0) > distance(-1):
        text = base.mark_text(align="left", dx=4, baseline="bottom", dy=-3).encode(x=alt.value(0))
    else:
        text = base.mark_text(align="right", baseline="bottom", dy=-3).encode(x=alt.value("width"))
    return [rule, text.encode(text=alt.value(part.reference_label))]


def map_chart(part: Maps, panels: Sequence[PanelFrames]) -> "Chart":
    """The first, the middle and the last step of each panel."""
    import altair as alt

    charts = [_panel_chart(panel, part) for panel in panels]
    figure: Chart = alt.vconcat(*charts, spacing=24).properties(description=part.title)
    return figure.configure(**vega_config())


def _panel_chart(panel: PanelFrames, part: Maps) -> "alt.FacetChart":
    import altair as alt

    kinds, slider = part.kinds, part.slider

    rows, columns = len(panel.outputs), len(panel.inputs)
    # Each map is one picture: as rectangles, 41 × 41 cells would take a third of a megabyte of SVG.
    cell = max(1, MAP_SIDE // max(rows, columns))
    width, height = cell * columns, cell * rows
    values = [
        {
            "kind": label,
            "step": panel.steps[i] / slider.per,
            "url": picture(panel.levels[kind][i], scale=2 * cell),
            "l": (columns + 1) / 2,
            "t": (rows + 1) / 2,
        }
        for kind, label in kinds
        for i in thinned(len(panel.steps), 3)
    ]
    maps = alt.Chart().mark_image(width=width, height=height, aspect=False, smooth=False)
    maps = maps.encode(
        x=alt.X("l:Q", **_positions("input position l", [0.5, columns + 0.5])),
        y=alt.Y("t:Q", **_positions("output position t", [rows + 0.5, 0.5])),
        url="url:N",
    )
    row = alt.Row("kind:N", sort=[label for _, label in kinds], title=None)
    column = alt.Column(
        "step:O", title=None, header=alt.Header(labelExpr=f"'{slider.name.removeprefix('training ')} ' + datum.value")
    )
    layered = alt.layer(maps, _ramp_legend()).properties(width=width, height=height)
    facets = layered.facet(data=alt.InlineData(values=values), row=row, column=column)
    return facets.properties(title=panel.title)


def _positions(title: str, domain: list[float]) -> dict[str, Any]:
    axis = {"grid": False, "tickCount": 3, "domain": False, "ticks": False, "titleFontSize": 11}
    return {"title": title, "axis": axis, "scale": {"domain": domain, "nice": False, "zero": False}}


def _ramp_legend() -> "alt.Chart":
    """Invisible points: they carry the legend that pictures cannot have."""
    import altair as alt

    scale = alt.Scale(type="sqrt", domain=[0, 1], range=RAMPS["light"], interpolate="rgb")
    legend = alt.Legend(
        title="value (√ scale)",
        titleLimit=0,
        values=[0, 0.05, 0.2, 0.5, 1],
        format="~g",
        labelOverlap=False,
        gradientLength=MAP_SIDE,
    )
    points = alt.Chart(alt.InlineData(values=[{"v": 0}])).mark_point(opacity=0)
    return points.encode(color=alt.Color("v:Q", scale=scale, legend=legend))


def save(chart: "Chart", folder: Path, name: str, formats: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write `folder/name.<format>` for each format, of svg, png and pdf; returns the paths."""
    import vl_convert

    # One pass through Vega for all formats: PNG and PDF are made from the SVG.
    svg = vl_convert.vegalite_to_svg(chart.to_dict(validate=False))
    convert = {
        "svg": lambda: svg.encode(),
        "png": lambda: vl_convert.svg_to_png(svg, scale=2),
        "pdf": lambda: vl_convert.svg_to_pdf(svg),
    }
    paths = [folder / f"{name}.{kind}" for kind in formats]
    for kind, path in zip(formats, paths, strict=True):
        write_bytes(path, convert[kind]())
    return paths
