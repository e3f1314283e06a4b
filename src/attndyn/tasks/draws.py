"""Draws from a corpus, the same on every machine and with every numpy: sorted 64-bit words of PCG64."""

import numpy as np

from attndyn.errors import UserError


def keys(count: int, seed: int) -> np.ndarray:
    """One random 64-bit word for each of `count` things."""
    if seed < 0:
        raise UserError(f"a seed is not negative: {seed}")
    return np.random.PCG64(seed).random_raw(count)


def shuffled(count: int, seed: int) -> np.ndarray:
    """0 … count−1 in random order; equal words keep theirs."""
    return np.argsort(keys(count, seed), kind="stable")
