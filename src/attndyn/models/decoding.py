"""Translations by beam search, for all replicas and sentences at once. One beam is greedy search.

Hypotheses are ranked by the sum of their log probabilities, without any normalisation by length, as in the authors'
program. One that has ended stays on the beam with its score, which later ones can only fall below: so a sentence is
done when the first of its beams has ended.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn.models.rules import AttentionRule
from attndyn.models.seq2seq import States
from attndyn.models.translator import TranslatorModel
from attndyn.tasks.sampler import Batch

LOOK = 8
"""Steps after which a GPU is asked whether all sentences are done: asking costs more than a few steps too many."""


class Translations(NamedTuple):
    """The best hypothesis of each sentence."""

    pieces: Int[Tensor, "replica batch time"]
    """Ends with the end token, once or more, or is cut off."""
    scores: Float[Tensor, "replica batch"]
    """Its log probability."""


class Beams(NamedTuple):
    """The hypotheses of every sentence, the best first."""

    pieces: Int[Tensor, "replica batch beam time"]
    scores: Float[Tensor, "replica batch beam"]
    ended: Bool[Tensor, "replica batch beam"]


@torch.no_grad()
def translate(
    model: TranslatorModel,
    rule: AttentionRule,
    batch: Batch,
    *,
    start: int,
    end: int,
    beams: int = 5,
    longest: int = 99,
) -> Translations:
    """The best translation that a beam of this width finds, </s> counted at most `longest` pieces long (99 in the
    authors' program). The model is in evaluation mode."""
    memory, state = model.begin(batch)
    state = [(h.repeat_interleave(beams, dim=1), c.repeat_interleave(beams, dim=1)) for h, c in state]
    shape = (*batch.source.shape[:2], beams)
    # all beams start alike: only the first may go on, or they would hold the same hypothesis
    first = torch.where(torch.arange(beams, device=batch.source.device) == 0, 0.0, -torch.inf)
    found = Beams(
        pieces=batch.source.new_full((*shape, 0), 0),
        scores=first.expand(shape).to(memory.keys.dtype),
        ended=torch.zeros(shape, dtype=torch.bool, device=first.device),
    )
    read = batch.source.new_full(shape, start)
    for time in range(longest):
        states, state = model.step(memory, state, read)
        log_p, likeliest = continuations(model, rule, states, batch, beams)
        found, origin = extend(found, log_p, likeliest, end)
        state = [(follow(h, origin), follow(c, origin)) for h, c in state]
        read = found.pieces[..., -1]
        if (time % LOOK == LOOK - 1 or not read.is_cuda) and bool(found.ended[..., 0].all()):
            break
    return Translations(found.pieces[:, :, 0], found.scores[:, :, 0])


def continuations(
    model: TranslatorModel, rule: AttentionRule, states: States, batch: Batch, count: int
) -> tuple[Float[Tensor, "replica batch beam best"], Int[Tensor, "replica batch beam best"]]:
    """The likeliest next pieces of each hypothesis with their log probabilities; no more than the beams can hold."""
    logits = model.read(states, rule(model.scores(states), batch.source_mask))
    best, likeliest = logits.topk(min(count, logits.shape[-1]), dim=-1)
    return best - logits.logsumexp(dim=-1, keepdim=True), likeliest


def extend(
    beams: Beams,
    log_p: Float[Tensor, "replica batch beam best"],
    likeliest: Int[Tensor, "replica batch beam best"],
    end: int,
) -> tuple[Beams, Int[Tensor, "replica batch beam"]]:
    """The best hypotheses that are one piece longer, and which one each of them continues. What has ended goes on with
    the end token alone, at no cost."""
    ended = beams.ended[..., None]
    only = torch.where(torch.arange(log_p.shape[-1], device=log_p.device) == 0, 0.0, -torch.inf).to(log_p.dtype)
    log_p, likeliest = torch.where(ended, only, log_p), torch.where(ended, end, likeliest)
    scores, chosen = (beams.scores[..., None] + log_p).flatten(2).topk(beams.scores.shape[2], dim=-1)
    origin = chosen // log_p.shape[-1]
    piece = likeliest.flatten(2).gather(2, chosen)
    before = beams.pieces.gather(2, origin[..., None].expand_as(beams.pieces))
    ended = beams.ended.gather(2, origin) | (piece == end)
    return Beams(torch.cat([before, piece[..., None]], dim=-1), scores, ended), origin


def follow(
    state: Float[Tensor, "replica row hidden"], origin: Int[Tensor, "replica batch beam"]
) -> Float[Tensor, "replica row hidden"]:
    """The decoder states of the hypotheses that are continued."""
    beams = state.unflatten(1, origin.shape[1:])
    return beams.gather(2, origin[..., None].expand_as(beams)).flatten(1, 2)
