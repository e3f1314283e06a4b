"""The copying translator of one replica, straight from its equations: no merged maps, no replica axis.

h_l = encoder(e(x_l)),  s_t = decoder(e(y_{t-1})), started from the encoder's last (h, c)
α_t = softmax_l (W_q s_t + b_q) · h_l
c_t = Σ_l α_tl h_l
code: logits = W_o tanh(W_h [s_t; W_c c_t + b_c] + b_h) + b_o
text: logits = W_o relu(W_h [s_t; c_t] + b_h) + b_o, and b_q = 0
"""

import torch
from torch import Tensor, nn


class PlainTranslator(nn.Module):
    """Parts are made in the order: embedding, encoder, decoder, hidden, output, query, context."""

    def __init__(self, hidden: int, vocabulary: int, reading: str, seed: int) -> None:
        super().__init__()
        self.reading = reading
        state = torch.get_rng_state()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.encoder = nn.LSTM(hidden, hidden, batch_first=True)
        self.decoder = nn.LSTM(hidden, hidden, batch_first=True)
        self.hidden = nn.Linear(2 * hidden, hidden)
        self.output = nn.Linear(hidden, vocabulary)
        self.query = nn.Linear(hidden, hidden, bias=reading == "code")
        if reading == "code":
            self.context = nn.Linear(hidden, hidden)
        torch.set_rng_state(state)

    def states(self, source: Tensor, shifted: Tensor) -> tuple[Tensor, Tensor]:
        keys, last = self.encoder(self.embedding(source))
        decoded, _ = self.decoder(self.embedding(shifted), last)
        return keys, decoded

    def scores(self, source: Tensor, shifted: Tensor) -> Tensor:
        keys, decoded = self.states(source, shifted)
        return torch.einsum("btd,bld->btl", self.query(decoded), keys)

    def logits(self, source: Tensor, shifted: Tensor, alpha: Tensor) -> Tensor:
        """source [batch, key], shifted [batch, query], alpha [batch, query, key]"""
        keys, decoded = self.states(source, shifted)
        context = torch.einsum("btl,bld->btd", alpha, keys)
        if self.reading == "code":
            return self.output(torch.tanh(self.hidden(torch.cat([decoded, self.context(context)], dim=-1))))
        return self.output(torch.relu(self.hidden(torch.cat([decoded, context], dim=-1))))

    def forward(self, source: Tensor, shifted: Tensor) -> tuple[Tensor, Tensor]:
        alpha = torch.softmax(self.scores(source, shifted), dim=-1)
        return self.logits(source, shifted, alpha), alpha
