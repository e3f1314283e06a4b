"""Copying at paper scale on the CPU: attndyn against a plain per-seed PyTorch loop, in one run.

    attndyn bench copying

The peer stands in for the authors' program (Sea-Snell/AttentionDynamics, SequenceCopying/seq2seq.py --no_rep): one
seed after the other, nn.LSTM on embedded tokens with torch's default threads, batches made by Python's shuffle, an
evaluation of 50 sequences every 10 steps with accuracy, attention accuracy and the probe. Both sides train
permutations of 40, width 256, batch 128, each in a process of its own. Only the ratio means anything: machines and
their load differ.
"""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attndyn.measures.readings import Answers, Attention, Lexical
from attndyn.models import Seq2Seq
from attndyn.process import cores, keep_freed_memory
from attndyn.runner import Runner
from attndyn.tasks import Permutations
from attndyn.training.condition import Condition
from attndyn.training.loop import Trainer
from attndyn.training.recorder import Recorder

SEEDS, STEPS, ROUNDS = 4, 30, 3
LENGTH, HIDDEN, BATCH, EVALUATION, EVERY = 40, 256, 128, 50, 10


class Plain(nn.Module):
    """The same model, written the usual way."""

    def __init__(self) -> None:
        super().__init__()
        words = LENGTH + 2
        self.embedding = nn.Embedding(words, HIDDEN)
        self.encoder, self.decoder = nn.LSTM(HIDDEN, HIDDEN), nn.LSTM(HIDDEN, HIDDEN)
        self.hidden, self.output = nn.Linear(2 * HIDDEN, HIDDEN), nn.Linear(HIDDEN, words)
        self.query, self.context = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def head(self, state: Tensor, context: Tensor) -> Tensor:
        return self.output(torch.tanh(self.hidden(torch.cat([state, context], dim=-1))))

    def forward(self, source: Tensor, shifted: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        keys, last = self.encoder(self.embedding(source))
        states, _ = self.decoder(self.embedding(shifted), last)
        alpha = torch.einsum("tbf,sbf->tbs", self.query(states), keys).softmax(dim=-1)
        context = self.context(torch.einsum("tbs,sbf->tbf", alpha, keys))
        return self.head(states, context), alpha, states, keys


def sequences(count: int) -> tuple[Tensor, Tensor]:
    rows = []
    for _ in range(count):
        words = list(range(LENGTH))
        random.shuffle(words)
        rows.append([*words, LENGTH])
    source = torch.tensor(rows).T
    return source, torch.cat([torch.full_like(source[:1], LENGTH + 1), source])


def plain_seed(seed: int, steps: int = STEPS) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    model = Plain()
    optimiser = torch.optim.Adam(model.parameters())
    for step in range(steps):
        source, target = sequences(BATCH)
        logits, *_ = model(source, target[:-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[1:].flatten())
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        if step % EVERY == 0:
            plain_evaluation(model)


def plain_evaluation(model: Plain) -> None:
    source, target = sequences(EVALUATION)
    logits, alpha, states, keys = model(source, target[:-1])
    context = model.context(keys)
    length = len(source)
    every = model.head(states[:, None].expand(-1, length, -1, -1), context[None].expand(length, -1, -1, -1)).softmax(
        dim=-1
    )
    right = torch.arange(length)[:, None]
    readings = (logits.argmax(-1) == target[1:], alpha.argmax(-1) == right)
    print(*(f"{reading.float().mean():.3f}" for reading in readings), f"{every.max():.3f}")


CONDITION = Condition(
    name="permutations",
    task=Permutations(LENGTH),
    model=Seq2Seq(HIDDEN),
    seeds=tuple(range(SEEDS)),
    steps=STEPS,
    batch=BATCH,
    evaluation=EVALUATION,
    readings=(Answers(every=EVERY), Attention(every=EVERY), Lexical(every=EVERY)),
)


def ours() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Runner([CONDITION], Recorder(Path(folder)), "cpu", lambda *where: None).execute()


def plain() -> None:
    for seed in range(SEEDS):
        plain_seed(seed)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def side(name: str) -> None:
    """Prints the seconds of one side, after a warm-up."""
    torch.set_num_threads(cores())
    if name == "ours":
        keep_freed_memory()
        Trainer(CONDITION, [0]).advance()
        print(seconds(ours))
    else:
        plain_seed(0, steps=1)
        print(seconds(plain))


def measure(name: str) -> float:
    command = [sys.executable, __file__, name]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def product_rate() -> float:
    """Multiply-adds of a 2,048² product on all cores, in FLOP/s."""
    square = torch.randn(2048, 2048)
    return 2 * 2048**3 / min(seconds(lambda: square @ square) for _ in range(5))


def products_per_step() -> float:
    """FLOP of the matrix products of one training step of one replica, forward and backward (twice the forward)."""
    tokens, width, words = BATCH * (LENGTH + 1), HIDDEN, LENGTH + 2
    recurrent = 2 * 2 * tokens * width * 4 * width  # encoder and decoder
    projected = 2 * 2 * tokens * words * 4 * width  # one-hot inputs; needs no gradient for the input
    maps = 3 * 2 * tokens * width * width + 2 * tokens * width * words  # query, values, base; output
    attention = 2 * 2 * tokens * (LENGTH + 1) * width  # scores, context
    return 3 * (recurrent + maps + attention) + 2 * projected


def main() -> None:
    rounds = [(measure("plain"), measure("ours")) for _ in range(ROUNDS)]
    peer, own = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratios = sorted(a / b for a, b in rounds)
    rate = product_rate()
    share = products_per_step() * STEPS * SEEDS / own / rate
    print(
        f"copying, permutations of {LENGTH}, {SEEDS} seeds × {STEPS} steps, {cores()} cores, torch {torch.__version__}"
    )
    print(f"  plain loop   {peer:6.1f} s   {1000 * peer / SEEDS / STEPS:5.0f} ms a seed and step")
    print(f"  attndyn      {own:6.1f} s   {1000 * own / SEEDS / STEPS:5.0f} ms a seed and step")
    print(f"  ratio        {statistics.median(ratios):6.2f}     ({', '.join(f'{ratio:.2f}' for ratio in ratios)})")
    print(f"  attndyn's matrix products run at {100 * share:.0f} % of this machine's {rate / 1e9:.0f} GFLOP/s")
    left = 200 / STEPS * own / SEEDS
    print(f"  one seed of 200 steps: about {left:.0f} s")


if __name__ == "__main__":
    side(sys.argv[1]) if sys.argv[1:] in (["plain"], ["ours"]) else main()
