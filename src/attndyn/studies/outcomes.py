"""Runs that learn or fail: what became of the seeds of a condition, and the judgements that shares and delays allow.

Shared by every study whose runs either solve their task or do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from attndyn.measures import verdicts
from attndyn.store.metrics import Curves, Metrics, Row
from attndyn.studies.base import Judgement

LEARNED = 0.95
"""Accuracy at the last evaluation from which a run counts as learned."""
BAD = 0.6
"""The authors' second threshold: below it a run is bad; what lies between the two they leave out."""
STAGE = 0.5
"""A stage is reached when the peak is right at more than this share of the target positions."""
RARE = 0.05
"""A share of runs above which something is no rare accident."""


class Results:
    """Which runs of one condition learned within the first `steps` steps."""

    def __init__(self, metrics: Metrics, condition: str, steps: int) -> None:
        self.condition, self.steps = condition, steps
        accuracy = metrics.curves(condition, "accuracy").until(steps)
        self.seeds, self.n = accuracy.replicas, len(accuracy.replicas)
        self.accuracy = accuracy.last
        self.learned = self.accuracy >= LEARNED
        self.count = int(self.learned.sum())
        self.failed = self.n - self.count
        self.learned_at = first_step(accuracy, LEARNED)

    @property
    def failures(self) -> np.ndarray:
        """Accuracies of the runs that failed; one that diverged has none."""
        return np.sort(self.accuracy[~self.learned & ~np.isnan(self.accuracy)])

    @property
    def bad(self) -> int:
        return int((self.failures < BAD).sum())

    def failures_in_words(self) -> str:
        if not self.failed:
            return "no run fails"
        if not len(self.failures):
            return "every failure is a run that diverged"
        return f"accuracies of the failures: {span(self.failures)}; {self.bad} below {BAD}"

    def rows(self) -> Iterable[Row]:
        """The outcomes as metrics."""
        for metric, values in self.columns().items():
            for seed, value in zip(self.seeds.tolist(), values.tolist(), strict=True):
                yield Row(self.condition, seed, self.steps, metric, value)

    def columns(self) -> dict[str, np.ndarray]:
        return {"learned": self.learned.astype(float), "learned at": self.learned_at}

    def median_at(self, steps: np.ndarray) -> float | None:
        """The median step over the runs that learned; None if none did."""
        reached = steps[self.learned]
        reached = reached[~np.isnan(reached)]
        return float(np.median(reached)) if len(reached) else None


class Outcomes(Results):
    """Also the stages on the way: those of the readings "attention …" and "probe …", `right` for the right position,
    `on word` for the right word."""

    def __init__(self, metrics: Metrics, condition: str, steps: int, stage: str = "right") -> None:
        super().__init__(metrics, condition, steps)
        attention, probe = (metrics.curves(condition, f"{of} {stage}").until(steps) for of in ("attention", "probe"))
        self.attention_at, self.probe_at = first_step(attention, STAGE), first_step(probe, STAGE)
        # α on its way before β has arrived, if it ever does
        arrived = np.nan_to_num(first_step(probe, 0.75), nan=np.inf)
        self.overlaps = (first_step(attention, 0.25) < arrived)[self.learned]

    @property
    def gaps(self) -> np.ndarray:
        """Steps from β's stage to α's, in the runs that learned and reached both."""
        gaps = (self.attention_at - self.probe_at)[self.learned]
        return np.asarray(gaps[~np.isnan(gaps)])

    def columns(self) -> dict[str, np.ndarray]:
        return {
            **super().columns(),
            "probe stage at": self.probe_at,
            "attention stage at": self.attention_at,
        }

    def example(self, learned: bool) -> int | None:
        """A seed to show: the first that learned, or the one that failed most; None if there is none."""
        if not (self.learned == learned).any():
            return None
        return int(
            self.seeds[self.learned.argmax() if learned else np.where(self.learned, np.inf, self.accuracy).argmin()]
        )

    def summary(self) -> tuple[str | int | float | None, ...]:
        """condition, learned, failed, bad, accuracies of the failures, median steps of the three events."""
        steps = (self.median_at(some) for some in (self.probe_at, self.attention_at, self.learned_at))
        return (
            self.condition,
            f"{self.count} of {self.n}",
            self.failed,
            self.bad,
            span(self.failures),
            *steps,
        )

    def whereabouts(self, metrics: Metrics) -> Iterator[tuple[str | int | float, ...]]:
        """Where α sits at the last step, once for the runs that learned and once for those that failed."""
        names = [
            f"attention {what}"
            for what in ("mass", "mass −1", "mass +1", "mass end", "right", "right −1", "right +1", "entropy")
        ]
        values = [metrics.curves(self.condition, name).until(self.steps).last for name in names]
        whole = ~np.isnan(self.accuracy)  # a run that diverged has no last value
        for chosen, word in ((self.learned, "learned"), (whole & ~self.learned, "failed")):
            if chosen.any():
                means = [float(value[chosen].mean().round(3)) for value in values]
                yield (f"{self.condition}: {word}", int(chosen.sum()), *means)


