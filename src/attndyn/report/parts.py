"""What a study may put on its page. Data only: no part holds HTML, JavaScript or a plotting object."""

import re
from dataclasses import dataclass
from typing import Any

Cell = str | float | int | None


def number(value: float) -> str:
    """Counts and large numbers in full, others to four digits."""
    return f"{value:,.0f}" if value.is_integer() or abs(value) >= 1000 else f"{value:.4g}"


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
    x_log: bool = False
    """Early steps far apart, late ones close together; step 0 has its place."""


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
    each: bool = False
    """Every replica is a point, at its own `x`."""
    conditions: tuple[str, ...] = ()
    """Empty: all, in the order in which they were recorded."""
    log: str = ""
    """The axes with a logarithmic scale: "", "x", "y" or "xy"."""
    told: str = ""
    """A metric whose value the tooltip gives beside the place, such as λ."""
    elsewhere: tuple[tuple[str, str, float, float], ...] = ()
    """(name, note, x, y) of points that other runs measured; those of a name have one colour."""


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
    """A dashed line: between two kinds of fate, or where a theory has the trajectories."""
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


@dataclass(frozen=True)
class Slider:
    """What the slider goes over, if it is not training: the steps of the traces, divided by `per`, are its values."""

    name: str = "training step"
    per: int = 1


@dataclass(frozen=True, kw_only=True)
class Maps(_Part):
    """Output × input position, one slider over steps. Pointing at a cell marks it in all maps of its panel.

    A trace holds the arrays of the kinds; `source` and `target` (token ids, negative ones pad the end); and `align`:
    [example, output] with the right input position, −1 where there is none, or [example, output, input] with 2 at
    sure links and 1 at possible ones.
    """

    panels: tuple[Panel, ...]
    kinds: tuple[tuple[str, str], ...] = (("alpha", "attention α"), ("beta", "probe β"))
    """(array of the trace, label) pairs."""
    across: bool = False
    """The kinds of a panel stand side by side and the panels one above the other; otherwise the other way round."""
    outlined: str = "outline the right position"
    """What the switch says that outlines the cells of `align`."""
    slider: Slider = Slider()


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
class Scoring:
    """One way to score words: attention, a probe, an influence."""

    label: str
    signed: bool = False
    """Two colours, one above and one below 0; otherwise no score is negative."""
    most: float | None = None
    """The size from which on a score has the full colour; None: the largest there is."""
    steps: tuple[int, ...] = (0,)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sentence:
    title: str
    words: tuple[str, ...]
    scores: tuple[Any, ...]
    """For each scoring an array [step, word]; a score that is not finite is shown as undefined."""


@dataclass(frozen=True, kw_only=True)
class Sentences(_Part):
    """Sentences word by word, each word coloured by its score: a sentence's scorings side by side, one slider over
    steps, where there is more than one."""

    scorings: tuple[Scoring, ...]
    sentences: tuple[Sentence, ...]
    slider: Slider = Slider()

    def __post_init__(self) -> None:
        import numpy as np

        super().__post_init__()
        for sentence in self.sentences:
            expected = [(len(scoring.steps), len(sentence.words)) for scoring in self.scorings]
            found = [np.shape(scores) for scores in sentence.scores]
            if found != expected:
                raise ValueError(f"sentences {self.name!r}: scores of shapes {expected} are expected, found {found}")


@dataclass(frozen=True, kw_only=True)
class TracedScoring:
    """An array [example, position] of the traces of one replica, as a scoring."""

    label: str
    condition: str
    replica: int
    kind: str
    """The name of the array: alpha, beta, delta."""
    signed: bool = False
    most: float | None = None
    relative: bool = False
    """Scores are shares of the largest in their sentence at that step."""


@dataclass(frozen=True, kw_only=True)
class TracedSentences(_Part):
    """Coloured sentences out of stored traces; the replicas of all scorings saw the same examples.

    A trace holds the scores, padded; `source` (token ids) of the same shape; `lengths` of each example, and its
    `target`, unless there are titles; and it may hold `answer`, the log-odds of the target.
    """

    scorings: tuple[TracedScoring, ...]
    classes: tuple[str, ...] = ()
    """What each target is called: the title, with its probability at the last step of the first scoring, if known."""
    titles: tuple[str, ...] = ()
    """Of each example, in place of its target."""
    slider: Slider = Slider()
    examples: tuple[int, ...] = ()
    """Empty: all that were kept."""


Part = Curves | Points | Phase | Maps | Table | Sentences | TracedSentences


class NothingToShow(Exception):
    """The run does not hold what a part asks for; the message takes the part's place on the page."""
