"""Trains conditions × seeds as replicas, takes their readings at their steps, and saves so that nothing is lost.

On a CPU each replica computes with one torch thread, and as many run at once, on Python threads, as there are cores:
the bits of a replica depend neither on the number of cores nor on its neighbours. On a GPU training steps and readings
are recorded as graphs, and nothing waits for the device but the end of a segment of steps.
"""

import gc
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from attndyn.errors import UserError
from attndyn.kernels.graph import Replayed
from attndyn.plan import SIDE_BY_SIDE, Chunk, Needs, Room, Unit, plan, room_for
from attndyn.probes.trace import Trace
from attndyn.process import cores, one_thread_each, stop_requests
from attndyn.store.metrics import Row
from attndyn.tasks.sampler import Batch
from attndyn.training.best import Best
from attndyn.training.condition import Condition
from attndyn.training.loop import NEVER, Trainer
from attndyn.training.precision import Precision, deterministic, products
from attndyn.training.recorder import Recorder, join, part

DIVERGED = "diverged"
SAVE_SECONDS = 5.0
SAVE_SHARE = 0.05
"""At most this share of the time goes into saving."""
SAVED_A_SECOND = 500e6
"""Bytes of a state that are saved in a second, at least on most disks."""
SEGMENT_SECONDS = 1.0
TOKENS, TOKENS_ON_GPU = 1 << 13, 1 << 19
"""Of all replicas, that are read at once: what stays in a CPU's cache, or fills a GPU."""
MEMORY_SHARE = 0.5
"""Of the free memory of a GPU, how much the tensors of a chunk may fill: graphs keep pools of their own."""


@runtime_checkable
class Progress(Protocol):
    """Is told where the work stands: units of work done and in all, seconds worked, the rows so far. Also before
    anything is done, when there are no rows. One that has a method `comparing` is told the seconds when all is trained
    and read, and only to be compared."""

    def __call__(self, done: int, total: int, seconds: float, rows: Sequence[Row]) -> None: ...


@dataclass(frozen=True)
class Observation:
    """What one unit's readings gave at one step."""

    step: int
    values: list[tuple[str, Tensor]]


def settled(observation: Observation) -> Observation:
    """Numbers leave the GPU now. Arrays stay on it, and leave it when they are written, while it goes on."""
    values = [(name, value.cpu() if value.ndim == 1 else value) for name, value in observation.values]
    return replace(observation, values=values)


class BrokenOff(Exception):
    """A reading was left unfinished because the run is asked to stop."""


