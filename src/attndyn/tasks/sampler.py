"""Batches of the synthetic tasks, made on the device by the counter-based streams; no loop over examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn.errors import UserError
from attndyn.tasks.base import Sampler
from attndyn.tasks.keyword import KEYWORD, Keyword
from attndyn.tasks.streams import EVALUATION, RELABEL, TRAIN, Streams
from attndyn.tasks.synthetic import CopyTask

BLOCK = 16
"""Training steps whose words are drawn together."""


@dataclass(frozen=True)
class Batch:
    """Integer sequences of every replica. A mask of None means that nothing is padding."""

    source: Int[Tensor, "replica batch key"]
    shifted: Int[Tensor, "replica batch query"]  # what the decoder reads: the start token, then the target
    target: Int[Tensor, "replica batch query"]
    align: Int[Tensor, "replica batch query"]  # the right source position of each target position
    source_mask: Bool[Tensor, "replica batch key"] | None = None
    target_mask: Bool[Tensor, "replica batch query"] | None = None
    step: Int[Tensor, ""] | None = None  # of training: what is random inside a model depends on it
    given: Float[Tensor, "replica batch head query key"] | None = None  # attention of another model on these examples
    answer: Float[Tensor, "replica batch query output"] | None = None  # its answers, as probabilities

    def batch(self) -> Batch:
        return self

    def replicas(self, rows: slice) -> Batch:
        """Of some replicas alone."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Batch(**{name: value[rows] if name != "step" and value is not None else value
                        for name, value in values.items()})  # fmt: skip


class DrawnSampler:
    """The batches of a task that draws its words from the streams, for several replicas, each from its own seed."""

    def __init__(self, task: CopyTask | Keyword, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        self.task = task
        self.streams = Streams(seeds, device)
        # Every seed is judged on the same inputs, so that replicas can be compared example by example.
        self.common = Streams([0] * len(seeds), device)
        self._block: tuple[int, int, Int[Tensor, "replica step batch length"]] | None = None

    def batch(self, step: int, size: int) -> Batch:
        """The training batch of one step. The words of several steps are drawn at once: many small operations cost
        the same as a few larger ones."""
        first = step - step % BLOCK
        if self._block is None or self._block[:2] != (first, size):
            words = self.task.draw(self.streams, TRAIN, range(first, first + BLOCK), size)
            self._block = (first, size, words)
        return self._batch(self._block[2][:, step - first])

    def evaluation(self, size: int) -> Batch:
        """The fixed evaluation examples."""
        return self._batch(self.task.draw(self.common, EVALUATION, [0], size)[:, 0])

    def draw(self, step: int, size: int) -> Batch:
        return self.batch(step, size)

    def slices(self, size: int, part: str, tokens: int) -> list[Batch]:
        if part != "valid":
            raise UserError(f"made tasks have no {part!r} examples to judge a model on, only new ones")
        return [self.evaluation(size)]

    def widest(self, size: int) -> Batch:
        return self.batch(0, size)

    def _batch(self, words: Int[Tensor, "replica batch length"]) -> Batch:
        raise NotImplementedError


class CopySampler(DrawnSampler):
    """The batches of a `CopyTask`."""

    def __init__(self, task: CopyTask, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        super().__init__(task, seeds, device)
        positions = torch.arange(task.length, device=device).expand(len(seeds), -1)
        order = task.order(self.streams)
        self.order: Int[Tensor, "replica length"] = positions if order is None else order
        self.relabel: Int[Tensor, "replica words"] | None = None
        if task.relabel:
            self.relabel = self.streams.shuffles(RELABEL, [0], 1, task.words)[:, 0, 0] + task.words

    def _batch(self, words: Int[Tensor, "replica batch length"]) -> Batch:
        replicas, size, length = words.shape
        order = self.order[:, None].expand(-1, size, -1)
        outputs = words.gather(2, order)
        if self.relabel is not None:
            outputs = self.relabel[:, None].expand(-1, size, -1).gather(2, outputs)
        end = words.new_full((replicas, size, 1), self.task.vocabulary - 2)
        start = end + 1
        return Batch(
            source=torch.cat([words, end], dim=2),
            shifted=torch.cat([start, outputs], dim=2),
            target=torch.cat([outputs, end], dim=2),
            align=torch.cat([order, torch.full_like(end, length)], dim=2),
        )


class KeywordSampler(DrawnSampler):
    """The batches of a `Keyword` task: class 1 holds the keyword, at `align`; in class 0 there is no right position."""

    def _batch(self, words: Int[Tensor, "replica batch length"]) -> Batch:
        found = words == KEYWORD
        target = found.any(dim=2, keepdim=True)
        return Batch(
            source=words,
            shifted=torch.zeros_like(words[..., :1]),  # there is no decoder
            target=target.long(),
            align=torch.where(target, found.long().argmax(dim=2, keepdim=True), -1),
        )


class Together:
    """The batches of several samplers as one."""

    def __init__(self, samplers: Sequence[Sampler]) -> None:
        self.samplers = samplers

    def draw(self, step: int, size: int) -> Batch:
        return join([sampler.draw(step, size).batch() for sampler in self.samplers])

    def slices(self, size: int, part: str, tokens: int) -> list[Batch]:
        slices = [sampler.slices(size, part, tokens) for sampler in self.samplers]
        return [join(batches) for batches in zip(*slices, strict=True)]

    def widest(self, size: int) -> Batch:
        return join([sampler.widest(size) for sampler in self.samplers])


def join(batches: Sequence[Batch]) -> Batch:
    """The replicas of several batches of equal shapes, one after the other."""

    def column(name: str) -> Any:
        parts = [getattr(batch, name) for batch in batches]
        return None if parts[0] is None else torch.cat(parts)

    return Batch(**{field.name: column(field.name) for field in fields(Batch)})
