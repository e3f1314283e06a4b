"""Chunks: runs of words with one kind of tag, and how many of them are found (Tjong Kim Sang and Buchholz 2000).

A chunk begins at B-X, and at I-X behind anything but B-X or I-X; it ends before the next chunk, O or the end. It is
right if it begins and ends where a true chunk of the same kind does.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

OUTSIDE, BEGIN, INSIDE = 0, 1, 2


class Counts(NamedTuple):
    """Of chunks, for each replica."""

    right: Int[Tensor, " replica"]
    found: Int[Tensor, " replica"]
    there: Int[Tensor, " replica"]


class Spans(NamedTuple):
    starts: Bool[Tensor, "replica batch length"]
    kinds: Int[Tensor, "replica batch length"]
    ends: Int[Tensor, "replica batch length"]  # of the chunk that a position lies in: its last position


def count(
    predicted: Int[Tensor, "replica batch length"],
    true: Int[Tensor, "replica batch length"],
    tags: Sequence[str],
    mask: Bool[Tensor, "replica batch length"] | None = None,
) -> Counts:
    """Tags are numbers into `tags`; those that do not begin with B- or I- lie outside of chunks."""
    ours, theirs = (spans(one, tuple(tags), mask) for one in (predicted, true))
    right = ours.starts & theirs.starts & (ours.kinds == theirs.kinds) & (ours.ends == theirs.ends)
    return Counts(*(those.sum(dim=(1, 2)) for those in (right, ours.starts, theirs.starts)))


def spans(
    ids: Int[Tensor, "replica batch length"], tags: tuple[str, ...], mask: Bool[Tensor, "replica batch length"] | None
) -> Spans:
    place_of, kind_of = tables(tags, ids.device)
    place, kind = place_of[ids], kind_of[ids]
    if mask is not None:
        place = torch.where(mask, place, OUTSIDE)
    inside = place != OUTSIDE
    continues = torch.zeros_like(inside)
    continues[..., 1:] = (place[..., 1:] == INSIDE) & inside[..., :-1] & (kind[..., 1:] == kind[..., :-1])
    last = torch.ones_like(inside)
    last[..., :-1] = ~continues[..., 1:]
    position = torch.arange(ids.shape[-1], device=ids.device)
    ends = torch.where(last, position, ids.shape[-1])
    return Spans(inside & ~continues, kind, ends.flip(-1).cummin(dim=-1).values.flip(-1))


@cache
def tables(tags: tuple[str, ...], device: torch.device) -> tuple[Int[Tensor, " tag"], Int[Tensor, " tag"]]:
    """Place (outside, begin, inside) and kind of each tag. Kept: while a GPU records, nothing can be copied to it."""
    kinds = sorted({tag[2:] for tag in tags if tag[:2] in ("B-", "I-")})
    place = [{"B-": BEGIN, "I-": INSIDE}.get(tag[:2], OUTSIDE) for tag in tags]
    kind = [kinds.index(tag[2:]) if tag[:2] in ("B-", "I-") else -1 for tag in tags]
    return torch.tensor(place, device=device), torch.tensor(kind, device=device)


def f1(
    right: Float[Tensor, " replica"], found: Float[Tensor, " replica"], there: Float[Tensor, " replica"]
) -> Float[Tensor, " replica"]:
    """2 right / (found + there): 0 where no chunk is found, NaN where there is none either. It does not matter what the
    counts were divided by."""
    return 2 * right / (found + there)
