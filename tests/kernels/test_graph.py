"""Work that is recorded once and replayed."""

import contextlib
import gc
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from attndyn.kernels.graph import Replayed, uncollected


@dataclass
class Drawn:
    x: Tensor


@pytest.mark.parametrize("before", [True, False])
def test_garbage_is_collected_again_afterwards(before: bool) -> None:
    (gc.enable if before else gc.disable)()
    try:
        with contextlib.suppress(KeyError), uncollected():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == before
    finally:
        gc.enable()


def test_on_a_cpu_nothing_is_recorded() -> None:
    calls = []
    twice = Replayed(lambda drawn: calls.append(1) or 2 * drawn.x)
    assert [twice(Drawn(torch.tensor([n]))).item() for n in range(4)] == [0, 2, 4, 6]
    assert len(calls) == 4
    assert not twice.recorded


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_graph_that_became_garbage_does_not_end_a_recording() -> None:
    with torch.cuda.stream(torch.cuda.Stream()):
        old = Replayed(lambda drawn: drawn.x + 1)
        for n in range(3):
            assert old(Drawn(torch.full((4,), n, device="cuda")))[0].item() == n + 1
        held = [old.recorded]
        del old

        def work(drawn: Drawn) -> Tensor:
            if torch.cuda.is_current_stream_capturing():
                cycle: list[object] = [held.pop()]
                cycle.append(cycle)
                del cycle
                assert len([[] for _ in range(10_000)]) == 10_000  # enough for a collection
            return 2 * drawn.x

        twice = Replayed(work)
        found = [twice(Drawn(torch.full((4,), n, device="cuda")))[0].item() for n in range(4)]
    assert found == [0, 2, 4, 6]
    assert not held
    assert gc.isenabled()
