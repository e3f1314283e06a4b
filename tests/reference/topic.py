"""The topic model token by token in torch, with autograd: the definition that `models/topic.py` is held to."""

import numpy as np
import torch
from torch.nn import functional as F

from attndyn.models.topic import TopicModel
from attndyn.tasks.topics import Bags


def tokens(bags: Bags) -> list[list[int]]:
    return [np.repeat(np.arange(len(bags.words)), row.toarray().ravel().astype(int)).tolist() for row in bags.counts]


def weights(model: TopicModel) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value, requires_grad=True) for name, value in model.weights.items()}


def contexts(w: dict[str, torch.Tensor], bags: Bags) -> torch.Tensor:
    rows = []
    for sentence in tokens(bags):
        attention = torch.softmax(w["keys"][sentence] @ w["query"], dim=0)
        rows.append(attention @ w["embeddings"][sentence])
    return torch.stack(rows)


def loss(w: dict[str, torch.Tensor], bags: Bags, context: torch.Tensor) -> torch.Tensor:
    logits = context @ w["A"].T
    if "B" in w:
        logits = torch.relu(logits + w["b"]) @ w["B"].T + w["c"]
    return F.cross_entropy(logits, torch.tensor(bags.labels))


def pull(model: TopicModel, bags: Bags) -> np.ndarray:
    """Σ a_w h·v over the sentences that hold w, each token counted."""
    w = weights(model)
    context = contexts(w, bags)
    (h,) = torch.autograd.grad(loss(w, bags, context), context)
    sums = np.zeros(len(bags.words))
    for n, sentence in enumerate(tokens(bags)):
        attention = torch.softmax(w["keys"][sentence] @ w["query"], dim=0)
        np.add.at(sums, sentence, (attention * (h[n] @ context[n])).detach().numpy())
    return sums