class Worker:
    """A trainer with its evaluation examples, moved forward a few steps at a time."""

    def __init__(self, unit: Unit, device: str, precision: Precision = "fp32", beside: int | None = None) -> None:
        """`beside`: the replicas, those of other chunks counted, that share the tokens which are read at once."""
        self.unit = unit
        self.trainer = Trainer(unit.condition, unit.seeds, device, precision)
        condition = self.trainer.condition
        tokens = (TOKENS if device == "cpu" else TOKENS_ON_GPU) // (beside or len(unit.replicas))
        self.examples = {
            part: self.trainer.task.slices(condition.evaluation, part, tokens)
            for part in sorted({reading.on for reading in condition.readings})
        }
        self.readers: dict[tuple[Any, ...], Replayed[Batch, list[tuple[str, Tensor]]]] = {}
        self.best = [Best(wanted, self.trainer.optimiser.values) for wanted in condition.best]
        self.owed = True
        """Whether the trainer's step is still to be observed."""

    @property
    def finished(self) -> bool:
        return not self.owed and (self.trainer.step >= self.unit.steps or self.trainer.stopped)

    def advance(self, steps: int, stop: threading.Event) -> list[Observation]:
        """Trains and observes; the observation of a step belongs to the training step that led to it. One that was
        broken off comes first when the run goes on."""
        seen: list[Observation | None] = []
        with suppress(BrokenOff):
            if self.owed:
                seen.append(self.observe(stop))
            for _ in range(min(steps, self.unit.steps - self.trainer.step)):
                if stop.is_set():
                    break
                self.trainer.advance()
                self.owed = True
                seen.append(self.observe(stop))
        return [settled(observation) for observation in seen if observation is not None]

    def observe(self, stop: threading.Event | None = None) -> Observation | None:
        """The readings due at the trainer's step; they change nothing. BrokenOff if it is asked to stop meanwhile."""
        step = self.trainer.step
        due = tuple(reading for reading in self.trainer.condition.readings if reading.due(step, self.unit.steps))
        if not due:
            self.owed = False
            return None
        self.trainer.model.eval()
        values = [
            named
            for part, slices in self.examples.items()
            if (wanted := tuple(reading for reading in due if reading.on == part))
            for named in self._read(wanted, slices, stop)
        ]
        for best in self.best:
            found = dict(values).get(best.metric)
            if found is not None:
                best.update(found, step, self.trainer.optimiser.values)
            elif step == 0:  # where every reading is due
                names = ", ".join(name for name, value in values if value.ndim == 1)
                raise UserError(f"no reading gives {best.metric!r}; there are {names}")
        self.owed = False
        return Observation(step, values)

    def peek(self) -> None:
        """Every reading once, on the examples that take most memory."""
        self.trainer.model.eval()
        for on, slices in self.examples.items():
            readings = tuple(reading for reading in self.trainer.condition.readings if reading.on == on)
            self._values(readings, [max(slices, key=lambda batch: batch.source.numel())])

    def _read(
        self, readings: tuple[Any, ...], slices: list[Batch], stop: threading.Event | None
    ) -> list[tuple[str, Tensor]]:
        """What the readings give on all slices, and what follows from that."""
        whole, passing = self._values(readings, slices, stop), set[str]()
        for reading in readings:
            prefix = prefix_of(reading.on)
            found = {name.removeprefix(prefix): value for name, value in whole.items() if name.startswith(prefix)}
            whole |= {f"{prefix}{name}": value for name, value in reading.follows(found)}
            passing |= {f"{prefix}{name}" for name in reading.passing}
        return [(name, value) for name, value in whole.items() if name not in passing]

    def _values(
        self, readings: tuple[Any, ...], slices: list[Batch], stop: threading.Event | None = None
    ) -> dict[str, Tensor]:
        """What the readings give on all slices together, by name."""
        # thousands of texts are read in more operations than train on them: not in fp32, unless all is
        masked = slices[0].source_mask is not None
        precision: Precision = "tf32" if masked and self.trainer.precision != "fp32" else "fp32"
        work = partial(read, self.trainer, readings, precision)
        recordable = all(reading.recordable for reading in readings)
        reader = self.readers.setdefault(readings, Replayed(work)) if recordable else work
        found: dict[str, list[Tensor]] = {}
        for batch in slices:
            if stop is not None and stop.is_set():
                raise BrokenOff
            for name, value in reader(batch):
                found.setdefault(name, []).append(kept(value, batch.source_mask))
        weights = torch.tensor([counted(batch) for batch in slices], device=slices[0].source.device)
        return {name: values[0] if len(slices) == 1 else together(values, weights) for name, values in found.items()}

    def state(self) -> dict[str, Tensor]:
        parts = self.trainer.state() | {"owed": torch.tensor(self.owed)}
        return parts | {name: value for best in self.best for name, value in best.state().items()}

    def load(self, state: dict[str, Tensor]) -> None:
        self.trainer.load(state)
        self.owed = bool(state.get("owed", self.trainer.step == 0))  # saves of earlier versions do not have it
        for best in self.best:
            best.load(state)

    def kept(self) -> dict[str, Tensor]:
        """The best weights of every replica, by its place in the run, what is best in them and the parameter's name."""
        names = [name for name, _ in self.trainer.model.named_parameters()]
        return {
            f"{replica.place}.{best.wanted}.{name}": view[row].contiguous().cpu()
            for best in self.best
            for name, view in zip(names, self.trainer.optimiser.views(best.weights), strict=True)
            for row, replica in enumerate(self.unit.replicas)
            if best.wanted in replica.condition.best
        }


