"""A training step of the translator at its published size, against batch, length and number of replicas, beside a plain
per-seed PyTorch loop in the same run.

    attndyn bench translation

The peer stands in for the authors' program: the same parts as plain modules (nn.LSTM of two layers through cuDNN on a
GPU), one seed after the other, torch's Adam, batches that are on the device already. Sources and targets are i.i.d.
words of 8,000, all of one length, so that a row of the table is about one shape. Only ratios mean anything: machines
and their load differ.
"""

import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attndyn.models import Translator
from attndyn.process import cores, keep_freed_memory
from attndyn.runner import Runner
from attndyn.tasks import Iid
from attndyn.training.condition import Condition
from attndyn.training.precision import Precision, products
from attndyn.training.recorder import Recorder

WORDS, HIDDEN, DROPOUT = 8000, 256, 0.5
BATCH, LENGTH, REPLICAS = 16, 16, 7


class Plain(nn.Module):
    """The same model, written the usual way."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS + 2, HIDDEN)
        self.encoder = nn.LSTM(HIDDEN, HIDDEN, 2, dropout=DROPOUT, bidirectional=True)
        self.decoder = nn.LSTM(HIDDEN, HIDDEN, 2, dropout=DROPOUT)
        self.query, self.context = nn.Linear(HIDDEN, 2 * HIDDEN), nn.Linear(2 * HIDDEN, HIDDEN)
        self.hidden, self.output = nn.Linear(2 * HIDDEN, HIDDEN), nn.Linear(HIDDEN, WORDS + 2)

    def forward(self, source: Tensor, shifted: Tensor) -> Tensor:
        keys, last = self.encoder(self.embedding(source))
        start = tuple(part.unflatten(0, (2, 2)).mean(dim=1) for part in last)
        states, _ = self.decoder(self.embedding(shifted), start)
        alpha = torch.einsum("tbf,sbf->tbs", self.query(states), keys).softmax(dim=-1)
        context = self.context(torch.einsum("tbs,sbf->tbf", alpha, keys))
        return self.output(torch.relu(self.hidden(torch.cat([states, context], dim=-1))))


def wait(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def plain_step(batch: int, length: int, steps: int, device: str) -> float:
    """Seconds of a step of one seed."""
    torch.manual_seed(0)
    model = Plain().to(device)
    optimiser = torch.optim.Adam(model.parameters())
    source, target = torch.randint(WORDS, (2, length + 1, batch), device=device)
    started = 0.0
    for step in range(steps + 3):
        if step == 3:
            started = wait(device)
        loss = F.cross_entropy(model(source, target).flatten(0, 1), target.flatten())
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    return (wait(device) - started) / steps


def our_step(replicas: int, batch: int, length: int, steps: int, device: str, precision: Precision) -> float:
    """Seconds of a step of all replicas together."""

    def run(steps: int) -> float:
        condition = Condition(
            name="translator", task=Iid(length, WORDS), model=Translator(hidden=HIDDEN, dropout=DROPOUT),
            seeds=tuple(range(replicas)), steps=steps, batch=batch, evaluation=1,
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            runner = Runner([condition], Recorder(Path(folder)), device, lambda *where: None, precision=precision)
            runner.execute()
        return runner.seconds

    few = max(1, steps // 10)
    run(few)  # compiles, and fills caches
    return (run(steps) - run(few)) / (steps - few)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    precision: Precision = "tf32" if device == "cuda" else "fp32"
    steps = 300 if device == "cuda" else 6
    torch.set_num_threads(cores())
    keep_freed_memory()
    where = torch.cuda.get_device_name() if device == "cuda" else f"{cores()} cores"
    print(f"translator of {HIDDEN}, {WORDS:,} words, {where}, {precision}, torch {torch.__version__}")
    print("  replicas  batch  length     a step  a replica and step  plain loop, a seed and step  ratio")
    shapes = [(REPLICAS, BATCH, LENGTH)]
    if device == "cuda":
        shapes += [(replicas, BATCH, LENGTH) for replicas in (1, 3, 14, 28)]
        shapes += [(REPLICAS, batch, LENGTH) for batch in (32, 64)]
        shapes += [(REPLICAS, BATCH, length) for length in (8, 32, 64)]
    else:
        shapes = [(2, BATCH, LENGTH), (4, BATCH, LENGTH), (2, 32, LENGTH), (2, BATCH, 32)]
    for replicas, batch, length in shapes:
        with products(precision):
            peer = plain_step(batch, length, steps, device)
        own = our_step(replicas, batch, length, steps, device, precision)
        print(
            f"  {replicas:8d} {batch:6d} {length:7d} {1000 * own:8.2f} ms {1000 * own / replicas:16.3f} ms "
            f"{1000 * peer:25.2f} ms {replicas * peer / own:6.1f}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
