"""The kernel of `kernels/adam.py`: every buffer is read once and written once."""

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def update(
    values, mean, square, largest, gradient, lr, decay, moves, corrections, active, parameters, beta1, beta2, eps,
    amsgrad: tl.constexpr, decays: tl.constexpr, freezes: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    parameter = tl.program_id(0) * block + tl.arange(0, block)
    real = parameter < parameters
    place = replica * parameters + parameter
    runs = tl.load(active + replica)
    value = tl.load(values + place, real)
    change = tl.where(runs, tl.load(gradient + place, real), 0.0)
    if decays:
        change += value * tl.load(decay + replica)
    first = tl.load(mean + place, real)
    first += (1 - beta1) * (change - first)
    second = beta2 * tl.load(square + place, real) + (1 - beta2) * change * change
    tl.store(mean + place, first, real)
    tl.store(square + place, second, real)
    if amsgrad:
        second = tl.maximum(tl.load(largest + place, real), second)
        tl.store(largest + place, second, real)
    denominator = tl.sqrt_rn(second) / tl.sqrt_rn(tl.load(corrections + 1)) + eps
    step = first / denominator * (tl.load(lr + replica) / tl.load(corrections))
    if freezes:
        step = tl.where(tl.load(moves + place, real), step, 0.0)
    tl.store(values + place, value - tl.where(runs, step, 0.0), real)
