"""The classifier: a (Bi)LSTM over word vectors, one attention, and a vote of every position (Snell et al. §2.4).

Every position l votes for the classes with γ_l = W h_l + b, and the answer is Σ α_l γ_l. With two classes there is one
vote, for the second class; the first stands at 0. So the lexical probe is β_l = softmax(γ_l) at the right class, and
p(right) = σ(Σ α_l σ⁻¹(β_l)).

The attention logits are a small network of h_l with one hidden layer of ReLU (the paper), or a linear map αᵀh_l without
bias (their blog), or vᵀtanh(W h_l + b) with half as many hidden units as states (Jain and Wallace 2019, who also have
an encoder that reads each word for itself: h_l = tanh(W e_l + b)). Follows the authors' programs where the texts are
silent: all other maps have biases, embeddings start from N(0, 1).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attndyn.models import layers
from attndyn.models.base import Model
from attndyn.models.shortened import shortened
from attndyn.models.specs import Classifier
from attndyn.tasks.sampler import Batch


class Votes(NamedTuple):
    """What the attention works on."""

    keys: Float[Tensor, "replica batch key states"]  # encoder states h_l
    values: Float[Tensor, "replica batch key output"]  # γ_l


class Shortened(NamedTuple):
    """What the attention works on in each text without each of its words; at that word itself, nothing that counts."""

    scores: Float[Tensor, "replica batch word key"]
    values: Float[Tensor, "replica batch word key output"]

    def take(
        self, text: Int[Tensor, " row"], word: Int[Tensor, " row"], others: Int[Tensor, "replica row key"]
    ) -> tuple[Float[Tensor, "replica row head query key"], Votes]:
        """The attention logits of these texts without these words, and what is attended to; `others` are the places
        of the words that stay."""
        scores = self.scores[:, text, word].gather(2, others)
        values = self.values[:, text, word]
        values = values.gather(2, others[..., None].expand(*others.shape, values.shape[-1]))
        return scores[:, :, None, None], Votes(values.new_empty(*others.shape, 0), values)


def plain_modules(spec: Classifier, vocabulary: int, outputs: int) -> dict[str, nn.Module]:
    """The model's parts as plain PyTorch modules."""
    parts: dict[str, nn.Module] = {"embedding": nn.Embedding(vocabulary, spec.width)}
    if spec.encoder == "lstm":
        states = spec.directions * spec.hidden
        parts["encoder"] = nn.LSTM(spec.width, spec.hidden, bidirectional=spec.directions == 2)
    else:
        states = spec.hidden
        parts["encoder"] = nn.Linear(spec.width, spec.hidden)
    if spec.scoring == "network":
        parts |= {"attention": nn.Linear(states, spec.hidden), "score": nn.Linear(spec.hidden, 1)}
    elif spec.scoring == "tanh":
        width = max(1, states // 2)
        parts |= {"attention": nn.Linear(states, width), "score": nn.Linear(width, 1, bias=False)}
    else:
        parts["score"] = nn.Linear(states, 1, bias=False)
    return parts | {"output": nn.Linear(states, outputs if outputs > 2 else 1)}


class ClassifierModel(Model):
    def __init__(self, spec: Classifier, vocabulary: int, seeds: Sequence[int], outputs: int) -> None:
        super().__init__()
        parts = layers.drawn(lambda: plain_modules(spec, vocabulary, outputs), seeds)
        self.embedding = layers.Embedding(parts["embedding"])
        self.encoder = (layers.BiLSTM if spec.encoder == "lstm" else layers.Linear)(parts["encoder"])
        self.bend = F.tanh if spec.scoring == "tanh" else F.relu
        self.attention = layers.Linear(parts["attention"]) if "attention" in parts else None
        self.score, self.output = layers.Linear(parts["score"]), layers.Linear(parts["output"])

    def embed(self, batch: Batch) -> Float[Tensor, "replica batch key width"]:
        if isinstance(self.encoder, layers.BiLSTM) and self.encoder.only_read:
            return self.encoder.to_gates(self.embedding.weight, batch.source)
        return self.embedding(batch.source)

    def encode_vectors(self, batch: Batch, embedded: Float[Tensor, "replica batch key width"]) -> Votes:
        if isinstance(self.encoder, layers.Linear):
            keys = self.encoder(embedded).tanh()
        else:
            encode = self.encoder.from_gates if self.encoder.only_read else self.encoder
            keys = encode(embedded, batch.source_mask)
        return Votes(keys, layers.of_classes(self.output(keys)))

    def scores(self, states: Votes) -> Float[Tensor, "replica batch head query key"]:
        keys = states.keys if self.attention is None else self.bend(self.attention(states.keys))
        return self.score(keys)[:, :, None, None, :, 0]

    def read(
        self, states: Votes, alpha: Float[Tensor, "replica batch head query key"]
    ) -> Float[Tensor, "replica batch query output"]:
        return alpha[:, :, 0] @ states.values

    def without_each(self, batch: Batch) -> Shortened:
        """Every text without each of its words; where words are read for themselves, nothing else changes. On a CPU,
        without gradients."""
        embedded = self.embed(batch)
        whole = self.encode_vectors(batch, embedded)
        length = embedded.shape[2]
        scores = self.scores(whole)[:, :, 0, 0, None].repeat(1, 1, length, 1)
        values = whole.values[:, :, None].repeat(1, 1, length, 1, 1)
        if isinstance(self.encoder, layers.BiLSTM):
            text = torch.arange(embedded.shape[1], device=embedded.device)
            for word, place, keys in shortened(self.encoder, embedded, batch.source_mask, whole.keys):
                states = Votes(keys, layers.of_classes(self.output(keys)))
                scores[:, text, word, place] = self.scores(states)[:, :, 0, 0]
                values[:, text, word, place] = states.values
        return Shortened(scores, values)

    def read_each(self, states: Votes) -> Float[Tensor, "replica batch query key output"]:
        return states.values[:, :, None]
