"""Leaving every word out of texts, against reading each of the shorter texts again, in one run.

    attndyn bench influence

Classifiers of the published size (BiLSTM, 128 units a direction; each word for itself), four replicas. Both sides get
the same texts, in the batches that attndyn takes, and one thread. The peer, `each_again`, runs the model on every
shorter text, in batches of up to 32,768 words. A ratio is printed only if both give the same differences.
"""

import time
from dataclasses import replace

import torch

from attndyn.models import Classifier, Learned
from attndyn.probes import influence
from attndyn.studies.explained_read import LEFT_OUT
from attndyn.tasks.sampler import Batch

WORDS, REPLICAS, ROUNDS = 5_000, 4, 3
SIZES = {20: 24, 60: 8, 180: 1}
"""Words of a text → texts."""
BILSTM = Classifier(width=300, hidden=128, scoring="tanh")


def made(length: int, texts: int) -> Batch:
    draw = torch.Generator().manual_seed(length)
    source = torch.randint(WORDS, (texts, length), generator=draw).expand(REPLICAS, -1, -1)
    target = torch.zeros(REPLICAS, texts, 1, dtype=torch.int64)
    return Batch(source, target, target, target, source_mask=torch.ones_like(source, dtype=torch.bool))


def main() -> None:
    torch.set_num_threads(1)
    print(f"leaving words out, {REPLICAS} replicas, one thread, torch {torch.__version__}")
    for name, spec in (("BiLSTM", BILSTM), ("each word for itself", replace(BILSTM, encoder="average"))):
        model = spec.build(WORDS, tuple(range(REPLICAS)), 2).eval()
        for length, texts in SIZES.items():
            batch, ratios = made(length, texts), []
            for _ in range(ROUNDS):
                seconds = {}
                found = {}
                for read in (influence.each_again, influence.shared):
                    started = time.perf_counter()
                    with torch.no_grad():
                        logits = [one[3] for one in read(model, Learned(), batch, LEFT_OUT)]
                    seconds[read], found[read] = time.perf_counter() - started, torch.cat(logits, dim=1)
                torch.testing.assert_close(found[influence.shared], found[influence.each_again], rtol=1e-4, atol=1e-5)
                ratios.append(seconds[influence.each_again] / seconds[influence.shared])
            low, middle, high = sorted(ratios)
            fast = 1e6 * seconds[influence.shared] / (REPLICAS * texts * length)
            print(
                f"  {name:20} {texts:3} texts of {length:3} words   {fast:7.0f} µs a word   ratio {middle:4.1f}", end=""
            )
            print(f" ({low:.1f} to {high:.1f})")


if __name__ == "__main__":
    main()
