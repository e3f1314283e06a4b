"""A number over runs and examples, such as a mean, with a 95 % interval for both.

Examples are many and are resampled. Runs are few, and intervals from resampling those are too narrow: of three runs
that differ, they hold the truth in 79 % of the cases and not in 95. So each set of runs (gold runs, other runs, runs
under uniform attention) has Student's interval, from how much each run moves the number; and as the examples and all
sets of runs vary independently, the squares of the distances to the number are added up (Zou and Donner 2008).
"""

from __future__ import annotations

import math
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
    """Of each set of two runs or more: what the number would be if all were like each of them, to first order."""
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

        ends = percentiles(self.draws)
        widths = [stdtrit(len(one) - 1, 1 - LEVEL / 2) * np.std(one, ddof=1) / math.sqrt(len(one)) for one in self.runs]
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
        for axis, n in enumerate(sums.shape[:-1]):
            if n > 1:
                others = tuple(other for other in range(sums.ndim) if other != axis)
                runs.append(value + n * (sums.sum(axis=others) - value * counts.sum(axis=others)) / count)
    return Estimate(value, draws, tuple(runs), least, most)


def mean(values: np.ndarray, groups: np.ndarray | None = None) -> Estimate:
    """Of [runs …, example]; NaN counts as missing. `groups` is the group of each example: examples that depend on each
    other are drawn a whole group at a time."""
    known = ~np.isnan(values)
    sums, counts = np.where(known, values, 0), known.astype(np.float64)
    if groups is not None:
        sums, counts = (np.apply_along_axis(lambda row: np.bincount(groups, row), -1, each) for each in (sums, counts))
    if not known.any():
        return ratio(sums, counts)
    return ratio(sums, counts, float(values[known].min()), float(values[known].max()))


def interval(values: np.ndarray, groups: np.ndarray | None = None) -> Interval:
    """Of the mean."""
    return mean(values, groups).interval


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
