"""The only writer of results: rows and traces collect in memory and reach the disk with each save."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from attndyn.store import atomic, checkpoint
from attndyn.store.folder import CHOSEN, METRICS, TRACES, Run
from attndyn.store.metrics import Row, from_parquet, to_parquet

if TYPE_CHECKING:
    import numpy as np


MANY = 1 << 28
"""Bytes of traces that may wait for the next save."""


class Recorder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[Row] = []
        self._traces: dict[Path, dict[str, Tensor]] = {}
        self._saves = 0
        self._waiting = 0
        self._writer = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    def resume(self) -> checkpoint.Save | None:
        """Takes up the rows of the last save; rows behind it were never written."""
        save = checkpoint.latest(self.folder)
        if save is not None:
            self.rows = [Row(*row.values()) for row in from_parquet(save.rows).to_pylist()]
            self._saves = save.number
        return save

    def metric(self, row: Row) -> None:
        self.rows.append(row)

    def trace(self, chunk: int, index: int, step: int, name: str, value: Tensor) -> None:
        """One array of one replica, whose place in the run is `index`."""
        path = self.folder / TRACES / f"chunk-{chunk:03d}" / f"step-{step:06d}.safetensors"
        self._traces.setdefault(path, {})[f"{index}.{name}"] = value.contiguous()
        self._waiting += value.nbytes

    def settle(self) -> None:
        """Writes the traces if many are waiting, while the work goes on; those behind the last save will be written
        again if it is interrupted."""
        if self._waiting > MANY:
            self._flush()

    def save(self, chunk: int, seconds: float, state: dict[str, Tensor]) -> None:
        self._flush()
        self._finish_writing()
        self._saves += 1
        tensors = {name: value.detach().cpu().contiguous() for name, value in state.items()}
        rows = to_parquet(self.rows)
        checkpoint.write(self.folder, checkpoint.Save(self._saves, chunk, seconds, rows, tensors))

    def _flush(self) -> None:
        from safetensors.torch import load

        self._finish_writing()
        waiting, self._traces, self._waiting = self._traces, {}, 0

        def write() -> None:
            for path, tensors in waiting.items():
                # A step of a chunk may come in two parts, when Ctrl-C finds its replicas at different steps.
                before = load(path.read_bytes()) if path.exists() else {}
                self._write(path, {**before, **tensors})

        self._writing = self._writer.submit(write)

    def _finish_writing(self) -> None:
        """Waits for the traces that are being written; what went wrong is raised here."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

    def weights(self, chunk: int, weights: dict[str, Tensor]) -> None:
        """What is kept of the trained models of a chunk."""
        if weights:
            self._finish_writing()
            self._writing = self._writer.submit(self._write, self._weights(chunk), weights)

    def kept(self, chunk: int, index: int, best: str) -> dict[str, Tensor]:
        """The weights of one replica of a chunk that is trained, by the name of the parameter."""
        from safetensors import safe_open

        path, prefix = self._weights(chunk), f"{index}.{best}."
        with safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 (not a dict)
            return {name.removeprefix(prefix): file.get_tensor(name) for name in names}

    def _weights(self, chunk: int) -> Path:
        return self.folder / "weights" / f"chunk-{chunk:03d}.safetensors"

    def finish(self, conditions: Iterable[str], analysed: Iterable[Row] = ()) -> None:
        """Writes the metrics in one fixed order, whatever the order in which they were measured."""
        place = {condition: index for index, condition in enumerate(conditions)}
        rows = [*self.rows, *analysed]
        for row in rows:
            place.setdefault(row.condition, len(place))
        rows.sort(key=lambda row: (place[row.condition], row.replica, row.step, row.metric))
        atomic.write_bytes(self.folder / METRICS, to_parquet(rows))

    def choose(self, run: Run, shown: Iterable[tuple[str, int, int, dict[str, np.ndarray]]]) -> None:
        """Writes the traces that are to stay beside all others."""
        import numpy as np
        import torch

        shutil.rmtree(self.folder / CHOSEN, ignore_errors=True)
        (self.folder / CHOSEN).mkdir()
        kept: dict[Path, dict[str, Tensor]] = {}
        for condition, replica, step, arrays in shown:
            folder, index = run.place(condition, replica)
            tensors = kept.setdefault(self.folder / CHOSEN / folder.name / f"step-{step:06d}.safetensors", {})
            tensors |= {f"{index}.{name}": torch.as_tensor(np.ascontiguousarray(a)) for name, a in arrays.items()}
        for path, tensors in kept.items():
            self._write(path, tensors)

    def keep_chosen(self, weights: bool = False) -> None:
        """Puts them in place of all, and leaves no weights unless they are wanted. Once more does no harm."""
        traces, chosen = self.folder / TRACES, self.folder / CHOSEN
        if chosen.exists():
            with ThreadPoolExecutor() as pool:  # gigabytes: the files of IMDB one after the other take two seconds
                list(pool.map(Path.unlink, traces.glob("*/*.safetensors")))
            shutil.rmtree(traces, ignore_errors=True)
            chosen.rename(traces)
        if not weights:
            shutil.rmtree(self.folder / "weights", ignore_errors=True)

    @staticmethod
    def _write(path: Path, tensors: dict[str, Tensor]) -> None:
        from safetensors.torch import save

        atomic.write_bytes(path, save({name: value.cpu() for name, value in sorted(tensors.items())}))


def join(states: Iterable[tuple[int, dict[str, Tensor]]]) -> dict[str, Tensor]:
    """The states of several trainers under one set of names."""
    return {f"{unit}.{name}": value for unit, state in states for name, value in state.items()}


def part(state: dict[str, Tensor], unit: int) -> dict[str, Tensor]:
    """The state of one trainer, out of what `join` joined."""
    prefix = f"{unit}."
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
