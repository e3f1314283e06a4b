"""Where does a weighting of the source positions sit: its entropy, its peak and its mass.

`align` holds the right source position of each target position; `offset` shifts it. A target position whose
shifted source position lies outside the source is left out.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn.measures.scores import masked_mean, require


def _shifted(
    align: Int[Tensor, "replica batch query"],
    offset: int,
    keys: int,
    source_mask: Bool[Tensor, "replica batch key"] | None,
    target_mask: Bool[Tensor, "replica batch query"] | None,
) -> tuple[Int[Tensor, "replica batch query"], Bool[Tensor, "replica batch query"]]:
    """The source position looked at, and whether it exists."""
    position = align + offset
    exists = (position >= 0) & (position < keys)
    position = position.clamp(0, keys - 1)
    if source_mask is not None:
        exists &= source_mask.gather(2, position)
    return position, exists if target_mask is None else exists & target_mask


def normalised_entropy(
    alpha: Float[Tensor, "replica batch query key"],
    source_mask: Bool[Tensor, "replica batch key"] | None = None,
    target_mask: Bool[Tensor, "replica batch query"] | None = None,
) -> Float[Tensor, " replica"]:
    """Entropy of α over the logarithm of the source length: 1 = uniform, 0 = one position."""
    entropy = -torch.xlogy(alpha, alpha).sum(dim=-1)
    if source_mask is None:
        length = torch.full_like(entropy[:, :, :1], alpha.shape[-1])
    else:
        length = source_mask.sum(dim=-1, keepdim=True).to(alpha.dtype)
    counts = torch.ones_like(entropy, dtype=torch.bool) if target_mask is None else target_mask
    require(~((length < 2) & counts).any(), "the entropy of attention over fewer than two positions is not defined")
    return masked_mean(entropy / length.clamp_min(2).log(), target_mask)


def peak_share(
    values: Float[Tensor, "replica batch query key"],
    align: Int[Tensor, "replica batch query"],
    offset: int = 0,
    source_mask: Bool[Tensor, "replica batch key"] | None = None,
    target_mask: Bool[Tensor, "replica batch query"] | None = None,
) -> Float[Tensor, " replica"]:
    """Share of target positions where the value at the right source position exceeds all others; a tie does not."""
    position, counts = _shifted(align, offset, values.shape[-1], source_mask, target_mask)
    index = position[..., None]
    rivals = values.scatter(-1, index, -torch.inf)
    if source_mask is not None:
        rivals = rivals.masked_fill(~source_mask[:, :, None], -torch.inf)
    return masked_mean(values.gather(-1, index)[..., 0] > rivals.amax(dim=-1), counts)


def peak_on_word(
    values: Float[Tensor, "replica batch query key"],
    source: Int[Tensor, "replica batch key"],
    align: Int[Tensor, "replica batch query"],
    source_mask: Bool[Tensor, "replica batch key"] | None = None,
    target_mask: Bool[Tensor, "replica batch query"] | None = None,
) -> Float[Tensor, " replica"]:
    """As `peak_share`, where any source position that holds the right word will do: the same unless words repeat."""
    right = source.gather(2, align)[..., None] == source[:, :, None]
    best, rivals = (values.masked_fill(hidden, -torch.inf) for hidden in (~right, right))
    if source_mask is not None:
        best, rivals = (part.masked_fill(~source_mask[:, :, None], -torch.inf) for part in (best, rivals))
    return masked_mean(best.amax(dim=-1) > rivals.amax(dim=-1), target_mask)


def mass(
    alpha: Float[Tensor, "replica batch query key"],
    align: Int[Tensor, "replica batch query"],
    offset: int = 0,
    source_mask: Bool[Tensor, "replica batch key"] | None = None,
    target_mask: Bool[Tensor, "replica batch query"] | None = None,
) -> Float[Tensor, " replica"]:
    """Mean attention on the right source position, shifted by `offset`."""
    position, counts = _shifted(align, offset, alpha.shape[-1], source_mask, target_mask)
    return masked_mean(alpha.gather(-1, position[..., None])[..., 0], counts)


def mass_on_last(
    alpha: Float[Tensor, "replica batch query key"],
    source_mask: Bool[Tensor, "replica batch key"] | None = None,
    target_mask: Bool[Tensor, "replica batch query"] | None = None,
) -> Float[Tensor, " replica"]:
    """Mean attention on the last source token (the end token of the copying tasks)."""
    if source_mask is None:
        return masked_mean(alpha[..., -1], target_mask)
    last = (source_mask.sum(dim=-1) - 1).clamp_min(0)[:, :, None, None].expand(*alpha.shape[:3], 1)
    return masked_mean(alpha.gather(-1, last)[..., 0], target_mask)


def mean_state_spread(states: Float[Tensor, "replica batch key hidden"]) -> Float[Tensor, " replica"]:
    """Root-mean-square spread over inputs of the mean state, relative to the spread of single states.

    0: every input has the same mean state. 1/√L: the L states of an input are as good as independent.
    """
    centred = states - states.mean(dim=(1, 2), keepdim=True)
    of_means = centred.mean(dim=2).square().sum(dim=-1).mean(dim=1)
    of_states = centred.square().sum(dim=-1).mean(dim=(1, 2))
    return (of_means / of_states).sqrt()
