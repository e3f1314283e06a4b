"""Pools of good and bad heads, and models put together from them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attndyn.studies.outcomes import LEARNED


class Pools:
    """Heads by their number, in the order in which they were tried. `accuracy` is that of each head alone, under each
    data seed."""

    def __init__(self, accuracy: Float[np.ndarray, "head data"], bad_below: float) -> None:
        self.accuracy, self.tried = accuracy, len(accuracy)
        self.good = np.flatnonzero((accuracy >= LEARNED).all(axis=1)).tolist()
        self.bad = np.flatnonzero((accuracy < bad_below).all(axis=1)).tolist()

    @property
    def rate(self) -> float:
        """Share of the runs with one head that learn."""
        return float((self.accuracy >= LEARNED).mean())

    def below(self, level: float) -> int:
        """How many heads are below it under all data seeds."""
        return int((self.accuracy < level).all(axis=1).sum())

    @staticmethod
    def draw(pool: Sequence[int], count: int, run: int, place: int) -> tuple[int, ...]:
        """Different heads of a pool for one model, all that there are if it is too small; `place` tells apart the draws
        of one run."""
        random = np.random.Generator(np.random.PCG64([run, place]))
        return tuple(int(pool[index]) for index in random.permutation(len(pool))[:count])
