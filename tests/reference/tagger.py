"""The tagger one sentence, one head and one query at a time, in plain PyTorch; and chunks out of lists of tags."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def positions(length: int, width: int) -> Tensor:
    half = width // 2
    rows = []
    for t in range(length):
        angles = [t / 10_000 ** (i / (half - 1)) for i in range(half)]
        rows.append([math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles])
    return torch.tensor(rows)


def tag(model: Any, replica: int, words: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [word, tag] and attention [head, query, key] of one sentence without padding."""

    def linear(part: str, x: Tensor) -> Tensor:
        layer = getattr(model, part)
        bias = getattr(layer, "bias", None)
        return F.linear(x, layer.weight[replica], None if bias is None else bias[replica])

    def norm(part: str, x: Tensor) -> Tensor:
        layer = getattr(model, part)
        return F.layer_norm(x, x.shape[-1:], layer.weight[replica], layer.bias[replica])

    x = linear("project", model.embedding.weight[replica][words])
    x = x + positions(len(words), x.shape[1]).to(x.dtype)
    queries, keys, values = (linear(part, norm("before", x)) for part in ("query", "key", "value"))
    size = x.shape[1] // model.heads
    contexts, attention = [], []
    for head in range(model.heads):
        own = slice(head * size, (head + 1) * size)
        rows = [torch.softmax(keys[:, own] @ queries[t, own] / math.sqrt(size), dim=0) for t in range(len(words))]
        contexts.append(torch.stack([row @ values[:, own] for row in rows]))
        attention.append(torch.stack(rows))
    x = x + linear("context", torch.cat(contexts, dim=1))
    x = x + linear("second", linear("first", norm("between", x)).relu()).relu()
    return linear("output", norm("after", x)), torch.stack(attention)


def chunks(tags: list[str]) -> set[tuple[int, int, str]]:
    """(first word, last word, kind) of every chunk."""
    found, start = set(), None
    for t, tag in enumerate([*tags, "O"]):
        before = tags[t - 1] if t else "O"
        goes_on = tag[:2] == "I-" and before[:2] in ("B-", "I-") and before[2:] == tag[2:]
        if start is not None and not goes_on:
            found.add((start, t - 1, tags[start][2:]))
            start = None
        if tag[:2] in ("B-", "I-") and not goes_on:
            start = t
    return found


def f1(predicted: list[list[str]], true: list[list[str]]) -> float:
    pairs = [(chunks(ours), chunks(theirs)) for ours, theirs in zip(predicted, true, strict=True)]
    right = sum(len(ours & theirs) for ours, theirs in pairs)
    found, there = (sum(len(pair[side]) for pair in pairs) for side in (0, 1))
    if not right:
        return 0.0
    precision, recall = right / found, right / there
    return 2 * precision * recall / (precision + recall)
