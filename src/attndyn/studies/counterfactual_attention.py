"""Counterfactual attention: would other attention have given the same answer?

Source: Jain and Wallace 2019, §4.2, and their program. The weights of each test text are shuffled 100 times; and for
each text the attention is found that differs most and keeps the answer within ε. The classifiers are those of
`feature-importance`, whose run this study needs. Where the authors search for the adversary by Adam from five random
starts, it is computed here exactly (`probes/counterfactual.py`), for all texts at once.
Cost: demo 18 s on two cores, most of it for the classifiers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.errors import UserError
from attndyn.measures.verdicts import INCONCLUSIVE, Interval, all_of, by_majority, by_sign, mean_interval
from attndyn.report.parts import Part, Points, Table, TracedScoring, TracedSentences
from attndyn.studies.base import Judgement, Statement, Study
from attndyn.studies.explained import AVERAGE, BEST, BILSTM, SUMMARY, Explained
from attndyn.studies.feature_importance import FeatureImportance

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics, Row
    from attndyn.training.condition import Condition

LITTLE = 0.1
"""A change of the answer that counts as little."""
EDGES = (0.25, 0.5, 0.75)
"""Of the classes of texts by their largest weight, as in the authors' figure."""
PEAKED = 0.5
NEAR = 0.6
"""A JSD that counts as near its bound ln 2 = .693."""
FEW = 20
"""Texts of which a share is taken at least."""
SHOWN = 12

STATEMENTS = (
    Statement(id="J-05", source="Jain and Wallace §4.2.1", statement="permuting the weights often changes the output "
              "little, even under peaked attention", published="direction", rule="of the texts whose largest weight is "
              f"at least {PEAKED}, more than half have a median |Δy| of at most {LITTLE}, by the interval of that "
              f"share over the seeds with at least {FEW} such texts"),
    Statement(id="J-06", source="Jain and Wallace §4.2.2", statement="for most examples a very different attention "
              "gives the same output", published="JSD near its bound ln 2; ε .01 (text of others), .05 (code)",
              rule=f"at each ε, more than half of the texts have an adversary with JSD of at least {NEAR}, by the "
              "interval of that share over seeds"),
    Statement(id="W-04", source="Wiegreffe and Pinter §5", statement="the per-instance adversary is easy to find "
              "because it is detached from the model and the task is binary", published="direction", rule="the "
              "adversaries of each text, of every seed, reach a larger JSD than the attention of another seed of the "
              "same model does (the one before it), although the answer stays closer: both intervals, over texts and "
              "seeds (with the jackknife, as neighbours share a seed), lie above 0; inconclusive with two seeds"),
)  # fmt: skip


@dataclass(frozen=True)
class Share:
    """Of texts that are so, in each seed."""

    of_seeds: list[float]
    counts: list[int]

    def __str__(self) -> str:
        mean = sum(self.of_seeds) / len(self.of_seeds)
        ends = f" ({100 * min(self.of_seeds):.0f} to {100 * max(self.of_seeds):.0f})" if len(self.of_seeds) > 1 else ""
        return f"{100 * mean:.0f} %{ends}"

    @property
    def texts(self) -> str:
        least, most = (f"{end(self.counts):,}" for end in (min, max))
        return f"{least} texts" if least == most else f"{least} to {most} texts of a seed"

    @property
    def interval(self) -> Interval | None:
        return mean_interval(self.of_seeds, 0.0, 1.0) if len(self.of_seeds) > 1 else None

    @property
    def verdict(self) -> str:
        return by_majority(self.interval) if self.interval else INCONCLUSIVE


