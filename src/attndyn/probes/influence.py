"""The influence Δ of each input word on an answer: by gradient, or by leaving it out.

Snell et al. §5.1 measure both in units of the loss: by how much −log p of the right answer would rise without the word.
The gradient gives this to first order, as if the word's vector were multiplied by a number that goes from 1 to 0:
Δ = −e · ∂(−log p)/∂e. Jain and Wallace §4.1 ask how much the answer itself moves, whatever is right: |e · ∂p/∂e| with
the attention held still, and |p without the word − p|.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from attndyn.models.base import Model
from attndyn.models.rules import AttentionRule, attend
from attndyn.probes.lexical import log_odds
from attndyn.tasks.sampler import Batch


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
    rows, places = mask[0].nonzero(as_tuple=True)  # the examples are the same for every replica
    position = torch.arange(length - 1, device=rows.device)
    size = max(1, tokens // (length * len(whole)))
    for start in range(0, len(rows), size):
        row, place = rows[start : start + size], places[start : start + size]
        others = (position + (position >= place[:, None])).expand(len(whole), -1, -1)
        target = batch.target[:, row]
        without = Batch(
            source=batch.source[:, row].gather(2, others),
            shifted=torch.zeros_like(target),
            target=target,
            align=torch.zeros_like(target),
            source_mask=mask[:, row].gather(2, others),
        )
        logits, _ = model(without, rule)
        delta[:, row, place] = of(logits, target).sum(dim=-1) - whole[:, row]
    return delta
