"""How `salient-words` decides on the published statements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attndyn.measures.verdicts import (
    DIFFERS,
    HOLDS,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    Interval,
    by_majority,
    by_margin,
    by_sign,
    difference_interval,
    mean_interval,
    share_interval,
)  # fmt: skip
from attndyn.studies.base import Judgement
from attndyn.studies.salient_names import (
    BLOG,
    CODE,
    COLUMNS,
    KENDALL,
    PROXY,
    STANDARD,
    SUMMARY,
    TRAIN,
    UNIFORM,
    VECTORS,
)  # fmt: skip
from attndyn.studies.salient_statements import PUBLISHED_PARAMETERS

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics
    from attndyn.studies.salient_words import SalientWords


class Judge:
    """Reads the measures of a run, for the claims."""

    def __init__(self, study: SalientWords, metrics: Metrics) -> None:
        self.study, self.metrics = study, metrics
        self.corpus = study.task.data.name

    def value(self, condition: str, metric: str) -> float:
        return float(self.metrics.curves(condition, metric).values[0, 0])

    def above(self, condition: str, metric: str) -> Interval:
        return Interval(*(self.value(condition, f"{metric} above {end}") for end in ("low", "high")))

    def between(self, condition: str, metric: str) -> Interval:
        return Interval(*(self.value(condition, f"{metric} {end}") for end in ("low", "high")))

    def each(self, condition: str, metric: str) -> list[float]:
        """One value for each run, whatever the step; NaN: never."""
        import numpy as np

        rows = self.metrics.curves(condition, metric).values
        return [float(row[~np.isnan(row)][0]) if (~np.isnan(row)).any() else float("nan") for row in rows]

    def percent(self, condition: str, metric: str) -> str:
        spread = self.between(condition, metric)
        value = 100 * self.value(condition, metric)
        return f"{value:.2f} [{100 * spread.low:.2f}, {100 * spread.high:.2f}]"

    def all(self) -> Iterator[tuple[str, Judgement]]:
        yield from self._stages("S-01", STANDARD)
        if BLOG in self.metrics:
            yield from self._stages("B-08", BLOG)
        yield from self._exact()
        yield from self._agreement()
        yield from self._thresholds()
        yield from self._sizes()
        yield from self._training()

    def _stages(self, id: str, condition: str) -> Iterator[tuple[str, Judgement]]:
        beta, alpha = (self.each(condition, f"half of {name} at") for name in ("A(α, β)", "A(α, α)"))
        before, behind = (sum(sign * b < sign * a for b, a in zip(beta, alpha, strict=True)) for sign in (1, -1))
        steps = f"β at steps {_range(beta)}, α at {_range(alpha)}"
        if before + behind == 0:
            yield id, Judgement(measured=f"all {len(beta)} runs at the same checkpoint; {steps}", verdict=INCONCLUSIVE)
            return
        interval = share_interval(before, before + behind)
        told = f"{before} before, {behind} after, {len(beta) - before - behind} at the same checkpoint; {steps}"
        yield id, Judgement(measured=told, verdict=by_majority(interval), interval=interval, n=before + behind)

    def _exact(self) -> Iterator[tuple[str, Judgement]]:
        entropy = self.each(STANDARD, "attention entropy, start")
        even = min(entropy) >= 0.95
        yield "S-03", Judgement(measured=f"entropy {_range(entropy, '.4f')} of 1", verdict=HOLDS if even else DIFFERS,
                                n=len(entropy))  # fmt: skip
        spread = self.each(STANDARD, "probe spread, start")
        flat = even and max(spread) <= 0.05
        yield "O-05", Judgement(
            measured=f"entropy {_range(entropy, '.4f')}; β varies by {_range(spread, '.3f')}",
            verdict=HOLDS if flat else DIFFERS, n=len(spread),
        )  # fmt: skip
        worst = self.value(SUMMARY, "answer minus combined votes")
        yield "S-04", Judgement(measured=f"largest difference {worst:.1e}", verdict=HOLDS if worst < 1e-4 else DIFFERS)
        apart = self.value(SUMMARY, "odds minus log-odds")
        yield "S-05", Judgement(measured=f"the vote is the log-odds; from the odds it is {apart:.2g} away (median)",
                                verdict=DIFFERS if apart > 1e-3 else HOLDS)  # fmt: skip
        chance = 100 * self.value(SUMMARY, "chance")
        yield (
            "S-06",
            Judgement(measured=f"{chance:.2f} %", verdict=HOLDS if 5 <= chance <= 5 + self._rounding() else DIFFERS),
        )
        bag = max(self.each(PROXY, "answer minus bag of words"))
        yield "S-55", Judgement(measured=f"largest difference {bag:.1e}", verdict=HOLDS if bag < 1e-3 else DIFFERS)
        rank = self.each(PROXY, "rank correlation with the logistic")
        verdict = HOLDS if min(rank) >= 0.5 else DIFFERS if max(rank) < 0 else INCONCLUSIVE
        yield "S-56", Judgement(measured=f"ρ = {_range(rank, '.2f')}", verdict=verdict, n=len(rank))

    def _rounding(self) -> float:
        from attndyn.tasks.ragged import examined

        data = self.study.task.data
        lengths = examined(data.train, data.valid, self.study.evaluation, "valid").source.lengths
        return float(100 * (1 / lengths).mean())

    def _agreement(self) -> Iterator[tuple[str, Judgement]]:
        chance = f"Â {100 * self.value(SUMMARY, 'chance'):.2f}"

        def one(id: str, condition: str, *metrics: str) -> tuple[str, Judgement]:
            intervals = [self.above(condition, metric) for metric in metrics]
            lowest = min(intervals)
            named = "; ".join(f"{metric} {self.percent(condition, metric)}" for metric in metrics)
            return id, Judgement(measured=f"{named}; {chance}", verdict=by_sign(lowest), interval=lowest)

        if len(self.study.seeds_of(STANDARD)) > 1:
            yield one("S-02", CODE, COLUMNS[3])
            if self.corpus == "sms_spam":
                yield self._outlier()
            gap = self.between(SUMMARY, "A(α, β) minus A(α, β_uf)")
            measured = f"{self.percent(CODE, COLUMNS[3])} against {self.percent(CODE, COLUMNS[0])}"
            yield "B-14", Judgement(measured=measured, verdict=by_sign(gap), interval=gap)
        yield one("S-08", CODE, COLUMNS[0])
        yield one("S-09", CODE, COLUMNS[1])
        yield one("S-10", CODE, COLUMNS[2])
        yield one("S-15", TRAIN, *COLUMNS[:3])
        yield one("S-36", SUMMARY, "A(β_count, β_uf)", "A(α, β_count)")
        yield one("S-37", SUMMARY, "A(α, Δ)")
        low = min(self.between(KENDALL, metric) for metric in COLUMNS[:3])
        ranked = [f"{metric.replace('A(', 'τ(')} {self.value(KENDALL, metric):.3f}" for metric in COLUMNS[:3]]
        yield "S-13", Judgement(measured="; ".join(ranked), verdict=by_sign(low), interval=low)
        gradient, left_out = self.above(CODE, COLUMNS[2]), self.above(SUMMARY, "A(Δ_loo, β_uf)")
        yield "O-07", Judgement(
            measured=f"by gradient {self.percent(CODE, COLUMNS[2])}, by leaving out "
            f"{self.percent(SUMMARY, 'A(Δ_loo, β_uf)')}; {chance}",
            verdict=by_sign(min(gradient, left_out)), interval=min(gradient, left_out),
        )  # fmt: skip
        gap = self.between(SUMMARY, "A(α, β_uf) minus A(α, α_fr)")
        yield "S-27", Judgement(
            measured=f"{self.percent(SUMMARY, 'A(α, α_fr)')} against {self.percent(CODE, COLUMNS[0])}; {chance}",
            verdict=by_sign(gap), interval=gap,
        )  # fmt: skip
        gap = self.between(SUMMARY, "A(β_log, β_uf) minus A(β_px, β_uf)")
        yield "S-57", Judgement(
            measured=f"{self.percent(SUMMARY, 'A(β_log, β_uf)')} against {self.percent(CODE, COLUMNS[1])}",
            verdict=by_margin(gap, 0.1), interval=gap,
        )  # fmt: skip
        fall = self.between(SUMMARY, "fall of A(α, β_uf)")
        peak = self.value(SUMMARY, "peak step of A(α, β_uf)")
        ends = [100 * self.value(SUMMARY, f"{which} of A(α, β_uf)") for which in ("peak", "last")]
        yield "S-53", Judgement(
            measured=f"{ends[0]:.1f} at step {peak:.0f}, {ends[1]:.1f} in the end",
            verdict=by_sign(fall) if peak > 0 else DIFFERS, interval=fall,
        )  # fmt: skip

    def _outlier(self) -> tuple[str, Judgement]:
        apart = self.above(SUMMARY, "A(α, α of another seed)")
        measured = "; ".join(
            f"{name} {self.percent(where, name)}"
            for where, name in ((SUMMARY, "A(α, α of another seed)"), (CODE, COLUMNS[0]), (CODE, COLUMNS[3]))
        )
        verdict = DIFFERS if apart.low > 0 else HOLDS if apart.high < 0.02 else INCONCLUSIVE
        return "S-54", Judgement(measured=f"{measured}; Â {100 * self.value(SUMMARY, 'chance'):.2f}", verdict=verdict,
                                 interval=apart)  # fmt: skip

    def _thresholds(self) -> Iterator[tuple[str, Judgement]]:
        import numpy as np

        if len(self.study.seeds_of(STANDARD)) < 2:
            return
        star = np.array(self.each(CODE, "ξ*"))
        first, proxy, saliency = (np.array(self.each(CODE, f"ξ of {name}")) for name in COLUMNS[:3])
        start = self.metrics.curves(STANDARD, "accuracy").values[:, 0]
        reached = np.where(np.isnan(first), star, first) - start
        interval = mean_interval(reached.tolist())
        shown = [_never(values) for values in (first, proxy, saliency)]
        yield "S-11", Judgement(measured=f"{shown[0]} of {100 * star.mean():.2f}; at step 0 {100 * start.mean():.2f}",
                                verdict=by_sign(interval), interval=interval, n=len(first))  # fmt: skip
        a, b, c = (np.where(np.isnan(values), 1.0, values).mean() for values in (first, proxy, saliency))
        verdict = HOLDS if b >= a and abs(c - a) <= 0.05 else DIFFERS
        yield (
            "S-12",
            Judgement(measured=f"proxy {shown[1]}, saliency {shown[2]}, A(α, β_uf) {shown[0]}", verdict=verdict),
        )

    def _sizes(self) -> Iterator[tuple[str, Judgement]]:
        data, spec = self.study.task.data, self.study.task.data.corpus
        known = spec.published_train if spec else None
        train, median = len(data.train), self.value(SUMMARY, "median length")
        measured = f"{train:,} texts, median length {median:g}"
        same = train == known and (spec is None or spec.published_median in (None, median))
        verdict = NOT_COMPARABLE if known is None else HOLDS if same else DIFFERS
        yield "S-17", Judgement(measured=measured, verdict=verdict, why=f"published {known:,}" if known else "")
        words = int(self.value(SUMMARY, "vocabulary"))
        published_words = spec.published_vocabulary if spec else None
        unlike = published_words is None or known not in (None, train)
        yield (
            "S-18",
            Judgement(
                measured=f"{words:,} words ({self.study.vocabulary})",
                verdict=NOT_COMPARABLE if unlike else HOLDS if words == published_words else DIFFERS,
                why=f"published {published_words:,}" if published_words else "",
            ),
        )
        parameters = int(self.value(SUMMARY, "parameters"))
        if (self.study.width, self.study.hidden) == (300, 256) and self.study.task.outputs == 2:
            verdict = HOLDS if parameters == PUBLISHED_PARAMETERS else DIFFERS
            yield "S-19", Judgement(measured=f"{parameters:,}", verdict=verdict)
        yield "S-58", Judgement(measured="see run.json", verdict=NOT_COMPARABLE, why="another machine and program")

    def _training(self) -> Iterator[tuple[str, Judgement]]:
        import numpy as np
        from scipy.stats import spearmanr

        accuracy = self.metrics.curves(STANDARD, "accuracy").values
        agreement = self.metrics.curves(STANDARD, "A(α, α)").values
        moving = [(a, b) for a, b in zip(agreement, accuracy, strict=True) if np.ptp(a) > 0 and np.ptp(b) > 0]
        rank = [float(spearmanr(a, b).statistic) for a, b in moving]
        if len(rank) > 1:
            interval = mean_interval(rank, -1.0, 1.0)
            yield "S-07", Judgement(measured=f"ρ = {_range(rank, '.2f')}", verdict=by_sign(interval),
                                    interval=interval, n=len(rank))  # fmt: skip
        for id, metric, best, margin in (("B-09", "loss", np.min, 0.03), ("O-02", "accuracy", np.max, 0.01)):
            ours, even = (best(self.metrics.curves(name, metric).values, axis=1) for name in (STANDARD, UNIFORM))
            if min(len(ours), len(even)) > 1:
                gap = difference_interval(even.tolist(), ours.tolist())
                measured = f"{even.mean():.4f} against {ours.mean():.4f}"
                n = len(ours) + len(even)
                yield id, Judgement(measured=measured, verdict=by_margin(gap, margin), interval=gap, n=n)
        arms = [name for name in VECTORS if name in self.metrics]
        if len(arms) == 2:
            found = [self.metrics.curves(name, "accuracy").values.max(axis=1).mean() for name in arms]
            early = [self.metrics.curves(name, "accuracy").values[:, 3].mean() for name in arms]
            step = self.metrics.curves(arms[0], "accuracy").steps[3]
            yield "S-20", Judgement(
                measured=f"best accuracy {found[1]:.3f} with vectors, {found[0]:.3f} without; at step {step} "
                f"{early[1]:.3f} and {early[0]:.3f}",
                verdict=NOT_COMPARABLE, why="a set-up has no verdict of its own",
            )  # fmt: skip


def _range(values: list[float], form: str = "g") -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low}-{high}"


def _never(values: object) -> str:
    """The mean of those that are reached, in %, and how many never are."""
    import numpy as np

    array = np.asarray(values, dtype=float)
    missing = int(np.isnan(array).sum())
    if missing == len(array):
        return "never"
    mean = f"{100 * np.nanmean(array):.2f}"
    return f"{mean} ({missing} of {len(array)} never)" if missing else mean
