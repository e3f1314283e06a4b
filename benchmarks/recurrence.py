"""The loop over time of an LSTM for stacked replicas on a GPU: as one launch of clusters of blocks
(`kernels/cluster_lstm.py`), against a product and a cell for each position (`kernels/lstm.py`), in one run.

    attndyn bench recurrence

Both are recorded as CUDA graphs, in TF32; "with gradients" also has the backward pass and the gradient of the weights.
Without a GPU that has clusters it says so.
"""

import time
from collections.abc import Callable
from unittest.mock import patch

import torch

from attndyn.kernels import cluster_lstm
from attndyn.models.layers import Recurrence
from attndyn.training.precision import products

POSITIONS, REPEATS = 24, 20
SIZES = [
    (hidden, replicas, batch)
    for hidden in cluster_lstm.WIDTHS[::-1]
    for replicas, batch in [
        (1, 16),
        (14, 16),
        (40, 16),
        (1, 32),
        (20, 32),
        (40, 32),
        (1, 128),
        (20, 128),
        (40, 128),
        (12, 512),
    ]
]


def seconds(work: Callable[[], object]) -> float:
    """Of one position, replayed."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for _ in range(2):
            work()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            work()
        graph.replay()
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(REPEATS):
            graph.replay()
        torch.cuda.synchronize()
        return (time.perf_counter() - started) / REPEATS / POSITIONS


def timed(hidden: int, replicas: int, batch: int, clusters: bool) -> tuple[float, float]:
    """Without and with gradients."""
    x = torch.randn(replicas, batch * POSITIONS, 4 * hidden, device="cuda", requires_grad=True)
    weight = (torch.randn(replicas, 4 * hidden, hidden, device="cuda") / hidden**0.5).requires_grad_()
    start = torch.zeros(2, replicas, batch, hidden, device="cuda").unbind()

    def forward() -> None:
        with torch.no_grad():
            Recurrence.apply(x, None, weight, *start, POSITIONS)

    def both() -> None:
        states = Recurrence.apply(x, None, weight, *start, POSITIONS)[0]
        torch.autograd.grad(states, (x, weight), states)

    with patch.object(cluster_lstm, "fits", lambda *_: clusters), products("tf32"):
        return seconds(forward), seconds(both)


def main() -> None:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 9:
        print("recurrence: needs a GPU of compute capability 9 or more")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; microseconds of a position")
    print("| width | replicas | batch | one by one | clusters | ratio | with gradients | clusters | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in SIZES:
        (plain, plain_both), (whole, whole_both) = (timed(*size, clusters) for clusters in (False, True))
        cells = (plain, whole, plain / whole, plain_both, whole_both, plain_both / whole_both)
        numbers = (f"{1e6 * value:.1f}" if place % 3 < 2 else f"{value:.1f}" for place, value in enumerate(cells))
        print(f"| {' | '.join(map(str, size))} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
