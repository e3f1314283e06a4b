"""One look for the page and for the figures: colours, fonts, the Vega configuration."""

from typing import Any

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"

# Okabe and Ito's colours, told apart under all common colour blindnesses; the lightest, yellow, is left out.
CATEGORIES = {
    "light": ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A7A7A", "#4B3B8F"],
    "dark": ["#4FA8E0", "#F08A3C", "#2FC79C", "#E39CC3", "#F2B93B", "#8FD0F7", "#A6A6A6", "#A79BE8"],
}
# From 0 to 1, evenly spaced in √value; lightness is monotone, so that greyscale keeps the order.
RAMPS = {
    "light": ["#ffffff", "#cfe1f1", "#7fb2da", "#2f79b8", "#0f4680", "#071f3f"],
    "dark": ["#161b22", "#1f4263", "#2f6ea5", "#62a8dd", "#b9dbf3", "#ffffff"],
}
INK = {"light": "#1d2329", "dark": "#e3e7eb"}
SOFT_INK = {"light": "#59636e", "dark": "#a0a9b3"}
GRID = {"light": "#e4e8ec", "dark": "#2d343c"}


def vega_config(mode: str = "light", size: int = 11) -> dict[str, Any]:
    """The Vega-Lite configuration of every chart; `size` is that of the smallest text."""
    ink, soft, grid = INK[mode], SOFT_INK[mode], GRID[mode]
    return {
        "font": FONT,
        "background": "white" if mode == "light" else "transparent",
        "padding": 6,
        "view": {"stroke": None},
        "range": {"category": CATEGORIES[mode]},
        "axis": {
            "domainColor": soft, "gridColor": grid, "tickColor": soft, "labelColor": soft, "titleColor": ink,
            "labelFontSize": size, "titleFontSize": size + 1, "titleFontWeight": "normal",
            "titlePadding": 8, "tickSize": 4, "labelPadding": 4,
        },
        "axisX": {"grid": False, "tickCount": 6},
        "axisY": {"domain": False, "ticks": False, "tickCount": 5},
        "legend": {
            "labelColor": ink, "titleColor": ink, "labelFontSize": size + 1, "titleFontSize": size + 1,
            "titleFontWeight": "normal", "symbolStrokeWidth": 3, "symbolSize": 160, "symbolOpacity": 1,
            "labelLimit": 0,
        },
        "header": {"labelColor": ink, "labelFontSize": size + 1, "titleColor": ink, "labelPadding": 6},
        "title": {"color": ink, "fontSize": size + 1, "fontWeight": "bold", "anchor": "start"},
        "rule": {"color": soft},
        "text": {"color": soft, "fontSize": size},
    }  # fmt: skip


def ramp_table(mode: str = "light") -> list[tuple[int, int, int]]:
    """256 RGB colours, interpolated between the ramp's stops."""
    stops = [tuple(int(stop[i : i + 2], 16) for i in (1, 3, 5)) for stop in RAMPS[mode]]
    table = []
    for level in range(256):
        place = level / 255 * (len(stops) - 1)
        left = min(int(place), len(stops) - 2)
        share = place - left
        r, g, b = (round(a + (z - a) * share) for a, z in zip(stops[left], stops[left + 1], strict=True))
        table.append((r, g, b))
    return table
