"""Do two scorings of the same input positions agree? (Snell et al. §3.1)

A row holds one score for each input position: α, β or Δ of one output word. All functions take whole batches of rows,
the positions on the last axis, and a mask that is False at padding. Nothing is read from a padded position, and a row
without any real position is padding itself.
"""

from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int8
from torch import Tensor

from attndyn.errors import UserError

PAIRS = 1 << 26
"""Of values that a GPU compares at once."""


class Undefined(ValueError):
    """A measure has no value in any row."""


class Rows(NamedTuple):
    """A measure of each row, and their mean over the rows that have a value."""

    values: Float[Tensor, "*rows"]
    """NaN where the measure is undefined, and where the row is padding."""
    n: int
    """Rows with a value."""
    n_undefined: int
    """Rows that are no padding and have no value: left out of the mean."""

    @property
    def mean(self) -> float:
        return self.values.nanmean().item()

    def mean_for_each(self, axis: int = 0) -> Float[Tensor, " kept"]:
        """The mean for each index of one axis, such as the replica's; NaN where no row of it has a value."""
        return self.values.movedim(axis, 0).flatten(1).nanmean(dim=1)


def agreement(u: Any, v: Any, mask: Any = None, percent: float | int = 5) -> Rows:
    """A(u, v): is the highest position of u among the highest 5 % of v? 1 or 0 for each row.

    A(u, v) = 1[|{j : v_j > v_i}| < 5 % · L] with i the first position where u is largest. The comparison is strict,
    so a tie in v counts as agreement: a constant v agrees with everything.
    """
    u, v, mask = _aligned(u, v, mask)
    enough = _share(percent) * mask.sum(dim=-1).to(torch.float64)
    u, v = torch.where(mask, u, -torch.inf), torch.where(mask, v, -torch.inf)
    largest, peak = u.max(dim=-1, keepdim=True)
    # Only a row of −∞ ties with its padding.
    peak = torch.where(largest == -torch.inf, mask.to(torch.uint8).argmax(dim=-1, keepdim=True), peak)
    above = (v > v.gather(-1, peak)).sum(dim=-1, dtype=torch.int32)
    return _collect((100 * above < enough).to(torch.float64), ~(largest[..., 0].isnan() | _has_nan(v)), mask)


def chance(v: Any, mask: Any = None, percent: float | int = 5) -> Rows:
    """Â: the expected agreement with v of scores in random order, exactly.

    The share of positions of v that would count as agreement: ⌈.05 L⌉ / L for a row without ties, more with them.
    """
    v, _, mask = _aligned(v, v, mask)
    length = mask.sum(dim=-1, keepdim=True).to(torch.float64)
    v = torch.where(mask, v, -torch.inf)
    # Position i counts if and only if v_i is at least the k-th largest value, k = ⌈.05 L⌉.
    k = torch.ceil(_share(percent) * length / 100).to(torch.int64).clamp_min(1)
    ordered = v.sort(dim=-1, descending=True).values
    counted = ((v >= ordered.gather(-1, (k - 1).expand(*v.shape[:-1], 1))) & mask).sum(dim=-1)
    return _collect(counted / length[..., 0], ~_has_nan(v), mask)


