"""Numbers of `salient-words` as rows: of gold runs, along training, and differences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attndyn.store.metrics import Row
from attndyn.studies.read_part import entry, highest, spread
from attndyn.studies.salient_names import LAST, SUMMARY


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
