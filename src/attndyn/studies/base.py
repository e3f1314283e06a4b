"""What a study declares. It trains nothing, writes nothing and draws nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_type_hints

from attndyn import spec
from attndyn.errors import UserError, nearest
from attndyn.measures.verdicts import CHECKPOINTS, DIFFERS, FEWEST, HOLDS, INCONCLUSIVE, NOT_JUDGED

if TYPE_CHECKING:
    from typing import Self

    import numpy as np

    from attndyn.report.parts import Part
    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics, Row
    from attndyn.training.condition import Condition

Scale = Literal["demo", "paper"]
SCALES: tuple[Scale, ...] = ("demo", "paper")
APART = 1000
"""Between the first seeds of two conditions that share none."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One published statement, and how it will be judged: written before the run."""

    id: str
    source: str
    statement: str
    published: str
    rule: str


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What was measured, and what follows for the statement."""

    measured: str
    verdict: str
    interval: tuple[float, float] | None = None
    of: str = ""
    """What the interval is of, where that is not the number that was measured."""
    n: int | None = None
    why: str = ""

    def on(self, examples: float | int, what: str) -> Judgement:
        """What is left of it if so many examples were read: of few, nothing is decided."""
        return self.undecided(f"fewer than {FEWEST} {what} read ({examples:.0f})" if examples < FEWEST else "")

    def along(self, checkpoints: int) -> Judgement:
        """What is left of it if it is about a curve with so many checkpoints: two are its ends."""
        return self.undecided(f"{checkpoints} checkpoints: none between the ends" if checkpoints < CHECKPOINTS else "")

    def over(self, runs: int, what: str) -> Judgement:
        """What is left of it if it is over so many of these: how far they differ cannot be told from one."""
        return self.undecided(f"one {what}" if runs < 2 else "")

    def among(self, runs: int, what: str) -> Judgement:
        """What is left of it if it compares so many of these with each other: how far pairs differ cannot be told from
        one pair."""
        return self.undecided(f"two {what}s are one pair" if runs == 2 else "")

    def undecided(self, why: str) -> Judgement:
        """What is left of it if it cannot be decided; empty: it can."""
        if not why or self.verdict not in (HOLDS, DIFFERS):
            return self
        return replace(self, verdict=INCONCLUSIVE, why="; ".join(filter(None, (self.why, why))))


@dataclass(frozen=True)
class Claim:
    """A statement with its judgement: one entry of claims.json."""

    statement: Statement
    judgement: Judgement

    def as_json(self, scale: str) -> dict[str, Any]:
        interval = self.judgement.interval
        if interval is not None and not all(map(isfinite, interval)):  # JSON has no NaN
            interval = None
        return {
            **vars(self.statement),
            **vars(self.judgement),
            "interval": None if interval is None else list(interval),
            "scale": scale,
        }


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Work that trains nothing: a theory evaluated, an equation integrated. It depends on what it holds alone."""

    condition: str
    measure: Callable[[], Iterable[tuple[int, str, float]]]
    """Gives (step, metric, value)."""
    replica: int = 0
    cost: float = 1.0
    """In any unit: what the time left is estimated from."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """Fields are the settings, with the paper's values as defaults and a docstring each."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str] = ""
    headline: ClassVar[str] = "accuracy"
    """The metric of the live line."""
    demo: ClassVar[dict[str, Any]] = {}
    """What demo scale changes."""
    divergence_is_an_outcome: ClassVar[bool] = False
    statements: ClassVar[tuple[Statement, ...]] = ()
    weights_stay: ClassVar[bool] = False
    """Whether the kept weights stay in the run folder for studies that need them; else they go when traces go."""
    sizes: ClassVar[tuple[str, ...]] = ()
    """The settings that have to be the published ones for counts of runs to be compared."""

    def at_least_one(self, *names: str) -> None:
        """Refuses settings below 1."""
        for name in names:
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")

    def seeds_apart(self, *names: str) -> None:
        """Refuses numbers of runs whose seeds would reach into those of the next condition."""
        for name in names:
            if (getattr(self, name) or 0) > APART:
                raise UserError(f"{name} must be at most {APART}, not {getattr(self, name)}: no two runs share a seed")

    def conditions(self) -> Iterator[Condition]:
        """What is trained."""
        yield from ()

    def then(self, metrics: Metrics) -> Iterator[Condition]:
        """What is trained next, given what was measured so far: asked after each stage, until there is nothing more.
        It depends on the settings and these metrics alone, so that an interrupted run can be continued. New seeds of a
        condition of an earlier stage may come under its name."""
        yield from ()

    def needs(self) -> Iterator[Study]:
        """Studies whose runs this one builds on: they are carried out first, or found finished. Equal settings are the
        same run, whichever study asks for it, so nothing is trained twice."""
        yield from ()

    def borrowed(self) -> Iterator[Condition]:
        """Conditions of needed runs of which this run keeps traces (`shown`) as if it had trained them."""
        yield from ()

    def prepare(self, needed: Sequence[Run], device: str) -> None:
        """Takes from the runs of `needs`, in their order, what the conditions build on; called before training."""

    def pieces(self) -> Iterator[Piece]:
        """What is measured without training. Input that cannot be used is refused here, before anything is written."""
        yield from ()

    def analyse(self, metrics: Metrics) -> Iterator[Row]:
        """Rows across steps and replicas, after all training and all pieces."""
        yield from ()

    def begin(self, device: str) -> None:
        """Called before training: may start work that goes on beside it."""

    def from_traces(self, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
        """Rows across steps and replicas that need what was kept of each example, or the weights, also those of
        `run.needed`; before `analyse`."""
        yield from ()

    @property
    def compares(self) -> bool:
        """Whether what was kept of each example is compared, for which all of it has to be there."""
        return type(self).from_traces is not Study.from_traces

    def shown(self, run: Run, metrics: Metrics) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]] | None:
        """(condition, replica, step, arrays) of the traces that stay when all is compared; None: all stay."""
        return None

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        """(id of a statement, judgement) for all that these settings can judge."""
        yield from ()

    def finding(self, metrics: Metrics) -> str:
        """What was found, in a sentence; by default the headline metric at the end."""
        ends = {name: metrics.curves(name, self.headline).last for name in metrics.conditions}
        found = (f"{values.mean():.2f} on {name} ({len(values)} seeds)" for name, values in ends.items())
        return f"In the end {self.headline} is {', '.join(found)}."

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        """What the page shows; by default the headline metric of every seed."""
        from attndyn.report.parts import Curves

        yield Curves(
            name="headline",
            title=self.headline,
            caption="One line a seed.",
            metric=self.headline,
            y_title=self.headline,
        )

    @property
    def caveat(self) -> str:
        """What stands between these settings and the published ones, said beside every verdict: elsewhere only
        directions can be compared."""
        paper = type(self)()
        other = [f"{name} {getattr(self, name)}" for name in self.sizes if getattr(self, name) != getattr(paper, name)]
        return f"not the published size ({', '.join(other)}): direction only" if other else ""

    def claims(self, metrics: Metrics) -> list[Claim]:
        """Every statement of the study, judged or not."""
        judged = {
            id: replace(judgement, why="; ".join(filter(None, (judgement.why, self.caveat))))
            for id, judgement in self.judge(metrics)
        }
        untried = Judgement(measured="–", verdict=NOT_JUDGED, why="these settings do not train what it needs")
        return [Claim(statement, judged.get(statement.id, untried)) for statement in self.statements]

    @classmethod
    def at(cls, scale: str, **changes: Any) -> Self:
        """The settings of a scale, then the changes asked for."""
        if scale not in SCALES:
            raise UserError(f"there is no scale {scale!r}; there are {' and '.join(SCALES)}")
        known, hints = [field.name for field in fields(cls)], get_type_hints(cls)
        for name in changes:
            if name not in known:
                raise UserError(f"{cls.name} has no setting {name!r}; {nearest(name, known)}")
        changes = {name: spec.fitting(name, value, hints[name]) for name, value in changes.items()}
        return replace(cls(**(cls.demo if scale == "demo" else {})), **changes)
