"""Agreement A and Kendall τ of a validation set, against a loop over its rows with NumPy and SciPy, in one run.

    attndyn bench agreement

The rows are as many as a validation set of 1,014 sentences with 16 output words each has, with 5 to 27 input
positions. Both sides get the same padded arrays and one thread. The peer takes one row at a time, without its padding:
for A `np.argmax` and a count, for τ `scipy.stats.kendalltau`. A ratio is printed only if both give the same numbers.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from scipy import stats

from attndyn.measures.agreement import agreement, kendall_tau

SENTENCES, WORDS, SHORTEST, LONGEST = 1_014, 16, 5, 27
ROUNDS, REPEATS = 3, 20


Arrays = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def made() -> Arrays:
    generator = torch.Generator().manual_seed(0)
    alpha, beta = torch.rand(2, SENTENCES, WORDS, LONGEST, generator=generator)
    length = torch.randint(SHORTEST, LONGEST + 1, (SENTENCES, 1, 1), generator=generator)
    return alpha, beta, torch.arange(LONGEST) < length


def rows(alpha: torch.Tensor, beta: torch.Tensor, mask: torch.Tensor) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for sentence, real in enumerate(mask[:, 0].numpy()):
        for u, v in zip(alpha[sentence].numpy(), beta[sentence].numpy(), strict=True):
            yield u[real], v[real]


def agreement_by_rows(*arrays: torch.Tensor) -> list[float]:
    return [float(np.sum(v > v[np.argmax(u)]) < 0.05 * len(v)) for u, v in rows(*arrays)]


def tau_by_rows(*arrays: torch.Tensor) -> list[float]:
    return [float(stats.kendalltau(u, v).statistic) for u, v in rows(*arrays)]


def timed(work: Callable[..., Any], arrays: Arrays, repeats: int = 1) -> tuple[float, Any]:
    """The seconds of one call, as a mean, and its result."""
    started = time.perf_counter()
    for _ in range(repeats):
        result = work(*arrays)
    return (time.perf_counter() - started) / repeats, result


def main() -> None:
    torch.set_num_threads(1)
    arrays = made()
    print(f"agreement, {SENTENCES * WORDS:,} rows, one thread, torch {torch.__version__}")
    for name, batched, by_rows in (("A", agreement, agreement_by_rows), ("τ", kendall_tau, tau_by_rows)):
        batched(*arrays)
        ratios = []
        for _ in range(ROUNDS):
            slow, expected = timed(by_rows, arrays)
            fast, measured = timed(batched, arrays, REPEATS)
            np.testing.assert_allclose(measured.values.flatten(), expected, rtol=1e-15, atol=0)
            ratios.append(slow / fast)
        low, middle, high = sorted(ratios)
        print(f"  {name}   loop {slow:6.2f} s   attndyn {1000 * fast:5.1f} ms", end="")
        print(f"   ratio {middle:4.0f} ({low:.0f} to {high:.0f})")


if __name__ == "__main__":
    main()
