"""Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011), computed with int64 tensors, whose products wrap modulo 2^64 on
the CPU and on CUDA alike."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

WORD = 0xFFFFFFFF
ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)


def philox(counter: Sequence[Tensor], key: Sequence[Tensor]) -> list[Tensor]:
    """Four words of counter and two of key (int64 tensors holding 32-bit values) to four random words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        product0, product1 = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            ((product1 >> 32) & WORD) ^ c1 ^ k0,
            product1 & WORD,
            ((product0 >> 32) & WORD) ^ c3 ^ k1,
            product0 & WORD,
        )
        k0, k1 = (k0 + WEYL[0]) & WORD, (k1 + WEYL[1]) & WORD
    return [c0, c1, c2, c3]


def words(
    seeds: Int[Tensor, " replica"], stream: int, steps: Int[Tensor, " step"], count: int, place: int = 0
) -> Int[Tensor, "replica step count"]:
    """`count` uniform 32-bit integers for each seed and step; `place` tells apart several draws of one stream. Key =
    (seed, stream), counter = (index, step, place, 0); each counter gives four words."""
    index = torch.arange(-(-count // 4), dtype=torch.int64, device=seeds.device)
    seed, step, index = torch.broadcast_tensors(seeds[:, None, None], steps[:, None], index)
    zero = torch.zeros_like(index)
    blocks = philox((index, step, zero + place, zero), (seed, zero + stream))
    return torch.stack(blocks, dim=-1).flatten(2)[:, :, :count]
