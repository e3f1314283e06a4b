"""How good are the answers?"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn.errors import UserError


def require(fine: Bool[Tensor, ""], otherwise: str) -> None:
    """Raises unless `fine`. While a GPU records a graph no value can be looked at; the same work on the same masks has
    run once before (`kernels/graph.py`)."""
    if not (fine.is_cuda and torch.cuda.is_current_stream_capturing()) and not bool(fine):
        raise ValueError(otherwise)


def masked_mean(
    values: Float[Tensor, "replica batch query"] | Bool[Tensor, "replica batch query"],
    keep: Bool[Tensor, "replica batch query"] | None,
) -> Float[Tensor, " replica"]:
    """Mean over the positions that count; a replica without any raises, and is never 0."""
    if values[0].numel() == 0:
        raise ValueError("no position to average over")
    if keep is None:
        return values.to(torch.float32).mean(dim=(1, 2))
    counts = keep.sum(dim=(1, 2))
    require(counts.all(), "no position to average over")
    return torch.where(keep, values.to(torch.float32), 0.0).sum(dim=(1, 2)) / counts


def accuracy(
    logits: Float[Tensor, "replica batch query output"],
    target: Int[Tensor, "replica batch query"],
    mask: Bool[Tensor, "replica batch query"] | None = None,
) -> Float[Tensor, " replica"]:
    """Share of target positions whose likeliest output is the right one."""
    return masked_mean(logits.argmax(dim=-1) == target, mask)


def auc(votes: Float[Tensor, "replica text"], right: Bool[Tensor, " text"]) -> Float[Tensor, " replica"]:
    """The share of pairs of a text with the label and one without in which the first gets the larger vote; a tie is
    half a pair."""
    if right.all() or not right.any():
        raise UserError("all texts that are judged have one label: nothing tells them apart (no AUC)")
    own, others = votes[:, right].contiguous(), votes[:, ~right].sort(dim=1).values
    smaller, not_larger = (torch.searchsorted(others, own, side=side) for side in ("left", "right"))
    return (smaller + not_larger).double().mean(dim=1).float() / (2 * others.shape[1])
