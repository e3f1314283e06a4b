"""What watching costs: a small BERT learns to tell spam, watched and not watched, in one run.

    attndyn bench watch

The model, the data and the cadence are those of docs/examples/watch_sms.py: 1,000 steps of 32 messages, a reading every
50 steps, Δ and β at the readings 0, 1, 2, 4, 8, 16 and at the end. Two equal models take turns of 50 steps, each with
its own random state, on one thread; what is compared is processor time, as sums over the run and as medians of a step
and of a reading, which a busy machine moves less. At the end both must hold the same bits. The page is drawn after
training, and is timed apart. The messages are those of $ATTNDYN_DATA/sms_spam/train.tsv.xz;
without it, made ones of the same number and lengths.
"""

import os
import runpy
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import attndyn

EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "examples" / "watch_sms.py"
STEPS, TURN = 1000, 50


def messages(example: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor, list[str], str]:
    path = Path(os.environ.get("ATTNDYN_DATA", "")) / "sms_spam" / "train.tsv.xz"
    if path.is_file():
        return *example["encode"](example["read_labelled"](path)), "SMS Spam"
    random = np.random.default_rng(0)
    count, words = 4460, example["WORDS"]
    ids = torch.from_numpy(random.integers(3, 3 + words, (count, 1 + example["LENGTH"])))
    lengths = torch.from_numpy(random.gamma(1.6, 11, count)).clamp(1, example["LENGTH"]).round()
    ids = ids.where(torch.arange(1 + example["LENGTH"]) <= lengths[:, None], 0)
    ids[:, 0] = 1
    return ids, torch.from_numpy(random.integers(0, 2, count)), [str(i) for i in range(3 + words)], "made messages"


class Training:
    """A model, its optimiser and its own random state."""

    def __init__(self, example: dict[str, Any], words: int) -> None:
        torch.manual_seed(0)
        self.model = example["build"](words)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.state = torch.get_rng_state()
        self.watch: Any = None
        self.steps: list[float] = []
        self.readings: dict[bool, list[float]] = {False: [], True: []}
        """By whether Δ and β were taken."""

    def turn(self, first: int, batch: Any) -> None:
        torch.set_rng_state(self.state)
        for step in range(first, first + TURN):
            started = time.process_time()
            if self.watch is not None:
                self.watch.step(step)
            read = time.process_time()
            loss = self.model(**batch(step)).loss
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            self.steps.append(time.process_time() - read)
            if self.watch is not None and self.watch.schedule.due(step):
                count = step // TURN
                self.readings[count & (count - 1) == 0].append(read - started)
        if self.watch is not None and first + TURN == STEPS:
            started = time.process_time()
            self.watch.read(STEPS, probing=True)
            self.readings[True].append(time.process_time() - started)
        self.state = torch.get_rng_state()

    @property
    def seconds(self) -> float:
        return sum(self.steps) + sum(map(sum, self.readings.values()))


def main() -> None:
    torch.set_num_threads(1)
    example = runpy.run_path(str(EXAMPLE))
    ids, labels, texts, name = messages(example)
    watched, training = example["split"](ids, labels)
    rows = training.nonzero()[:, 0]

    def batch(step: int) -> dict[str, torch.Tensor]:
        chosen = rows[torch.arange(step * example["BATCH"], (step + 1) * example["BATCH"]) % len(rows)]
        return {**example["batch_of"](ids[chosen]), "labels": labels[chosen]}

    plain, seen = Training(example, len(texts)), Training(example, len(texts))
    with tempfile.TemporaryDirectory() as folder:
        seen.watch = attndyn.watch(
            seen.model, example["batch_of"](ids[watched]), out=Path(folder) / "run", targets=labels[watched], query=0,
            tokens=texts,
        )  # fmt: skip
        for first in range(0, STEPS, TURN):
            for one in (plain, seen):
                one.turn(first, batch)
        started = time.process_time()
        run = seen.watch.close()
        page = time.process_time() - started
        size = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file()) / 1e6
    same = all(
        torch.equal(a, b)
        for a, b in zip(plain.model.state_dict().values(), seen.model.state_dict().values(), strict=True)
    )
    print(f"watch, {name}, {STEPS} steps of {example['BATCH']}, one thread, torch {torch.__version__}")
    step = statistics.median(plain.steps)
    reading = {probing: statistics.median(times) for probing, times in seen.readings.items()}
    typical = sum(len(times) * reading[probing] for probing, times in seen.readings.items())
    print(f"  not watched  {plain.seconds:6.1f} s   a step {1e3 * step:.1f} ms in the median")
    print(f"  watched      {seen.seconds:6.1f} s   a step {1e3 * statistics.median(seen.steps):.1f} ms")
    for probing, times in seen.readings.items():
        what = "with Δ and β" if probing else "of α alone"
        print(f"  {len(times):2d} readings {what}, {1e3 * reading[probing]:.1f} ms each in the median")
    print(f"  ratio {seen.seconds / plain.seconds:.3f}; from the medians {1 + typical / (STEPS * step):.3f}")
    print(f"  the page     {page:6.1f} s   the folder {size:.1f} MB")
    print(f"  the same bits at the end: {'yes' if same else 'NO'}")
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
