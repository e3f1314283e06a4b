"""The first moment of training: co-occurrence counts decide which word moves where, if the model is wide enough.

Source: Snell et al. §4.1, §4.2 and A.2; one intuition of their slides. Nothing is trained: the exact derivative of the
bag-of-words proxy at initialisation is compared with its infinite-width limit, on made corpora and on a real one
(`--inputs` and `--outputs`, or Multi30k under $ATTNDYN_DATA).
Cost: demo 25 s on two cores, about a minute with Multi30k; paper about 9 minutes on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.errors import UserError
from attndyn.report.parts import Cell, Part, Points, Table
from attndyn.studies.base import Judgement, Piece, Statement, Study
from attndyn.studies.proxy_starts import PYTORCH, SENTENCES

if TYPE_CHECKING:
    from attndyn.measures.verdicts import Interval
    from attndyn.store.metrics import Metrics, Row

EXPONENT, MARGIN = -0.5, 0.1
"""What the error's exponent in the width is to be, and how far its interval may reach from it."""
CONSTANTS = ("logit slope", "output slope", "embedding slope", "probability slope", "predicted θ slope")


@dataclass(frozen=True, kw_only=True)
class InitialDerivative(Study):
    name: ClassVar[str] = "initial-derivative"
    title: ClassVar[str] = "The initial derivative: counts decide what is learned first, if the model is wide enough"
    source: ClassVar[str] = "Snell et al., arXiv 2103.07601, sections 4.1, 4.2 and A.2"
    headline: ClassVar[str] = "error"
    demo: ClassVar[dict[str, Any]] = {"widths": (64, 256, 1024, 4096), "vocabulary": 300}

    seeds: int = 10
    """Independent draws of the initial weights at each width: seeds 0, 1, 2, …"""
    widths: tuple[int, ...] = (64, 256, 1024, 4096, 16384)
    """Widths d of the embedding."""
    vocabulary: int = 2000
    """Words kept on each side of the real corpus; the rest share one."""
    inputs: str = ""
    """Your corpus: a text file with one input a line; without --outputs, label<TAB>text a line."""
    outputs: str = ""
    """Line n is what belongs to line n of --inputs."""

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise UserError(f"seeds must be at least 2, for the intervals, not {self.seeds}")
        if not self.widths or min(self.widths) < 1 or len(set(self.widths)) < len(self.widths):
            raise UserError(f"widths must be different numbers of at least 1, not {self.widths}")
        if self.vocabulary < 2:
            raise UserError(f"vocabulary must be at least 2, not {self.vocabulary}")
        if self.outputs and not self.inputs:
            raise UserError("--outputs needs --inputs, the file whose lines it answers")

    def pieces(self) -> Iterator[Piece]:
        from attndyn.studies import proxy_starts

        corpora = proxy_starts.made() | proxy_starts.real(self.inputs, self.outputs, self.vocabulary)
        yield from proxy_starts.counts(corpora)
        for width in self.widths:
            for seed in range(self.seeds):
                yield from proxy_starts.flows(corpora, width, seed)

    def analyse(self, metrics: Metrics) -> Iterator[Row]:
        """How fast the limit is approached: the exponent of the width, fitted for each seed."""
        import numpy as np

        from attndyn.store.metrics import Row

        if len(self.widths) < 2:
            return
        for name in tasks(metrics):
            for metric in ("error", "parts apart"):
                curves = metrics.curves(name, metric)
                slopes = np.polyfit(np.log(curves.steps), np.log(curves.values).T, 1)[0]
                for seed, value in zip(curves.replicas.tolist(), slopes.tolist(), strict=True):
                    yield Row(name, seed, max(self.widths), f"exponent of {metric}", value)

    # --- claims

    statements: ClassVar[tuple[Statement, ...]] = (
        Statement(
            id="S-28",
            source="§4.1, eq. 12",
            statement="at the start ∂θ/∂τ tends to 2 (C − row mean) for the probability θ",
            published="2 (text); its appendix derives 2 for the logit, which makes 2/|O| for θ",
            rule="least-squares slope of ∂θ/∂τ on C − row mean at the largest width: holds if the interval of its mean "
            "over seeds lies within 2 ± .1 on every task, differs if it lies outside on one",
        ),
        Statement(
            id="S-29",
            source="§4.1, A.2",
            statement="that limit is reached as the width d grows",
            published="direction; derived: relative error ½ √((|I| + |O| + 2)/d)",
            rule="holds if on every task the exponent of the relative error in d has its interval within −.5 ± .1, and "
            "the mean of (error/law)² over all widths its interval within 1 ± .25; differs if one lies outside",
        ),
        Statement(
            id="S-30",
            source="A.2",
            statement="the parts through the embeddings and through the output layer have the same limit",
            published="C − row mean each",
            rule="holds if on every task the slope of each part on C − row mean at the largest width has its interval "
            "within 1 ± .05, and the exponent in d of their distance lies within −.5 ± .1; differs if one lies outside",
        ),
        Statement(
            id="S-31",
            source="§4.2, eq. 13",
            statement="the proxy's count table equals IBM Model 1's after one pass",
            published="exact",
            rule="the pass of the algorithm itself, from a uniform table and without a NULL word: holds if no entry "
            "differs by more than 1e-9 of the largest, on any task; else differs",
        ),
        Statement(
            id="O-06",
            source="slides, intuition of r",
            statement="two sentences that differ in one word: relevance of the shared words stays, of the differing "
            "word moves",
            published="exact at the start",
            rule="“this movie is great” (positive) and “this movie is bad” (negative): root mean square movement of "
            "the shared words over that of the differing ones, at the largest width; holds if its interval lies below "
            ".1, differs if above",
        ),
    )

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        from attndyn.measures import verdicts
        from attndyn.studies import outcomes

        names, widest = tasks(metrics), max(self.widths)

        def means(metric: str) -> dict[str, tuple[float, Interval]]:
            """By task: mean over seeds at the largest width, and its interval."""
            found = {name: metrics.curves(name, metric).last for name in names}
            return {name: (float(v.mean()), verdicts.mean_interval(v.tolist())) for name, v in found.items()}

        def within(metric: str, centre: float, margin: float, measured: str) -> Judgement:
            found = means(metric)
            shifted = [verdicts.Interval(low - centre, high - centre) for _, (low, high) in found.values()]
            values = ", ".join(f"{mean:.3g}" for mean, _ in found.values())
            verdict = verdicts.all_of([verdicts.by_margin(interval, margin) for interval in shifted])
            return Judgement(measured=f"{measured} {values}", verdict=verdict, n=self.seeds * len(found))

        listed = f"in the order of {'; '.join(names)}; d = {widest:,}"
        logit = ", ".join(f"{mean:.3g}" for mean, _ in means("logit slope").values())
        printed = within("probability slope", 2.0, 0.1, "slopes")
        why = f"{listed}; for the logit the slopes are {logit}, and 2/|O| is {self._halves(metrics)}"
        yield "S-28", _because(printed, why)

        if len(self.widths) > 1:
            exponent = within("exponent of error", EXPONENT, MARGIN, "exponents")
            ratios = {name: self._against_law(metrics, name) for name in names}
            squares = ", ".join(f"{values.mean():.3g}" for values in ratios.values())
            fits = [verdicts.mean_interval((values - 1).tolist()) for values in ratios.values()]
            law = Judgement(
                measured=f"(error/law)² {squares}",
                verdict=verdicts.all_of([verdicts.by_margin(interval, 0.25) for interval in fits]),
            )
            errors = ", ".join(f"{mean:.2g}" for mean, _ in means("error").values())
            yield "S-29", _because(outcomes.both(exponent, law), f"{listed}; the errors there are {errors}")
            parts = [within(f"{part} slope", 1.0, 0.05, f"{part} part") for part in ("output", "embedding")]
            apart = within("exponent of parts apart", EXPONENT, MARGIN, "exponents")
            yield "S-30", _because(outcomes.both(outcomes.both(*parts), apart), listed)

        differences = [float(metrics.curves(name, "count table difference").last[0]) for name in names]
        same = max(differences) <= 1e-9
        yield (
            "S-31",
            Judgement(
                measured=f"largest relative difference {max(differences):.1g}",
                n=len(differences),
                verdict=verdicts.HOLDS if same else verdicts.DIFFERS,
                why="the table of IBM Model 1 with a NULL word would have 1/(L + 1) for 1/L",
            ),
        )

        drift = metrics.curves(SENTENCES, "drift").last
        interval = verdicts.mean_interval(drift.tolist())
        yield (
            "O-06",
            Judgement(
                measured=f"shared words move {drift.mean():.2g} times as much as the others at d = {widest:,}",
                interval=interval,
                n=len(drift),
                verdict=verdicts.by_sign(verdicts.Interval(0.1 - interval.high, 0.1 - interval.low)),
            ),
        )

    def _halves(self, metrics: Metrics) -> str:
        return ", ".join(f"{metrics.curves(name, 'predicted θ slope').last[0]:.3g}" for name in tasks(metrics))

    def _against_law(self, metrics: Metrics, name: str) -> Any:
        """(error/law)² of each seed, its mean over widths."""
        errors, law = (metrics.curves(name, metric).values for metric in ("error", "predicted error"))
        return ((errors / law) ** 2).mean(axis=1)

    def finding(self, metrics: Metrics) -> str:
        widest, name = max(self.widths), main_task(metrics)
        errors = metrics.curves(name, "error").values.mean(axis=0)
        words = [int(metrics.curves(name, f"{side} words").last[0]) for side in ("input", "output")]
        probability = metrics.curves(name, "probability slope").last.mean()
        return (
            f"On {name} ({words[0]:,} and {words[1]:,} words) the logits start along C − row mean at "
            f"{metrics.curves(name, 'logit slope').last.mean():.2f} and the probabilities at {probability:.2g} (d = "
            f"{widest:,}), where 2/|O| is {2 / words[1]:.2g} and equation 12 says 2; the relative error is "
            f"{errors[0]:.2g} at d = {min(self.widths):,} and {errors[-1]:.2g} at {widest:,}, where the law "
            f"½ √((|I| + |O| + 2)/d) says {metrics.curves(name, 'predicted error').last[0]:.2g}."
        )

    # --- the page

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        names = tasks(metrics)
        width = "width d"
        yield Points(
            name="error",
            title="How far from the limit",
            caption="Relative error of ∂γ/∂τ against 2 (C − row mean) over the whole table. Points: seeds, their mean "
            "and its 95 % interval. Dashed: ½ √((|I| + |O| + 2)/d), which has nothing to fit.",
            metric="error", predicted="predicted error", x_title=width, y_title="relative error",
            conditions=names, log="xy",
        )  # fmt: skip
        yield Points(
            name="commonest",
            title="Frequent words get there first",
            caption="The same for the row of the input word that holds most of the table. Dashed: the law for one row.",
            metric="commonest error", predicted="predicted commonest error", x_title=width, y_title="relative error",
            conditions=names, log="xy",
        )  # fmt: skip
        yield self._constants(metrics)
        yield Points(
            name="start",
            title="What PyTorch's own initialisation does instead",
            caption="Slope of ∂γ/∂τ on C − row mean. With e and W from N(0, 1/d) it is 2. With N(0, 1) embeddings and "
            "U(±1/√d) output weights the output layer moves almost alone: d + ⅓.",
            metric="logit slope", predicted="predicted logit slope", x_title=width, y_title="slope",
            conditions=(main_task(metrics), main_task(metrics) + PYTORCH), log="xy",
        )  # fmt: skip
        yield Points(
            name="kept",
            title="Does the most frequent neighbour win?",
            caption="Share of input tokens whose fastest-growing output word is the one with the largest C.",
            metric="top word kept", x_title=width, y_title="share of tokens",
            conditions=tuple(n for n in metrics.conditions if n != SENTENCES), log="x",
        )  # fmt: skip
        yield Points(
            name="sentences",
            title="“This movie is great”, “this movie is bad”",
            caption="Movement of the shared words over that of “great” and “bad”: the counts of shared words cancel, "
            "so that they stay in the limit.",
            metric="drift", x_title=width, y_title="shared / differing", conditions=(SENTENCES,), log="xy",
        )  # fmt: skip

    def _constants(self, metrics: Metrics) -> Table:
        rows: list[tuple[Cell, ...]] = []
        for name in tasks(metrics):
            last = {m: metrics.curves(name, m).last.mean() for m in CONSTANTS}
            words = [int(metrics.curves(name, f"{side} words").last[0]) for side in ("input", "output")]
            pairs = int(metrics.curves(name, "pairs").last[0])
            rows.append((name, pairs, *words, *(float(f"{last[metric]:.4g}") for metric in CONSTANTS), 2))
        return Table(
            name="constants",
            title="Which constant",
            caption=f"Slopes on C − row mean at d = {max(self.widths):,}, mean over {self.seeds} seeds.",
            columns=("task", "pairs", "|I|", "|O|", "logit", "by W", "by e", "probability", "2/|O|", "eq. 12"),
            rows=tuple(rows),
        )


def tasks(metrics: Metrics) -> tuple[str, ...]:
    """The corpora, as they start in the theorem."""
    return tuple(name for name in metrics.conditions if name != SENTENCES and not name.endswith(PYTORCH))


def main_task(metrics: Metrics) -> str:
    """The real corpus, or the one that is most like it: what PyTorch's start is tried on."""
    return next(name for name in metrics.conditions if name + PYTORCH in metrics)


def _because(judgement: Judgement, why: str) -> Judgement:
    return replace(judgement, why=why)
