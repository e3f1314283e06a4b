"""Heat maps with their numbers: one row of panels, such as a count table, β and α side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attndyn.report.maps import picture
from attndyn.report.theme import INK, RAMPS, vega_config

if TYPE_CHECKING:
    import altair as alt

CELL, SMALLEST, SIDE = 38, 6, 240  # pixels: a cell with its number, a cell without, a panel of many cells
NUMBERED = 10  # with more columns or rows than this, cells show no numbers, and only some labels are drawn


@dataclass(frozen=True, eq=False)
class Heat:
    """One panel: counts or shares [row, column] with the labels of both. NaN cells stay empty."""

    title: str
    values: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]
    row_title: str
    column_title: str
    digits: int = 2

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.rows), len(self.columns)) or not self.values.size:
            raise ValueError(
                f"{self.title}: {len(self.rows)} × {len(self.columns)} labels for values of shape {self.values.shape}"
            )
        if (self.values < 0).any():
            raise ValueError(f"{self.title}: a heat map shows counts and shares, and none is negative")


def heat_chart(panels: Sequence[Heat], title: str = "") -> "alt.HConcatChart":
    """The panels side by side. Each has its own colours, from 0 to its largest value."""
    import altair as alt

    drawn = alt.hconcat(*(_panel(panel) for panel in panels), spacing=28).resolve_scale(color="independent")
    return drawn.properties(title=title).configure(**vega_config()) if title else drawn.configure(**vega_config())


def _panel(panel: Heat) -> "alt.LayerChart | alt.FacetChart | alt.Chart":
    import altair as alt

    rows, columns = panel.values.shape
    largest = float(np.nanmax(panel.values, initial=0)) or 1.0
    numbered = max(rows, columns) <= NUMBERED
    cell = CELL if numbered else max(SMALLEST, SIDE // max(rows, columns))
    size: dict[str, Any] = {"width": cell * columns, "height": cell * rows, "title": panel.title}
    x = alt.X("column:O", title=panel.column_title, axis=_axis(panel.columns, top=True), scale=_every(columns))
    y = alt.Y("row:O", title=panel.row_title, axis=_axis(panel.rows, top=False), scale=_every(rows))
    if not numbered:
        # One picture: as rectangles, 60 × 60 cells would take a megabyte of SVG.
        levels = np.rint(255 * np.sqrt(np.nan_to_num(panel.values) / largest)).astype(np.uint8)
        whole = alt.Chart(alt.InlineData(values=[{"row": 0, "column": 0, "url": picture(levels, scale=2 * cell)}]))
        whole = whole.mark_image(
            width=cell * columns, height=cell * rows, aspect=False, smooth=False, align="left", baseline="top"
        )
        return whole.encode(x=x.bandPosition(0), y=y.bandPosition(0), url="url:N").properties(**size)
    records = [
        {"row": r, "column": c, "value": float(value), "text": _number(value, panel.digits)}
        for (r, c), value in np.ndenumerate(panel.values)
        if np.isfinite(value)
    ]
    base = alt.Chart(alt.InlineData(values=records)).encode(x=x, y=y)
    ramp = alt.Scale(type="sqrt", domain=[0, largest], range=RAMPS["light"][:-1], interpolate="rgb")
    ink = alt.condition(f"datum.value > {0.4 * largest}", alt.value("white"), alt.value(INK["light"]))
    cells = base.mark_rect().encode(color=alt.Color("value:Q", scale=ramp, legend=None))
    return alt.layer(cells, base.mark_text(fontSize=11).encode(text="text:N", color=ink)).properties(**size)


def _every(count: int) -> "alt.Scale":
    """Rows and columns without a value keep their place."""
    import altair as alt

    return alt.Scale(domain=list(range(count)), paddingInner=0, paddingOuter=0)


def _axis(labels: Sequence[str], top: bool) -> "alt.Axis":
    """The labels by their place: two rows may have the same one."""
    import json

    import altair as alt

    shown = range(len(labels)) if len(labels) <= NUMBERED else [0, *range(9, len(labels), 10)]
    names = f"{json.dumps(list(labels), ensure_ascii=False)}[datum.value]"
    angle = -40 if top and len(labels) <= NUMBERED and max(map(len, labels)) > 4 else 0
    return alt.Axis(
        values=list(shown),
        tickCount=len(labels),
        labelExpr=names,
        labelAngle=angle,
        labelAlign="left" if angle else ("center" if top else "right"),
        orient="top" if top else "left",
        domain=False,
        ticks=False,
        labelOverlap=False,
        labelLimit=0,
    )


def _number(value: float, digits: int) -> str:
    """As the papers print shares, without the zero before the point: .25; whole numbers as they are."""
    if float(value).is_integer():
        return str(int(value))
    whole, decimals = f"{value:.{digits}f}".split(".")
    return f"{whole.removeprefix('0')}.{decimals[:2]}{decimals[2:].rstrip('0')}"
