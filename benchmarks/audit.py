"""`attndyn audit` on real training: nothing may be found in series as they were saved, and each planted fault should be
found as what it is, and nothing else. Eight schedules of a small transformer on the letters of the text that ships.

    attndyn bench audit        three minutes
"""

from __future__ import annotations

import lzma
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import attndyn
from attndyn.audit.files import Checkpoint, open_series
from attndyn.audit.rules import findings
from attndyn.audit.scan import Scan, scan

STEPS, LENGTH, WIDTH = 600, 32, 64
TEXT = Path(attndyn.__file__).parent / "tasks" / "data" / "tatoeba_de_en_small" / "train.en.xz"


def cosine(step: int) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(1, step / STEPS)))


def warm(step: int) -> float:
    return min(1, (step + 1) / 100) * cosine(step)


def adam(weights: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(weights, lr=3e-3)


REGULAR = range(0, STEPS + 1, 25)
SCHEDULES: dict[str, tuple[Callable[[Any], torch.optim.Optimizer], Callable[[int], float], Any]] = {
    "Adam, constant rate": (adam, lambda step: 1.0, REGULAR),
    "Adam, warm-up and cosine": (adam, warm, REGULAR),
    "Adam, cosine, 5 checkpoints": (adam, cosine, range(0, STEPS + 1, 150)),
    "Adam, restarts": (adam, lambda step: cosine(4 * (step % 150)), REGULAR),
    "Adam, steps 1, 2, 4, …": (adam, lambda step: 1.0, [0, *(2**k for k in range(10))]),
    "Adam, first 1, 2, 4, … then each 50": (adam, warm, [0, 1, 2, 4, 8, 16, 32, *range(50, STEPS + 1, 50)]),
    "SGD with momentum, cosine": (lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.9), cosine, REGULAR),
    "SGD, rate cut at 300 and 450": (
        lambda w: torch.optim.SGD(w, lr=0.3), lambda step: 1.0 if step < 300 else 0.1 if step < 450 else 0.01, REGULAR,
    ),
}  # fmt: skip


class Model(nn.Module):
    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 128, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, letters)
        self.mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)

    def forward(self, words: Tensor) -> Tensor:
        return self.out(self.layers(self.letters(words) + self.places.weight, mask=self.mask, is_causal=True))


def train(name: str, folder: Path) -> list[Checkpoint]:
    make, rate, kept = SCHEDULES[name]
    text = lzma.decompress(TEXT.read_bytes()).decode()
    letters = {letter: number for number, letter in enumerate(sorted(set(text)))}
    numbers = torch.tensor([letters[letter] for letter in text])
    torch.manual_seed(0)
    model = Model(len(letters))
    optimiser = make(model.parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    draw = torch.Generator().manual_seed(1)
    paths = []
    for step in range(STEPS + 1):
        if step in kept:
            paths.append(folder / f"step-{step}.safetensors")
            save_file(model.state_dict(), paths[-1])
        starts = torch.randint(0, len(numbers) - LENGTH - 1, (16, 1), generator=draw)
        batch = numbers[starts + torch.arange(LENGTH + 1)]
        loss = nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return open_series(paths)


def faults(steps: list[int]) -> Iterator[tuple[str, list[int], list[int]]]:
    """The kind, what lies at each step then, and the steps that should be named: every one there is."""
    for i, j in combinations(range(len(steps)), 2):
        order = list(range(len(steps)))
        order[i], order[j] = j, i
        yield "swapped", order, [steps[i], steps[j]]
    for i, j in permutations(range(len(steps)), 2):
        order = list(range(len(steps)))
        order[i] = j
        yield "duplicate", order, sorted([steps[i], steps[j]])


def reorder(scanned: Scan, order: list[int]) -> Scan:
    digests, distance = [scanned.digests[index] for index in order], scanned.distance[np.ix_(order, order)]
    return replace(scanned, digests=digests, distance=distance)


def main() -> None:
    print("series                              as saved   swapped: exact, silent, other   duplicate: exact, other")
    for name in SCHEDULES:
        with tempfile.TemporaryDirectory() as folder:
            series = train(name, Path(folder))
            scanned = scan(series)
        clean = findings(series, scanned)
        counts: Counter[tuple[str, str]] = Counter()
        for kind, order, steps in faults([checkpoint.step for checkpoint in series]):
            found = [(item["kind"], item["steps"]) for item in findings(series, reorder(scanned, order))]
            counts[kind, "exact" if found == [(kind, steps)] else "other" if found else "silent"] += 1
        swaps = [counts["swapped", how] for how in ("exact", "silent", "other")]
        copies = [counts["duplicate", how] for how in ("exact", "other")]
        print(f"{name:<36}{len(clean):>4}      {swaps[0]:>10}{swaps[1]:>8}{swaps[2]:>8}{copies[0]:>16}{copies[1]:>8}")


if __name__ == "__main__":
    main()
