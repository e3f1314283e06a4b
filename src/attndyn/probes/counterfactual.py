"""Other attention for one text, the model left as it is (Jain and Wallace §4.2): shuffled, or as different as possible.

With two classes the model answers y = σ(Σ α_l γ_l), where γ_l is the vote of position l. So neither needs the model
again, and the adversary can be found exactly: the divergence JSD(α, α̂) is convex in α, and |y − ŷ| ≤ ε keeps Σ α γ
between two numbers, so it is largest in a corner of what is left of the simplex. Such a corner sits on one position, or
on two with Σ α γ at one of the bounds; all of them are tried. (The authors search by Adam from five random starts,
which can only find less.)
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

PAIRS, PAIRS_ON_GPU = 1 << 20, 1 << 25
"""Corners that are tried at once."""


def permuted_answers(
    alpha: Float[Tensor, "replica text key"],
    votes: Float[Tensor, "replica text key"],
    mask: Bool[Tensor, "text key"],
    count: int,
    seed: int = 0,
) -> Float[Tensor, "replica text count"]:
    """The probability of the second class under `count` random orders of each text's own weights; the orders are the
    same for every replica."""
    draw = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        keys = torch.rand(mask.shape, generator=draw).to(alpha.device).masked_fill(~mask, 2.0)
        order = keys.argsort(dim=1).expand_as(votes)  # real positions, which come first, among themselves
        found.append((alpha * votes.gather(2, order)).sum(dim=2).sigmoid())
    return torch.stack(found, dim=2)


def most_different(
    alpha: Float[Tensor, "text key"],
    votes: Float[Tensor, "text key"],
    mask: Bool[Tensor, "text key"],
    epsilon: float,
) -> tuple[Float[Tensor, "text key"], Float[Tensor, " text"]]:
    """The attention with the largest JSD from α among those whose answer is within ε of α's; and that JSD.

    Computed in float64, fastest where the texts are sorted by length. Padding must come last, with weight 0.
    """
    if not 0 <= epsilon <= 1:
        raise ValueError(f"ε lies between 0 and 1, not {epsilon}")
    limit = PAIRS_ON_GPU if alpha.is_cuda else PAIRS
    lengths, width = mask.sum(dim=1).cpu(), alpha.shape[1]
    found, start = [], 0
    while start < len(alpha):
        longest = lengths[start:].cummax(dim=0).values
        count = max(1, int((2 * longest.square() * torch.arange(1, len(longest) + 1) <= limit).sum()))
        rows, length = slice(start, start + count), int(longest[count - 1])
        part = [each[rows, :length] for each in (alpha.double(), votes.double(), mask)]
        found.append(_solve(part[0], part[1], part[2], epsilon))
        start += count
    wide = [torch.nn.functional.pad(each, (0, width - each.shape[1])) for each, _ in found]
    return torch.cat(wide).to(alpha.dtype), torch.cat([each for _, each in found]).to(alpha.dtype)


def _solve(
    alpha: Float[Tensor, "text key"], votes: Float[Tensor, "text key"], mask: Bool[Tensor, "text key"], epsilon: float
) -> tuple[Float[Tensor, "text key"], Float[Tensor, " text"]]:
    alpha = torch.where(mask, alpha, 0)
    votes = torch.where(mask, votes, 0)
    y = (alpha * votes).sum(dim=1).sigmoid()
    bounds = torch.stack([(y - epsilon).clamp_min(0).logit(), (y + epsilon).clamp_max(1).logit()])  # [bound, text]
    low, high = bounds[..., None, None]
    first, second = votes[:, :, None], votes[:, None, :]  # of position i and of position j
    # the weight of i at which a mixture of i and j has Σ α γ at the bound; i alone is a mixture of weight 1
    share = (bounds[..., None, None] - second) / (first - second)
    alone = torch.eye(votes.shape[1], dtype=torch.bool, device=votes.device)
    share = torch.where(alone, 1.0, share)
    allowed = (share >= 0) & (share <= 1) & torch.where(alone, (first >= low) & (first <= high), True)
    allowed &= mask[:, :, None] & mask[:, None, :]
    # at the bound itself the rounding of a corner may lie outside; a NaN share (equal votes) is no corner
    share = torch.where(allowed, share, 0)
    gain = _gain(share, alpha[:, :, None]) + torch.where(alone, 0, _gain(1 - share, alpha[:, None, :]))
    gain = torch.where(allowed, gain, -torch.inf)
    best, corner = gain.movedim(0, 1).flatten(1).max(dim=1)
    bound, pair = corner // gain[0, 0].numel(), corner % gain[0, 0].numel()
    i, j = pair // votes.shape[1], pair % votes.shape[1]
    weight = share[bound, torch.arange(len(alpha), device=alpha.device), i, j]
    other = torch.zeros_like(alpha)
    other.scatter_(1, j[:, None], (1 - weight)[:, None]).scatter_(1, i[:, None], weight[:, None])
    # where no corner is allowed for rounding (ε = 0 and equal votes), the text keeps its own attention
    stuck = best == -torch.inf
    divergence = torch.where(stuck, 0, best + math.log(2) / 2 * alpha.sum(dim=1))
    return torch.where(stuck[:, None], alpha, other), divergence


def _gain(p: Float[Tensor, "*any"], q: Float[Tensor, "*#any"]) -> Float[Tensor, "*any"]:
    """What weight p on a position adds to JSD(p, q), beside the ½ q ln 2 it would have with p = 0."""
    total = p + q
    return (torch.xlogy(p, p) + torch.xlogy(q, q) - torch.xlogy(total, total) + math.log(2) * p) / 2
