"""Dropout whose masks come from the counter-based streams: they depend on the seed, the training step and the place in
the model only, so a replica has its own whoever trains beside it, and a resumed run goes on with the same ones."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attndyn import kernels
from attndyn.kernels.dropout import drop, kept, masked
from attndyn.tasks.streams import DROPOUT


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
        dropped: Tensor = Masked.apply(x, self.seeds, step, self.place, self.dropped)
        return dropped


class Masked(torch.autograd.Function):
    """For the backward pass the mask is kept, or drawn again where a kernel draws it faster than memory is read."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, seeds: Tensor, step: Tensor, place: int, dropped: int) -> Tensor:
        ctx.settings = place, dropped
        drawn = seeds, step, DROPOUT, place, dropped
        if kernels.fast(x):
            ctx.save_for_backward(seeds, step)
            return drop(x, *drawn)
        mask = kept(x, *drawn)
        ctx.save_for_backward(mask)
        return masked(x, mask, dropped)

    @staticmethod
    def backward(ctx: Any, d_result: Tensor) -> tuple[Tensor, None, None, None, None]:
        if len(ctx.saved_tensors) == 1:
            return masked(d_result, ctx.saved_tensors[0], ctx.settings[1]), None, None, None, None
        seeds, step = ctx.saved_tensors
        return drop(d_result, seeds, step, DROPOUT, *ctx.settings), None, None, None, None