def read(trainer: Trainer, readings: Sequence[Any], precision: Precision, examples: Batch) -> list[tuple[str, Tensor]]:
    with products(precision):
        examples = trainer.referred(examples)
        trace = Trace(trainer.model, trainer.condition.rule, examples, trainer.condition.objective)
        return [(f"{prefix_of(reading.on)}{name}", value) for reading in readings for name, value in reading.run(trace)]


def prefix_of(part: str) -> str:
    """How the names of what is read on a part of the examples begin."""
    return "" if part == "valid" else f"{part} "


def kept(values: Tensor, mask: Tensor | None) -> Tensor:
    """A copy; values of every word of padded texts stand one after the other: [replica, word]."""
    of_words = mask is not None and values.shape == mask.shape
    return values[mask].view(len(values), -1) if of_words else values.clone()


def counted(batch: Batch) -> int:
    """Target positions of a replica: what a metric of a slice weighs."""
    return batch.target[0].numel() if batch.target_mask is None else int(batch.target_mask[0].sum())


def together(values: list[Tensor], weights: Tensor) -> Tensor:
    """A metric is the mean over the target positions of all slices; arrays of examples stand one after the other."""
    if values[0].ndim > 1:
        return torch.cat(values, dim=1)
    return (torch.stack(values, dim=1) * weights).sum(dim=1) / weights.sum()


