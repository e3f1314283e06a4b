"""Texts in which one word is left out, for each of their words, without reading most of each text again.

A forward state before the word, and a backward state behind it, are those of the whole text. So from every word on each
direction goes to its end of the text, which is half of what reading the shorter texts would take. Those of all words
advance together, step by step, and need no more than their present states.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn.models.layers import BiLSTM, along, backwards

Places = Int[Tensor, "row batch"]


def shortened(
    encoder: BiLSTM,
    gates: Float[Tensor, "replica batch length gates"],
    mask: Bool[Tensor, "replica batch length"] | None,
    states: Float[Tensor, "replica batch length states"],
) -> Iterator[tuple[Places, Places, Float[Tensor, "replica row batch states"]]]:
    """Every state that changes when a word is left out: (the word, where the state is, both directions' states there).
    `gates` are those of `to_gates`, `states` those of the whole texts; the texts are the same for every replica."""
    batch, length = gates.shape[1:3]
    back = backwards((batch, length), mask, gates.device)[:1]
    weights = list(encoder.parameters())
    hidden = weights[1].shape[2]
    for number, own in enumerate(gates.chunk(len(weights) // 4, dim=-1)):
        _, w_hh, b_ih, b_hh = weights[4 * number : 4 * number + 4]
        # from here on in the direction's own order, and position by position
        order = back if number else torch.arange(length, device=gates.device).expand(1, batch, -1)
        place = order[0].T
        inputs = _by_position(along(own, order)) + (b_ih + b_hh)[:, None]
        others = _by_position(along(states, order))
        h, c = _before(inputs, w_hh, batch)
        for distance in range(1, length):
            rows = (length - distance) * batch
            h, c = _step(inputs[:, distance * batch :], h[:, :rows], c[:, :rows], w_hh)
            changed = others[:, distance * batch :].clone()
            changed[..., number * hidden : (number + 1) * hidden] = h
            yield place[: length - distance], place[distance:], changed.unflatten(1, (-1, batch))


def _by_position(x: Float[Tensor, "replica batch length width"]) -> Float[Tensor, "replica rows width"]:
    """Position after position, each with all texts."""
    return x.transpose(1, 2).flatten(1, 2)


def _before(
    inputs: Float[Tensor, "replica rows gates"], weight: Float[Tensor, "replica gates hidden"], batch: int
) -> tuple[Float[Tensor, "replica rows hidden"], Float[Tensor, "replica rows hidden"]]:
    """(h, c) before every position of the whole texts."""
    zero = inputs.new_zeros(len(inputs), batch, weight.shape[2])
    found = [(zero, zero)]
    for now in inputs.split(batch, dim=1)[:-1]:
        found.append(_step(now, *found[-1], weight))
    h, c = (torch.cat(each, dim=1) for each in zip(*found, strict=True))
    return h, c


def _step(
    inputs: Float[Tensor, "replica rows gates"],
    h: Float[Tensor, "replica rows hidden"],
    c: Float[Tensor, "replica rows hidden"],
    weight: Float[Tensor, "replica gates hidden"],
) -> tuple[Float[Tensor, "replica rows hidden"], Float[Tensor, "replica rows hidden"]]:
    """One position of an LSTM; nothing is kept for a way back."""
    i, f, g, o = torch.baddbmm(inputs, h, weight.mT).chunk(4, dim=-1)
    c = (f.sigmoid_() * c).addcmul_(i.sigmoid_(), g.tanh_())
    return c.tanh().mul_(o.sigmoid_()), c
