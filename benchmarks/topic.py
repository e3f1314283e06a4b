"""The topic model of Lu et al. on its synthetic task, against a plain PyTorch loop over tokens, in one run.

    attndyn bench topic

FC, TC and TL on 4,000 training sentences of 21 words, full-batch gradient descent at step size .1. The peer is the
model written as it reads: embedding and key of every token, softmax, classifier, autograd, torch.optim.SGD, in float32.
attndyn computes in float64. Both take EPOCHS steps from the same weights on one thread; a ratio is printed only if both
end with the same loss. The last line is scaled to the published 5,000 epochs.
"""

import time

import numpy as np
import torch
from torch.nn import functional as F

from attndyn.models.topic import Topic, TopicModel
from attndyn.process import keep_freed_memory
from attndyn.tasks.topics import Bags, TopicWords

EPOCHS, PUBLISHED, RATE = 100, 5_000, 0.1


def tokens(bags: Bags) -> torch.Tensor:
    """[sentence, word], a word that occurs twice twice; every sentence has 21."""
    counts = bags.counts
    ids = np.repeat(counts.indices, counts.data.astype(int))
    return torch.tensor(ids.reshape(len(bags), -1), dtype=torch.int64)


def plain(model: TopicModel, bags: Bags) -> tuple[float, float]:
    """Seconds and final loss of the loop over tokens."""
    ids, labels = tokens(bags), torch.tensor(bags.labels)
    w = {name: torch.tensor(value, dtype=torch.float32) for name, value in model.weights.items()}
    for name in model.trained:
        w[name].requires_grad_()
    optimiser = torch.optim.SGD([w[name] for name in model.trained], lr=RATE)

    def loss() -> torch.Tensor:
        attention = torch.softmax(F.embedding(ids, w["keys"]) @ w["query"], dim=1)
        logits = torch.einsum("nl,nld->nd", attention, F.embedding(ids, w["embeddings"])) @ w["A"].T
        if "B" in w:
            logits = torch.relu(logits + w["b"]) @ w["B"].T + w["c"]
        return F.cross_entropy(logits, labels)

    started = time.perf_counter()
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()
    return time.perf_counter() - started, loss().item()


def exact(model: TopicModel, bags: Bags) -> tuple[float, float]:
    started = time.perf_counter()
    for _ in range(EPOCHS):
        model.step(model.slope(bags), RATE)
    return time.perf_counter() - started, model.read(bags).loss(bags.labels)


def main() -> None:
    keep_freed_memory()
    torch.set_num_threads(1)
    bags = TopicWords().draw(0).train
    print(f"topic words, {len(bags):,} sentences, {EPOCHS} epochs, one thread, torch {torch.__version__}")
    totals = np.zeros(2)
    for kind in ("FC", "TC", "TL"):
        spec = Topic(kind)
        slow, expected = plain(spec.build(len(bags.words), 4, 0), bags)
        fast, found = exact(spec.build(len(bags.words), 4, 0), bags)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        totals += slow, fast
        print(f"  {kind}   plain {slow:6.2f} s   attndyn {fast:5.2f} s   ratio {slow / fast:4.1f}")
    scale = PUBLISHED / EPOCHS
    print(f"  all {PUBLISHED:,} epochs: plain {totals[0] * scale:.0f} s, attndyn {totals[1] * scale:.0f} s")


if __name__ == "__main__":
    main()
