"""The translator: deep LSTMs with dot attention over both directions of the encoder (Snell et al. §2.1, A.8).

Follows the authors' program where the text is silent or says otherwise: every map has a bias, the context goes
through a map of its own, the hidden layer is ReLU, the decoder starts from the mean of both directions' last (h, c),
layer by layer, and units are dropped between the layers of an LSTM and nowhere else.

    h_l = encoder(e(x))_l,  s_t = decoder(e(y_<t))_t
    α_t = softmax_l (W_q s_t + b_q) · h_l,  c_t = W_c Σ_l α_tl h_l + b_c
    hidden head: logits = W_o relu(W_h [s_t; c_t] + b_h) + b_o
    linear head (A.1): logits = W_o (s_t + c_t) + b_o
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attndyn.models import layers
from attndyn.models.dropout import Dropout
from attndyn.models.layers import State
from attndyn.models.seq2seq import DotAttention, States
from attndyn.models.specs import Translator
from attndyn.tasks.sampler import Batch


class Memory(NamedTuple):
    """What is known of the source when decoding starts."""

    keys: Float[Tensor, "replica batch key states"]  # encoder states h_l
    values: Float[Tensor, "replica batch key hidden"]  # h_l through context map and hidden layer


class Maps(NamedTuple):
    """From encoder and decoder states to the input of the hidden layer, or of the output."""

    on_context: Float[Tensor, "replica hidden states"]
    on_state: Float[Tensor, "replica hidden hidden"] | None  # None: the state itself
    bias: Float[Tensor, "replica hidden"]


def plain_modules(spec: Translator, vocabulary: int) -> dict[str, nn.Module]:
    """The model's parts as plain PyTorch modules, drawn in the order of the authors' constructor, so that a seed
    gives their initial weights; layers drawn one by one are those of a deep LSTM."""
    hidden = spec.hidden
    parts: dict[str, nn.Module] = {"embedding": nn.Embedding(vocabulary, hidden)}
    for layer in range(spec.layers):
        parts[f"encoder {layer}"] = nn.LSTM(2 * hidden if layer else hidden, hidden, bidirectional=True)
    for layer in range(spec.layers):
        parts[f"decoder {layer}"] = nn.LSTM(hidden, hidden)
    if spec.head == "hidden":
        parts["hidden"] = nn.Linear(2 * hidden, hidden)
    return parts | {
        "output": nn.Linear(hidden, vocabulary),
        "query": nn.Linear(hidden, 2 * hidden),
        "context": nn.Linear(2 * hidden, hidden),
    }


class DeepLSTM(nn.Module):
    """One layer on top of the other, with units dropped between them."""

    def __init__(self, lstms: Sequence[layers.BiLSTM], drops: Sequence[Dropout]) -> None:
        super().__init__()
        self.lstms, self.drops = nn.ModuleList(lstms), nn.ModuleList(drops)

    def forward(
        self,
        states: Float[Tensor, "replica batch length width"],
        step: Int[Tensor, ""] | None,
        mask: Bool[Tensor, "replica batch length"] | None = None,
        start: list[State] | None = None,
    ) -> tuple[Float[Tensor, "replica batch length states"], list[list[State]]]:
        """The states of the last layer, and for each layer the last (h, c) of each direction."""
        ends = []
        for layer, lstm in enumerate(self.lstms):
            if layer:
                states = self.drops[layer - 1](states, step)
            states, last = cast(layers.BiLSTM, lstm).with_last(states, mask, None if start is None else start[layer])
            ends.append(last)
        return states, ends


class TranslatorModel(DotAttention):
    def __init__(self, spec: Translator, vocabulary: int, seeds: Sequence[int]) -> None:
        super().__init__()
        parts = layers.drawn(lambda: plain_modules(spec, vocabulary), seeds)
        depth = range(spec.layers)
        self.embedding = layers.Embedding(parts["embedding"])
        # the masks of the encoder have even places in the stream of dropout, those of the decoder odd ones
        places = [[2 * gap + side for gap in depth[1:]] for side in range(2)]
        drops = [[Dropout(seeds, spec.dropout, place) for place in side] for side in places]
        self.encoder = DeepLSTM([layers.BiLSTM(parts[f"encoder {layer}"]) for layer in depth], drops[0])
        self.decoder = DeepLSTM([layers.BiLSTM(parts[f"decoder {layer}"]) for layer in depth], drops[1])
        self.hidden = layers.Linear(parts["hidden"]) if "hidden" in parts else None
        self.activation = torch.relu if "hidden" in parts else None
        self.output, self.query = layers.Linear(parts["output"]), layers.Linear(parts["query"])
        self.context = layers.Linear(parts["context"])

    def embed(self, batch: Batch) -> Float[Tensor, "replica batch key width"]:
        return self.embedding(batch.source)

    def encode_vectors(self, batch: Batch, embedded: Float[Tensor, "replica batch key width"]) -> States:
        maps = self._maps()
        memory, start = self._remember(batch, embedded, maps)
        decoded, _ = self.decoder(self.embedding(batch.shifted), batch.step, start=start)
        return self._states(memory, decoded, maps)

    def begin(self, batch: Batch) -> tuple[Memory, list[State]]:
        """For generation: the source, and the decoder's state before the first piece."""
        return self._remember(batch, self.embed(batch), self._maps())

    def step(
        self, memory: Memory, state: list[State], pieces: Int[Tensor, "replica source beam"]
    ) -> tuple[States, list[State]]:
        """What the attention works on after each beam of a source read one more piece, a beam as a query, and the
        decoder's next state. The states of all beams lie one after another: [replica, batch · beam, hidden]."""
        embedded = self.embedding(pieces).flatten(1, 2)[:, :, None]
        decoded, ends = self.decoder(embedded, None, start=state)
        return self._states(memory, decoded.view(*pieces.shape, -1), self._maps()), [end for (end,) in ends]

    def _remember(
        self, batch: Batch, keys: Float[Tensor, "replica batch key width"], maps: Maps
    ) -> tuple[Memory, list[State]]:
        keys, ends = self.encoder(keys, batch.step, batch.source_mask)
        start = [((ahead[0] + behind[0]) / 2, (ahead[1] + behind[1]) / 2) for ahead, behind in ends]
        return Memory(keys, layers.linear(keys, maps.on_context)), start

    def _maps(self) -> Maps:
        """W_h [s; W_c c + b_c] + b_h = W_hs s + (W_hc W_c) c + (W_hc b_c + b_h): the two maps of the context are
        merged, and applied to the states before they are averaged."""
        if self.hidden is None:
            return Maps(self.context.weight, None, self.context.bias)
        on_state, on_context = self.hidden.weight.chunk(2, dim=2)
        on_context, bias = layers.merged(on_context, self.hidden.bias, self.context.weight, self.context.bias)
        return Maps(on_context, on_state, bias)

    def _states(self, memory: Memory, decoded: Float[Tensor, "replica batch query hidden"], maps: Maps) -> States:
        if maps.on_state is None:
            base = decoded + maps.bias[:, None, None]
        else:
            base = layers.linear(decoded, maps.on_state, maps.bias)
        return States(keys=memory.keys, queries=self.query(decoded), values=memory.values, base=base)
