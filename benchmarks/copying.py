"""Copying at paper scale: attndyn against a plain per-seed PyTorch loop, in one run; on a GPU also its scaling.

    attndyn bench copying

The peer stands in for the authors' program (Sea-Snell/AttentionDynamics, SequenceCopying/seq2seq.py --no_rep): one
seed after the other, nn.LSTM on embedded tokens with torch's default threads, batches made by Python's shuffle, an
evaluation of 50 sequences every 10 steps with accuracy, attention accuracy and the probe. Both sides train
permutations of 40, width 256, batch 128; on the CPU each in a process of its own. Only the ratio means anything:
machines and their load differ. The share of the roofline is the rate of the step's matrix products over that of one
large product in the same precision.
"""

import contextlib
import io
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
from attndyn.training.precision import Precision, products
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


def sequences(count: int, device: str) -> tuple[Tensor, Tensor]:
    rows = []
    for _ in range(count):
        words = list(range(LENGTH))
        random.shuffle(words)
        rows.append([*words, LENGTH])
    source = torch.tensor(rows, device=device).T
    return source, torch.cat([torch.full_like(source[:1], LENGTH + 1), source])


def plain_seed(seed: int, steps: int = STEPS, device: str = "cpu") -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    model = Plain().to(device)
    optimiser = torch.optim.Adam(model.parameters())
    for step in range(steps):
        source, target = sequences(BATCH, device)
        logits, *_ = model(source, target[:-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[1:].flatten())
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        if step % EVERY == 0:
            plain_evaluation(model, device)


def plain_evaluation(model: Plain, device: str) -> None:
    source, target = sequences(EVALUATION, device)
    logits, alpha, states, keys = model(source, target[:-1])
    context = model.context(keys)
    length = len(source)
    every = model.head(states[:, None].expand(-1, length, -1, -1), context[None].expand(length, -1, -1, -1)).softmax(
        dim=-1
    )
    right = torch.arange(length, device=device)[:, None]
    readings = (logits.argmax(-1) == target[1:], alpha.argmax(-1) == right)
    print(*(f"{reading.float().mean():.3f}" for reading in readings), f"{every.max():.3f}")


def condition(seeds: int = SEEDS, steps: int = STEPS, length: int = LENGTH, hidden: int = HIDDEN) -> Condition:
    return Condition(
        name="permutations",
        task=Permutations(length),
        model=Seq2Seq(hidden),
        seeds=tuple(range(seeds)),
        steps=steps,
        batch=BATCH,
        evaluation=EVALUATION,
        readings=(Answers(every=EVERY), Attention(every=EVERY), Lexical(every=EVERY)),
    )


def ours(what: Condition, device: str = "cpu", precision: Precision = "fp32") -> float:
    """Seconds of training and reading, saves not counted."""
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner([what], Recorder(Path(folder)), device, lambda *where: None, precision=precision)
        runner.execute()
    return runner.seconds


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
        Trainer(condition(), [0]).advance()
        print(seconds(lambda: ours(condition())))
    else:
        plain_seed(0, steps=1)
        print(seconds(plain))


def measure(name: str) -> float:
    command = [sys.executable, __file__, name]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def product_rate(device: str = "cpu", precision: Precision = "fp32") -> float:
    """FLOP/s of a large square product on the whole device."""
    size = 2048 if device == "cpu" else 8192
    square = torch.randn(size, size, device=device, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)

    def work() -> None:
        for _ in range(1 if device == "cpu" else 20):
            _ = square @ square
        if device == "cuda":
            torch.cuda.synchronize()

    with products(precision):
        return 2 * size**3 * (1 if device == "cpu" else 20) / min(seconds(work) for _ in range(5))


def products_per_step(length: int = LENGTH, width: int = HIDDEN) -> float:
    """FLOP of the matrix products of one training step of one replica, forward and backward (twice the forward)."""
    tokens, words = BATCH * (length + 1), length + 2
    recurrent = 2 * 2 * tokens * width * 4 * width  # encoder and decoder
    projected = 2 * 2 * tokens * words * 4 * width  # one-hot inputs; needs no gradient for the input
    maps = 3 * 2 * tokens * width * width + 2 * tokens * width * words  # query, values, base; output
    attention = 2 * 2 * tokens * (length + 1) * width  # scores, context
    return 3 * (recurrent + maps + attention) + 2 * projected


def on_the_cpu() -> None:
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


def on_the_gpu() -> None:
    precisions: tuple[Precision, ...] = ("fp32", "tf32", "bf16")
    rates = {precision: product_rate("cuda", precision) for precision in precisions}
    print(f"copying, permutations of {LENGTH}, {torch.cuda.get_device_name()}, torch {torch.__version__}")
    print("  one large product: " + ", ".join(f"{name} {rate / 1e12:.0f} TFLOP/s" for name, rate in rates.items()))

    def line(seeds: int, steps: int, precision: Precision, length: int = LENGTH, hidden: int = HIDDEN) -> float:
        what = condition(seeds, steps, length, hidden)
        ours(condition(seeds, 3, length, hidden), "cuda", precision)  # compiles, and fills caches
        own = ours(what, "cuda", precision)
        share = products_per_step(length, hidden) * seeds * steps / own / rates[precision]
        print(
            f"  {seeds:5d} {length:6d} {hidden:6d} {precision:>9} {steps:5d} {own:8.2f} s {1000 * own / steps:8.2f} ms"
            f" {1000 * own / steps / seeds:9.3f} ms {100 * share:6.1f} %",
            flush=True,
        )
        return own

    print("  seeds length hidden precision steps     time     a step   a seed and step  roofline")
    twenty = {precision: line(20, 200, precision) for precision in precisions}
    for seeds, steps in ((1, 200), (5, 200), (100, 100), (400, 40)):
        line(seeds, steps, "tf32")
    for length in (10, 20, 80):
        line(20, 100, "tf32", length=length)
    for hidden in (64, 128, 512):
        line(20, 100, "tf32", hidden=hidden)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with contextlib.redirect_stdout(io.StringIO()):
        plain_seed(0, 5, "cuda")
        peer = seconds(lambda: plain_seed(0, 200, "cuda"))
    print(f"  plain loop, fp32: {peer:.2f} s a seed of 200 steps, {20 * peer:.0f} s for 20")
    for precision, own in twenty.items():
        print(f"  ratio, {precision}: {20 * peer / own:.1f}")


def main() -> None:
    if torch.cuda.is_available():
        on_the_gpu()
    on_the_cpu()


if __name__ == "__main__":
    side(sys.argv[1]) if sys.argv[1:] in (["plain"], ["ours"]) else main()
