"""What a long computation asks of its process: memory, threads, cores, and to be told when it should stop."""

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch

UNTOLD_SECONDS = 1.0
Item = TypeVar("Item")
Result = TypeVar("Result")
STOPPING = "\nstopping after the step or the texts that are being computed, then saving"


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


_most: int | None = None


def use_cores(count: int) -> None:
    """From now on this process computes on at most so many cores: the others are somebody else's."""
    global _most
    _most = count


def cores() -> int:
    """The cores this process may use."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(here, _most or here)


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """One thread for torch and for the linear algebra of NumPy and SciPy, which rounds otherwise with two: the bits of
    what follows then depend on no number of cores. Replicas still train on a thread each."""
    import scipy.linalg  # noqa: F401 (a library is limited only if it is loaded)
    from threadpoolctl import threadpool_limits

    with one_thread_each(), threadpool_limits(1):
        yield


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results, in order: an item on each core, and each on one thread of torch, so that no bit depends on how many
    cores there are."""
    # OpenMP's thread count belongs to the calling thread, so each sets its own.
    with one_thread_each(), ThreadPoolExecutor(cores(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(work, items))


@contextlib.contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM ask the run to stop after saving; a second one stops it without. Where that takes a while,
    it is said."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        told.start()

    told = threading.Timer(UNTOLD_SECONDS, print, [STOPPING], {"file": sys.stderr, "flush": True})
    told.daemon = True
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        told.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
