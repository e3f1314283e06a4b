"""Counter-based randomness: the numbers of (seed, stream, step) are the same on every device and in any order.

Nothing here keeps a state, so resuming a run needs no saved random stream.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from attndyn.errors import UserError
from attndyn.kernels.philox import WORD, philox, words

# What a stream of numbers is for. The ids are part of every result: never renumber.
TRAIN, EVALUATION, ORDER, RELABEL, EPOCH, BATCHES, DROPOUT = 0, 1, 2, 3, 4, 5, 6

POSITION_BITS = 30
"""Below the 32 of a key."""


def hashed(numbers: Int[Tensor, "*batch length"]) -> Int[Tensor, "*batch"]:
    """One 32-bit word for each row of numbers that are not negative; zeros at its end, such as padding, change
    nothing."""
    places = torch.arange(numbers.shape[-1], dtype=torch.int64, device=numbers.device)
    zero = torch.zeros_like(numbers)
    mixed = philox((numbers, zero + places, zero, zero), (zero, zero))[0]
    summed = torch.where(numbers == 0, 0, mixed).sum(dim=-1) & WORD
    return summed


class Streams:
    """The random numbers of several replicas, one row of numbers for each seed."""

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        for seed in seeds:
            if not 0 <= seed <= WORD:
                raise UserError(f"a seed lies between 0 and {WORD}, not {seed}")
        self.seeds = torch.tensor(list(seeds), dtype=torch.int64, device=device)

    def words(self, stream: int, steps: Sequence[int], count: int) -> Int[Tensor, "replica step count"]:
        """`count` uniform 32-bit integers for each seed and step."""
        return words(self.seeds, stream, torch.tensor(list(steps), dtype=torch.int64, device=self.seeds.device), count)

    def shuffles(self, stream: int, steps: Sequence[int], rows: int, n: int) -> Int[Tensor, "replica step rows n"]:
        """Uniform permutations of 0 … n−1: random keys are sorted with the position in their low bits, so
        that two equal keys still have one order, the same on every device."""
        if n > 1 << POSITION_BITS:
            raise UserError(f"at most {1 << POSITION_BITS:,} examples or words can be put in a random order, not {n:,}")
        words = self.words(stream, steps, rows * n).unflatten(2, (rows, n))
        position = torch.arange(n, device=words.device)
        return ((words << POSITION_BITS) | position).sort(dim=-1).values & ((1 << POSITION_BITS) - 1)

    def integers(
        self, stream: int, steps: Sequence[int], rows: int, n: int, below: int
    ) -> Int[Tensor, "replica step rows n"]:
        """Uniform integers 0 … below−1 (multiply and shift: the bias is under below / 2^32)."""
        return (self.words(stream, steps, rows * n).unflatten(2, (rows, n)) * below) >> 32
