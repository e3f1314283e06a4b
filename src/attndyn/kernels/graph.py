"""Work of a fixed shape, recorded once as a CUDA graph and replayed: thousands of small launches become one."""

import contextlib
import gc
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

D = TypeVar("D")
T = TypeVar("T")


def tensors(drawn: Any) -> dict[str, Tensor]:
    """The tensors of a dataclass by name."""
    values = {field.name: getattr(drawn, field.name) for field in fields(drawn)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Garbage waits: if a graph is freed while another one is recorded, CUDA breaks off the recording."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


class Replayed(Generic[D, T]):
    """Calls `work(drawn)` with a dataclass of tensors, such as a batch; on a GPU, from the second call with the same
    shapes on, as a recorded graph.

    `work` must only read tensors that stay where they are (parameters, its own buffers, what was drawn), change tensors
    in place, and not look at a value. What it returns lies in the graph's memory and holds until the next call.
    """

    def __init__(self, work: Callable[[D], T]) -> None:
        self.work = work
        self.recorded: dict[tuple[Any, ...], tuple[D, torch.cuda.CUDAGraph, T]] = {}
        self.seen: set[tuple[Any, ...]] = set()
        self.pool: Any = None
        """One memory for all graphs: only one of them runs at a time."""

    def __call__(self, drawn: D) -> T:
        held = tensors(drawn)
        # CUDA cannot record on its default stream: there, nothing is
        if not next(iter(held.values())).is_cuda or torch.cuda.current_stream() == torch.cuda.default_stream():
            return self.work(drawn)
        shapes = (getattr(drawn, "widths", None), *((name, value.shape) for name, value in held.items()))
        if shapes not in self.seen:  # compiles kernels and makes handles, which cannot be recorded
            self.seen.add(shapes)
            return self.work(drawn)
        if shapes not in self.recorded:
            self.recorded[shapes] = self._record(drawn)
        still, graph, result = self.recorded[shapes]
        for name, value in held.items():
            getattr(still, name).copy_(value)
        graph.replay()
        return result

    def _record(self, drawn: D) -> tuple[D, torch.cuda.CUDAGraph, T]:
        still: D = replace(drawn, **{name: value.clone() for name, value in tensors(drawn).items()})  # type: ignore[type-var]
        torch.cuda.empty_cache()  # what the first call took is not needed twice
        graph = torch.cuda.CUDAGraph()
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        stream = torch.cuda.current_stream()
        # other threads may go on: traces are copied while a graph is recorded
        with uncollected(), torch.cuda.graph(graph, self.pool, stream, capture_error_mode="thread_local"):
            result = self.work(still)
        return still, graph, result
