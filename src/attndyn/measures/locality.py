"""Does a position say what its own word says? Where the evidence for a keyword stands, and what hidden states hold."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn.measures.scores import masked_mean


def around(
    gamma: Float[Tensor, "replica batch key"],
    place: Int[Tensor, "replica batch 1"],
    keep: Bool[Tensor, "replica batch 1"],
) -> dict[str, Float[Tensor, " replica"]]:
    """γ at a place, at the next one, on average and at the last one: means over the examples that count."""
    inside = place.clamp(0, gamma.shape[2] - 2)
    values = {
        "keyword": gamma.gather(2, inside),
        "next": gamma.gather(2, inside + 1),
        "mean": gamma.mean(dim=2, keepdim=True),
        "last": gamma[:, :, -1:],
    }
    return {name: masked_mean(value, keep) for name, value in values.items()}


def explained(
    states: Float[Tensor, "replica batch key states"], words: Int[Tensor, "replica batch key"], kinds: int, offset: int
) -> Float[Tensor, " replica"]:
    """The share of the variance of the states h_l that knowing the word at l + offset explains (ε²: what as many
    groups would explain by chance is taken off)."""
    length = words.shape[2]
    at = slice(max(0, -offset), length - max(0, offset))
    of = slice(max(0, offset), length - max(0, -offset))
    held = states[:, :, at].flatten(1, 2)
    group = words[:, :, of].flatten(1, 2)
    held = held - held.mean(dim=1, keepdim=True)
    member = (group[..., None] == torch.arange(kinds, device=group.device)).to(held.dtype)
    counts = member.sum(dim=1)
    sums = member.transpose(1, 2) @ held
    total = held.square().sum(dim=(1, 2))
    between = (sums.square().sum(dim=2) / counts.clamp_min(1)).sum(dim=1)
    present = (counts > 0).sum(dim=1)
    within = (total - between) / (held.shape[1] - present)
    return (between - (present - 1) * within) / total
