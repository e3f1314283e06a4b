"""Translations by beam search, for all replicas and sentences at once. One beam is greedy search.

Hypotheses are ranked by the sum of their log probabilities, without any normalisation by length, as in the authors'
program. One that has ended stays on the beam with its score, which later ones can only fall below: so a sentence is
done when the first of its beams has ended.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn.kernels.graph import Replayed
from attndyn.models.rules import AttentionRule
from attndyn.models.seq2seq import States
from attndyn.models.translator import Memory, TranslatorModel
from attndyn.tasks.sampler import Batch

LOOK = 8
"""Steps after which a GPU is asked which sentences are done, and which are recorded together as one graph."""
FEW = 4
"""When no more than one sentence in so many is not done, in any replica, the search goes on with those alone."""


class Translations(NamedTuple):
    """The best hypothesis of each sentence."""

    pieces: Int[Tensor, "replica batch time"]
    """Ends with the end token, once or more, or is cut off."""
    scores: Float[Tensor, "replica batch"]
    """Its log probability."""


@dataclass
class Beams:
    """The hypotheses of every sentence, the best first, and what the decoder remembers of them."""

    pieces: Int[Tensor, "replica batch beam longest"]
    """Those not yet found are end tokens."""
    scores: Float[Tensor, "replica batch beam"]
    ended: Bool[Tensor, "replica batch beam"]
    read: Int[Tensor, "replica batch beam"]
    """The last piece."""
    time: Int[Tensor, ""]
    """The place of the next one."""
    hidden: Float[Tensor, "layer replica row hidden"]
    cells: Float[Tensor, "layer replica row hidden"]

    def of(self, sentences: Int[Tensor, " kept"]) -> "Beams":
        """Of some sentences alone."""
        alone = {name: getattr(self, name)[:, sentences] for name in ("pieces", "scores", "ended", "read")}
        shape = self.scores.shape[1:]
        states = {
            name: getattr(self, name).unflatten(2, shape)[:, :, sentences].flatten(2, 3) for name in ("hidden", "cells")
        }
        return replace(self, **alone, **states)


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
    shape = (*batch.source.shape[:2], beams)
    # all beams start alike: only the first may go on, or they would hold the same hypothesis
    first = torch.where(torch.arange(beams, device=batch.source.device) == 0, 0.0, -torch.inf)
    found = Beams(
        pieces=batch.source.new_full((*shape, longest), end),
        scores=first.expand(shape).to(memory.keys.dtype),
        ended=torch.zeros(shape, dtype=torch.bool, device=first.device),
        read=batch.source.new_full(shape, start),
        time=batch.source.new_zeros(()),
        hidden=torch.stack([h for h, _ in state]).repeat_interleave(beams, dim=2),
        cells=torch.stack([c for _, c in state]).repeat_interleave(beams, dim=2),
    )

    look = LOOK if first.is_cuda else 1
    mask, left = batch.source_mask, torch.arange(shape[1], device=first.device)
    best = Translations(found.pieces[:, :, 0].clone(), found.scores[:, :, 0].clone())

    def ahead(mask: Tensor | None, memory: Memory, steps: int, found: Beams) -> Beams:
        for _ in range(steps):
            found = lengthen(model, rule, mask, memory, found, end)
        return found

    search = Replayed(partial(ahead, mask, memory, look))
    for time in range(0, longest, look):
        last = time + look >= longest
        found = ahead(mask, memory, longest - time, found) if last else search(found)
        waits = (~found.ended[..., 0]).any(dim=0).nonzero()[:, 0]
        if not last and FEW * len(waits) > len(left):
            continue
        best.pieces[:, left], best.scores[:, left] = found.pieces[:, :, 0], found.scores[:, :, 0]
        if not len(waits):
            break
        left, found, memory = left[waits], found.of(waits), Memory(*(part[:, waits] for part in memory))
        mask = None if mask is None else mask[:, waits]
        search = Replayed(partial(ahead, mask, memory, look))
    return best


def lengthen(
    model: TranslatorModel,
    rule: AttentionRule,
    mask: Bool[Tensor, "replica batch key"] | None,
    memory: Memory,
    beams: Beams,
    end: int,
) -> Beams:
    """The best hypotheses that are one piece longer. What has ended goes on with the end token alone, at no cost."""
    states, state = model.step(memory, list(zip(beams.hidden, beams.cells, strict=True)), beams.read)
    log_p, likeliest = continuations(model, rule, states, mask, beams.scores.shape[2])
    ended = beams.ended[..., None]
    only = torch.where(torch.arange(log_p.shape[-1], device=log_p.device) == 0, 0.0, -torch.inf).to(log_p.dtype)
    log_p, likeliest = torch.where(ended, only, log_p), torch.where(ended, end, likeliest)
    scores, chosen = (beams.scores[..., None] + log_p).flatten(2).topk(beams.scores.shape[2], dim=-1)
    origin = chosen // log_p.shape[-1]  # the hypothesis that is continued
    piece = likeliest.flatten(2).gather(2, chosen)
    before = beams.pieces.gather(2, origin[..., None].expand_as(beams.pieces))
    return Beams(
        pieces=before.index_copy_(3, beams.time[None], piece[..., None]),
        scores=scores,
        ended=beams.ended.gather(2, origin) | (piece == end),
        read=piece,
        time=beams.time + 1,
        hidden=torch.stack([follow(h, origin) for h, _ in state]),
        cells=torch.stack([follow(c, origin) for _, c in state]),
    )


def continuations(
    model: TranslatorModel,
    rule: AttentionRule,
    states: States,
    mask: Bool[Tensor, "replica batch key"] | None,
    count: int,
) -> tuple[Float[Tensor, "replica batch beam best"], Int[Tensor, "replica batch beam best"]]:
    """The likeliest next pieces of each hypothesis with their log probabilities; no more than the beams can hold."""
    logits = model.read(states, rule(model.scores(states), mask))
    best, likeliest = logits.topk(min(count, logits.shape[-1]), dim=-1)
    return best - logits.logsumexp(dim=-1, keepdim=True), likeliest


def follow(
    state: Float[Tensor, "replica row hidden"], origin: Int[Tensor, "replica batch beam"]
) -> Float[Tensor, "replica row hidden"]:
    """The decoder states of the hypotheses that are continued."""
    beams = state.unflatten(1, origin.shape[1:])
    return beams.gather(2, origin[..., None].expand_as(beams)).flatten(1, 2)
