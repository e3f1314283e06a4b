"""The bag-of-words proxy (Snell et al. §2.3): every input word votes for output words, and votes are averaged.

The logits are W (1/L) Σ_l e(x_l) + b, the same at every output position: no order, no recurrence, no attention. It is a
translator trained under uniform attention with everything but the words taken away, and β_px, its lexical probe,
is what co-occurrence alone can teach. Of two labels, only the second is voted for, and the first stands at 0.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attndyn.models import layers
from attndyn.models.base import Model
from attndyn.models.specs import Proxy
from attndyn.tasks.sampler import Batch


class Votes(NamedTuple):
    values: Float[Tensor, "replica batch key output"]  # W e(x_l)
    queries: Float[Tensor, "replica batch query none"]  # nothing but their number


def plain_modules(spec: Proxy, vocabulary: int, outputs: int) -> dict[str, nn.Module]:
    """The model's parts as plain PyTorch modules."""
    embedding = nn.Embedding(vocabulary, spec.width)
    output = nn.Linear(spec.width, outputs if outputs > 2 else 1, bias=spec.bias)
    if spec.spread is not None:
        for weight in (embedding.weight, output.weight):
            nn.init.normal_(weight, std=spec.spread)
        if spec.bias:
            nn.init.zeros_(output.bias)
    return {"embedding": embedding, "output": output}


class ProxyModel(Model):
    def __init__(self, spec: Proxy, vocabulary: int, seeds: Sequence[int], outputs: int) -> None:
        super().__init__()
        parts = layers.drawn(lambda: plain_modules(spec, vocabulary, outputs), seeds)
        self.embedding, self.output = layers.Embedding(parts["embedding"]), layers.Linear(parts["output"])

    def encode(self, batch: Batch) -> Votes:
        replicas, size, keys = batch.source.shape
        table, tokens = self.embedding.weight, batch.source.flatten(1)
        # what is smaller goes through the output map: all words once, or the words of the batch
        if table.shape[1] <= tokens.shape[1]:
            values = layers.take(table @ self.output.weight.mT, tokens)
        else:
            values = layers.take(table, tokens) @ self.output.weight.mT
        values = layers.of_classes(values.view(replicas, size, keys, -1))
        return Votes(values, values.new_zeros(replicas, size, batch.target.shape[2], 0))

    def scores(self, states: Votes) -> Float[Tensor, "replica batch head query key"]:
        """It has no attention of its own: under `Learned` it is uniform too."""
        return states.values.new_zeros(*states.queries.shape[:2], 1, states.queries.shape[2], states.values.shape[2])

    def read(
        self, states: Votes, alpha: Float[Tensor, "replica batch head query key"]
    ) -> Float[Tensor, "replica batch query output"]:
        return self._biased(alpha[:, :, 0] @ states.values)

    def read_each(self, states: Votes) -> Float[Tensor, "replica batch query key output"]:
        return self._biased(states.values)[:, :, None].expand(-1, -1, states.queries.shape[2], -1, -1)

    def _biased(self, logits: Float[Tensor, "replica batch row output"]) -> Float[Tensor, "replica batch row output"]:
        bias = getattr(self.output, "bias", None)
        return logits if bias is None else logits + layers.of_classes(bias)[:, None, None]


def votes_of_words(weights: Mapping[str, np.ndarray]) -> Float[Tensor, "word output"]:
    """W e of every word, from the kept weights of a proxy: β_px before its softmax, without the bias."""
    embedding, output = (torch.as_tensor(weights[f"{name}.weight"]) for name in ("embedding", "output"))
    return layers.of_classes(embedding @ output.T)