def first_step(curves: Curves, level: float) -> np.ndarray:
    """The first step at which each replica is above the level; NaN: never."""
    above = curves.values > level
    return np.where(above.any(axis=1), curves.steps[above.argmax(axis=1)].astype(float), np.nan)


def span(values: np.ndarray, form: str = ".2f") -> str:
    if not len(values):
        return "–"
    low, high = format(values.min(), form), format(values.max(), form)
    return low if low == high else f"{low} to {high}"


def share(successes: int, n: int, of: str) -> Judgement:
    """Of runs that may or may not do something: most do, or most do not."""
    if n == 0:
        return Judgement(measured=f"no {of}", verdict=verdicts.INCONCLUSIVE, n=0)
    interval = verdicts.share_interval(successes, n)
    return Judgement(
        measured=f"{successes} of {n} {of}",
        interval=interval,
        of="the share",
        n=n,
        verdict=verdicts.by_majority(interval),
    )


def always_learned(runs: Results, published: tuple[int, int] = (20, 20)) -> Judgement:
    """Every run learns, of enough to say so; a failure or two among many is not yet a difference from the published
    runs."""
    return _without_exception(runs, runs.failed, published, "less")


def never_learned(runs: Results, later_on: str = "", published: tuple[int, int] = (0, 20)) -> Judgement:
    """No run learns; `later_on` says what became of them after the step at which they are judged."""
    found = _without_exception(runs, runs.count, published, "greater")
    return replace(found, why="; ".join(filter(None, (found.why, later_on))))


def _without_exception(runs: Results, exceptions: int, published: tuple[int, int], alternative: str) -> Judgement:
    excepted, verdict = verdicts.share_interval(exceptions, runs.n), verdicts.INCONCLUSIVE
    if not exceptions:
        verdict = verdicts.HOLDS if excepted.high < 0.5 else verdicts.INCONCLUSIVE
    elif (
        excepted.low > RARE or verdicts.fisher(runs.count, runs.n, *published, alternative=alternative) < verdicts.LEVEL
    ):
        verdict = verdicts.DIFFERS
    return Judgement(
        measured=f"{runs.count} of {runs.n} learn",
        interval=verdicts.share_interval(runs.count, runs.n),
        of="the share",
        n=runs.n,
        verdict=verdict,
        why=runs.failures_in_words(),
    )


def same(first: np.ndarray, second: np.ndarray, margin: float) -> Judgement:
    """Two sets of runs have the same mean: the interval of the difference lies within the margin."""
    if min(len(first), len(second)) < 2:
        return Judgement(measured="too few runs to compare", verdict=verdicts.INCONCLUSIVE)
    interval = verdicts.welch_interval(first.tolist(), second.tolist())
    return Judgement(
        measured=f"{first.mean():.3f} against {second.mean():.3f}",
        interval=interval,
        of="the difference",
        n=len(first) + len(second),
        verdict=verdicts.by_margin(interval, margin),
    )


