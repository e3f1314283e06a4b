"""The translator of one replica and one sentence pair, straight from its equations: no padding, no merged maps.

h = deep BiLSTM(e(x)),  s = deep LSTM(e(y)), started from the mean of both directions' last (h, c), layer by layer
α_t = softmax_l (W_q s_t + b_q) · h_l
c_t = W_c Σ_l α_tl h_l + b_c
hidden head: logits = W_o relu(W_h [s_t; c_t] + b_h) + b_o
linear head: logits = W_o (s_t + c_t) + b_o
"""

import torch
from torch import Tensor, nn

from attndyn.tasks.sampler import Batch

WORDS = 13
SOURCES, TARGETS = [3, 6, 1, 5], [4, 2, 5, 1]


class PlainTranslator(nn.Module):
    """Parts are made in the order: embedding, encoder, decoder, hidden, output, query, context."""

    def __init__(self, hidden: int, vocabulary: int, head: str, seed: int) -> None:
        super().__init__()
        state = torch.get_rng_state()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.encoder = nn.LSTM(hidden, hidden, num_layers=2, bidirectional=True)
        self.decoder = nn.LSTM(hidden, hidden, num_layers=2)
        self.hidden = nn.Linear(2 * hidden, hidden) if head == "hidden" else None
        self.output = nn.Linear(hidden, vocabulary)
        self.query = nn.Linear(hidden, 2 * hidden)
        self.context = nn.Linear(2 * hidden, hidden)
        torch.set_rng_state(state)

    def states(self, source: Tensor, shifted: Tensor) -> tuple[Tensor, Tensor]:
        keys, last = self.encoder(self.embedding(source))
        start = tuple(part.unflatten(0, (2, 2)).mean(dim=1) for part in last)  # [layer, direction, hidden]
        decoded, _ = self.decoder(self.embedding(shifted), start)
        return keys, decoded

    def forward(self, source: Tensor, shifted: Tensor, alpha: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """source [key], shifted [query] -> logits [query, output], α [query, key]; or under another α."""
        keys, decoded = self.states(source, shifted)
        if alpha is None:
            alpha = (self.query(decoded) @ keys.T).softmax(dim=-1)
        context = self.context(alpha @ keys)
        if self.hidden is None:
            return self.output(decoded + context), alpha
        return self.output(self.hidden(torch.cat([decoded, context], dim=-1)).relu()), alpha

    def named(self) -> dict[str, nn.Parameter]:
        """The parameters under the names of the replica model, whose LSTMs are lists of layers."""
        found = {}
        for name, parameter in self.named_parameters():
            part, _, rest = name.partition(".")
            if part in ("encoder", "decoder"):
                layer = 1 if "_l1" in rest else 0
                name = f"{part}.lstms.{layer}.{rest.replace('_l1', '_l0')}"
            found[name] = parameter
        return found


def sentences(replicas: int, more: int = 0) -> Batch:
    """Pairs of different lengths, padded with words that must not matter."""

    def side(lengths: list[int], seed: int) -> tuple[Tensor, Tensor]:
        draw, longest = torch.Generator().manual_seed(seed), max(lengths)
        words = torch.randint(WORDS, (replicas, len(lengths), longest), generator=draw)
        rest = torch.randint(WORDS, (replicas, len(lengths), more), generator=draw)
        mask = (torch.arange(longest + more) < torch.tensor(lengths)[:, None]).expand(replicas, -1, -1)
        return torch.cat([words, rest], dim=-1), mask

    (source, source_mask), (target, target_mask) = side(SOURCES, 0), side(TARGETS, 1)
    shifted = torch.cat([torch.zeros_like(target[..., :1]), target[..., :-1]], dim=-1)
    return Batch(source, shifted, target, torch.zeros_like(target), source_mask, target_mask)
