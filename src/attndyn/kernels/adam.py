"""One update of Adam for all parameters of all replicas."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn import kernels


class Buffers(NamedTuple):
    """What an update reads and changes in place."""

    values: Float[Tensor, "replica parameter"]
    mean: Float[Tensor, "replica parameter"]
    square: Float[Tensor, "replica parameter"]
    largest: Float[Tensor, "replica parameter"] | None  # amsgrad
    gradient: Float[Tensor, "replica parameter"]  # only read


class Rates(NamedTuple):
    """What may differ between replicas, and what may not."""

    lr: Float[Tensor, "replica 1"]
    decay: Float[Tensor, "replica 1"] | None
    moves: Bool[Tensor, "replica parameter"] | None  # None: every parameter
    betas: tuple[float, float]
    eps: float


def update(buffers: Buffers, rates: Rates, number: Int[Tensor, ""], active: Bool[Tensor, " replica"]) -> None:
    """The update number 1, 2, …, as `torch.optim.Adam` defines it. Inactive replicas stay as they are."""
    # in float64: 1 − .999^1 has lost four of its seven digits in float32
    corrections = torch.stack([1 - beta ** number.double() for beta in rates.betas]).to(buffers.values.dtype)
    step = _launch if kernels.fast(buffers.values) else plain
    step(buffers, rates, corrections, active)


def plain(
    buffers: Buffers, rates: Rates, corrections: Float[Tensor, " moment"], active: Bool[Tensor, " replica"]
) -> None:
    values, mean, square, largest, gradient = buffers
    beta1, beta2 = rates.betas
    gradient = gradient.masked_fill(~active[:, None], 0)
    if rates.decay is not None:
        gradient.add_(values * rates.decay)
    mean.lerp_(gradient, 1 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    second = square if largest is None else torch.maximum(largest, square, out=largest)
    denominator = (second.sqrt() / corrections[1].sqrt()).add_(rates.eps)
    change = (mean / denominator).mul_(rates.lr / corrections[0] * active[:, None])
    if rates.moves is not None:
        change.mul_(rates.moves)
    values.sub_(change)


def _launch(buffers: Buffers, rates: Rates, corrections: Tensor, active: Tensor) -> None:
    from attndyn.kernels import triton_adam

    values, mean, square, largest, gradient = buffers
    replicas, parameters = values.shape
    triton_adam.update[(-(-parameters // triton_adam.BLOCK), replicas)](
        values, mean, square, largest, gradient, rates.lr, rates.decay, rates.moves, corrections, active, parameters,
        *rates.betas, rates.eps,
        amsgrad=largest is not None, decays=rates.decay is not None, freezes=rates.moves is not None,
        block=triton_adam.BLOCK,
    )  # fmt: skip