def often_fails(runs: Outcomes) -> Judgement:
    """Failing is not a rare accident: the interval of the failing share lies above .05 (differs: below .2)."""
    interval = verdicts.share_interval(runs.failed, runs.n)
    verdict = verdicts.INCONCLUSIVE
    if interval.low > RARE:
        verdict = verdicts.HOLDS
    elif interval.high < 0.2:
        verdict = verdicts.DIFFERS
    return Judgement(
        measured=f"{runs.failed} of {runs.n} fail",
        interval=interval,
        of="the share that fails",
        n=runs.n,
        verdict=verdict,
        why=runs.failures_in_words(),
    )


def later(runs: Outcomes, control: Outcomes) -> Judgement:
    """Among the runs that learn, the mean step at which they do is later than the control's."""
    return _delay(runs.learned_at[runs.learned], control.learned_at[control.learned])


def slower(runs: Outcomes, control: Outcomes) -> Judgement:
    """As `later`, over all runs: one that does not learn in time counts as learning at the last step, so that the
    delay found is the least it can be."""
    first, second = (np.where(some.learned, some.learned_at, some.steps) for some in (runs, control))
    return _delay(first, second)


def _delay(first: np.ndarray, second: np.ndarray) -> Judgement:
    if min(len(first), len(second)) < 2:
        few = f"{len(first)} and {len(second)} runs learn: too few to compare"
        return Judgement(measured=few, verdict=verdicts.INCONCLUSIVE)
    interval = verdicts.welch_interval(first.tolist(), second.tolist())
    return Judgement(
        measured=f"steps {span_of_steps(first)} against {span_of_steps(second)}",
        interval=interval,
        of="the delay",
        n=len(first) + len(second),
        verdict=verdicts.by_sign(interval),
        why=f"mean delay {first.mean() - second.mean():.0f} steps",
    )


def span_of_steps(steps: np.ndarray) -> str:
    return f"{steps.min():.0f}-{steps.max():.0f}"


def fails_like(runs: Outcomes, published: list[tuple[int, int]]) -> Judgement:
    """Failing is no rare accident, and as many runs fail as were published: Fisher's exact test does not tell them
    apart."""
    p = max(verdicts.fisher(runs.failed, runs.n, *counts) for counts in published)
    often = often_fails(runs)
    return replace(
        often,
        verdict=verdicts.all_of([often.verdict, verdicts.HOLDS if p >= verdicts.LEVEL else verdicts.DIFFERS]),
        why=f"p = {p:.2g} against the nearest published count; {runs.failures_in_words()}",
    )


def easier(one: Results, other: Results) -> Judgement:
    """A larger share of `one` learns."""
    tests = {
        verdicts.HOLDS: verdicts.fisher(one.count, one.n, other.count, other.n, alternative="greater"),
        verdicts.DIFFERS: verdicts.fisher(one.count, one.n, other.count, other.n, alternative="less"),
    }
    verdict, p = min(tests.items(), key=lambda test: test[1])
    return Judgement(
        measured=f"{one.count} of {one.n} against {other.count} of {other.n} learn",
        n=one.n + other.n,
        verdict=verdict if p < verdicts.LEVEL else verdicts.INCONCLUSIVE,
        why=f"one-sided p = {p:.2g}",
    )


def both(first: Judgement, second: Judgement) -> Judgement:
    """Two parts of one statement: it holds if both do, and differs if one does."""
    return replace(
        first,
        measured=f"{first.measured}; {second.measured}",
        verdict=verdicts.all_of([first.verdict, second.verdict]),
        why="; ".join(filter(None, (first.why, second.why))),
    )
