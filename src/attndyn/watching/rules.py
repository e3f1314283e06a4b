"""Interventions: other attention in a model's place, for measuring or for training under it.

with attndyn.attention(model, attndyn.uniform()):
    loss = model(**batch).loss
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attndyn.errors import UserError, nearest
from attndyn.models.rules import Uniform
from attndyn.watching.tap import Place, Rule, Tap, folded
from attndyn.watching.undisturbed import bare


class Cell(NamedTuple):
    """Where to intervene. None means all: every layer, head or query."""

    layer: str | int | None = None
    """The module's name, or its place in the order of the forward pass."""
    head: int | None = None
    query: int | None = None


def uniform() -> Rule:
    """The same weight on every position that may be looked at."""
    return lambda place, scores, mask: folded(Uniform(), scores, mask)


def given(weights: Any) -> Rule:
    """These weights: [batch, head, query, key], or axes of length 1, or fewer axes on the left. They are taken as they
    are, also if a row does not sum to 1, as after dropout."""
    tensor = torch.as_tensor(weights)
    if not ((tensor >= 0) & tensor.isfinite()).all():
        raise UserError("given attention must be weights of at least 0, and finite")

    def rule(place: Place, scores: Tensor, mask: Tensor) -> Tensor:
        part = tensor
        if place.head is not None and part.ndim > 2 and part.shape[-3] > 1:
            part = part[..., place.head : place.head + 1, :, :]
        if part.ndim > 1 and part.shape[-2] > scores.shape[2]:
            part = part[..., place.first_query : place.first_query + scores.shape[2], :]
        try:
            return part.to(scores).expand(scores.shape)
        except RuntimeError:
            raise UserError(
                f"given attention of the shape {[*tensor.shape]} does not fit the {[*scores.shape]} of {place.layer}"
            ) from None

    return rule


def only(rule: Rule, cell: Cell, layers: Sequence[str] | None = None, *, fill: bool = False) -> Rule:
    """The rule at that cell, and learned attention everywhere else; `fill`: also where the rule gives no weight."""
    if isinstance(cell.layer, int) and layers is None:
        raise ValueError("a layer by its place needs the layers' names")
    layer = cell.layer if layers is None else layer_name(cell.layer, layers)

    def restricted(place: Place, scores: Tensor, mask: Tensor) -> Tensor:
        learned = place.usual(place, scores, mask)
        if layer not in (None, place.layer):
            return learned
        _, heads, queries, _ = scores.shape
        if cell.head is not None and not -heads <= cell.head < heads:
            raise UserError(f"{place.layer} has {heads} heads, so there is no head {cell.head}")
        query = cell.query
        if query is not None and query >= 0:
            query -= place.first_query
            if not 0 <= query < queries:
                return learned
        at = (slice(None), _one(cell.head, heads), _one(query, queries))
        there = place._replace(first_query=place.first_query + at[2].start, head=cell.head and cell.head % heads)
        weights = rule(there, scores[at], mask[at])
        if fill:
            weights = torch.where(weights.any(dim=-1, keepdim=True), weights, learned[at])
        mixed = learned.clone()
        mixed[at] = weights
        return mixed

    return restricted


def _one(index: int | None, count: int) -> slice:
    return slice(0, count) if index is None else slice(index % count, index % count + 1)


def layer_name(layer: str | int | None, layers: Sequence[str]) -> str | None:
    if isinstance(layer, int):
        if not -len(layers) <= layer < len(layers):
            raise UserError(f"there are {len(layers)} attention layers, so there is no layer {layer}")
        return layers[layer]
    if layer is not None and layer not in layers:
        raise UserError(f"there is no attention layer {layer!r}; {nearest(layer, layers)}")
    return layer


@contextlib.contextmanager
def attention(
    model: nn.Module, rule: Rule, *, layer: str | None = None, head: int | None = None, query: int | None = None
) -> Iterator[None]:
    """Inside, the model attends by this rule, in training as in evaluation; `layer` (a module's name), `head` and
    `query` restrict it, and elsewhere attention stays learned. Raises at the end if the model ran and the rule never
    applied."""
    inner = bare(model)
    cell = Cell(layer, head, query)
    names = [name for name, _ in inner.named_modules()]
    if layer is not None and layer.split(" (call")[0] not in names:
        raise UserError(f"the model has no module {layer!r}; {nearest(layer, [name for name in names if name])}")
    if isinstance(layer, str) or cell != Cell():
        rule = only(rule, cell)
    with Tap(inner, rule, keep=False) as tap:
        yield
    if not tap.passes:
        return
    if not tap.queries:
        raise UserError(f"no attention ran in {type(inner).__name__}, so the rule was never applied")
    if layer is not None and layer not in tap.queries:
        raise UserError(f"no attention ran in {layer!r}; {nearest(layer, list(tap.queries))}")
    most = max(count for name, count in tap.queries.items() if layer in (None, name))
    if query is not None and not -most <= query < most:
        raise UserError(f"there are {most} queries, so there is no query {query}")
