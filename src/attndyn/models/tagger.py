"""Taggers: an answer at every position, from one layer of self-attention (Yang §4.1, and §6 for the second).

    x_l = W e(w_l) + p_l                      word vectors, and sines and cosines of the position
    y_l = x_l + W_o [Σ_m α_hlm V_h n(x)_m]_h   with α_hl = softmax_m (Q_h n(x)_l) · (K_h n(x)_m) / √d of each head h
    logits_l = U n(y_l + f(n(y_l))) + b       f: two layers, ReLU behind both

n is a layer norm with weights of its own at each place. Follows the author's program where the text is silent or says
otherwise: the feed-forward layers are there, maps inside the attention have no bias, units are dropped behind every
step and from the attention weights, weights start from Xavier's distribution.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attndyn.models import layers
from attndyn.models.base import Model
from attndyn.models.dropout import Dropout
from attndyn.models.rules import AttentionRule, attend
from attndyn.models.specs import Tagger
from attndyn.tasks.sampler import Batch

Heads = Float[Tensor, "replica batch head length part"]


class Views(NamedTuple):
    """What the attention works on."""

    queries: Heads
    keys: Heads
    values: Heads
    inputs: Float[Tensor, "replica batch length hidden"]  # x, around which the attention goes
    step: Int[Tensor, ""] | None  # of training


def xavier(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    made = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(made.weight)
    if bias:
        nn.init.zeros_(made.bias)
    return made


def plain_modules(spec: Tagger, vocabulary: int, outputs: int) -> dict[str, nn.Module]:
    """The model's parts as plain PyTorch modules."""
    hidden = spec.hidden
    inside = {name: xavier(hidden, hidden, bias=False) for name in ("query", "key", "value", "context")}
    return {
        "embedding": nn.Embedding(vocabulary, spec.width),
        "project": xavier(spec.width, hidden, bias=False),
        **inside,
        **{name: xavier(hidden, hidden) for name in ("first", "second")},
        **{name: nn.LayerNorm(hidden) for name in ("norm before", "norm between", "norm after")},
        "output": xavier(hidden, outputs),
    }


class TaggerModel(Model):
    def __init__(self, spec: Tagger, vocabulary: int, seeds: Sequence[int], outputs: int) -> None:
        super().__init__()
        parts = layers.drawn(lambda: plain_modules(spec, vocabulary, outputs), seeds)
        self.heads = spec.heads
        self.embedding = layers.Embedding(parts["embedding"])
        names = ("project", "query", "key", "value", "context", "first", "second", "output")
        self.project, self.query, self.key, self.value, self.context, self.first, self.second, self.output = (
            layers.Linear(parts[name]) for name in names
        )
        self.before, self.between, self.after = (
            layers.LayerNorm(parts[f"norm {place}"]) for place in ("before", "between", "after")
        )
        self.drops = nn.ModuleList([Dropout(seeds, spec.dropout, place) for place in range(6)])

    def embed(self, batch: Batch) -> Float[Tensor, "replica batch key width"]:
        return self.embedding(batch.source)

    def encode_vectors(self, batch: Batch, embedded: Float[Tensor, "replica batch key width"]) -> Views:
        x = self.project(self.drops[0](embedded, batch.step))
        x = x + positions(x.shape[2], x.shape[3], x.device).to(x.dtype)
        normed = self.before(x)
        queries, keys, values = (split(of(normed), self.heads) for of in (self.query, self.key, self.value))
        return Views(queries, keys, values, x, batch.step)

    def scores(self, states: Views) -> Float[Tensor, "replica batch head query key"]:
        return states.queries @ states.keys.mT / math.sqrt(states.keys.shape[-1])

    def read(
        self, states: Views, alpha: Float[Tensor, "replica batch head query key"]
    ) -> Float[Tensor, "replica batch query output"]:
        step = states.step
        x = self.drops[2](states.inputs + self.context(merge(alpha @ states.values)), step)
        inner = self.drops[3](self.first(self.between(x)).relu(), step)
        inner = self.drops[4](self.second(inner).relu(), step)
        return self.output(self.after(self.drops[5](x + inner, step)))

    def forward(
        self, batch: Batch, rule: AttentionRule
    ) -> tuple[Float[Tensor, "replica batch query output"], Float[Tensor, "replica batch head query key"]]:
        """While training, α is what is left of it after dropout: the author's objective sees the same."""
        states = self.encode(batch)
        alpha = dropped(self.drops[1], attend(rule, self.scores(states), batch), batch.step)
        return self.read(states, alpha), alpha


class Words(NamedTuple):
    """Each word alone."""

    values: Heads
    step: Int[Tensor, ""] | None


class ContextModel(Model):
    """A feed-forward layer on each word alone; attention averages its outputs, a part of them for each head, and the
    tag is read from the average: what is not attended to is not known. It has no attention of its own."""

    def __init__(self, spec: Tagger, vocabulary: int, seeds: Sequence[int], outputs: int) -> None:
        super().__init__()
        hidden = spec.hidden
        parts = layers.drawn(
            lambda: {
                "embedding": nn.Embedding(vocabulary, spec.width),
                "first": xavier(spec.width, hidden),
                "output": xavier(hidden, outputs),
            },
            seeds,
        )
        self.heads = spec.heads
        self.embedding = layers.Embedding(parts["embedding"])
        self.first, self.output = layers.Linear(parts["first"]), layers.Linear(parts["output"])
        self.drops = nn.ModuleList([Dropout(seeds, spec.dropout, place) for place in range(2)])

    def embed(self, batch: Batch) -> Float[Tensor, "replica batch key width"]:
        return self.embedding(batch.source)

    def encode_vectors(self, batch: Batch, embedded: Float[Tensor, "replica batch key width"]) -> Words:
        return Words(split(self.first(self.drops[0](embedded, batch.step)).relu(), self.heads), batch.step)

    def scores(self, states: Words) -> Float[Tensor, "replica batch head query key"]:
        """None: all logits are 0."""
        shape = states.values.shape
        return states.values.new_zeros(*shape[:4], shape[3])

    def read(
        self, states: Words, alpha: Float[Tensor, "replica batch head query key"]
    ) -> Float[Tensor, "replica batch query output"]:
        return self.output(self.drops[1](merge(alpha @ states.values), states.step))


def positions(length: int, width: int, device: torch.device) -> Float[Tensor, "length width"]:
    """Sines, then cosines, of wave lengths from 2π to 10,000 · 2π."""
    half = width // 2
    rates = torch.exp(-math.log(10_000) / max(1, half - 1) * torch.arange(half, device=device))
    angles = torch.arange(length, device=device)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def split(x: Float[Tensor, "replica batch length hidden"], heads: int) -> Heads:
    return x.unflatten(3, (heads, -1)).transpose(2, 3)


def merge(x: Heads) -> Float[Tensor, "replica batch length hidden"]:
    return x.transpose(2, 3).flatten(3)


def dropped(
    drop: nn.Module, alpha: Float[Tensor, "replica batch head query key"], step: Int[Tensor, ""] | None
) -> Float[Tensor, "replica batch head query key"]:
    return split(drop(merge(alpha), step), alpha.shape[2])
