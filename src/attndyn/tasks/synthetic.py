"""Copying tasks as specs: what is drawn, never how it is stored. No torch here; `build` makes the sampler.

Sources: Snell et al. §3.3 (permutations, 40 of 60), A.3 (mixture), §6.2 (fixed permutation π); their slides
(i.i.d. words).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from attndyn.errors import UserError
from attndyn.tasks.base import Task

if TYPE_CHECKING:
    from attndyn.tasks.sampler import CopySampler


@dataclass(frozen=True)
class CopyTask(Task):
    """Read `length` words and an end token, write the same words behind a start token.

    With `relabel` the outputs go through a bijection, fixed for each seed, into an alphabet of their own: then
    input and output words share no embedding.
    """

    relabel: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("length", "words"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")

    @property
    def length(self) -> int:
        """Words in a sequence, the end token not counted."""
        raise NotImplementedError

    @property
    def words(self) -> int:
        """Different words that can be drawn."""
        raise NotImplementedError

    @property
    def vocabulary(self) -> int:
        """Token ids: input words, output words where they are others, the end and the start token."""
        return self.words * (2 if self.relabel else 1) + 2

    @property
    def shape(self) -> tuple[int, ...]:
        return self.length, self.vocabulary

    @property
    def tokens(self) -> list[str]:
        """The text of each token id."""
        inputs = [str(word + 1) for word in range(self.words)]
        return inputs + [f"{text}′" for text in inputs] * self.relabel + ["</s>", "<s>"]

    def draw(self, streams: Any, stream: int, steps: Sequence[int], rows: int) -> Any:
        """Input words 0 … words−1, int64 [replica, step, rows, length], from a `streams.Streams`."""
        raise NotImplementedError

    def order(self, streams: Any) -> Any:
        """Which input position each output position copies, [replica, length]; None: the same one."""
        return None

    def build(self, seeds: Sequence[int], device: Any = "cpu") -> CopySampler:
        from attndyn.tasks.sampler import CopySampler

        return CopySampler(self, seeds, device)


@dataclass(frozen=True)
class Permutations(CopyTask):
    """Each input is a permutation of the same n words: co-occurrence carries no signal."""

    n: int

    @property
    def length(self) -> int:
        return self.n

    @property
    def words(self) -> int:
        return self.n

    def draw(self, streams: Any, stream: int, steps: Sequence[int], rows: int) -> Any:
        return streams.shuffles(stream, steps, rows, self.n)


@dataclass(frozen=True)
class Subsets(CopyTask):
    """Each input is k different words out of n, in random order: the control."""

    k: int
    of: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > self.of:
            raise UserError(f"cannot draw {self.k} different words out of {self.of}")

    @property
    def length(self) -> int:
        return self.k

    @property
    def words(self) -> int:
        return self.of

    def draw(self, streams: Any, stream: int, steps: Sequence[int], rows: int) -> Any:
        return streams.shuffles(stream, steps, rows, self.of)[..., : self.k]


@dataclass(frozen=True)
class PermutedCopy(Subsets):
    """k of n words, written in an order π that is fixed for each seed: output t is input π(t)."""

    def order(self, streams: Any) -> Any:
        from attndyn.tasks.streams import ORDER

        return streams.shuffles(ORDER, [0], 1, self.k)[:, 0, 0]


@dataclass(frozen=True)
class PermutationMixture(CopyTask):
    """Each input permutes {1 … n} or {n+1 … 2n}: co-occurrence tells the set, not the word."""

    n: int

    @property
    def length(self) -> int:
        return self.n

    @property
    def words(self) -> int:
        return 2 * self.n

    def draw(self, streams: Any, stream: int, steps: Sequence[int], rows: int) -> Any:
        # The coins are the numbers that follow those of the shuffles.
        coins = streams.words(stream, steps, rows * (self.n + 1))[:, :, -rows:, None] & 1
        return streams.shuffles(stream, steps, rows, self.n) + self.n * coins


@dataclass(frozen=True)
class Iid(CopyTask):
    """Words drawn independently, so that a word may come twice."""

    size: int
    alphabet: int

    @property
    def length(self) -> int:
        return self.size

    @property
    def words(self) -> int:
        return self.alphabet

    @property
    def probabilities(self) -> list[float]:
        """Of each word."""
        return [1 / self.alphabet] * self.alphabet

    def draw(self, streams: Any, stream: int, steps: Sequence[int], rows: int) -> Any:
        return streams.integers(stream, steps, rows, self.size, self.alphabet)


@dataclass(frozen=True)
class Zipf(Iid):
    """Words drawn independently, the r-th of them with a probability that falls as 1/r^exponent."""

    exponent: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.exponent < 10:
            raise UserError(f"the exponent of a Zipf distribution lies between 0 and 10, not {self.exponent}")

    @property
    def probabilities(self) -> list[float]:
        weights = [(rank + 1) ** -self.exponent for rank in range(self.alphabet)]
        return [weight / sum(weights) for weight in weights]

    def draw(self, streams: Any, stream: int, steps: Sequence[int], rows: int) -> Any:
        import torch

        # whole numbers, so that every device draws the same words
        ends = [round(2**32 * end) for end in accumulate(self.probabilities)][:-1]
        drawn = streams.words(stream, steps, rows * self.size).unflatten(2, (rows, self.size))
        return torch.searchsorted(torch.tensor(ends, dtype=torch.int64, device=drawn.device), drawn, right=True)
