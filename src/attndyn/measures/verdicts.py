"""How a claim is decided: shares of runs, and differences between two sets of runs. All intervals are 95 %."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

LEVEL = 0.05
FEWEST = 10
"""Examples that are needed for an interval over them to say anything: resampled from one, it has no width."""
LARGEST = 700
"""Of the logarithms of what a float can hold."""
CHECKPOINTS = 3
"""That are needed for a curve to have one between its ends."""

HOLDS, DIFFERS, INCONCLUSIVE = "holds", "differs", "inconclusive"
NOT_COMPARABLE, NOT_JUDGED = "not comparable", "not judged at this scale"
VERDICTS = (HOLDS, DIFFERS, INCONCLUSIVE, NOT_COMPARABLE, NOT_JUDGED)


class Interval(NamedTuple):
    low: float
    high: float


def share_interval(successes: int, n: int) -> Interval:
    """Clopper and Pearson's interval for a share of runs."""
    from scipy.special import betaincinv

    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n} is not a share")
    low = 0.0 if successes == 0 else float(betaincinv(successes, n - successes + 1, LEVEL / 2))
    high = 1.0 if successes == n else float(betaincinv(successes + 1, n - successes, 1 - LEVEL / 2))
    return Interval(low, high)


def fisher(a: int, n_a: int, b: int, n_b: int, alternative: str = "two-sided") -> float:
    """Fisher's exact p for a of n_a against b of n_b; 'greater': the first share is the larger."""
    from scipy.stats import fisher_exact

    return float(fisher_exact([[a, n_a - a], [b, n_b - b]], alternative=alternative).pvalue)


def mean_interval(
    values: Sequence[float], least: float = -math.inf, most: float = math.inf, tries: int = 1
) -> Interval:
    """Student's interval of the mean over runs, of values that lie between `least` and `most`; one of so many `tries`,
    as in `welch_interval`. Two equal values do not tell how far runs differ: then it is all that is possible."""
    import numpy as np
    from scipy.special import stdtrit

    if len(values) < 2:
        raise ValueError("the interval of a mean needs at least two runs")
    if len(values) == 2 and values[0] == values[1]:
        return Interval(least, most)
    half = float(stdtrit(len(values) - 1, 1 - LEVEL / tries / 2) * np.std(values, ddof=1) / np.sqrt(len(values)))
    mean = float(np.mean(values))
    return Interval(max(mean - half, least), min(mean + half, most))


def welch_interval(first: Sequence[float], second: Sequence[float], tries: int = 1) -> Interval:
    """Student's interval of mean(first) − mean(second) over runs, with Welch's degrees of freedom. Where it is one of
    so many `tries` of which the best is taken, all of them hold together at 95 % (Bonferroni). Without an end where
    neither side differs within itself and one of them is two runs."""
    import numpy as np
    from scipy.special import stdtrit

    if min(len(first), len(second)) < 2:
        raise ValueError("a difference needs at least two runs on each side")
    parts = [float(np.var(runs, ddof=1)) / len(runs) for runs in (first, second)]
    gap, variance = float(np.mean(first) - np.mean(second)), sum(parts)
    if variance == 0:
        return Interval(-math.inf, math.inf) if min(len(first), len(second)) == 2 else Interval(gap, gap)
    freedom = variance**2 / sum(part**2 / (len(runs) - 1) for part, runs in zip(parts, (first, second), strict=True))
    half = float(stdtrit(freedom, 1 - LEVEL / tries / 2)) * math.sqrt(variance)
    return Interval(gap - half, gap + half)


def later_by(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """By what factor the second of two steps of a run comes later, in the mean over runs on the scale of logarithms,
    with a step added to each, as training may begin with one of them. None: one run."""
    if len(first) < 2:
        return None
    low, high = mean_interval([math.log((b + 1) / (a + 1)) for a, b in zip(first, second, strict=True)])
    return Interval(math.exp(low), math.exp(high) if high < LARGEST else math.inf)


def by_factor(interval: Interval | None) -> str:
    """Holds above 1, differs below; of one run nothing is decided."""
    return INCONCLUSIVE if interval is None else by_sign(Interval(interval.low - 1, interval.high - 1))


def by_sign(interval: Interval) -> str:
    """holds: the difference lies above 0; differs: below; inconclusive: 0 is inside."""
    if interval.low > 0:
        return HOLDS
    return DIFFERS if interval.high < 0 else INCONCLUSIVE


def by_margin(interval: Interval, margin: float) -> str:
    """Of a difference: holds if it lies within ±margin, differs if it lies outside."""
    if -margin < interval.low and interval.high < margin:
        return HOLDS
    return DIFFERS if interval.low > margin or interval.high < -margin else INCONCLUSIVE


def by_majority(interval: Interval) -> str:
    """Of a share: holds above one half, differs below it."""
    return by_sign(Interval(interval.low - 0.5, interval.high - 0.5))


def all_of(found: Sequence[str]) -> str:
    """Of one rule in several places: it holds if it holds in all, and differs if it differs in one."""
    if DIFFERS in found:
        return DIFFERS
    return HOLDS if set(found) == {HOLDS} else INCONCLUSIVE