@dataclass(frozen=True, kw_only=True)
class CounterfactualAttention(Explained):
    name: ClassVar[str] = "counterfactual-attention"
    title: ClassVar[str] = "Counterfactual attention: shuffled, or as different as possible"
    source: ClassVar[str] = "Jain and Wallace 2019, Attention is not Explanation, section 4.2"
    statements = STATEMENTS
    demo: ClassVar[dict[str, Any]] = FeatureImportance.demo

    permutations: int = 100
    """Random orders of the weights of each text."""
    epsilons: tuple[float, ...] = (0.01, 0.05)
    """How far the answer may move under adversarial attention."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least_one("permutations")
        for epsilon in self.epsilons or (-1.0,):
            if not 0 <= epsilon <= 1:
                raise UserError(f"epsilons lie between 0 and 1, and there is at least one; not {self.epsilons}")
        told = [f"{epsilon:g}" for epsilon in self.epsilons]  # the name of what is measured
        if len(set(told)) < len(told):
            raise UserError(f"epsilons: every ε once, not {', '.join(told)}")

    def needs(self) -> Iterator[Study]:
        yield FeatureImportance(**self.common())

    def conditions(self) -> Iterator[Condition]:
        self.task.epoch(self.batch)  # a corpus that cannot be used is refused here
        yield from ()

    def borrowed(self) -> Iterator[Condition]:
        yield from self.bases()

    def from_traces(self, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
        from attndyn.studies.counterfactual_tables import tables

        return tables(self, run.needed[0], device)

    def shown(self, run: Run, metrics: Metrics) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]]:
        from attndyn.studies.counterfactual_tables import with_adversary
        from attndyn.studies.explained_read import shown_texts

        for condition in self.bases():
            arrays = shown_texts(self, condition, run.needed[0], condition.seeds[0], BEST, SHOWN, influence=True)
            yield condition.name, condition.seeds[0], 0, with_adversary(arrays, self.epsilons[0])

    # --- what was found

    def value(self, metrics: Metrics, name: str, condition: str = SUMMARY) -> float:
        return float(metrics.curves(condition, name).last.mean())

    def interval(self, metrics: Metrics, name: str) -> Interval:
        return Interval(self.value(metrics, f"{name} low"), self.value(metrics, f"{name} high"))

    def share(self, metrics: Metrics, name: str, least: int = 1) -> Share:
        """Of the texts of each seed that has at least so many."""
        shares, texts = (metrics.curves(BILSTM, of).last.tolist() for of in (name, f"{name}: of"))
        enough = [(share, round(n)) for share, n in zip(shares, texts, strict=True) if n >= least]
        return Share([share for share, _ in enough], [n for _, n in enough])

    def decide(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        name = f"little change, largest weight ≥ {PEAKED:g}"
        if name in metrics.curves_of(BILSTM):
            little = self.share(metrics, name, FEW)
            measured = f"in {little} of the {little.texts}" if little.counts else f"no seed has {FEW} such texts"
            yield "J-05", Judgement(measured=measured, verdict=little.verdict, interval=little.interval,
                                    n=len(little.counts))  # fmt: skip
        near = [self.share(metrics, f"JSD ≥ {NEAR:g} at ε {epsilon:g}") for epsilon in self.epsilons]
        measured = "; ".join(
            f"ε {epsilon:g}: {share} of texts, mean JSD {self.value(metrics, f'JSD at ε {epsilon:g}', BILSTM):.3f}"
            for epsilon, share in zip(self.epsilons, near, strict=True)
        )
        yield "J-06", Judgement(measured=measured, verdict=all_of([share.verdict for share in near]),
                                interval=near[0].interval,
                                of=f"ε {self.epsilons[0]:g}", n=len(near[0].counts))  # fmt: skip
        if self.seeds > 1:
            names = ("JSD of the adversary minus that of another seed", "|Δy| of another seed minus the adversary's")
            gaps = [self.interval(metrics, name) for name in names] if self.seeds > 2 else []
            epsilon = self.epsilons[0]
            yield "W-04", Judgement(
                measured=f"JSD {self.value(metrics, f'JSD at ε {epsilon:g}', BILSTM):.3f} against "
                f"{self.value(metrics, 'JSD of another seed'):.3f}; |Δy| at most {epsilon:g} against "
                f"{self.value(metrics, '|Δy| of another seed'):.3f}",
                verdict=all_of([by_sign(gap) for gap in gaps]), interval=gaps[0] if gaps else None, of="the difference",
                n=self.seeds, why=("" if gaps else "two seeds are one pair; ")
                + "that it is detached and binary is the construction; measured is how easy it is",
            )  # fmt: skip

    def finding(self, metrics: Metrics) -> str:
        epsilon = self.epsilons[0]
        change = self.value(metrics, "median change by permuting", BILSTM)
        words = self.value(metrics, f"JSD at ε {epsilon:g}", BILSTM)
        return (
            f"On {self.corpus_name} shuffling the attention of a text moves its answer by {change:.3f} (the median, on "
            f"average); an attention with the same answer (within {epsilon:g}) differs by as much as JSD {words:.2f}, "
            "of at most .69."
        )

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        yield self._table(metrics)
        yield Points(
            name="permutation",
            title="Shuffled attention",
            caption="Mean over texts of the median |Δy| over permutations, for texts by their largest weight, in four "
            "classes. A point is a seed.",
            metric="median change by largest weight",
            x="largest weight",
            x_title="largest weight",
            y_title="median |Δy|",
            conditions=(BILSTM, AVERAGE),
        )
        yield Points(
            name="adversary",
            title="The most different attention with the same answer",
            caption="Mean JSD over texts by their largest weight, at the smallest ε; the bound is ln 2 = .693. A point "
            "is a seed.",
            metric="JSD by largest weight",
            x="largest weight",
            x_title="largest weight",
            y_title="JSD",
            conditions=(BILSTM, AVERAGE),
        )
        for number, condition in enumerate((BILSTM, AVERAGE)):
            yield TracedSentences(
                name=f"sentences-{number}",
                title=f"Attention and its adversary: {condition}",
                caption=f"Both give the same answer within {self.epsilons[0]:g}. Test texts of middling length, the "
                "first of these classifiers.",
                scorings=tuple(
                    TracedScoring(label=label, condition=condition, replica=1000 * number, kind=kind)
                    for label, kind in (("attention α", "alpha"), ("adversary", "adversary"))
                ),
                classes=tuple(self.task.data.classes),
            )

    def _table(self, metrics: Metrics) -> Table:
        rows: list[tuple[Any, ...]] = []
        for condition in (BILSTM, AVERAGE):
            known = [
                name
                for name in metrics.curves_of(condition)
                if ": of" not in name and not name.endswith("largest weight")
            ]
            for name in known:
                values = metrics.curves(condition, name).last
                rows.append((condition, name, *(round(float(value), 4) for value in
                                                (values.mean(), values.min(), values.max()))))  # fmt: skip
        return Table(
            name="changes",
            title="What other attention changes",
            caption="Over test texts; mean, smallest and largest of the seeds. Little change: a median |Δy| of at most "
            f"{LITTLE} over {self.permutations} permutations.",
            columns=("classifier", "measure", "mean", "lowest seed", "highest seed"),
            rows=tuple(rows),
        )