class Runner:
    def __init__(
        self,
        conditions: Sequence[Condition],
        recorder: Recorder,
        device: str,
        progress: Progress,
        *,
        precision: Precision = "fp32",
        repeatable: bool = False,
        before: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        names = [condition.name for condition in conditions]
        if len(set(names)) < len(names):
            raise UserError(f"two conditions have one name: {', '.join(names)}")
        for condition in conditions:
            if condition.of is not None and condition.of.condition not in conditions:
                raise UserError(
                    f"{condition.name!r} looks at {condition.of.condition.name!r}, which is not trained here"
                )
        self.conditions, self.recorder, self.progress = conditions, recorder, progress
        self.device, self.precision, self.repeatable = device, precision, repeatable
        self.memory: list[dict[str, int]] = []
        """What was measured to split the replicas of a GPU into chunks."""
        self.chunks = plan(conditions, device, self._room, before)
        self.threads = cores() if device == "cpu" else 1
        # CUDA cannot record on its default stream; and what goes to different ones runs at the same time
        self.streams = [torch.cuda.Stream() for _ in range(SIDE_BY_SIDE if device != "cpu" else 0)]
        self.total = sum(work(chunk) for chunk in self.chunks)
        self.seconds = 0.0
        self.pause = SAVE_SECONDS
        """Seconds between two saves: the more a save takes, the longer."""

    def follow(self, conditions: Sequence[Condition], before: Sequence[dict[str, Any]] | None = None) -> None:
        """Another stage: conditions that are trained behind those there are. They may add seeds to one of them."""
        known = {(one.name, seed) for one in self.conditions for seed in one.seeds}
        for name, seed in ((one.name, seed) for one in conditions for seed in one.seeds):
            if (name, seed) in known:
                raise UserError(f"seed {seed} of {name!r} was trained in an earlier stage")
        begun = before is not None and len(before) > len(known)
        self.chunks += plan(conditions, self.device, self._room, before if begun else None, len(known))
        self.conditions = [*self.conditions, *conditions]
        self.total = sum(work(chunk) for chunk in self.chunks)

    @property
    def trained(self) -> list[Row]:
        """The rows of the conditions so far, and of no later stage that had been begun before an interruption."""
        known = {(one.name, seed) for one in self.conditions for seed in one.seeds}
        return [row for row in self.recorder.rows if (row.condition, row.replica) in known]

    def execute(self) -> None:
        """Trains all that is not trained yet. Raises KeyboardInterrupt after saving, if it is asked to stop."""
        save = self.recorder.resume()
        if save is not None:
            self.seconds = save.seconds
        with ExitStack() as stack:
            stack.enter_context(one_thread_each())
            stack.enter_context(deterministic(self.repeatable and self.device != "cpu"))
            stop = stack.enter_context(stop_requests())
            pool = stack.enter_context(self._pool())
            for number, chunk in enumerate(self.chunks):
                if save is None or number >= save.chunk:
                    state = save.state if save is not None and number == save.chunk else None
                    self._train(number, chunk, state, pool, stop)
            if stop.is_set():  # asked while the last save was written
                raise KeyboardInterrupt

    def _room(self, unit: Unit) -> Room:
        """What replicas like those of `unit` fill of the GPU: what one and what two of them take is measured."""
        # two first: what libraries take when they are first used makes a replica look larger then, and not smaller
        few = (Unit(unit.replicas[:1] * count) for count in (2, 1))
        two, one = (memory(some, self.device, self.precision, len(unit.replicas)) for some in few)
        torch.cuda.empty_cache()
        free = torch.cuda.mem_get_info()[0]
        room = room_for(MEMORY_SHARE * free, one, two)
        self.memory.append({"free": free, "one replica": room.one, "each more": room.more, "most at once": room.most})
        return room

    def _beside(self, unit: Unit) -> int | None:
        """On a GPU, the replicas of the shape of a unit in all chunks: as many as there were when the room for it was
        measured, so that a chunk reads as much at once as it has room for."""
        if self.device == "cpu":
            return None
        shape = unit.replicas[0].condition.shape
        return sum(r.condition.shape == shape for chunk in self.chunks for one in chunk for r in one.replicas)

    def _pool(self) -> ThreadPoolExecutor:
        # OpenMP's thread count belongs to the calling thread, so each worker thread sets its own.
        return ThreadPoolExecutor(self.threads, initializer=torch.set_num_threads, initargs=(1,))

    def _train(
        self,
        number: int,
        chunk: Chunk,
        state: dict[str, Tensor] | None,
        pool: ThreadPoolExecutor,
        stop: threading.Event,
    ) -> None:
        workers = [Worker(unit, self.device, self.precision, self._beside(unit)) for unit in chunk]
        for worker in workers:
            if worker.trainer.reference is not None:
                worker.trainer.refer(self._referred(worker.unit))
        if state:
            for index, worker in enumerate(workers):
                worker.load(part(state, index))
        # a guess, until the first save is timed: no large state is saved at once
        size = sum(tensor.nbytes for worker in workers for tensor in worker.state().values())
        self.pause = max(SAVE_SECONDS, size / SAVED_A_SECOND / SAVE_SHARE)
        before = sum(work(done) for done in self.chunks[:number])
        if not self.recorder.rows:
            self.progress(before, self.total, self.seconds, [])
        last_save, segment = time.monotonic(), 1
        longest = max(worker.unit.steps for worker in workers)
        while any(not worker.finished for worker in workers):
            started = time.monotonic()
            waiting = [worker for worker in workers if not worker.finished]
            # in proportion to the steps that each has in all: they end together, and none is left to run alone
            steps = [-(-segment * worker.unit.steps // longest) for worker in waiting]
            advance = partial(Worker.advance, stop=stop)
            run = pool.map if self.device == "cpu" else self._launch
            for worker, seen in zip(waiting, run(advance, waiting, steps), strict=True):
                self._record(number, worker, seen)
            self.recorder.settle()
            now = time.monotonic()
            self.seconds += now - started
            done = sum(worker.unit.effort[worker.trainer.step] for worker in workers)
            self.progress(before + done, self.total, self.seconds, self.recorder.rows)
            segment = max(1, round(segment * min(2.0, SEGMENT_SECONDS / max(now - started, 1e-3))))
            if stop.is_set() or now - last_save > self.pause:
                self._save(number, workers)
                last_save = time.monotonic()
                self.pause = max(SAVE_SECONDS, (last_save - now) / SAVE_SHARE)
            if stop.is_set():
                raise KeyboardInterrupt
        for worker in workers:
            for replica, step in zip(worker.unit.replicas, worker.trainer.diverged.tolist(), strict=True):
                if step != NEVER:
                    self.recorder.metric(Row(replica.condition.name, replica.seed, step, DIVERGED, 1.0))
        self.recorder.weights(number, {name: value for worker in workers for name, value in worker.kept().items()})
        self._save(number + 1, [])

    def _launch(
        self, advance: Callable[[Worker, int], list[Observation]], workers: Sequence[Worker], steps: Sequence[int]
    ) -> list[list[Observation]]:
        """Gives a GPU the next steps of every worker, and waits for all."""
        found = []
        torch.cuda.synchronize()
        for worker, count, stream in zip(workers, steps, self.streams, strict=False):
            with torch.cuda.stream(stream):
                found.append(advance(worker, count))
        torch.cuda.synchronize()
        return found

    @property
    def places(self) -> dict[tuple[str, int], tuple[int, int]]:
        """(condition, seed) → its chunk, and its place in the run."""
        return {
            (replica.condition.name, replica.seed): (number, replica.place)
            for number, chunk in enumerate(self.chunks)
            for unit in chunk
            for replica in unit.replicas
        }

    def _referred(self, unit: Unit) -> dict[str, Tensor]:
        """The weights of the runs that the replicas of a unit look at, trained in a chunk before."""
        kept, places = [], self.places
        for replica in unit.replicas:
            of = replica.condition.of
            assert of is not None
            wanted = of.condition.name, of.seeds[replica.condition.seeds.index(replica.seed)]
            chunk, place = places[wanted]
            kept.append(self.recorder.kept(chunk, place, of.best))
        return {name: torch.stack([weights[name] for weights in kept]) for name in kept[0]}

    @property
    def diverged(self) -> list[dict[str, Any]]:
        """The replicas that met a non-finite loss or gradient, and the step at which they were frozen."""
        return [
            {"condition": row.condition, "replica": row.replica, "step": row.step}
            for row in self.recorder.rows
            if row.metric == DIVERGED
        ]

    def _save(self, chunk: int, workers: list[Worker]) -> None:
        states = join((index, worker.state()) for index, worker in enumerate(workers))
        self.recorder.save(chunk, self.seconds, states)

    def _record(self, chunk: int, worker: Worker, seen: list[Observation]) -> None:
        unit = worker.unit
        frozen = [step if step != NEVER else unit.steps for step in worker.trainer.diverged.tolist()]
        for observation in seen:
            for name, value in observation.values:
                numbers = value.tolist() if value.ndim == 1 else None
                for row, replica in enumerate(unit.replicas):
                    if observation.step > frozen[row]:
                        continue
                    if numbers is not None:
                        name_of = replica.condition.name
                        self.recorder.metric(Row(name_of, replica.seed, observation.step, name, numbers[row]))
                    else:
                        self.recorder.trace(chunk, replica.place, observation.step, name, value[row])


def work(chunk: Chunk) -> int:
    return sum(unit.effort[-1] for unit in chunk)


def memory(unit: Unit, device: str, precision: Precision, beside: int) -> Needs:
    """What the replicas of a unit take on a GPU: their state, and what a step and a reading need on top, which their
    graphs will keep."""
    gc.collect()
    start = torch.cuda.memory_allocated()
    worker = Worker(unit, device, precision, beside)
    built = torch.cuda.memory_allocated()
    peaks = []
    for act in (partial(worker.trainer.learn, worker.trainer.widest()), worker.peek):
        torch.cuda.reset_peak_memory_stats()
        act()
        peaks.append(torch.cuda.max_memory_allocated() - built)
    return Needs(built - start, *peaks)
