"""Trains conditions × seeds as replicas, takes their readings at their steps, and saves so that nothing is lost.

On a CPU each replica is a unit of its own that computes with one torch thread, and as many units run at once, on
Python threads, as there are cores: the bits of a replica depend neither on the number of cores nor on its
neighbours. Elsewhere all seeds of a condition are one unit. Units are trained chunk by chunk, so that a save stays
small.
"""

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from attndyn.errors import UserError
from attndyn.probes.trace import Trace
from attndyn.store.metrics import Row
from attndyn.training.condition import Condition
from attndyn.training.loop import NEVER, Trainer
from attndyn.training.recorder import Recorder, join, part

CHUNK = 16
"""Replicas trained side by side on a CPU; at paper scale one save of them takes 260 MB."""
DIVERGED = "diverged"
SAVE_SECONDS = 5.0
SAVE_SHARE = 0.05
"""At most this share of the time goes into saving."""
SEGMENT_SECONDS = 1.0


@runtime_checkable
class Progress(Protocol):
    """Is told where the work stands: units of work done and in all, seconds worked, the rows so far."""

    def __call__(self, done: int, total: int, seconds: float, rows: Sequence[Row]) -> None: ...


@dataclass(frozen=True)
class Unit:
    """Replicas trained as one tensor program."""

    condition: Condition
    seeds: tuple[int, ...]
    first: int
    """Place of the first of its replicas in the run."""


@dataclass(frozen=True)
class Observation:
    """What one unit's readings gave at one step."""

    step: int
    values: list[tuple[str, Tensor]]


def plan(conditions: Sequence[Condition], device: str) -> list[list[Unit]]:
    """Chunks of units, in the order of the conditions."""
    units, place = [], 0
    for condition in conditions:
        groups = [(seed,) for seed in condition.seeds] if device == "cpu" else [condition.seeds]
        for seeds in groups:
            units.append(Unit(condition, seeds, place))
            place += len(seeds)
    size = CHUNK if device == "cpu" else 1
    return [units[start : start + size] for start in range(0, len(units), size)]


def observe(trainer: Trainer, batch: Any) -> Observation | None:
    """The readings due at the trainer's step; they change nothing."""
    condition = trainer.condition
    due = [reading for reading in condition.readings if reading.due(trainer.step, condition.steps)]
    if not due:
        return None
    trainer.model.eval()
    trace = Trace(trainer.model, condition.rule, batch)
    values = [(name, value.cpu()) for reading in due for name, value in reading.run(trace)]
    return Observation(trainer.step, values)


class Worker:
    """A trainer with its evaluation examples, moved forward a few steps at a time."""

    def __init__(self, unit: Unit, device: str) -> None:
        self.unit = unit
        condition = unit.condition
        rows = [condition.seeds.index(seed) for seed in unit.seeds]
        self.trainer = Trainer(replace(condition, optimiser=condition.optimiser.take(rows)), unit.seeds, device)
        self.examples = self.trainer.task.evaluation(unit.condition.evaluation)

    @property
    def finished(self) -> bool:
        return self.trainer.step >= self.unit.condition.steps or self.trainer.stopped

    def advance(self, steps: int, stop: threading.Event) -> list[Observation]:
        """Trains and observes; the observation of a step belongs to the training step that led to it."""
        if stop.is_set():
            return []
        seen = [] if self.trainer.step else [observe(self.trainer, self.examples)]
        for number in range(steps):
            # the first step is always taken: a step 0 that was observed must not be observed again on resuming
            if self.finished or (number and stop.is_set()):
                break
            self.trainer.advance()
            if not self.trainer.stopped:
                seen.append(observe(self.trainer, self.examples))
        return [observation for observation in seen if observation is not None]


