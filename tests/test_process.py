"""Work side by side: in order, on one thread of torch each, and as before afterwards."""

import threading

import pytest
import torch

from attndyn.process import cores, side_by_side


def test_results_keep_their_order_and_threads_their_number() -> None:
    before = torch.get_num_threads()
    found = side_by_side(lambda item: (item, torch.get_num_threads()), range(20))
    assert found == [(item, 1) for item in range(20)]
    assert torch.get_num_threads() == before


def test_there_is_a_thread_for_each_core() -> None:
    barrier = threading.Barrier(cores())
    assert side_by_side(lambda _: barrier.wait(timeout=20) >= 0, range(cores())) == [True] * cores()


def test_what_fails_is_raised() -> None:
    def fail(item: int) -> None:
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 0"):
        side_by_side(fail, range(3))
