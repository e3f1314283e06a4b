"""Pairs for a translator: what its decoder reads, and evaluation in slices of about one length."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from attndyn.tasks.ragged import Lines, RaggedSampler
from attndyn.tasks.sampler import Batch

WIDER = 1.5
"""How much longer than the shortest pair of a slice the longest may be: what is read for each target and each source
position grows with the square of the length."""


@dataclass(frozen=True)
class LateLines(Lines):
    """Examples by their numbers, whose decoder reads the start token, then the target, one position late."""

    start: int

    def batch(self) -> Batch:
        return late(super().batch(), self.start)


def late(batch: Batch, start: int) -> Batch:
    first = torch.full_like(batch.target[..., :1], start)
    return replace(batch, shifted=torch.cat([first, batch.target[..., :-1]], dim=-1))


class Shifted:
    """The batches of another sampler for a decoder."""

    def __init__(self, sampler: RaggedSampler, start: int) -> None:
        self.sampler, self.start = sampler, start

    def draw(self, step: int, size: int) -> LateLines:
        drawn = self.sampler.draw(step, size)
        return LateLines(drawn.examples, drawn.lines, drawn.widths, self.start)

    def slices(self, size: int, part: str, tokens: int) -> list[Batch]:
        return [
            late(piece, self.start)
            for batch in self.sampler.slices(size, part, tokens)
            for piece in of_one_length(batch)
        ]

    def widest(self, size: int) -> Batch:
        return late(self.sampler.widest(size), self.start)


def of_one_length(batch: Batch) -> Iterator[Batch]:
    """The pairs of a batch that stand from the shortest to the longest, in parts with little padding. The examples are
    the same for every replica."""
    assert batch.source_mask is not None
    assert batch.target_mask is not None
    lengths = torch.stack([mask[0].sum(dim=-1) for mask in (batch.source_mask, batch.target_mask)]).tolist()
    longest = [max(pair) for pair in zip(*lengths, strict=True)]
    start = 0
    while start < len(longest):
        end = next((n for n in range(start, len(longest)) if longest[n] > WIDER * longest[start] + 1), len(longest))
        keys, queries = (slice(max(side[start:end])) for side in lengths)
        part = slice(start, end)
        yield Batch(
            source=batch.source[:, part, keys],
            shifted=batch.shifted[:, part, queries],
            target=batch.target[:, part, queries],
            align=batch.align[:, part, queries],
            source_mask=batch.source_mask[:, part, keys],
            target_mask=batch.target_mask[:, part, queries],
        )
        start = end
