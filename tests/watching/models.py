"""Small models whose attention is watched in tests."""

from typing import Any

import torch
from torch import Tensor, nn

BATCH, LENGTH, WORDS, WIDTH = 5, 7, 20, 16


class Additive(nn.Module):
    """Bahdanau's attention, as people write it: the model below knows nothing of attndyn."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.map, self.weigh = nn.Linear(2 * width, width), nn.Linear(width, 1)

    def forward(self, state: Tensor, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        pair = torch.cat([state[:, None].expand_as(states), states], dim=-1)
        scores = self.weigh(torch.tanh(self.map(pair)))[..., 0].masked_fill(~mask, -1e9)
        weights = torch.softmax(scores, dim=1)
        return (weights[:, :, None] * states).sum(dim=1), weights


class LstmClassifier(nn.Module):
    """An LSTM whose last state attends to all states, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.dropout = nn.Dropout(0.3)
        self.attention = Additive(WIDTH)
        self.output = nn.Linear(WIDTH, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        states, (last, _) = self.lstm(self.dropout(self.embedding(tokens)))
        context, _ = self.attention(last[0], states, tokens > 0)
        return self.output(self.dropout(context))


class LstmTranslator(nn.Module):
    """Calls its attention once for each output position."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.encoder = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.cell = nn.LSTMCell(WIDTH, WIDTH)
        self.attention = Additive(WIDTH)
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        states, (h, c) = self.encoder(self.embedding(source))
        h, c = h[0], c[0]
        logits = []
        for token in target.unbind(dim=1):
            h, c = self.cell(self.embedding(token), (h, c))
            context, _ = self.attention(h, states, source > 0)
            logits.append(self.output(h + context))
        return torch.stack(logits, dim=1)


class Encoder(nn.Module):
    """PyTorch's own transformer encoder over tokens, with dropout."""

    def __init__(self, dropout: float = 0.2, batch_first: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=batch_first)
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: Tensor) -> Tensor:
        padding = tokens == 0 if self.encoder.layers[0].self_attn.batch_first else (tokens == 0).T
        return self.output(self.encoder(self.embedding(tokens), src_key_padding_mask=padding))


def tokens(seed: int = 0) -> Tensor:
    """Words 1 to 19; the first example is padded with 0."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(1, WORDS, (BATCH, LENGTH), generator=generator)
    drawn[0, 4:] = 0
    return drawn


def bert(attention: str = "sdpa", width: int = WIDTH, **settings: Any) -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=WORDS, hidden_size=width, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=16, attn_implementation=attention, num_labels=3, **settings,
    )  # fmt: skip
    return BertForSequenceClassification(config)


def gpt2(attention: str = "sdpa") -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=WORDS, n_embd=WIDTH, n_layer=2, n_head=2, n_positions=16, attn_implementation=attention,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def padded(words: Tensor) -> dict[str, Tensor]:
    return {"input_ids": words, "attention_mask": (words > 0).long()}
