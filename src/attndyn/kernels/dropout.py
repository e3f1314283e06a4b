"""Dropout by counter: one random byte for each unit, of (seed, stream, step, place)."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn.kernels.philox import words


def kept(
    x: Float[Tensor, "replica batch length width"],
    seeds: Int[Tensor, " replica"],
    step: Int[Tensor, ""],
    stream: int,
    place: int,
    dropped: int,
) -> Bool[Tensor, "replica batch length width"]:
    """The units whose byte is not below `dropped`. The bytes are counted position after position, so that padding at
    the end changes no mask."""
    _, batch, length, width = x.shape
    count = length * batch * width
    drawn = words(seeds, stream, step[None], -(-count // 4), place)
    each = (drawn[..., None] >> 8 * torch.arange(4, device=x.device) & 255).flatten(1)[:, :count]
    return each.view(-1, length, batch, width).transpose(1, 2) >= dropped


def masked(
    x: Float[Tensor, "replica batch length width"], kept: Bool[Tensor, "replica batch length width"], dropped: int
) -> Float[Tensor, "replica batch length width"]:
    """What is not kept becomes 0, and the rest makes up for it."""
    return x * kept * (256 / (256 - dropped))


def drop(
    x: Float[Tensor, "replica batch length width"], seeds: Tensor, step: Tensor, stream: int, place: int, dropped: int
) -> Float[Tensor, "replica batch length width"]:
    """Both in one launch, without a mask in memory."""
    from attndyn.kernels import triton_dropout

    x = x.contiguous()
    replicas, batch, length, width = x.shape
    result = torch.empty_like(x)
    triton_dropout.drop[(-(-x[0].numel() // triton_dropout.BLOCK), replicas)](
        x, result, seeds, step, stream, place, batch, length, width, dropped, 256 / (256 - dropped),
        block=triton_dropout.BLOCK,
    )  # fmt: skip
    return result
