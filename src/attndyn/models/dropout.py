"""Dropout whose masks come from the counter-based streams: they depend on the seed, the training step and the place in
the model only, so a replica has its own whoever trains beside it, and a resumed run goes on with the same ones."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attndyn.tasks.streams import DROPOUT, words


class Dropout(nn.Module):
    """While training, units are 0 with probability p, rounded to a multiple of 1/256: each takes one random byte."""

    seeds: Int[Tensor, " replica"]

    def __init__(self, seeds: Sequence[int], p: float, place: int) -> None:
        super().__init__()
        self.register_buffer("seeds", torch.tensor(list(seeds), dtype=torch.int64), persistent=False)
        self.dropped, self.place = round(256 * p), place

    def forward(
        self, x: Float[Tensor, "replica batch length width"], step: Int[Tensor, ""] | None
    ) -> Float[Tensor, "replica batch length width"]:
        if not self.training or not self.dropped:
            return x
        if step is None:
            raise ValueError("dropout needs the training step of the batch")
        _, batch, length, width = x.shape
        # position after position, so that padding at the end changes no mask
        kept = self.bytes(step, length * batch * width).view(-1, length, batch, width).transpose(1, 2) >= self.dropped
        return x * kept * (256 / (256 - self.dropped))

    def bytes(self, step: Int[Tensor, ""], count: int) -> Int[Tensor, "replica count"]:
        drawn = words(self.seeds, DROPOUT, step[None], -(-count // 4), self.place)
        return (drawn[..., None] >> 8 * torch.arange(4, device=drawn.device) & 255).flatten(1)[:, :count]
