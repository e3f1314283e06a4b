"""Numbers of `salient-words` as rows: means over seeds and texts with their intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attndyn.measures import estimates
from attndyn.store.metrics import Row
from attndyn.studies.read_part import highest, means
from attndyn.studies.salient_names import LAST, SUMMARY

SHARE, APART = (0.0, 1.0), (-1.0, 1.0)
"""Where agreements, and where τ and differences of agreements, can lie."""


def entry(
    table: str, name: str, values: np.ndarray, chance: np.ndarray, judged: np.ndarray | None = None
) -> Iterator[Row]:
    """The mean of [seed …, text] with its interval, and that of its distance from chance; or with those of others."""
    judged = values if judged is None else judged
    expected = float(chance.mean())
    above = estimates.interval(judged - chance, within=(SHARE[0] - expected, SHARE[1] - expected))
    yield from spread(table, name, values, judged, SHARE)
    yield Row(table, 0, 0, f"{name} above low", above.low)
    yield Row(table, 0, 0, f"{name} above high", above.high)


def spread(
    table: str, name: str, values: np.ndarray, judged: np.ndarray | None = None, within: tuple[float, float] = APART
) -> Iterator[Row]:
    """The mean of [seed …, text] with its interval, for which every axis counts; or with that of others."""
    interval = estimates.interval((values if judged is None else judged).astype(np.float64), within=within)
    for ending, number in (("", means(values.ravel())), (" low", interval.low), (" high", interval.high)):
        yield Row(table, 0, 0, name + ending, float(number))


def difference(name: str, first: np.ndarray, second: np.ndarray) -> Iterator[Row]:
    """Of two agreements in the same texts; an axis of seeds that only one of them has is of length 1 in the other."""
    yield from spread(SUMMARY, name, first.astype(np.float64) - second)


def by_gold_run(table: str, name: str, values: np.ndarray, seeds: list[int]) -> Iterator[Row]:
    """The mean of each gold run out of [gold, seed …, text]."""
    for seed, mean in zip(seeds, np.nanmean(values.reshape(len(values), -1), axis=1), strict=True):
        yield Row(f"{table}, by gold run", seed, 0, name, float(mean))


def along(table: str, name: str, found: list[np.ndarray], chance: np.ndarray) -> Iterator[Row]:
    """The largest over the checkpoints of each seed, and what the last gives; out of [seed, step, text] for each u."""
    yield from entry(table, name, np.stack([highest(each) for each in found]), chance)
    yield Row(table, 0, 0, name + LAST, float(np.mean([final(each).mean() for each in found])))


def final(found: np.ndarray) -> np.ndarray:
    """[seed, text] at the last step, out of [seed, step, text]."""
    return found[:, -1]
