"""How `salient-words` decides on the published statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from attndyn.measures.verdicts import (
    DIFFERS,
    HOLDS,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    Interval,
    all_of,
    by_majority,
    by_margin,
    by_sign,
    mean_interval,
    share_interval,
    welch_interval,
)  # fmt: skip
from attndyn.studies.base import Judgement
from attndyn.studies.salient_names import (
    BLOG,
    CODE,
    COLUMNS,
    KENDALL,
    LAST,
    PROXY,
    STANDARD,
    SUMMARY,
    TRAIN,
    UNIFORM,
    VECTORS,
    WITHOUT,
)  # fmt: skip
from attndyn.studies.salient_statements import AGREED, DECIDING, EARLY, FALLS, INFLATED, PUBLISHED_PARAMETERS

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.metrics import Metrics
    from attndyn.studies.salient_words import SalientWords


OF_ANSWERS = ("S-07", "S-11", "S-12", "B-09", "O-02")
"""What is decided by loss and accuracy."""
OF_UNIFORM = ("S-08", "S-09", "S-10", "S-11", "S-12", "S-13", "S-15", "S-27", "S-36", "S-53", "S-57", "B-14", "O-07")
"""What is over the runs under uniform attention."""
OF_SHARES = "the difference, as a share"
"""What intervals beside percentages are of."""
OF_PAIRS = ("S-02", "S-11", "S-12", "S-54", "B-14")
"""What compares the standard runs with each other."""


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

    def last(self, condition: str, metric: str) -> str:
        """What the last checkpoint gives, where the entry is the largest over checkpoints."""
        if metric + LAST not in self.metrics.curves_of(condition):
            return ""
        return f", at the last checkpoint {100 * self.value(condition, metric + LAST):.2f}"

    def chance(self, table: str) -> str:
        return f"Â {100 * self.value(table, 'chance'):.2f}"

    def all(self) -> Iterator[tuple[str, Judgement]]:
        """What has an interval is measured on texts: it is over them, or over runs of what was read on them."""
        valid, one_label = (self.value(SUMMARY, name) for name in ("evaluation examples", "most frequent class"))
        standard, uniform = (len(self.metrics.curves(name, "accuracy").replicas) for name in (STANDARD, UNIFORM))
        for id, judgement in self._all():
            if id in OF_UNIFORM:
                judgement = judgement.over(uniform, "run under uniform attention")
            if id in OF_PAIRS:
                judgement = judgement.among(standard, "standard run")
            if one_label == 1 and id in OF_ANSWERS:
                judgement = judgement.undecided("all texts read have one label")
            texts = min(valid, self.value(SUMMARY, "training examples")) if id == "S-15" else valid
            yield id, judgement.on(texts, "texts") if judgement.interval is not None else judgement

    def _all(self) -> Iterator[tuple[str, Judgement]]:
        yield from self._stages("S-01", STANDARD)
        if BLOG in self.metrics:
            yield from self._stages("B-08", BLOG)
        yield from self._exact()
        yield from self._agreement()
        yield from self._differences()
        yield from self._thresholds()
        yield from self._sizes()
        yield from self._training()

    def _stages(self, id: str, condition: str) -> Iterator[tuple[str, Judgement]]:
        beta, alpha = (self.each(condition, f"half of {name} at") for name in ("A(α, β)", "A(α, α)"))
        pairs = zip(beta, alpha, strict=True)
        moved = [(b, a) for b, a in pairs if min(a, b) > 0]  # what is so at step 0 was not learned
        before, behind = (sum(sign * b < sign * a for b, a in moved) for sign in (1, -1))
        steps = f"β at steps {_range(beta)}, α at {_range(alpha)}"
        apart = f", {len(beta) - len(moved)} at step 0" if len(moved) < len(beta) else ""
        told = f"{before} before, {behind} after, {len(moved) - before - behind} at the same checkpoint{apart}; {steps}"
        n = before + behind
        why = f"{n} runs at different checkpoints; fewer than {DECIDING} cannot decide" if n < DECIDING else ""
        if n == 0:
            yield id, Judgement(measured=told, verdict=INCONCLUSIVE, n=0, why=why)
            return
        interval = share_interval(before, n)
        verdict = by_majority(interval)
        yield id, Judgement(measured=told, verdict=verdict, interval=interval, of="the share", n=n, why=why)

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
        worst, outputs = self.value(SUMMARY, "answer minus combined votes"), self.study.task.outputs
        several = f"the identity is that of two classes, here are {outputs}" if outputs > 2 else ""
        yield "S-04", Judgement(
            measured=f"largest difference {worst:.1e}", why=several,
            verdict=NOT_COMPARABLE if several else HOLDS if worst < 1e-4 else DIFFERS,
        )  # fmt: skip
        apart = self.value(SUMMARY, "odds minus log-odds")
        yield "S-05", Judgement(
            measured=f"the vote is log(β/(1−β)); the largest median of its distance from β/(1−β) is {apart:.2g}",
            verdict=DIFFERS, why="by derivation, not by measurement",
        )  # fmt: skip
        exact, drawn = self.value(SUMMARY, "chance"), self.between(SUMMARY, "A(random order, α)")
        yield "S-06", Judgement(
            measured=f"{self.percent(SUMMARY, 'A(random order, α)')}; mean of ⌈.05 L⌉/L {100 * exact:.2f}",
            verdict=HOLDS if drawn.low <= exact <= drawn.high else DIFFERS, interval=drawn,
        )  # fmt: skip
        bag = max(self.each(PROXY, "answer minus bag of words"))
        yield "S-55", Judgement(measured=f"largest difference {bag:.1e}", verdict=HOLDS if bag < 1e-3 else DIFFERS)
        rank = self.each(PROXY, "rank correlation with the logistic")
        if any(one != one for one in rank):
            told = "ρ is undefined: the scores of the frequent words are all the same"
            yield "S-56", Judgement(measured=told, verdict=INCONCLUSIVE, n=len(rank))
            return
        verdict = HOLDS if min(rank) >= 0.5 else DIFFERS if max(rank) < 0 else INCONCLUSIVE
        yield "S-56", Judgement(measured=f"ρ = {_range(rank, '.2f')}", verdict=verdict, n=len(rank))

    def _above(self, id: str, condition: str, *metrics: str) -> tuple[str, Judgement]:
        """One or several columns, beside the chance of their part."""
        named = "; ".join(f"{metric} {self.percent(condition, metric)}{self.last(condition, metric)}"
                          for metric in metrics)  # fmt: skip
        chance = self.chance(condition if condition == TRAIN else SUMMARY)
        return id, _positive(f"{named}; {chance}", *(self.above(condition, metric) for metric in metrics))

    def _agreement(self) -> Iterator[tuple[str, Judgement]]:
        yield self._above("S-02", CODE, COLUMNS[3])
        yield self._above("S-08", CODE, COLUMNS[0])
        yield self._above("S-09", CODE, COLUMNS[1])
        yield self._above("S-10", CODE, COLUMNS[2])
        yield self._above("S-15", TRAIN, *COLUMNS[:3])
        yield self._above("S-36", SUMMARY, "A(β_count, β_uf)", "A(α, β_count)")
        yield self._above("S-37", SUMMARY, "A(α, Δ)")
        ranked = [f"{metric.replace('A(', 'τ(')} {self.value(KENDALL, metric):.3f}" for metric in COLUMNS[:3]]
        taus = (self.between(KENDALL, metric) for metric in COLUMNS[:3])
        yield "S-13", _positive("; ".join(ranked), *taus, of="the lowest")
        yield "O-07", _positive(
            f"by gradient {self.percent(CODE, COLUMNS[2])}{self.last(CODE, COLUMNS[2])}; by leaving out "
            f"{self.percent(SUMMARY, 'A(Δ_loo, β_uf)')}{self.last(SUMMARY, 'A(Δ_loo, β_uf)')}; {self.chance(SUMMARY)}",
            self.above(CODE, COLUMNS[2]), self.above(SUMMARY, "A(Δ_loo, β_uf)"),
        )  # fmt: skip
        yield "S-53", self._rise_and_fall()
        if self.corpus == "sms_spam":
            yield "S-54", self._outlier()

    def _differences(self) -> Iterator[tuple[str, Judgement]]:
        gap = self.between(SUMMARY, "A(α, β) minus A(α, β_uf)")
        measured = f"{self.percent(CODE, COLUMNS[3])} against {self.percent(CODE, COLUMNS[0])}"
        yield "B-14", Judgement(measured=measured, verdict=by_sign(gap), interval=gap, of=OF_SHARES)
        gap = self.between(SUMMARY, "A(α, β_uf) minus A(α, α_fr)")
        ends = [100 * self.value(table, name + LAST) for table, name in ((SUMMARY, "A(α, α_fr)"), (CODE, COLUMNS[0]))]
        yield "S-27", Judgement(
            measured=f"{self.percent(SUMMARY, 'A(α, α_fr)')} against {self.percent(CODE, COLUMNS[0])}, at the last "
            f"checkpoint {ends[0]:.2f} against {ends[1]:.2f}; {self.chance(SUMMARY)}",
            verdict=by_sign(gap), interval=gap, of=OF_SHARES,
        )  # fmt: skip
        gap = self.between(SUMMARY, "A(β_log, β_uf) minus A(β_px, β_uf)")
        yield "S-57", Judgement(
            measured=f"{self.percent(SUMMARY, 'A(β_log, β_uf)')} against {self.percent(CODE, COLUMNS[1])}",
            verdict=by_margin(gap, 0.1), interval=gap, of=OF_SHARES,
        )  # fmt: skip

    def _rise_and_fall(self) -> Judgement:
        rise, fall, inflation = (
            self.between(SUMMARY, f"{what} of A(α, β_uf)") for what in ("rise", "fall", "inflation")
        )
        step, first, peak, last, more = (
            self.value(SUMMARY, f"{what} of A(α, β_uf)") for what in ("peak step", "first", "peak", "last", "inflation")
        )
        falls = by_sign(Interval(fall.low - FALLS, fall.high - FALLS))
        return Judgement(
            measured=f"{100 * first:.1f} at first, {100 * peak:.1f} at step {step:.0f}, {100 * last:.1f} in the end; "
            f"the maximum adds {100 * more:.1f} [{100 * inflation.low:.1f}, {100 * inflation.high:.1f}]",
            verdict=all_of([by_sign(rise), falls, by_margin(inflation, INFLATED)]), interval=fall,
            of="the fall, as a share",
        ).along(len(self.metrics.curves(UNIFORM, "A(α, β_uf)").steps))  # fmt: skip

    def _outlier(self) -> Judgement:
        apart = self.above(SUMMARY, "A(α, α of another seed)")
        measured = "; ".join(
            f"{name} {self.percent(where, name)}"
            for where, name in ((SUMMARY, "A(α, α of another seed)"), (CODE, COLUMNS[0]), (CODE, COLUMNS[3]))
        )
        verdict = DIFFERS if apart.low > 0 else HOLDS if apart.high < AGREED else INCONCLUSIVE
        return Judgement(measured=f"{measured}; {self.chance(SUMMARY)}", verdict=verdict, interval=apart,
                         of="A − Â, as a share")  # fmt: skip

    def _thresholds(self) -> Iterator[tuple[str, Judgement]]:
        import numpy as np

        star = np.array(self.each(CODE, "ξ*"))
        first, *_ = xis = [np.array(self.each(CODE, f"ξ of {name}")) for name in COLUMNS[:3]]
        shown = [never(values) for values in xis]
        start, frequent = self._start(), self.value(SUMMARY, "most frequent class")

        def learned(first: np.ndarray, proxy: np.ndarray, saliency: np.ndarray, start: np.ndarray) -> float:
            above = (first - np.maximum(start, frequent)).round(6)  # shares of texts, read as float32
            return float(np.nanmean(above)) if (~np.isnan(above)).any() else float("nan")

        reached = int((~np.isnan(first)).sum())
        interval = self._over_runs(learned) if reached > 1 else None
        yield "S-11", Judgement(
            measured=f"{shown[0]} of {100 * star.mean():.2f}; at step 0 {100 * start.mean():.2f}, most frequent class "
            f"{100 * frequent:.2f}",
            verdict=_not_trivial(interval), interval=interval, of=OF_SHARES, n=reached,
            why="" if interval else f"ξ is reached with {reached} of {len(first)} gold runs",
        )  # fmt: skip
        higher, near = (
            self._over_runs(lambda *found, n=n: float(np.mean(_or_highest(found[n]) - _or_highest(found[0]))))
            for n in (1, 2)
        )
        not_lower = HOLDS if higher.low >= 0 else DIFFERS if higher.high < 0 else INCONCLUSIVE
        never_reached = np.isnan(first).all()
        at_start = "" if never_reached or ((first - start).round(6) > 0).any() else "ξ is no better than at step 0"
        yield "S-12", Judgement(
            measured=f"proxy {shown[1]}, saliency {shown[2]}, A(α, β_uf) {shown[0]}", interval=higher,
            of="proxy − A(α, β_uf), as a share", n=len(first),
            verdict=INCONCLUSIVE if never_reached else all_of([not_lower, by_margin(near, 0.05)]),
        ).undecided(at_start)  # fmt: skip

    def _start(self, without: int | None = None) -> np.ndarray:
        """The accuracy at step 0 of the runs whose accuracy is the ξ of each gold run: of all others, or of those
        without one more."""
        import numpy as np

        accuracy = self.metrics.curves(STANDARD, "accuracy").values[:, 0]
        away = 0.0 if without is None else accuracy[without]
        return np.asarray((accuracy.sum() - accuracy - away) / (len(accuracy) - (1 if without is None else 2)))

    def _over_runs(self, value: Callable[..., float]) -> Interval:
        """Of a number that is made of the ξ of the gold runs in the first three columns, and of their start. Every ξ is
        the accuracy of the other runs, so that a run is left out as gold run and as one of the others."""
        import numpy as np

        from attndyn.measures.estimates import jackknifed

        xis, start = [np.array(self.each(CODE, f"ξ of {name}")) for name in COLUMNS[:3]], self._start()
        without = []
        for kind, ending in WITHOUT.items():
            if f"ξ of {COLUMNS[0]}{ending}" in self.metrics.curves_of(CODE):
                left = [self.metrics.curves(CODE, f"ξ of {name}{ending}").values for name in COLUMNS[:3]]
                of_standard, golds = kind == STANDARD, np.arange(len(start))
                without.append([
                    value(*(one[golds != k if of_standard else golds, k] for one in left),
                          self._start(k)[golds != k] if of_standard else start)
                    for k in range(left[0].shape[1])
                ])  # fmt: skip
        return jackknifed(value(*xis, start), without, -1.0, 1.0)

    def _sizes(self) -> Iterator[tuple[str, Judgement]]:
        data, spec = self.study.task.data, self.study.task.data.corpus
        train, median = len(data.train), self.value(SUMMARY, "median length")
        lengths = ((train, spec.published_train), (median, spec.published_median)) if spec else ()
        yield "S-17", self._equal(f"{train:,} texts, median length {median:g}", *lengths)
        words = int(self.value(SUMMARY, "vocabulary"))
        sizes = ((words, spec.published_vocabulary),) if spec else ()
        yield "S-18", self._equal(f"{words:,} words ({self.study.vocabulary})", *sizes)
        parameters = int(self.value(SUMMARY, "parameters"))
        if (self.study.width, self.study.hidden) == (300, 256) and self.study.task.outputs == 2:
            verdict = HOLDS if parameters == PUBLISHED_PARAMETERS else DIFFERS
            yield "S-19", Judgement(measured=f"{parameters:,}", verdict=verdict)
        yield "S-58", Judgement(measured="see run.json", verdict=NOT_COMPARABLE, why="another machine and program")

    def _equal(self, measured: str, *sizes: tuple[float | int, int | None]) -> Judgement:
        """Sizes, each with the published one, where there is one."""
        known = [(size, published) for size, published in sizes if published is not None]
        unlike = self.study.task.data.unlike_published or ("" if known else "no size is published")
        verdict = HOLDS if all(size == published for size, published in known) else DIFFERS
        told = f"published {' and '.join(f'{published:,}' for _, published in known)}" if known else ""
        why = "; ".join(filter(None, (told, unlike)))
        return Judgement(measured=measured, verdict=NOT_COMPARABLE if unlike else verdict, why=why)

    def _training(self) -> Iterator[tuple[str, Judgement]]:
        import numpy as np
        from scipy.stats import spearmanr

        accuracy = self.metrics.curves(STANDARD, "accuracy").values
        agreement = self.metrics.curves(STANDARD, "A(α, α)").values
        moving = [(a, b) for a, b in zip(agreement, accuracy, strict=True) if np.ptp(a) > 0 and np.ptp(b) > 0]
        rank = [float(spearmanr(a, b).statistic) for a, b in moving]
        still = f"{len(accuracy) - len(rank)} of {len(accuracy)} runs do not move" if len(rank) < len(accuracy) else ""
        if len(rank) > 1:
            interval = mean_interval(rank, -1.0, 1.0)
            yield "S-07", Judgement(measured=f"ρ = {_range(rank, '.2f')}", verdict=by_sign(interval), why=still,
                                    interval=interval, of="the mean", n=len(rank)).along(accuracy.shape[1])  # fmt: skip
        else:
            told = f"ρ = {_range(rank, '.2f')}" if rank else "–"
            yield "S-07", Judgement(measured=told, verdict=INCONCLUSIVE, n=len(rank), why=still)
        for id, metric, best, margin in (("B-09", "loss", np.min, 0.03), ("O-02", "accuracy", np.max, 0.01)):
            ours, even = (best(self.metrics.curves(name, metric).values, axis=1) for name in (STANDARD, UNIFORM))
            if min(len(ours), len(even)) > 1:
                gap = welch_interval(even.tolist(), ours.tolist())
                yield id, Judgement(
                    measured=f"{even.mean():.4f} against {ours.mean():.4f}", verdict=by_margin(gap, margin),
                    interval=gap, of="the difference", n=len(ours) + len(even),
                )  # fmt: skip
        if all(name in self.metrics for name in VECTORS):
            yield "S-20", self._vectors()

    def _vectors(self) -> Judgement:
        import numpy as np

        without, given = (self.metrics.curves(name, "accuracy") for name in VECTORS)
        best = [100 * curves.values.max(axis=1).mean() for curves in (given, without)]
        early = int(np.abs(given.steps - EARLY).argmin())
        soon = [100 * curves.values[:, early].mean() for curves in (given, without)]
        agreed = [self.percent(SUMMARY, f"{COLUMNS[0]}, {name}") for name in reversed(VECTORS)]
        return Judgement(
            measured=f"best accuracy {best[0]:.1f} with vectors, {best[1]:.1f} without; at step {given.steps[early]} "
            f"{soon[0]:.1f} and {soon[1]:.1f}; A(α, β_uf) {agreed[0]} and {agreed[1]}; {self.chance(SUMMARY)}",
            verdict=NOT_COMPARABLE, why="a set-up has no verdict of its own",
        )  # fmt: skip


def _positive(measured: str, *intervals: Interval, of: str = "A − Â, as a share") -> Judgement:
    """Whether all lie above 0; the lowest is shown."""
    verdict = all_of([by_sign(one) for one in intervals])
    return Judgement(measured=measured, verdict=verdict, interval=min(intervals), of=of)


def _not_trivial(interval: Interval | None) -> str:
    if interval is None:
        return INCONCLUSIVE
    return HOLDS if interval.low > 0 else DIFFERS if interval.high <= 0 else INCONCLUSIVE


def _or_highest(values: np.ndarray) -> np.ndarray:
    """What is never reached counts as the highest."""
    import numpy as np

    return np.where(np.isnan(values), 1.0, values)


def _range(values: list[float], form: str = "g") -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low}-{high}"


def never(values: object) -> str:
    """The mean of those that are reached, in %, and how many never are."""
    import numpy as np

    array = np.asarray(values, dtype=float)
    missing = int(np.isnan(array).sum())
    if missing == len(array):
        return "never"
    mean = f"{100 * np.nanmean(array):.2f}"
    return f"{mean} ({missing} of {len(array)} never)" if missing else mean
