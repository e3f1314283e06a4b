"""The copying translator with several attention heads (Snell et al. §5.2).

Two variants. `text` is the paper's equations: each head k has a query map W^(k) of its own, and the contexts of all
heads are summed; everything else is `models/seq2seq.py`, so that one head is that model. `authors` is their program:
GRUs, an embedding for each side, and each head maps its context by itself before the contexts are averaged.

The parts that all heads share are drawn from one random stream and each head from another (`Origins`), so that the same
head can be put into many models.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attndyn.models import layers
from attndyn.models.gru import GRU
from attndyn.models.seq2seq import DotAttention, States, plain_modules
from attndyn.models.specs import MultiHead, Origins, Seq2Seq
from attndyn.tasks.sampler import Batch

Parts = dict[str, nn.Module]
BASE, HEAD = 0, 1
"""Streams of initial weights."""


class MultiHeadModel(DotAttention):
    """States hold the queries of all heads side by side, and in the variant `authors` their values too."""

    activation: Callable[[Tensor], Tensor]

    def __init__(self, spec: MultiHead, vocabulary: int, seeds: Sequence[int | Origins]) -> None:
        super().__init__()
        self.heads, self.own_maps = spec.heads, spec.variant == "authors"
        self.activation = torch.relu if spec.reading == "text" else torch.tanh
        parts = drawn(spec, vocabulary, seeds)
        recurrent: Callable[..., nn.Module] = GRU if self.own_maps else layers.LSTM
        self.embedding = layers.Embedding(parts["embedding"])
        self.decoder_embedding = layers.Embedding(parts["decoder_embedding"]) if self.own_maps else self.embedding
        self.encoder, self.decoder = recurrent(parts["encoder"]), recurrent(parts["decoder"])
        self.hidden = layers.Linear(parts["hidden"])
        self.output = layers.Linear(parts["output"])
        self.query = layers.Linear(parts["query"])
        self.context = layers.Linear(parts["context"]) if "context" in parts else None

    def encode(self, batch: Batch) -> States:
        keys, last = self.encoder(batch.source, self.embedding.weight)
        decoded, _ = self.decoder(batch.shifted, self.decoder_embedding.weight, start=last)
        # the maps of the context are merged and applied to the states, as in models/seq2seq.py
        on_state, on_context = self.hidden.weight.chunk(2, dim=2)
        bias = self.hidden.bias
        if self.own_maps:
            assert self.context is not None
            maps = self.context.weight.unflatten(1, (self.heads, -1)) / self.heads  # [replica, head, hidden, hidden]
            shift = self.context.bias.unflatten(1, (self.heads, -1)).mean(dim=1)
            bias = bias + (on_context @ shift[..., None])[..., 0]
            on_context = (on_context[:, None] @ maps).flatten(1, 2)
        elif self.context is not None:
            on_context, bias = layers.merged(on_context, bias, self.context.weight, self.context.bias)
        return States(
            keys=keys,
            queries=self.query(decoded),
            values=layers.linear(keys, on_context),
            base=layers.linear(decoded, on_state, bias),
        )

    def scores(self, states: States) -> Float[Tensor, "replica batch head query key"]:
        queries = states.queries.unflatten(-1, (self.heads, -1)).transpose(2, 3)
        return (queries.flatten(2, 3) @ states.keys.mT).unflatten(2, queries.shape[2:4])

    def read(
        self, states: States, alpha: Float[Tensor, "replica batch head query key"]
    ) -> Float[Tensor, "replica batch query output"]:
        if self.own_maps:  # all heads as one product over (head, key)
            values = states.values.unflatten(-1, (self.heads, -1)).transpose(2, 3).flatten(2, 3)
            context = alpha.transpose(2, 3).flatten(3, 4) @ values
        else:
            context = alpha.sum(dim=2) @ states.values
        return self.output(self.activation(states.base + context))

    def read_each(self, states: States) -> Float[Tensor, "replica batch query key output"]:
        if self.own_maps:
            values = states.values.unflatten(-1, (self.heads, -1)).sum(dim=3)
        else:
            values = self.heads * states.values
        return super().read_each(states._replace(values=values))


def drawn(spec: MultiHead, vocabulary: int, seeds: Sequence[int | Origins]) -> dict[str, list[nn.Module]]:
    """The parts of the model for each replica. A part that several replicas share is drawn once."""

    @cache
    def base(seed: int) -> Parts:
        with seeded(stream_seed(BASE, seed)):
            return base_modules(spec, vocabulary)

    @cache
    def head(seed: int) -> Parts:
        with seeded(stream_seed(HEAD, seed)):
            return head_modules(spec)

    copies = []
    for seed in seeds:
        if isinstance(seed, Origins):
            if len(seed.heads) != spec.heads:
                raise ValueError(f"a model of {spec.heads} heads was given {len(seed.heads)}")
            shared, heads = dict(base(seed.base)), [head(one) for one in seed.heads]
            own = {name for one in heads for name in one}
            copies.append({name: part for name, part in shared.items() if name not in own} | joined(heads))
        else:
            copies.append(from_one_seed(spec, vocabulary, seed))
    return {name: [copy[name] for copy in copies] for name in copies[0]}


def from_one_seed(spec: MultiHead, vocabulary: int, seed: int) -> Parts:
    """Everything from one stream; the first head of the variant `text` is the one that the single-head model has."""
    with seeded(seed):
        parts = base_modules(spec, vocabulary)
        first = {"query": parts.pop("query")} if "query" in parts else head_modules(spec)
        return parts | joined([first, *(head_modules(spec) for _ in range(spec.heads - 1))])


def base_modules(spec: MultiHead, vocabulary: int) -> Parts:
    """What all heads share (in the variant `text` also the query map of a single head, which is then replaced)."""
    if spec.variant == "text":
        return plain_modules(Seq2Seq(spec.hidden, spec.reading), vocabulary)
    hidden = spec.hidden
    return {
        "embedding": nn.Embedding(vocabulary, hidden),
        "decoder_embedding": nn.Embedding(vocabulary, hidden),
        "encoder": nn.GRU(hidden, hidden),
        "decoder": nn.GRU(hidden, hidden),
        "output": nn.Linear(hidden, vocabulary),
        "hidden": nn.Linear(2 * hidden, hidden),
    }


def head_modules(spec: MultiHead) -> Parts:
    hidden = spec.hidden
    if spec.variant == "authors":
        return {"query": nn.Linear(hidden, hidden), "context": nn.Linear(hidden, hidden)}
    return {"query": nn.Linear(hidden, hidden, bias=spec.reading == "code")}


def joined(heads: Sequence[Parts]) -> Parts:
    """The maps of all heads as one map each, whose outputs stand side by side."""
    return {name: _beside([head[name] for head in heads]) for name in heads[0]}


def _beside(maps: Sequence[nn.Module]) -> nn.Module:
    weight = torch.cat([part.get_parameter("weight").detach() for part in maps])
    biased = "bias" in dict(maps[0].named_parameters())
    whole = nn.utils.skip_init(nn.Linear, weight.shape[1], weight.shape[0], bias=biased)
    whole.weight.data = weight
    if biased:
        whole.bias.data = torch.cat([part.get_parameter("bias").detach() for part in maps])
    return whole


def stream_seed(stream: int, seed: int) -> int:
    """A 32-bit seed of its own for each stream: torch's generator on the CPU takes no more."""
    return int(np.random.SeedSequence([stream, seed]).generate_state(1)[0])


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draws from this seed; the random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
