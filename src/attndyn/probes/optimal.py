"""The best attention α_opt of a model with a linear head (Snell et al. A.1).

With logits Σ_l α_l γ_l + γ_s the loss −log p(right output) is convex in α, so the best point of the simplex can be
found, and proved to be the best: with the gradient g at α, no attention has a loss lower by more than the Frank-Wolfe
gap Σ_l α_l g_l − min_l g_l. Each solution comes with that gap.

α_opt need not sit where the lexical probe β is largest. The paper's example: three input and three output words,
γ = (0, 0, 0), (0, −10, 5), (0, 5, −10), γ_s = 0, the first output is right. Then β is ⅓ at the first position and about
e⁻⁵ at the others, yet α_opt = (0, ½, ½): two positions wrong in opposite ways give p = 1 / (1 + 2 e^−2.5) = .859.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Examples are solved in slices of about this many logits, so that an easy slice stops early and memory stays small.
SLICE, SLICE_ON_GPU = 1 << 21, 1 << 27
GROWTH, LONGEST = 1.1, 1e6  # of the step size: after each step, and at most


class Optimum(NamedTuple):
    """The best attention of each query, and how good it is for certain. NaN for a padded query."""

    alpha: Float[Tensor, "*batch query key"]
    loss: Float[Tensor, "*batch query"]
    """−log p of the right output under `alpha`, computed in float64."""
    gap: Float[Tensor, "*batch query"]
    """No attention has a loss below `loss − gap`; computed in float64."""
    converged: Bool[Tensor, "*batch query"]
    """Whether the gap is at most the tolerance; a padded query counts as converged."""


@torch.no_grad()
def optimal_attention(
    values: Float[Tensor, "*batch key output"],
    base: Float[Tensor, "*batch query output"],
    target: Int[Tensor, "*batch query"],
    mask: Bool[Tensor, "*batch key"] | None = None,
    target_mask: Bool[Tensor, "*batch query"] | None = None,
    *,
    tolerance: float = 1e-4,
    iterations: int = 2000,
) -> Optimum:
    """The attention that minimises −log softmax(α · values + base)[target], for every query of every example.

    `values` holds the logits γ_l that each input position adds, `base` the logits γ_s without any. A query that is not
    solved after `iterations` is returned as it is, with its gap and `converged` False; in float32 this happens where
    the logits are so large that the gap drowns in rounding.
    """
    keys, outputs = values.shape[-2:]
    batch, queries = target.shape[:-1], target.shape[-1]
    mask = torch.ones_like(values[..., 0], dtype=torch.bool) if mask is None else mask
    target_mask = torch.ones_like(target, dtype=torch.bool) if target_mask is None else target_mask
    target_mask, target = target_mask.reshape(-1, queries), target.reshape(-1, queries)
    mask, values, base = mask.reshape(-1, keys), values.reshape(-1, keys, outputs), base.reshape(-1, queries, outputs)
    if bool((~mask.any(dim=-1) & target_mask.any(dim=-1)).any()):
        raise ValueError("there is no best attention over no input position")

    size = (SLICE_ON_GPU if values.is_cuda else SLICE) // (outputs * max(keys, queries)) or 1
    solved = []
    for start in range(0, len(target), size):
        part = slice(start, start + size)
        problem = values[part], base[part], target[part], mask[part], target_mask[part]
        solved.append(_solve(*problem, tolerance, iterations))
    alpha, loss, gap = (torch.cat(parts) for parts in zip(*solved, strict=True))
    alpha, loss, gap = (each.reshape(*batch, *each.shape[1:]) for each in (alpha, loss, gap))
    return Optimum(alpha, loss, gap, ~(gap > tolerance))


def _solve(
    values: Float[Tensor, "batch key output"],
    base: Float[Tensor, "batch query output"],
    target: Int[Tensor, "batch query"],
    mask: Bool[Tensor, "batch key"],
    target_mask: Bool[Tensor, "batch query"],
    tolerance: float,
    iterations: int,
) -> tuple[Float[Tensor, "batch query key"], Float[Tensor, "batch query"], Float[Tensor, "batch query"]]:
    """Accelerated projected gradient (Beck and Teboulle 2009) with a step size for each query, found by halving, and a
    restart where the momentum points uphill (O'Donoghue and Candès 2015). The point of the smallest gap is kept."""
    values = values.masked_fill(~mask[..., None], 0)
    base = base.masked_fill(~target_mask[..., None], 0)
    target = target.masked_fill(~target_mask, 0)
    if not bool(values.isfinite().all() & base.isfinite().all()):
        raise ValueError("the best attention needs finite logits")
    real = mask[:, None]  # [batch, 1, key]
    ahead = _project(torch.zeros(*target.shape, mask.shape[-1], dtype=values.dtype, device=values.device), real)
    alpha = best = ahead
    best_gap = torch.where(target_mask, torch.inf, 0.0).to(values.dtype)
    momentum = step = torch.ones_like(ahead[..., :1])
    for _ in range(iterations):
        _, gradient, gap, p = _evaluate(ahead, values, base, target, real)
        better = gap < best_gap
        best, best_gap = torch.where(better[..., None], ahead, best), torch.where(better, gap, best_gap)
        # Half the tolerance: the last word is a gap in float64.
        open_ = (best_gap > tolerance / 2)[..., None]
        if not bool(open_.any()):
            break
        while True:
            following = _project(ahead - step * gradient, real)
            move = following - ahead
            allowed = move.square().sum(dim=-1) / (2 * step[..., 0])
            # Written so that an overflow, NaN, counts as too long.
            too_long = ~(_excess(p, move @ values) <= allowed)[..., None] & open_
            if not bool(too_long.any()):
                break
            step = torch.where(too_long, step / 2, step)
        uphill = ((ahead - following) * (following - alpha)).sum(dim=-1, keepdim=True) > 0
        next_momentum = torch.where(uphill, 1.0, (1 + (1 + 4 * momentum.square()).sqrt()) / 2)
        push = torch.where(uphill, 0.0, (momentum - 1) / next_momentum)
        ahead = _project(following + push * (following - alpha), real)
        alpha, momentum = following, next_momentum
        step = torch.where(open_, (step * GROWTH).clamp_max(LONGEST), step)

    best = best / best.sum(dim=-1, keepdim=True)
    loss, _, gap, _ = _evaluate(best.double(), values.double(), base.double(), target, real)
    loss, gap = (torch.where(target_mask, each, torch.nan) for each in (loss, gap))
    return torch.where(target_mask[..., None], best, torch.nan), loss, gap


def _evaluate(
    alpha: Float[Tensor, "batch query key"],
    values: Float[Tensor, "batch key output"],
    base: Float[Tensor, "batch query output"],
    target: Int[Tensor, "batch query"],
    real: Bool[Tensor, "batch 1 key"],
) -> tuple[
    Float[Tensor, "batch query"],
    Float[Tensor, "batch query key"],
    Float[Tensor, "batch query"],
    Float[Tensor, "batch query output"],
]:
    """Loss, its gradient in α, the Frank-Wolfe gap and the probabilities of the outputs."""
    log_p = (alpha @ values + base).log_softmax(dim=-1)
    p = log_p.exp()
    right = values.gather(-1, target[:, None].expand(-1, values.shape[1], -1)).mT  # [batch, query, key]
    gradient = p @ values.mT - right
    gap = (alpha * gradient).sum(dim=-1) - torch.where(real, gradient, torch.inf).amin(dim=-1)
    return -log_p.gather(-1, target[..., None])[..., 0], gradient, gap, p


def _excess(
    p: Float[Tensor, "batch query output"], change: Float[Tensor, "batch query output"]
) -> Float[Tensor, "batch query"]:
    """By how much the loss lies above its tangent after the logits changed: log Σ p exp(change − mean change), less
    what rounding may have added. As a difference of two losses it would drown in their rounding."""
    change = change - (p * change).sum(dim=-1, keepdim=True)
    rounding = 8 * torch.finfo(p.dtype).eps * (p * change.abs()).sum(dim=-1)
    return (p * change.expm1()).sum(dim=-1).log1p() - rounding


def _project(
    point: Float[Tensor, "batch query key"], real: Bool[Tensor, "batch 1 key"]
) -> Float[Tensor, "batch query key"]:
    """The nearest point of the simplex over the real positions (Held, Wolfe and Crowder 1974)."""
    point = torch.where(real, point, -torch.inf)
    point = point - point.amax(dim=-1, keepdim=True)
    ordered = point.sort(dim=-1, descending=True).values
    excess = ordered.cumsum(dim=-1) - 1
    rank = torch.arange(1, point.shape[-1] + 1, device=point.device)
    support = (ordered * rank > excess).sum(dim=-1, keepdim=True)
    return (point - excess.gather(-1, support - 1) / support).clamp_min(0)