class Runner:
    def __init__(self, conditions: Sequence[Condition], recorder: Recorder, device: str, progress: Progress) -> None:
        names = [condition.name for condition in conditions]
        if len(set(names)) < len(names):
            raise UserError(f"two conditions have one name: {', '.join(names)}")
        self.conditions, self.recorder, self.progress = conditions, recorder, progress
        self.device = device
        self.chunks = plan(conditions, device)
        self.threads = cores() if device == "cpu" else 1
        self.total = sum(unit.condition.steps * len(unit.seeds) for chunk in self.chunks for unit in chunk)
        self.seconds = 0.0

    def execute(self) -> None:
        """Trains all that is not trained yet. Raises KeyboardInterrupt after saving, if it is asked to stop."""
        save = self.recorder.resume()
        if save is not None:
            self.seconds = save.seconds
        with one_thread_each(), full_precision(), stop_requests() as stop, self._pool() as pool:
            for number, chunk in enumerate(self.chunks):
                if save is None or number >= save.chunk:
                    state = save.state if save is not None and number == save.chunk else None
                    self._train(number, chunk, state, pool, stop)

    def _pool(self) -> ThreadPoolExecutor:
        # OpenMP's thread count belongs to the calling thread, so each worker thread sets its own.
        return ThreadPoolExecutor(self.threads, initializer=torch.set_num_threads, initargs=(1,))

    def _train(
        self,
        number: int,
        chunk: list[Unit],
        state: dict[str, Tensor] | None,
        pool: ThreadPoolExecutor,
        stop: threading.Event,
    ) -> None:
        workers = [Worker(unit, self.device) for unit in chunk]
        if state:
            for index, worker in enumerate(workers):
                worker.trainer.load(part(state, index))
        before = sum(unit.condition.steps * len(unit.seeds) for done in self.chunks[:number] for unit in done)
        last_save, pause, segment = time.monotonic(), SAVE_SECONDS, 1
        while any(not worker.finished for worker in workers):
            started = time.monotonic()
            waiting = [worker for worker in workers if not worker.finished]
            advanced = pool.map(Worker.advance, waiting, [segment] * len(waiting), [stop] * len(waiting))
            for worker, seen in zip(waiting, advanced, strict=True):
                self._record(number, worker, seen)
            now = time.monotonic()
            self.seconds += now - started
            done = sum(worker.trainer.step * len(worker.unit.seeds) for worker in workers)
            self.progress(before + done, self.total, self.seconds, self.recorder.rows)
            segment = max(1, round(segment * min(2.0, SEGMENT_SECONDS / max(now - started, 1e-3))))
            if stop.is_set() or now - last_save > pause:
                self._save(number, workers)
                last_save = time.monotonic()
                pause = max(SAVE_SECONDS, (last_save - now) / SAVE_SHARE)
            if stop.is_set():
                raise KeyboardInterrupt
        for worker in workers:
            for seed, step in zip(worker.unit.seeds, worker.trainer.diverged.tolist(), strict=True):
                if step != NEVER:
                    self.recorder.metric(Row(worker.unit.condition.name, seed, step, DIVERGED, 1.0))
        self._save(number + 1, [])

    @property
    def diverged(self) -> list[dict[str, Any]]:
        """The replicas that met a non-finite loss or gradient, and the step at which they were frozen."""
        return [
            {"condition": row.condition, "replica": row.replica, "step": row.step}
            for row in self.recorder.rows
            if row.metric == DIVERGED
        ]

    def _save(self, chunk: int, workers: list[Worker]) -> None:
        states = join((index, worker.trainer.state()) for index, worker in enumerate(workers))
        self.recorder.save(chunk, self.seconds, states)

    def _record(self, chunk: int, worker: Worker, seen: list[Observation]) -> None:
        unit = worker.unit
        frozen = [step if step != NEVER else unit.condition.steps for step in worker.trainer.diverged.tolist()]
        for observation in seen:
            for name, value in observation.values:
                for row, seed in enumerate(unit.seeds):
                    if observation.step > frozen[row]:
                        continue
                    if value.ndim == 1:
                        number = float(value[row])
                        self.recorder.metric(Row(unit.condition.name, seed, observation.step, name, number))
                    else:
                        self.recorder.trace(chunk, unit.first + row, observation.step, name, value[row])


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
def full_precision() -> Iterator[None]:
    """fp32 means fp32: no TF32 in the products of a GPU, nor in its LSTMs, where PyTorch allows it by default."""
    backends: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [backend.allow_tf32 for backend in backends]
    try:
        for backend in backends:
            backend.allow_tf32 = False
        yield
    finally:
        for backend, allowed in zip(backends, before, strict=True):
            backend.allow_tf32 = allowed


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


def replicas(chunks: list[list[Unit]]) -> list[dict[str, Any]]:
    """Which replica stands where: what run.json says of them."""
    return [
        {"condition": unit.condition.name, "replica": seed, "chunk": number}
        for number, chunk in enumerate(chunks)
        for unit in chunk
        for seed in unit.seeds
    ]
