"""From captured attention to numbers: where it sits, and whether α, β and Δ agree."""

import torch
from jaxtyping import Bool, Float
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


class Agreed:
    """A(u, v) over all rows, with Â and an interval from resampling examples."""

    def __init__(
        self,
        u: Float[Tensor, "batch output key"],
        v: Float[Tensor, "batch output key"],
        mask: Bool[Tensor, "batch output key"],
    ) -> None:
        mask = mask & torch.isfinite(u) & torch.isfinite(v)
        # A row with one position agrees by construction.
        mask = mask & (mask.sum(dim=-1, keepdim=True) >= 2)
        self.n = int(mask.any(dim=-1).sum())
        self.mean = self.chance = self.low = self.high = float("nan")
        if not self.n:
            return
        u, v = u.masked_fill(~mask, 0), v.masked_fill(~mask, 0)
        rows = agreement.agreement(u, v, mask)
        self.mean, self.chance = rows.mean, agreement.chance(v, mask).mean
        self.low, self.high = _interval(rows.values.nanmean(dim=1))


def _interval(examples: Float[Tensor, " batch"]) -> tuple[float, float]:
    """95 % of the means of resampled examples; none from a single example."""
    values = examples[~examples.isnan()].cpu()
    if len(values) < 2:
        return float("nan"), float("nan")
    generator = torch.Generator().manual_seed(0)
    means = values[torch.randint(len(values), (2000, len(values)), generator=generator)].mean(dim=1)
    low, high = torch.quantile(means.double(), torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return low, high
