"""What a study may put on its page. Data only: no part holds HTML, JavaScript or a plotting object."""

import re
from dataclasses import dataclass

Cell = str | float | int | None


@dataclass(frozen=True, kw_only=True)
class _Part:
    name: str
    """Names the figure's files, so: lower-case letters, digits and hyphens."""
    title: str
    caption: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise ValueError(f"part name {self.name!r}: only lower-case letters, digits and single hyphens")


@dataclass(frozen=True, kw_only=True)
class Curves(_Part):
    """One thin line per replica and one thick median, over training steps."""

    metric: str | tuple[tuple[str, str], ...]
    """One metric, coloured by condition; or (metric, label) pairs, coloured by label, a chart a condition."""
    y_title: str
    conditions: tuple[str, ...] = ()
    """Empty: all, in the order in which they were recorded."""
    reference: float | None = None
    """Height of a dashed rule: a theory's prediction, a published value, chance."""
    reference_label: str = ""
    y_domain: tuple[float, float] | None = None
    x_title: str = "training step"


@dataclass(frozen=True, kw_only=True)
class Points(_Part):
    """What was measured, as points with their intervals over replicas, on the line that a theory predicts."""

    metric: str
    x_title: str
    y_title: str
    predicted: str = ""
    """The metric that holds the prediction; empty: there is none."""
    x: str = ""
    """The metric that holds the horizontal place; empty: the step."""
    conditions: tuple[str, ...] = ()
    """Empty: all, in the order in which they were recorded."""
    log: str = ""
    """The axes with a logarithmic scale: "", "x", "y" or "xy"."""


@dataclass(frozen=True, kw_only=True)
class Phase(_Part):
    """Trajectories in the plane of two metrics, over the field that drives them."""

    x: str
    y: str
    x_title: str
    y_title: str
    x_domain: tuple[float, float]
    y_domain: tuple[float, float]
    arrows: tuple[tuple[float, float, float, float], ...]
    """(x, y, dx, dy): direction of motion at a place."""
    conditions: tuple[str, ...] = ()
    """Empty: all, in the order in which they were recorded."""
    boundary: tuple[tuple[float, float], ...] = ()
    """A dashed line between two kinds of fate."""
    boundary_label: str = ""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The maps of one example as one replica sees it."""

    title: str
    condition: str
    replica: int
    example: int = 0
    head: int | None = None
    """None: the mean over heads."""


@dataclass(frozen=True, kw_only=True)
class Maps(_Part):
    """Output × input position; panels side by side, kinds one above the other, one slider over steps."""

    panels: tuple[Panel, ...]
    kinds: tuple[tuple[str, str], ...] = (("alpha", "attention α"), ("beta", "probe β"))
    """(array of the trace, label) pairs."""


@dataclass(frozen=True, kw_only=True)
class Table(_Part):
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name!r}: {len(self.columns)} columns, but a row {row}")


@dataclass(frozen=True, kw_only=True)
class SentenceLine:
    tokens: tuple[str, ...]
    weights: tuple[float, ...]
    """One in [0, 1] for each token."""
    label: str = ""

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.weights):
            raise ValueError(f"sentence line with {len(self.tokens)} tokens and {len(self.weights)} weights")


@dataclass(frozen=True, kw_only=True)
class Sentences(_Part):
    """Sentences whose tokens are shaded by their weight."""

    lines: tuple[SentenceLine, ...]


Part = Curves | Points | Phase | Maps | Table | Sentences


class NothingToShow(Exception):
    """The run does not hold what a part asks for; the message takes the part's place on the page."""
