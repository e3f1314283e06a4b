"""What a decoder reads: the start token, then the target, one position late."""

from dataclasses import replace

import torch

from attndyn.tasks.base import Sampler
from attndyn.tasks.sampler import Batch


class Shifted:
    """The batches of another sampler, with the start token in front of what the decoder reads."""

    def __init__(self, sampler: Sampler, start: int) -> None:
        self.sampler, self.start = sampler, start

    def batch(self, step: int, size: int) -> Batch:
        return self._shifted(self.sampler.batch(step, size))

    def slices(self, size: int, part: str, tokens: int) -> list[Batch]:
        return [self._shifted(batch) for batch in self.sampler.slices(size, part, tokens)]

    def widest(self, size: int) -> Batch:
        return self._shifted(self.sampler.widest(size))

    def _shifted(self, batch: Batch) -> Batch:
        start = torch.full_like(batch.target[..., :1], self.start)
        return replace(batch, shifted=torch.cat([start, batch.target[..., :-1]], dim=-1))
