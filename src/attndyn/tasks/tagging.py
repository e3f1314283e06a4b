"""What every task with a tag for each word has in common. No numpy here.

A sentence is <bos>, its words, <eos>, and both ends have tags of their own, as in Yang's program. The answers are
<pad>, <bos>, <eos>, O, and B- and I- of every kind of chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from attndyn.tasks.corpus import CorpusTask, loaded

if TYPE_CHECKING:
    from attndyn.tasks.base import Sampler
    from attndyn.tasks.ragged import RaggedSampler
    from attndyn.tasks.sampler import Batch

ENDS = ("<pad>", "<bos>", "<eos>")
"""Answers that are no tags; the first is never right."""
TOGETHER = 100
"""Sentences that are padded together, and see it, when they are judged: a batch of Yang's program."""


@dataclass(frozen=True)
class Tagging(CorpusTask):
    padding: Literal["masked", "seen"] = "masked"
    """Whether padding can be attended to, and is learned as an answer, as in Yang's program."""

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(loaded(self).answers)

    @property
    def shape(self) -> tuple[Any, ...]:
        return *super().shape, self.padding

    def build(self, seeds: Sequence[int], device: Any = "cpu") -> Sampler:
        sampler = super().build(seeds, device)
        if self.padding == "masked":
            return sampler
        from attndyn.tasks.ragged import RaggedSampler

        assert isinstance(sampler, RaggedSampler)
        return Unmasked(sampler)


class Unmasked:
    """The batches of another sampler without their masks: padding is a word like others."""

    def __init__(self, sampler: RaggedSampler) -> None:
        self.sampler = sampler

    def draw(self, step: int, size: int) -> Batch:
        return self._bare(self.sampler.draw(step, size).batch())

    def slices(self, size: int, part: str, tokens: int) -> list[Batch]:
        """However many tokens there is room for: a tagger's answers hang on the padding that it sees."""
        return [self._bare(batch) for batch in self.sampler.slices(size, part, tokens, TOGETHER)]

    def widest(self, size: int) -> Batch:
        return self._bare(self.sampler.widest(size))

    @staticmethod
    def _bare(batch: Batch) -> Batch:
        return replace(batch, source_mask=None, target_mask=None)