def shuffled_chance(v: Any, mask: Any = None, percent: float | int = 5, *, seed: int = 0) -> Rows:
    """Â as the authors estimate it: the agreement with v of one random order of the positions, for each row."""
    v, _, mask = _aligned(v, v, mask)
    order = torch.rand(v.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return agreement(order.to(v.device), v, mask, percent)


def kendall_tau(u: Any, v: Any, mask: Any = None) -> Rows:
    """Kendall's τ_b of each row: undefined for a single position and where u or v is constant."""
    u, v, mask = _aligned(u, v, mask)
    finite = ~(_has_nan(torch.where(mask, u, 0)) | _has_nan(torch.where(mask, v, 0)))
    # Positions first, and NaN where nothing is: it is neither larger nor smaller than anything, so a pair with a
    # padded position counts as tied in both.
    x, y = (torch.where(mask, each, torch.nan).reshape(-1, each.shape[-1]).T.contiguous() for each in (u, v))
    counts = torch.zeros(3, x.shape[1], dtype=torch.int32, device=x.device)
    # A CPU takes one position at a time, which stays in its cache; a GPU as many as fill it.
    block = max(1, PAIRS // x.numel()) if x.is_cuda else 1
    for i in range(0, len(x) - 1, block):
        rest, some = slice(i + 1, None), slice(i, i + block)
        in_x, in_y = (_order(each[rest], each[some, None]) for each in (x, y))
        both = torch.stack([in_x * in_y, in_x.abs(), in_y.abs()])
        if block > 1:
            place = torch.arange(len(x), device=x.device)
            both *= (place[rest] > place[some, None])[..., None]
        counts += both.sum(dim=(1, 2), dtype=torch.int32)
    concordant_minus_discordant, untied_in_x, untied_in_y = counts.to(torch.float64)
    tau = (concordant_minus_discordant / untied_in_x.sqrt() / untied_in_y.sqrt()).clamp(-1, 1)
    tau = tau.reshape(u.shape[:-1])
    return _collect(tau, finite & ~tau.isnan(), mask)


def tau_p_values(tau: Float[Tensor, "*rows"], lengths: Int[Tensor, "*#rows"]) -> Float[Tensor, "*rows"]:
    """The two-sided p of each τ of rows without ties: exact up to 33 positions, by the normal limit beyond, which is
    where SciPy changes over too. Of a row with ties it is close."""
    from scipy.special import erfc

    n = np.broadcast_to(lengths.cpu().numpy(), tau.shape).astype(np.int64)
    t = tau.double().cpu().numpy()
    pairs = n * (n - 1) / 2
    z = t * pairs / np.sqrt(np.maximum(n * (n - 1) * (2 * n + 5) / 18, 1))
    p = erfc(np.abs(z) / np.sqrt(2))
    inversions = np.rint((pairs - np.abs(np.nan_to_num(t)) * pairs) / 2).astype(np.int64)
    below = _inversions()
    few = n <= len(below) - 1
    exact = np.minimum(1, 2 * below[np.where(few, n, 0), np.where(few, inversions, 0)])
    return torch.as_tensor(np.where(np.isnan(t), np.nan, np.where(few, exact, p)), device=tau.device)


@cache
def _inversions(most: int = 33) -> np.ndarray:
    """[n, k]: the share of the orders of n things with at most k inversions."""
    shares = np.zeros((most + 1, most * (most - 1) // 2 + 1))
    shares[:2, 0] = 1
    for n in range(2, most + 1):
        for k in range(n * (n - 1) // 2 + 1):
            shares[n, k] = shares[n - 1, max(0, k - n + 1) : k + 1].sum() / n
    return shares.cumsum(axis=1)


def xi(threshold: Any, agreements: Any, performances: Any) -> Float[Tensor, "*thresholds"]:
    """ξ: the performance at the first checkpoint whose attention agrees with the gold attention more than `threshold`.

    `agreements` holds A(α, α(τ)) and `performances` p(τ), the checkpoints on the last axis; axes before it are seeds,
    whose means are taken first, as the authors do. NaN means never: no checkpoint passes, and that is an answer.
    """
    limit, curve, performance = (_numbers(each).to(torch.float64) for each in (threshold, agreements, performances))
    if curve.ndim == 0 or curve.shape != performance.shape or curve.numel() == 0:
        raise UserError(
            f"agreements and performances need the same seeds and checkpoints, not the shapes {[*curve.shape]} and "
            f"{[*performance.shape]}"
        )
    if any(bool(each.isnan().any()) for each in (limit, curve, performance)):
        raise UserError(
            "ξ needs a threshold, and an agreement and a performance at every checkpoint; one of them is NaN"
        )
    curve, performance = (each.reshape(-1, each.shape[-1]).mean(dim=0) for each in (curve, performance))
    passed = curve > limit[..., None]
    return torch.where(passed.any(dim=-1), performance[passed.to(torch.uint8).argmax(dim=-1)], torch.nan)


def xi_star(performances: Any, at: Literal["best", "last"] = "best") -> float:
    """ξ*: what ξ is measured against. The authors' program takes the best checkpoint, their text the last."""
    performance = _numbers(performances)
    if performance.ndim != 1 or performance.numel() == 0 or bool(performance.isnan().any()):
        raise UserError("ξ* needs the performance of one run at each checkpoint, without NaN")
    return (performance.amax() if at == "best" else performance[-1]).item()


def _order(later: Float[Tensor, "key row"], first: Float[Tensor, "some 1 row"]) -> Int8[Tensor, "some key row"]:
    """1 where `later` is larger than `first`, −1 where it is smaller, 0 where they are equal or one is NaN."""
    return (later > first).view(torch.int8) - (later < first).view(torch.int8)


def _numbers(values: Any) -> Tensor:
    """Any array of numbers, as floating point."""
    tensor = values.detach() if isinstance(values, Tensor) else torch.tensor(np.asarray(values))
    return tensor if tensor.is_floating_point() else tensor.to(torch.float64)


def _aligned(u: Any, v: Any, mask: Any) -> tuple[Tensor, Tensor, Bool[Tensor, "*#rows key"]]:
    """Scores in one shape, and a mask that fits them. An axis of length 1 is repeated, a missing one is a mistake: a
    mask [batch, key] would fit scores [batch, query, key] by accident where there are as many queries as examples."""
    u, v = _numbers(u), _numbers(v)
    mask = torch.ones((1,) * u.ndim) if mask is None else torch.as_tensor(mask)
    mask = mask.to(device=u.device, dtype=torch.bool)
    shapes = [[*each.shape] for each in (u, v, mask)]
    sizes = [sorted({*axis} - {1}) for axis in zip(*shapes, strict=False)]
    if u.ndim == 0 or len({*map(len, shapes)}) > 1 or any(len(size) > 1 for size in sizes):
        raise UserError(
            "two scorings and their mask need the same number of axes, of the same lengths or of length 1, with the "
            f"input positions last; these have the shapes {', '.join(map(str, shapes))}"
        )
    u, v = torch.broadcast_tensors(u, v.to(u.device))
    if u.numel() == 0:
        raise ValueError("there is no row to measure")
    return u, v, mask.expand(*mask.shape[:-1], u.shape[-1])


def _share(percent: float | int) -> float:
    if not 0 < percent <= 100:
        raise UserError(f"percent is above 0 and at most 100, not {percent}")
    return float(percent)


def _has_nan(scores: Float[Tensor, "*rows key"]) -> Bool[Tensor, "*rows"]:
    total = scores.sum(dim=-1).isnan()  # seven times as fast as a maximum, and also NaN of a row with both ∞ and −∞
    return scores.amax(dim=-1).isnan() if total.any() else total


def _collect(values: Float[Tensor, "*rows"], defined: Bool[Tensor, "*rows"], mask: Bool[Tensor, "*#rows key"]) -> Rows:
    real = mask.any(dim=-1).expand(values.shape)
    defined = defined & real
    n = int(defined.sum())
    if n == 0:
        raise Undefined(f"the measure is undefined in all of the {int(real.sum())} rows")
    return Rows(torch.where(defined, values, torch.nan), n, int(real.sum()) - n)
