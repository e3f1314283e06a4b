"""In what precision matrix products are computed.

Readings on synthetic tasks, on any device with `fp32`, and everything that takes small differences (leaving words out,
the best attention) are in fp32. α, β and Δ of text are read in TF32 where training is not in fp32: thousands of texts
take more operations than the training does.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Literal

import torch

Precision = Literal["fp32", "tf32", "bf16"]

_lock = threading.Lock()
_inside = 0
"""Threads and calls that are inside `products`."""
_outside = (False, False)
"""What the process allowed before the first of them."""


@contextlib.contextmanager
def products(precision: Precision) -> Iterator[None]:
    """fp32 means fp32: no TF32 in the products of a GPU, nor in its LSTMs, where PyTorch allows it by default. The
    process has one flag for each: a GPU is used by one thread, and to the threads of a CPU they mean nothing, but the
    last of them leaves the flags as the first has found them."""
    global _inside, _outside
    with _lock:
        before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        _outside = _outside if _inside else before
        _inside += 1
        _allow(precision != "fp32", precision != "fp32")
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            _allow(*(before if _inside else _outside))


def _allow(matmul: bool, cudnn: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = matmul, cudnn


def operands(precision: Precision) -> contextlib.AbstractContextManager[None]:
    """bf16 rounds the operands of the products of a forward pass (and so of its backward pass), nothing else."""
    # without the cache of casts, which would keep tensors of one recorded step for the next
    return torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16", cache_enabled=False)


@contextlib.contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """On a GPU the same run twice gives the same bits. (cuBLAS reads its part from the environment, see `verbs`.)"""
    if not wanted:  # setting it to what it is would still import torch's compiler, which takes seconds
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    try:
        torch.use_deterministic_algorithms(True)
        yield
    finally:
        torch.use_deterministic_algorithms(before)
