"""The influence Δ of each input word on an answer: by gradient, or by leaving it out.

Snell et al. §5.1 measure both in units of the loss: by how much −log p of the right answer would rise without the word.
The gradient gives this to first order, as if the word's vector were multiplied by a number that goes from 1 to 0:
Δ = −e · ∂(−log p)/∂e. Jain and Wallace §4.1 ask how much the answer itself moves, whatever is right: |e · ∂p/∂e| with
the attention held still, and |p without the word − p|.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from attndyn.models.base import Model
from attndyn.models.classifier import ClassifierModel
from attndyn.models.rules import AttentionRule, attend
from attndyn.probes.lexical import log_odds
from attndyn.tasks.sampler import Batch

CACHED = 1 << 12
"""Words of all replicas that are followed at once where the states of the whole example serve."""


def surprise(
    logits: Float[Tensor, "replica batch query output"], target: Int[Tensor, "replica batch query"]
) -> Float[Tensor, "replica batch query"]:
    """−log p of the right answers; where p rounds to 1, it and its gradient are small and not 0."""
    return F.softplus(-log_odds(logits, target))


def doubt(
    logits: Float[Tensor, "replica batch query output"], target: Int[Tensor, "replica batch query"]
) -> Float[Tensor, "replica batch query"]:
    """1 − p of these answers, which moves as p does and does not round to a constant where p is close to 1."""
    return (-log_odds(logits, target)).sigmoid()


def gradient_influence(
    model: Model, rule: AttentionRule, batch: Batch
) -> tuple[Float[Tensor, "replica batch key"], Any, Tensor, Tensor]:
    """Δ of every input word on all answers of its example together; and the states, α and logits of that pass."""
    with torch.enable_grad(), parameters_fixed(model):
        embedded = model.embed(batch).detach().requires_grad_()
        states = model.encode_vectors(batch, embedded)
        alpha = attend(rule, model.scores(states), batch)
        logits = model.read(states, alpha)
        losses = surprise(logits, batch.target)
        if batch.target_mask is not None:
            losses = torch.where(batch.target_mask, losses, 0)
        (gradient,) = torch.autograd.grad(losses.sum(), embedded)
    delta = -(gradient * embedded.detach()).sum(dim=-1)
    return delta, type(states)(*(each.detach() for each in states)), alpha.detach(), logits.detach()


def answer_influence(
    model: Model, rule: AttentionRule, batch: Batch
) -> tuple[Float[Tensor, "replica batch key"], Tensor, Tensor]:
    """|e · ∂p/∂e| of every input word, p being the probability of the likeliest answer (with two answers, of either),
    with the attention held still; and α and the logits of that pass."""
    with torch.enable_grad(), parameters_fixed(model):
        embedded = model.embed(batch).detach().requires_grad_()
        states = model.encode_vectors(batch, embedded)
        alpha = attend(rule, model.scores(states), batch).detach()
        logits = model.read(states, alpha)
        doubts = doubt(logits, logits.argmax(dim=-1))
        (gradient,) = torch.autograd.grad(doubts.sum(), embedded)
    return (gradient * embedded.detach()).sum(dim=-1).abs(), alpha, logits.detach()


@contextlib.contextmanager
def parameters_fixed(model: Model) -> Iterator[None]:
    """No gradient of a parameter is computed inside: a third of the way back is saved."""
    moving = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in moving:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in moving:
            parameter.requires_grad_(True)


@torch.no_grad()
def leave_one_out(
    model: Model,
    rule: AttentionRule,
    batch: Batch,
    tokens: int,
    of: Callable[[Tensor, Tensor], Tensor] = surprise,
) -> Float[Tensor, "replica batch key"]:
    """Δ of every input word by running the example without it; 0 at padding. `tokens` are read at once. `of` says what
    of the logits and the targets changes; its difference is given."""
    length = batch.source.shape[2]
    mask = torch.ones_like(batch.source, dtype=torch.bool) if batch.source_mask is None else batch.source_mask
    if length < 2:
        raise ValueError("a text of one word has nothing to leave out")
    logits, _ = model(batch, rule)
    whole = of(logits, batch.target).sum(dim=-1)
    delta = torch.zeros_like(batch.source, dtype=whole.dtype)
    masked = replace(batch, source_mask=mask)
    if isinstance(model, ClassifierModel) and not batch.source.is_cuda:
        without = shared(model, rule, masked, tokens)
    else:
        without = each_again(model, rule, masked, tokens)
    for row, place, target, logits in without:
        delta[:, row, place] = of(logits, target).sum(dim=-1) - whole[:, row]
    return delta


Without = tuple[Int[Tensor, " row"], Int[Tensor, " row"], Tensor, Tensor]
"""Examples, the place of the word that is left out of each, their targets, and their logits without it."""


def each_again(model: Model, rule: AttentionRule, batch: Batch, tokens: int) -> Iterator[Without]:
    """Reads every example again for each of its words."""
    rows, places = _words(batch)
    size = max(1, tokens // (len(batch.source) * batch.source.shape[2]))
    for start in range(0, len(rows), size):
        row, place = rows[start : start + size], places[start : start + size]
        without, _ = _without(batch, row, place)
        logits, _ = model(without, rule)
        yield row, place, without.target, logits


def shared(model: ClassifierModel, rule: AttentionRule, batch: Batch, tokens: int) -> Iterator[Without]:
    """The same from the states of the whole example, as far as the word does not reach. On a CPU: the states of all
    words at one distance should stay in its cache."""
    replicas, examples, length = batch.source.shape
    size = max(1, min(tokens, CACHED) // (replicas * length))
    for first in range(0, examples, size):
        few = examples_of(batch, slice(first, first + size))
        row, place = _words(few)
        without, others = _without(few, row, place)
        scores, states = model.without_each(few).take(row, place, others)
        yield row + first, place, without.target, model.read(states, attend(rule, scores, without))


def _words(batch: Batch) -> tuple[Int[Tensor, " row"], Int[Tensor, " row"]]:
    """Each word's example and place; the examples are the same for every replica."""
    assert batch.source_mask is not None
    rows, places = batch.source_mask[0].nonzero(as_tuple=True)
    return rows, places


def _without(
    batch: Batch, row: Int[Tensor, " row"], place: Int[Tensor, " row"]
) -> tuple[Batch, Int[Tensor, "replica row key"]]:
    """These examples without the words at these places, and where the others stand."""
    assert batch.source_mask is not None
    position = torch.arange(batch.source.shape[2] - 1, device=row.device)
    others = (position + (position >= place[:, None])).expand(len(batch.source), -1, -1)
    few = examples_of(batch, row)
    assert few.source_mask is not None
    return replace(few, source=few.source.gather(2, others), source_mask=few.source_mask.gather(2, others)), others


def examples_of(batch: Batch, rows: Any) -> Batch:
    """Some of the examples of every replica, as far as a reader of texts needs them."""
    assert batch.source_mask is not None
    target = batch.target[:, rows]
    nothing = torch.zeros_like(target)
    return Batch(batch.source[:, rows], nothing, target, nothing, source_mask=batch.source_mask[:, rows])
