"""Batches of lines of different lengths, padded and masked."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attndyn.errors import UserError
from attndyn.tasks.sampler import Batch
from attndyn.tasks.streams import EPOCH, Streams
from attndyn.tasks.text import Pairs, Text

PAD = 0
"""What stands where nothing is; masked everywhere."""


class Side:
    """One side of the pairs on a device."""

    def __init__(self, text: Text, device: torch.device | str) -> None:
        self.ids = torch.as_tensor(text.ids, dtype=torch.int64, device=device)
        self.offsets = torch.as_tensor(text.offsets, dtype=torch.int64, device=device)
        self.lengths = self.offsets.diff()

    def pad(
        self, lines: Int[Tensor, "replica batch"]
    ) -> tuple[Int[Tensor, "replica batch length"], Bool[Tensor, "replica batch length"]]:
        lengths = self.lengths[lines]
        position = torch.arange(int(lengths.max()), device=lines.device)
        mask = position < lengths[..., None]
        places = (self.offsets[lines][..., None] + position).clamp_max(len(self.ids) - 1)
        return torch.where(mask, self.ids[places], PAD), mask


class RaggedSampler:
    """Every training example once an epoch, in an order of the seed's own; the first evaluation examples for all."""

    def __init__(self, train: Pairs, valid: Pairs, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        self.streams = Streams(seeds, device)
        self.size = len(train)
        self.train = Side(train.source, device), Side(train.target, device)
        self.valid = Side(valid.source, device), Side(valid.target, device)
        self.held_out = len(valid)
        for pairs in (train, valid):
            if not len(pairs) or min(pairs.source.lengths.min(), pairs.target.lengths.min()) < 1:
                raise UserError("every example needs at least one word on both sides")
        self._order: tuple[int, Int[Tensor, "replica example"]] | None = None

    def batch(self, step: int, size: int) -> Batch:
        steps = self.size // size
        epoch, place = divmod(step, steps)
        if self._order is None or self._order[0] != epoch:
            self._order = epoch, self.streams.shuffles(EPOCH, [epoch], 1, self.size)[:, 0, 0]
        return self._padded(*self.train, self._order[1][:, place * size : (place + 1) * size])

    def evaluation(self, size: int) -> Batch:
        lines = torch.arange(min(size, self.held_out), device=self.streams.seeds.device)
        return self._padded(*self.valid, lines.expand(len(self.streams.seeds), -1))

    def _padded(self, source: Side, target: Side, lines: Int[Tensor, "replica batch"]) -> Batch:
        words, source_mask = source.pad(lines)
        answers, target_mask = target.pad(lines)
        return Batch(
            source=words,
            shifted=torch.zeros_like(answers),  # nothing here says how a decoder starts; a translator will
            target=answers,
            align=torch.zeros_like(answers),  # no example says where the right word stands
            source_mask=source_mask,
            target_mask=target_mask,
        )
