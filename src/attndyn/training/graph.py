"""Work of a fixed shape, recorded once as a CUDA graph and replayed: thousands of small launches become one."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from attndyn.tasks.sampler import Batch

T = TypeVar("T")


def tensors(batch: Batch) -> dict[str, Tensor]:
    """The tensors of a batch by name."""
    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {name: value for name, value in values.items() if value is not None}


class Replayed(Generic[T]):
    """Calls `work(batch)`; on a GPU, from the second call with a batch of the same shapes on, as a recorded graph.

    `work` must only read tensors that stay where they are (parameters, its own buffers, the batch), change tensors in
    place, and not look at a value. What it returns lies in the graph's memory and holds until the next call.
    """

    def __init__(self, work: Callable[[Batch], T]) -> None:
        self.work = work
        self.recorded: dict[tuple[Any, ...], tuple[Batch, torch.cuda.CUDAGraph, T]] = {}
        self.seen: set[tuple[Any, ...]] = set()
        self.pool: Any = None
        """One memory for all graphs: only one of them runs at a time."""

    def __call__(self, batch: Batch) -> T:
        if not batch.source.is_cuda:
            return self.work(batch)
        shapes = tuple((name, value.shape) for name, value in tensors(batch).items())
        if shapes not in self.seen:  # compiles kernels and makes handles, which cannot be recorded
            self.seen.add(shapes)
            return self.work(batch)
        if shapes not in self.recorded:
            self.recorded[shapes] = self._record(batch)
        still, graph, result = self.recorded[shapes]
        for name, value in tensors(batch).items():
            getattr(still, name).copy_(value)
        graph.replay()
        return result

    def _record(self, batch: Batch) -> tuple[Batch, torch.cuda.CUDAGraph, T]:
        still = replace(batch, **{name: value.clone() for name, value in tensors(batch).items()})
        torch.cuda.empty_cache()  # what the first call took is not needed twice
        graph = torch.cuda.CUDAGraph()
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, pool=self.pool, stream=torch.cuda.current_stream()):
            result = self.work(still)
        return still, graph, result


@contextlib.contextmanager
def own_stream(device: str) -> Iterator[None]:
    """CUDA cannot record on its default stream; so all the work of a run goes to another one."""
    if device == "cpu":
        yield
        return
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream().wait_stream(stream)
