"""The whole loop over time of an LSTM as one launch, for GPUs with clusters of blocks (compute capability 9 and more).

The loop of `kernels/lstm.py` launches a product and a cell for each position; where a batch is small, a GPU spends its
time between them. Here a cluster of blocks keeps the weights of one replica in its registers and runs through all
positions (cluster_lstm.cu). Products are TF32, so it stands in only where those may be.
"""

import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attndyn.kernels import cuda

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = 256
UNITS = 32
SIGNALS = 32
STAGE = 6 * UNITS + 4
"""Floats of shared memory, as in the source."""
WIDTHS = (64, 128, 256)
"""Of hidden states: at most eight blocks, with 128 registers of weights in each thread."""
LARGE = 128
"""Rows of a batch up to which clusters are faster (`attndyn bench recurrence`)."""


class Shape(NamedTuple):
    """How the sequences of a batch are spread: in slabs of 16 or 32 rows."""

    replicas: int
    batch: int
    hidden: int

    @property
    def tiles(self) -> int:
        return 1 if self.batch <= 16 else 2

    @property
    def rows(self) -> int:
        return 16 * self.tiles

    @property
    def blocks(self) -> int:
        return self.hidden // UNITS

    @property
    def clusters(self) -> int:
        return self.replicas * -(-self.batch // self.rows)

    def pays(self, processors: int) -> bool:
        """Large batches fill a GPU by themselves, and then read the weights of a replica once for all rows: clusters
        are faster up to some size, or while all run at once. A cluster needs neighbours, so a few stay idle."""
        return self.clusters < 2**16 and (self.batch <= LARGE or 8 * self.clusters * self.blocks <= 7 * processors)

    @property
    def forward_memory(self) -> int:
        return 4 * (SIGNALS + 2 * self.rows * (self.hidden + STAGE))

    @property
    def backward_memory(self) -> int:
        return 4 * (SIGNALS + 2 * self.rows * (self.blocks * 36 + STAGE) + 2 * 16 * 4 * UNITS)

    def kernel(self, name: str) -> cuda.Launch:
        return _kernel(name, self.hidden, self.tiles, torch.cuda.get_device_capability())


def fits(weight: Tensor, h: Tensor, length: int) -> bool:
    """Whether the loop can run here, and is the faster one."""
    if not (weight.is_cuda and weight.dtype == h.dtype == torch.float32 and h.shape[2] in WIDTHS and length > 1):
        return False
    properties = torch.cuda.get_device_properties(weight.device)
    if not torch.backends.cuda.matmul.allow_tf32 or properties.major < 9:
        return False
    shape = Shape(*h.shape)
    return shape.pays(properties.multi_processor_count) and _available(
        shape.hidden, shape.tiles, (properties.major, properties.minor)
    )


def _kernel(name: str, hidden: int, tiles: int, capability: tuple[int, int]) -> cuda.Launch:
    return cuda.compiled(SOURCE, name, (("HIDDEN", hidden), ("TILES", tiles)), capability)


@cache
def _available(hidden: int, tiles: int, capability: tuple[int, int]) -> bool:
    try:
        for name in ("lstm_forward", "lstm_backward"):
            _kernel(name, hidden, tiles, capability)
    except cuda.Unavailable as error:
        warnings.warn(
            f"the LSTM is launched position by position, as its kernel cannot be compiled: {error}", stacklevel=2
        )
        return False
    return True


def forward(
    states: Float[Tensor, "replica batch length hidden"],
    cells: Float[Tensor, "replica batch length hidden"],
    gates: Float[Tensor, "replica batch length gates"],
    c: Float[Tensor, "replica batch hidden"],
    inputs: Float[Tensor, "replica rows gates"],
    rows: Int[Tensor, "replica batch length"] | None,
    weight: Float[Tensor, "replica gates hidden"],
    h: Float[Tensor, "replica batch hidden"],
) -> None:
    """Fills states, cells and gates from the start (h, c), as the loop over `lstm.forward` does."""
    shape = Shape(*h.shape)
    shape.kernel("lstm_forward")(
        (shape.blocks, shape.clusters), THREADS, shape.forward_memory,
        (inputs, rows, weight, h, c, states, cells, gates, shape.batch, states.shape[2], inputs.shape[1]),
    )  # fmt: skip


def backward(
    cells: Float[Tensor, "replica batch length hidden"],
    gates: Float[Tensor, "replica batch length gates"],
    c: Float[Tensor, "replica batch hidden"],
    weight: Float[Tensor, "replica gates hidden"],
    d_states: Float[Tensor, "replica batch length hidden"],
    d_last: Float[Tensor, "replica batch hidden"],
    d_cell: Float[Tensor, "replica batch hidden"],
    d_gates: Float[Tensor, "replica batch length gates"],
) -> tuple[Float[Tensor, "replica batch hidden"], Float[Tensor, "replica batch hidden"]]:
    """Fills `d_gates`, and gives what goes to the start (h, c)."""
    shape = Shape(*d_last.shape)
    d_hidden, d_cells = torch.empty_like(d_last), torch.empty_like(d_last)
    shape.kernel("lstm_backward")(
        (shape.blocks, shape.clusters), THREADS, shape.backward_memory,
        (weight, gates, cells, c, d_states, d_last, d_cell, d_gates, d_hidden, d_cells, shape.batch, gates.shape[2]),
    )  # fmt: skip
    return d_hidden, d_cells
