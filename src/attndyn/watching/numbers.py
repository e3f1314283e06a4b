"""From captured attention to numbers: where it sits, and whether α, β and Δ agree."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn.measures import agreement, focus
from attndyn.watching.tap import Call


def real_queries(call: Call, mask: Tensor | None = None) -> Bool[Tensor, "batch query"]:
    """Queries that are no padding. In self-attention these are the positions that someone may look at; otherwise all,
    unless a mask [batch, query] says more."""
    batch, _, queries, keys = call.weights.shape
    if mask is not None and mask.shape == (batch, queries):
        return mask.to(call.mask.device, torch.bool)
    looked_at = call.mask.any(dim=1).any(dim=1)
    return looked_at if queries == keys else torch.ones_like(call.mask[:, 0, :, 0])


def where_it_sits(call: Call, queries: Bool[Tensor, "batch query"]) -> dict[str, Float[Tensor, " head"]]:
    """For each head, over the real queries that have a choice of at least two positions. NaN: no query has one.

    entropy: over the logarithm of the number of positions it may look at; 1 = uniform, 0 = one position.
    sharpness: the largest weight. distance: Σ_l α_l |t − l|, in positions, where there is more than one query.
    """
    weights = call.weights.transpose(0, 1)  # head first
    mask = call.mask.transpose(0, 1)
    heads, batch, length, keys = weights.shape
    counts = queries[None] & (mask.sum(dim=-1) >= 2)
    nothing = ~counts.flatten(1).any(dim=1)
    rows = weights.reshape(heads, batch * length, 1, keys)
    real = (counts | nothing[:, None, None]).reshape(heads, -1, 1)
    some = mask.reshape(heads, batch * length, keys) | nothing[:, None, None]
    found = {"sharpness": focus.masked_mean(rows.amax(dim=-1), real)}
    if keys > 1:
        found["entropy"] = focus.normalised_entropy(rows, some, real)
    if length > 1:
        place = torch.arange(keys, device=weights.device)
        apart = (torch.arange(length, device=weights.device)[:, None] - place).abs().to(weights.dtype)
        found["distance"] = focus.masked_mean((weights * apart).sum(dim=-1).reshape(heads, -1, 1), real)
    return {name: value.masked_fill(nothing, torch.nan) for name, value in found.items()}


def rows_for(
    call: Call, outputs: int, query: int | None, queries: Bool[Tensor, "batch query"]
) -> Float[Tensor, "head batch output key"]:
    """The α that belongs to each output: that of its own query; of the named query; or, where one output is read from
    many queries, the mean over them."""
    weights = call.weights.transpose(0, 1)
    if query is not None:
        return weights[:, :, query].unsqueeze(2)
    if weights.shape[2] == outputs:
        return weights
    real = queries[None, :, :, None]
    return ((weights * real).sum(dim=2) / real.sum(dim=2).clamp_min(1)).unsqueeze(2)


class Agreed(NamedTuple):
    """A(u, v) over all rows, with Â and an interval from resampling examples. NaN: there is no row."""

    mean: float
    chance: float
    low: float
    high: float
    n: int
    """Rows that were compared."""


Pair = tuple[Float[Tensor, "_ _ _"], Float[Tensor, "_ _ _"], Bool[Tensor, "_ _ _"]]
"""u, v, and where both are to be compared: [batch, output, key]."""


def agree(pairs: Sequence[Pair]) -> list[Agreed]:
    """A(u, v) of each pair; all pairs of one shape at once."""
    found = [Agreed(torch.nan, torch.nan, torch.nan, torch.nan, 0)] * len(pairs)
    shapes = {u.shape: [i for i, other in enumerate(pairs) if other[0].shape == u.shape] for u, _, _ in pairs}
    for places in shapes.values():
        u, v = (torch.stack([pairs[i][side].cpu().double() for i in places]) for side in (0, 1))
        mask = torch.stack([pairs[i][2].cpu() for i in places]) & torch.isfinite(u) & torch.isfinite(v)
        # A row with one position agrees by construction.
        mask = mask & (mask.sum(dim=-1, keepdim=True) >= 2)
        counts = mask.any(dim=-1).flatten(1).sum(dim=1)
        if not counts.any():
            continue
        u, v = u.masked_fill(~mask, 0), v.masked_fill(~mask, 0)
        rows = agreement.agreement(u, v, mask)
        expected = agreement.chance(v, mask).mean_for_each()
        intervals = _intervals(rows.values.nanmean(dim=2))
        numbers = zip(
            rows.mean_for_each().tolist(), expected.tolist(), *intervals.T.tolist(), counts.tolist(), strict=True
        )
        for place, values in zip(places, numbers, strict=True):
            found[place] = Agreed(*values)
    return found


def _intervals(examples: Float[Tensor, "pair batch"]) -> Float[Tensor, "pair end"]:
    """95 % of the means of resampled examples; NaN from a single example."""
    found = torch.full((len(examples), 2), torch.nan, dtype=torch.float64)
    real = ~examples.isnan()
    for count in real.sum(dim=1).unique().tolist():
        if count >= 2:
            chosen = real.sum(dim=1) == count
            values = examples[chosen][real[chosen]].reshape(-1, count).double()
            means = values[:, _draws(count)].mean(dim=-1)
            found[chosen] = torch.quantile(means, torch.tensor([0.025, 0.975], dtype=torch.float64), dim=1).T
    return found


@functools.cache
def _draws(count: int) -> Int[Tensor, "time draw"]:
    return torch.randint(count, (2000, count), generator=torch.Generator().manual_seed(0))
