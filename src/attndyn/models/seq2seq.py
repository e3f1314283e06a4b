"""The copying translator: LSTM encoder and decoder with dot attention (Luong et al. 2015; Snell et al. §2.1).

Two readings. `code` is the authors' program: the query map has a bias, the context goes through a map of its own
with a bias, the hidden layer is tanh. `text` is the paper's equations 1 and 2: s^T W h without a bias, no context
map, ReLU. Both: one shared embedding, one layer, one direction, the decoder starts from the encoder's last (h, c).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attndyn.models import layers
from attndyn.models.base import Model
from attndyn.models.specs import Seq2Seq
from attndyn.tasks.sampler import Batch


class States(NamedTuple):
    """What the attention works on."""

    keys: Float[Tensor, "replica batch key states"]  # encoder states h_l
    queries: Float[Tensor, "replica batch query states"]  # decoder states s_t through the query map
    values: Float[Tensor, "replica batch key hidden"]  # h_l through context map and hidden layer
    base: Float[Tensor, "replica batch query hidden"]  # the hidden layer's input without the context

    def at(self, query: Int[Tensor, " batch"]) -> "States":
        """Of each example only this query."""
        example = torch.arange(len(query), device=query.device)
        return self._replace(queries=self.queries[:, example, query, None], base=self.base[:, example, query, None])


class DotAttention(Model):
    """Attention logits are products of queries and keys; the context goes into one hidden layer, or straight to the
    output."""

    activation: Callable[[Tensor], Tensor] | None  # of the hidden layer; None: there is none
    output: layers.Linear

    def scores(self, states: States) -> Float[Tensor, "replica batch head query key"]:
        return (states.queries @ states.keys.mT)[:, :, None]

    def read(
        self, states: States, alpha: Float[Tensor, "replica batch head query key"]
    ) -> Float[Tensor, "replica batch query output"]:
        hidden = states.base + alpha[:, :, 0] @ states.values
        return self.output(hidden if self.activation is None else self.activation(hidden))

    def read_each(self, states: States) -> Float[Tensor, "replica batch query key output"]:
        if self.activation is None:
            votes = layers.linear(states.values, self.output.weight)
            return votes[:, :, None] + self.output(states.base)[:, :, :, None]
        hidden = self.activation(states.base[:, :, :, None] + states.values[:, :, None])
        return self.output(hidden.flatten(1, 2)).unflatten(1, states.base.shape[1:3])


def plain_modules(spec: Seq2Seq, vocabulary: int) -> dict[str, nn.Module]:
    """The model's parts as plain PyTorch modules, drawn in the order of the authors' constructor, so that a seed
    gives their initial weights."""
    hidden, by_code = spec.hidden, spec.reading == "code"
    parts: dict[str, nn.Module] = {
        "embedding": nn.Embedding(vocabulary, hidden),
        "encoder": nn.LSTM(hidden, hidden),
        "decoder": nn.LSTM(hidden, hidden),
        "hidden": nn.Linear(2 * hidden, hidden),
        "output": nn.Linear(hidden, vocabulary),
        "query": nn.Linear(hidden, hidden, bias=by_code),
    }
    if by_code:
        parts["context"] = nn.Linear(hidden, hidden)
    return parts


class Seq2SeqModel(DotAttention):
    def __init__(self, spec: Seq2Seq, vocabulary: int, seeds: Sequence[int]) -> None:
        super().__init__()
        parts = layers.drawn(lambda: plain_modules(spec, vocabulary), seeds)
        self.activation = torch.tanh if spec.reading == "code" else torch.relu
        self.embedding = layers.Embedding(parts["embedding"])
        self.encoder = layers.LSTM(parts["encoder"])
        self.decoder = layers.LSTM(parts["decoder"])
        self.hidden = layers.Linear(parts["hidden"])
        self.output = layers.Linear(parts["output"])
        self.query = layers.Linear(parts["query"])
        self.context = layers.Linear(parts["context"]) if "context" in parts else None

    def encode(self, batch: Batch) -> States:
        table = self.embedding.weight
        keys, last = self.encoder(batch.source, table)
        decoded, _ = self.decoder(batch.shifted, table, start=last)
        # W_h [s; W_c c + b_c] + b_h = W_s s + (W_hc W_c) c + (W_hc b_c + b_h): the two maps of the context are
        # merged, and applied to the states before they are averaged.
        on_state, on_context = self.hidden.weight.chunk(2, dim=2)  # [replica, hidden, hidden] each
        bias = self.hidden.bias
        if self.context is not None:
            on_context, bias = layers.merged(on_context, bias, self.context.weight, self.context.bias)
        return States(
            keys=keys,
            queries=self.query(decoded),
            values=layers.linear(keys, on_context),
            base=layers.linear(decoded, on_state, bias),
        )
