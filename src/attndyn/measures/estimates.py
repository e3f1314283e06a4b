"""A number over runs and examples, such as a mean, with a 95 % interval for both.

Examples are many and are resampled. Runs are few, and intervals from resampling those are too narrow: of three runs
that differ, they hold the truth in 79 % of the cases and not in 95. So each set of runs (gold runs, other runs, runs
under uniform attention) has Student's interval, from how much each run moves the number; and as the examples and all
sets of runs vary independently, the squares of the distances to the number are added up (Zou and Donner 2008). Where
runs are compared with each other, both axes are one set: `of_pairs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from attndyn.measures.verdicts import LEVEL, Interval

RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class Estimate:
    value: float
    draws: np.ndarray
    """The same in resamples of the examples. Those of two estimates on as many examples are of the same resamples."""
    runs: tuple[np.ndarray, ...]
    """Of each set of two runs or more: what the number would be if all were like each of them, to first order; NaN for
    a run of which nothing is known."""
    least: float = -math.inf
    most: float = math.inf

    def minus(self, other: Estimate, same_runs: bool = False) -> Estimate:
        """Of the same examples; also of the same runs, or of others."""
        runs = (*self.runs, *other.runs)
        if same_runs:
            runs = tuple(a - b for a, b in zip(self.runs, other.runs, strict=True))
        return Estimate(
            self.value - other.value, self.draws - other.draws, runs, self.least - other.most, self.most - other.least
        )

    @property
    def interval(self) -> Interval:
        """NaN where nothing is known."""
        from scipy.special import stdtrit

        ends, widths = percentiles(self.draws), []
        for one in (every[~np.isnan(every)] for every in self.runs):
            if len(one) > 1:
                widths.append(stdtrit(len(one) - 1, 1 - LEVEL / 2) * np.std(one, ddof=1) / math.sqrt(len(one)))
        below, above = (
            math.hypot(max(distance, 0.0), *widths) for distance in (self.value - ends.low, ends.high - self.value)
        )
        return Interval(max(self.value - below, self.least), min(self.value + above, self.most))


def ratio(sums: np.ndarray, counts: np.ndarray, least: float = -math.inf, most: float = math.inf) -> Estimate:
    """Σ sums / Σ counts of [runs …, example]; it lies between `least` and `most`."""
    weights = _drawn(sums.shape[-1])
    total, count = sums.sum(), counts.sum()
    value = float(total / count) if count else math.nan
    runs = []
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = np.asarray((_examples(sums) @ weights) / (_examples(counts) @ weights))
        for axis in range(sums.ndim - 1):
            others = tuple(other for other in range(sums.ndim) if other != axis)
            own = counts.sum(axis=others)
            known = own > 0
            if len(own) > 1:
                moved = known.sum() * (sums.sum(axis=others) - value * own) / count
                runs.append(np.where(known, value + moved, math.nan))
    return Estimate(value, draws, tuple(runs), least, most)


def mean(
    values: np.ndarray,
    groups: np.ndarray | None = None,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Of [runs …, example]; NaN counts as missing. `groups` is the group of each example: examples that depend on each
    other are drawn a whole group at a time. `within` is where the mean can lie at all."""
    known = ~np.isnan(values)
    sums, counts = np.where(known, values, 0), known.astype(np.float64)
    if groups is not None:
        sums, counts = (np.apply_along_axis(lambda row: np.bincount(groups, row), -1, each) for each in (sums, counts))
    return ratio(sums, counts, *within)


def interval(
    values: np.ndarray,
    groups: np.ndarray | None = None,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Of the mean."""
    return mean(values, groups, within).interval


def of_pairs(values: np.ndarray) -> np.ndarray:
    """One value for each run out of [run, other run, …], with NaN where both are the same: those of `left_out`. Two
    runs are one pair, of which nothing is told about runs: it is one value."""
    n = len(values)
    both = (np.nansum(values, axis=0) + np.nansum(values, axis=1)) / (2 * (n - 1))
    return both[:1] if n == 2 else left_out(both)


def left_out(means: Sequence[float] | np.ndarray) -> np.ndarray:
    """The pseudo-values of the jackknife, one for each of three runs or more, of the mean over all pairs of runs, out
    of the mean over the pairs of each: a run is left out with all its pairs. Each pair counts for two runs, so that the
    means themselves scatter half as much as the runs make the mean over pairs do."""
    n, values = len(means), np.asarray(means)
    return np.asarray((2 * (n - 1) * values - n * values.mean(axis=0)) / (n - 2))


def jackknifed(
    value: float, without: Sequence[Sequence[float]], least: float = -math.inf, most: float = math.inf
) -> Interval:
    """Of a number that is made of several runs together, out of what it is without each run of each set of them: from
    pseudo-values, as in `left_out`. NaN where nothing is known of a run."""
    runs = tuple(len(one) * value - (len(one) - 1) * np.asarray(one, dtype=np.float64) for one in without)
    return Estimate(value, np.array([value]), runs, least, most).interval


def resampled_sums(values: np.ndarray) -> np.ndarray:
    """Σ over the examples of [example, number] in each resample of the examples, the same ones as everywhere here."""
    return np.asarray(_drawn(len(values)).T @ values)


def of_runs(scores: list[float], draws: np.ndarray) -> Estimate:
    """The mean of a score of each run that is computed from all examples; in resamples of these: [run, resample]."""
    return Estimate(float(np.mean(scores)), draws.mean(axis=0), (np.array(scores),) if len(scores) > 1 else ())


def percentiles(draws: np.ndarray) -> Interval:
    """What resamples span; those in which nothing was known are left out. NaN if that is all."""
    if np.isnan(draws).all():
        return Interval(math.nan, math.nan)
    low, high = np.nanquantile(draws, [LEVEL / 2, 1 - LEVEL / 2])
    return Interval(float(low), float(high))


def _examples(values: np.ndarray) -> np.ndarray:
    """Σ over runs: [example]."""
    return np.asarray(values.reshape(-1, values.shape[-1]).sum(axis=0))


@cache
def _drawn(examples: int) -> np.ndarray:
    """How often each example is drawn: [example, resample]. It repeats itself."""
    random = np.random.Generator(np.random.PCG64(0))
    return random.multinomial(examples, np.full(examples, 1 / examples), size=RESAMPLES).T.astype(np.float64)
