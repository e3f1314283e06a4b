"""The flags of the process for matrix products."""

import threading

import torch

from attndyn.training.precision import products


def flags() -> tuple[bool, bool]:
    return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32


def test_fp32_means_fp32_and_ends() -> None:
    before = flags()
    with products("tf32"):
        assert flags() == (True, True)
        with products("fp32"):
            assert flags() == (False, False)
        assert flags() == (True, True)
    assert flags() == before


def test_threads_that_overlap_leave_the_flags_as_they_were() -> None:
    before = flags()
    entered, left = threading.Event(), threading.Event()

    def first() -> None:
        with products("fp32"):
            entered.set()
            left.wait(5)  # until another thread has come in

    thread = threading.Thread(target=first)
    torch.backends.cudnn.allow_tf32 = True
    try:
        thread.start()
        assert entered.wait(5)
        with products("fp32"):  # comes in second, goes last
            left.set()
            thread.join()
        assert flags()[1] is True
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
