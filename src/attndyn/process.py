"""What a long computation asks of its process: memory, threads, cores, and to be told when it should stop."""

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import torch


def keep_freed_memory() -> None:
    """Lets this process keep the memory it frees. By default glibc returns every large tensor to the kernel, which
    clears it again at the next allocation: a quarter of the time of a paper-scale step on two threads. For whole
    programs, not for libraries: it holds until the process ends."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        arena_max, mmap_threshold, trim_threshold = -8, -3, -1  # malloc.h
        libc.mallopt(arena_max, 1)
        libc.mallopt(mmap_threshold, 1 << 30)
        libc.mallopt(trim_threshold, (1 << 31) - 1)


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM ask the run to stop after saving; a second one stops it at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
