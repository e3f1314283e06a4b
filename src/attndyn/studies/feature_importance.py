"""Feature importance: does attention rank the words of a text as their influence on the answer does?

Source: Jain and Wallace 2019, §4.1, and their program. Kendall's τ of attention with gradient importance (the attention
held still) and with leaving out, in every test text over its words; the same for a model that reads each word for
itself, where attention has nothing to mix. Follows the program in what the text leaves open; docs/feature-importance.md
says where it does not.
Cost: demo 13 s on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.measures.verdicts import (
    DIFFERS,
    HOLDS,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    Interval,
    all_of,
    by_margin,
    by_sign,
    mean_interval,
)
from attndyn.report.parts import Curves, Part, Table, TracedScoring, TracedSentences
from attndyn.studies.base import Judgement, Statement
from attndyn.studies.explained import AVERAGE, BEST, BILSTM, PUBLISHED, SUMMARY, Explained

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics, Row
    from attndyn.training.condition import Condition

GRADIENT, LEFT_OUT, BOTH = "τ(α, gradient)", "τ(α, leaving out)", "τ(gradient, leaving out)"
TAUS = (GRADIENT, LEFT_OUT, BOTH)
SCORES = ("test accuracy", "test F1", "test AUC")
MODEST, STRONG, MARGIN, SCORE_MARGIN = 0.6, 0.5, 0.1, 0.03
SHOWN = 12
"""Texts that the page shows."""
BINS = 40
"""Of the distribution of τ."""

MODESTLY = (
    f"on SST and IMDB at the published size: the interval of the mean τ, over seeds and texts, lies within ±{MARGIN} "
    f"of the published value; elsewhere: between 0 and {MODEST}"
)
STATEMENTS = (
    Statement(id="J-01", source="Jain and Wallace §4.1", statement="Kendall τ of attention with gradient importance is "
              "modest", published="SST .351 (48 % significant), IMDB .437 (100 %) (csv)", rule=MODESTLY),
    Statement(id="J-02", source="Jain and Wallace §4.1", statement="and so it is with leaving words out",
              published="SST .291, IMDB .341 (csv)", rule=MODESTLY),
    Statement(id="J-03", source="Jain and Wallace §4.1", statement="the two importances agree better with each other",
              published="SST .656, IMDB .517 (csv)", rule="the intervals, over seeds and texts, of τ(gradient, leaving "
              "out) minus either τ of the attention lie above 0"),
    Statement(id="J-04", source="Jain and Wallace, base models", statement="accuracy / F1 / AUC of the classifier",
              published="IMDB .898/.896/.960; SST .808/.783/.902; AG .958/.958/.990; 20News .922/.917/.978 (json)",
              rule=f"the interval, over seeds, of each minus the published one lies within ±{SCORE_MARGIN}; differs if "
              "one lies outside; other sizes, or a corpus whose texts are not the published ones, are not comparable"),
    Statement(id="O-01", source="slides, prior work", statement="standard attention correlates strongly with "
              "leave-one-out influence", published="direction (compare J-02)", rule="the interval of the mean τ(α, "
              f"leaving out), over seeds and texts, lies above {STRONG}; differs if it lies below"),
    Statement(id="S-37", source="Snell et al. §5.1", statement="attention correlates with saliency although nothing "
              "rewards it: A(α, Δ) above Â", published="direction", rule="the interval of A(α, Δ) − Â, over seeds and "
              "texts, lies above 0 for Δ by gradient and by leaving out"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FeatureImportance(Explained):
    name: ClassVar[str] = "feature-importance"
    title: ClassVar[str] = "Feature importance: attention beside the influence of words"
    source: ClassVar[str] = "Jain and Wallace 2019, Attention is not Explanation, section 4.1"
    statements = STATEMENTS
    weights_stay: ClassVar[bool] = True
    demo: ClassVar[dict[str, Any]] = {
        "seeds": 4, "averages": 2, "epochs": 3, "width": 48, "hidden": 24, "evaluation": 600,
    }  # fmt: skip

    def conditions(self) -> Iterator[Condition]:
        yield from self.bases()

    def from_traces(self, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
        from attndyn.studies.importance_tables import tables

        return tables(self, run, device)

    def shown(self, run: Run, metrics: Metrics) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]]:
        """α and both influences of a few texts of middling length, of the first classifier of each kind."""
        from attndyn.studies.explained_read import shown_texts

        for condition in self.bases():
            arrays = shown_texts(self, condition, run, condition.seeds[0], BEST, SHOWN, influence=True)
            yield condition.name, condition.seeds[0], condition.steps, arrays

    # --- what was found

    def value(self, metrics: Metrics, name: str, condition: str = SUMMARY) -> float:
        return float(metrics.curves(condition, name).last.mean())

    def interval(self, metrics: Metrics, name: str) -> Interval:
        return Interval(self.value(metrics, f"{name} low"), self.value(metrics, f"{name} high"))

    def decide(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        for n, (id, name) in enumerate((("J-01", GRADIENT), ("J-02", LEFT_OUT))):
            found = self.interval(metrics, name)
            known = self.published.get("τ")
            if known is not None:
                verdict = by_margin(Interval(found.low - known[n], found.high - known[n]), MARGIN)
            else:
                verdict = HOLDS if found.low > 0 and found.high < MODEST else INCONCLUSIVE
                verdict = DIFFERS if found.high < 0 or found.low > MODEST else verdict
            share = self.value(metrics, f"{name} significant", BILSTM)
            measured = f"{self.value(metrics, name, BILSTM):.3f} ({100 * share:.0f} % significant)"
            yield id, Judgement(measured=measured, verdict=verdict, interval=found, n=self.seeds)
        gaps = [self.interval(metrics, f"{BOTH} minus {name}") for name in (GRADIENT, LEFT_OUT)]
        yield "J-03", Judgement(
            measured=f"{self.value(metrics, BOTH, BILSTM):.3f}", verdict=all_of([by_sign(gap) for gap in gaps]),
            interval=min(gaps), of="the smallest difference", n=self.seeds,
        )  # fmt: skip
        yield "J-04", self._scores(metrics)
        found = self.interval(metrics, LEFT_OUT)
        yield "O-01", Judgement(
            measured=f"τ {self.value(metrics, LEFT_OUT, BILSTM):.3f}", interval=found, n=self.seeds,
            verdict=by_sign(Interval(found.low - STRONG, found.high - STRONG)),
        )  # fmt: skip
        gaps = [self.interval(metrics, f"A(α, Δ) by {name} minus chance") for name in ("gradient", "leaving out")]
        shares = [100 * self.value(metrics, f"A(α, Δ) by {name}") for name in ("gradient", "leaving out")]
        yield "S-37", Judgement(
            measured=f"{shares[0]:.1f} % by gradient, {shares[1]:.1f} % by leaving out; Â "
            f"{100 * self.value(metrics, 'chance'):.1f} %",
            verdict=all_of([by_sign(gap) for gap in gaps]), interval=min(gaps), of="A − Â, as a share", n=self.seeds,
        )  # fmt: skip

    def _scores(self, metrics: Metrics) -> Judgement:
        values = [metrics.curves(BILSTM, name).last for name in SCORES]
        measured = " / ".join(f"{those.mean():.3f}" for those in values)
        known = self.published.get("scores")
        if known is None:
            return Judgement(measured=measured, verdict=NOT_COMPARABLE, n=self.seeds)
        if len(values[0]) < 2:
            return Judgement(measured=measured, verdict=INCONCLUSIVE, n=1, why="one seed")
        gaps = [mean_interval((those - wanted).tolist()) for those, wanted in zip(values, known, strict=True)]
        return Judgement(
            measured=measured, verdict=all_of([by_margin(gap, SCORE_MARGIN) for gap in gaps]), n=len(values[0]),
            interval=max(gaps, key=lambda gap: max(-gap.low, gap.high)), of="the largest difference from the published",
        )  # fmt: skip

    def finding(self, metrics: Metrics) -> str:
        tau, left, both = (self.value(metrics, name, BILSTM) for name in TAUS)
        words = self.value(metrics, LEFT_OUT, AVERAGE)
        return (
            f"On {self.corpus_name} τ of attention with gradient importance is {tau:.2f}, with leaving words out "
            f"{left:.2f}; the two importances agree at {both:.2f}. Where each word is read for itself, attention and "
            f"leaving out agree at {words:.2f}."
        )

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        yield self._table(metrics)
        classes = self.task.data.classes
        for name, label in ((GRADIENT, "gradient"), (LEFT_OUT, "leaving-out")):
            yield Curves(
                name=f"distribution-{label}",
                title=f"{name} over texts",
                caption="Share of the test texts in each of 40 steps of τ, by predicted class (their figures 2 and 3). "
                "A thin line is a seed. τ is given in hundredths.",
                metric=f"share of texts by {name}",
                y_title="share of texts",
                x_title=f"100 {name}",
                conditions=tuple(f"{kind}, predicted {one}" for kind in (BILSTM, AVERAGE) for one in classes),
            )
        for number, condition in enumerate((BILSTM, AVERAGE)):
            yield TracedSentences(
                name=f"sentences-{number}",
                title=f"Words by attention and by influence: {condition}",
                caption="Test texts of middling length, as the first of these classifiers reads them.",
                scorings=tuple(
                    TracedScoring(label=label, condition=condition, replica=1000 * number, kind=kind)
                    for label, kind in (("attention α", "alpha"), ("gradient", "gradient"), ("leaving out", "left"))
                ),
                classes=tuple(classes),
            )
        yield Curves(
            name="accuracy",
            title="Accuracy on the development texts",
            caption="The weights of the best epoch are kept.",
            metric="accuracy",
            y_title="accuracy",
            conditions=(BILSTM, AVERAGE),
        )

    def _table(self, metrics: Metrics) -> Table:
        rows: list[tuple[Any, ...]] = []
        groups = ("", *(f", predicted {name}" for name in self.task.data.classes))
        for condition in (BILSTM, AVERAGE):
            known = set(metrics.curves_of(condition))
            for group in groups:
                cells = []
                for name in TAUS:
                    for ending in ("", " sd", " significant"):
                        key = f"{name}{group}{ending}"
                        cells.append(round(self.value(metrics, key, condition), 3) if key in known else None)
                rows.append((condition + group, *cells))
        published = PUBLISHED.get(self.corpus_name, {})
        if "τ" in published:
            g, left, both = published["τ"]
            rows.append(("published: BiLSTM", g, None, published["significant"][0], left, None,
                         published["significant"][1], both, None, None))  # fmt: skip
        return Table(
            name="tau",
            title="Kendall's τ of attention and influence",
            caption="Mean over test texts (over seeds), standard deviation over texts, and share of texts with "
            "p ≤ .05. Leaving out: in at most 1,000 texts. Texts in which τ is undefined are left out, and counted in "
            "the metrics.",
            columns=("", *(f"{name}{ending}" for name in TAUS for ending in ("", " sd", " sig."))),
            rows=tuple(rows),
        )
