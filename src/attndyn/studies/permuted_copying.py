"""Copying under a fixed permutation π: the same words, the same dictionary, another order.

Source: Snell et al. §6.2, equation 22. Output t is input π(t), with one π for each seed, and inputs as in 40 of 60.
Follows the authors' program where it has the part (their repository lacks this experiment): model, loss and
evaluation as in the study `copying`.
Cost: demo 40 s on two cores; paper 25 s on an H200, about 2.5 h on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.errors import UserError
from attndyn.models.rules import Uniform
from attndyn.report.parts import Curves, Part
from attndyn.studies.base import Judgement, Statement
from attndyn.studies.copy_study import SMALL, CopyStudy
from attndyn.tasks.synthetic import PermutedCopy, Subsets

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics
    from attndyn.training.condition import Condition

COPY, PERMUTED = "in order", "permuted by π"
COPY_UNIFORM, PERMUTED_UNIFORM = "in order, uniform attention", "permuted by π, uniform attention"


@dataclass(frozen=True, kw_only=True)
class PermutedCopying(CopyStudy):
    name: ClassVar[str] = "permuted-copying"
    title: ClassVar[str] = "Copying under a fixed permutation: knowing the words is not knowing where to look"
    source: ClassVar[str] = "Snell et al., arXiv 2103.07601, section 6.2"
    demo: ClassVar[dict[str, Any]] = SMALL | {"seeds": 6, "patience": 360}

    steps: int = 300
    """Training steps at which all runs are judged."""
    every: int = 5
    """Steps between two readings of accuracy, α and β."""
    patience: int = 1000
    """Training steps of the permuted task in all, to see whether it is learned later."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience < self.steps:
            raise UserError(f"patience must be at least the {self.steps} steps, not {self.patience}")

    def conditions(self) -> Iterator[Condition]:
        copy, permuted = Subsets(self.length, of=self.words), PermutedCopy(self.length, of=self.words)
        yield self.condition(COPY, copy)
        yield self.condition(PERMUTED, permuted, steps=max(self.patience, 1))
        yield self.condition(COPY_UNIFORM, copy, rule=Uniform())
        yield self.condition(PERMUTED_UNIFORM, permuted, rule=Uniform())

    def finding(self, metrics: Metrics) -> str:
        runs = self.outcomes(metrics)
        copy, permuted = runs[COPY], runs[PERMUTED]
        late = metrics.curves(PERMUTED, "accuracy").last
        known = [metrics.curves(name, "probe right").last.mean() for name in (COPY_UNIFORM, PERMUTED_UNIFORM)]
        return (
            f"{copy.count} of {copy.n} seeds learned to copy in order within {self.steps} steps, {permuted.count} of "
            f"{permuted.n} under a fixed permutation ({(late >= 0.95).sum()} by step {self.patience}); trained under "
            f"uniform attention, β knows the right word at {known[0]:.0%} and {known[1]:.0%} of the positions."
        )

    statements: ClassVar[tuple[Statement, ...]] = (
        Statement(
            id="S-45",
            source="§6.2",
            statement="copying 40 of 60 words is perfect within 300 steps every time",
            published="100 % (text)",
            rule="holds if every run learns (accuracy of at least .95), of six or more; differs if Fisher's exact test "
            "against 20 of 20 has p < .05, or if the interval of the failing share lies above .05",
        ),
        Statement(
            id="S-46",
            source="§6.2",
            statement="under a fixed permutation the same task is never learned",
            published="0 % (text)",
            rule="holds if no run learns within 300 steps, of six or more; differs if Fisher's exact test against 0 of "
            "20 has p < .05, or if the interval of the learning share lies above .05",
        ),
        Statement(
            id="S-47",
            source="§6.2",
            statement="β under uniform attention is the same for both tasks",
            published="direction",
            rule="share of target positions where β is largest at the right position, after uniform training: holds if "
            "the interval of the difference of the means lies within ±.05, differs if it lies outside",
        ),
        Statement(
            id="S-48",
            source="§6.2",
            statement="LSTM attention is biased towards monotone order",
            published="direction",
            rule="Fisher's exact test between the shares of learned runs, one-sided: holds if more runs learn in order "
            "(p < .05), differs if fewer do",
        ),
    )

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        from attndyn.studies import outcomes

        runs = self.outcomes(metrics)
        late = metrics.curves(PERMUTED, "accuracy").last
        yield "S-45", outcomes.always_learned(runs[COPY])
        yield "S-46", outcomes.never_learned(runs[PERMUTED], f"by step {self.patience} {(late >= 0.95).sum()} learn")
        copy, permuted = (metrics.curves(name, "probe right").last for name in (COPY_UNIFORM, PERMUTED_UNIFORM))
        yield "S-47", outcomes.same(copy, permuted, margin=0.05)
        yield "S-48", outcomes.easier(runs[COPY], runs[PERMUTED])

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        runs = self.outcomes(metrics)
        yield self.who_learns(metrics)
        yield self.accuracy_curves()
        yield self.stage_curves(COPY, PERMUTED)
        yield Curves(
            name="uniform",
            title="What β knows without choosing where to look",
            caption="Share of target positions where the right source position has the largest β, trained under "
            "uniform attention. If knowing the words were all, the two tasks would be equally hard.",
            metric="probe right",
            y_title="share of positions",
            conditions=(COPY_UNIFORM, PERMUTED_UNIFORM),
            y_domain=(0.0, 1.0),
        )
        yield self.where_it_sits(metrics)
        yield self.maps((runs[COPY], True), (runs[PERMUTED], True), (runs[PERMUTED], False))
