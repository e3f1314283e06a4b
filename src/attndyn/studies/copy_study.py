"""What the copying studies share: one model, one way to train and read it, runs that learn or fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attndyn.errors import UserError
from attndyn.measures.readings import Answers, Attention, Keep, Lexical, MeanState
from attndyn.models.specs import Seq2Seq
from attndyn.report.parts import Curves, Maps, Panel, Table
from attndyn.studies.base import Study
from attndyn.training.condition import Adam, Condition

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics, Row
    from attndyn.studies.outcomes import Outcomes

SMALL: dict[str, Any] = {
    "length": 12, "words": 18, "hidden": 64, "batch": 64, "lr": 2e-3, "steps": 120, "evaluation": 24,
}  # fmt: skip
"""Demo scale: a size at which two cores train a seed in two seconds and the phenomenon still shows."""


@dataclass(frozen=True, kw_only=True)
class CopyStudy(Study):
    sizes: ClassVar[tuple[str, ...]] = ("length", "words", "hidden", "batch", "steps", "lr", "reading")

    seeds: int = 20
    """Independent training runs for each condition: seeds 0, 1, 2, …"""
    steps: int = 200
    """Training steps."""
    length: int = 40
    """Words in a sequence."""
    words: int = 60
    """Words that are drawn from, where not all of them are in every sequence."""
    hidden: int = 256
    """Width of the LSTMs and the embedding."""
    batch: int = 128
    """Sequences in a training step."""
    lr: float = 1e-3
    """Adam's learning rate."""
    every: int = 2
    """Steps between two readings of accuracy, α and β."""
    evaluation: int = 50
    """Fixed evaluation sequences."""
    reading: Literal["code", "text"] = "code"
    """Follow the authors' program or the paper's equations."""

    def __post_init__(self) -> None:
        self.at_least_one("seeds", "steps", "every")
        if not 0 < self.lr < float("inf"):
            raise UserError(f"lr must be a number above 0, not {self.lr}")
        for _ in self.conditions():  # impossible sizes are refused before anything runs
            pass

    def condition(self, name: str, task: Any, **changes: Any) -> Condition:
        common: dict[str, Any] = {
            "model": Seq2Seq(hidden=self.hidden, reading=self.reading),
            "seeds": tuple(range(self.seeds)),
            "steps": self.steps,
            "batch": self.batch,
            "optimiser": Adam(lr=self.lr),
            "evaluation": self.evaluation,
            "readings": tuple(kind(every=self.every) for kind in (Answers, Attention, Lexical, MeanState, Keep)),
        }
        return Condition(name=name, task=task, **(common | changes))

    def outcomes(self, metrics: Metrics) -> dict[str, Outcomes]:
        from attndyn.studies.outcomes import Outcomes

        return {name: Outcomes(metrics, name, self.steps) for name in metrics.conditions}

    def analyse(self, metrics: Metrics) -> Iterator[Row]:
        for runs in self.outcomes(metrics).values():
            yield from runs.rows()

    # --- parts of the page

    def who_learns(self, metrics: Metrics) -> Table:
        return Table(
            name="outcomes",
            title="Who learns",
            caption=f"Learned: accuracy of at least .95 at step {self.steps}. The authors' own program calls a run bad "
            "below .6 and leaves out what lies between. Steps are medians over the runs that learned.",
            columns=("condition", "learned", "failed", "below .6", "accuracy of failures", "β right at", "α right at",
                     "learned at"),
            rows=tuple(some.summary() for some in self.outcomes(metrics).values()),
        )  # fmt: skip

    def accuracy_curves(self) -> Curves:
        return Curves(
            name="accuracy",
            title="Accuracy of every seed",
            caption="Token accuracy on the fixed evaluation sequences, the end token included. Thick: the median, "
            "which lies between the two groups where about half of the seeds fail.",
            metric="accuracy",
            y_title="accuracy",
            y_domain=(0.0, 1.0),
            reference=0.95,
            reference_label="learned",
        )

    def stage_curves(self, *conditions: str) -> Curves:
        return Curves(
            name="stages",
            title="First the dictionary, then the attention",
            caption="Share of target positions where the right source position has the largest β (the probe: the "
            "probability of the right word if all attention sat there) and the largest α. A stage is reached above ½.",
            metric=(("probe right", "β, the probe"), ("attention right", "α, the attention")),
            y_title="share of positions",
            conditions=conditions,
            y_domain=(0.0, 1.0),
            reference=0.5,
            reference_label="stage reached",
        )

    def where_it_sits(self, metrics: Metrics) -> Table:
        return Table(
            name="where",
            title="Where the attention sits",
            caption=f"Mean attention at step {self.steps} on the right source position, on its two neighbours and on "
            "the end token, and the share of target positions whose largest weight sits there.",
            columns=("runs", "n", "right", "one before", "one after", "end token", "peak right", "peak one before",
                     "peak one after", "entropy"),
            rows=tuple(row for some in self.outcomes(metrics).values() for row in some.whereabouts(metrics)),
        )  # fmt: skip

    def maps(self, *wanted: tuple[Outcomes, bool]) -> Maps:
        """A run of each of the outcomes that learned (True) or failed (False), where there is one."""
        panels = [
            Panel(
                title=f"{some.condition}: seed {seed} {'learned' if learned else 'failed'}",
                condition=some.condition,
                replica=seed,
            )
            for some, learned in wanted
            if (seed := some.example(learned)) is not None
        ]
        return Maps(
            name="maps",
            title="Watch it learn to look",
            caption="One evaluation sequence: output positions down, input positions across. A run that learned shows "
            "β gathering on the right positions before α does.",
            panels=tuple(panels),
        )
