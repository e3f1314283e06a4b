"""The cells of a sweep as tasks on a Ray cluster: https://docs.ray.io. Needs the extra `ray`.

A task gets settings as plain data and, where there are any, the files of runs it builds on; it works in a temporary
folder of its machine and answers with the files of the finished run. So the machines share no file system, and only
this process writes into the sweep's folder. If a machine dies, Ray runs its tasks elsewhere.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from attndyn.errors import Busy, UserError, first_line
from attndyn.provenance import Device, settings_of
from attndyn.store.folder import lock
from attndyn.sweeping.cells import BUSY, Cell, Told, Way, count, failed_needs
from attndyn.sweeping.files import pack, unpack

RETRIES = 5
"""How often a task is begun again because its machine or its process died."""
AT_ONCE = 200
"""Cells that are handed to the cluster at a time; each holds a lock here."""
REACHED_SECONDS = 20
"""How long a cluster may take to answer; `ray.init` alone would try for minutes."""
ANSWER_SECONDS = 5.0
"""How long cells are let answer after one has ended the sweep."""
SAID_SECONDS = 30
"""At the latest after so long it says where it stands."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


class Cluster:
    """A Ray cluster that runs cells; left again at the end of `with`."""

    def __init__(self, address: str, cpus: int, gpus: float) -> None:
        if cpus < 1:
            raise UserError(f"--cpus-per-cell must be at least 1, not {cpus}")
        if gpus <= 0:
            raise UserError(f"--gpus-per-cell must be above 0, not {gpus:g}; --device cpu uses none")
        self.address, self.cpus, self.gpus = address, cpus, gpus

    def __enter__(self) -> Cluster:
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        try:
            import ray
        except ImportError:
            raise UserError("--engine ray needs the package ray: pip install 'attndyn[ray]'") from None
        named: dict[str, Any] = {"include_dashboard": False} if self.address == "local" else {}
        if self.address != "local":
            check_reached(self.address)
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR, **named)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UserError(f"the Ray cluster at {self.address} cannot be used: {first_line(error)}") from None
        self.ray = ray
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.ray.shutdown()

    def device(self, asked: Device) -> str:
        """cuda where it is asked for, or where the cluster has any and nothing else is asked for."""
        return ("cuda" if self.ray.cluster_resources().get("GPU", 0) else "cpu") if asked == "auto" else asked

    def carry_out(self, cells: Sequence[Cell], way: Way, told: Told) -> dict[str, str]:
        """Why cells were not made. Ctrl-C leaves the finished ones and gives up the others."""
        from attndyn.process import stop_requests

        waiting = [cell for cell in cells if not cell.finished]
        told.say(f"{count(cells, waiting)}, on {machines(self.ray)}")
        wanted = {"CPU": self.cpus, "GPU": self.gpus if way.device == "cuda" else 0}
        there = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        if not any(all(node.get(name, 0) >= number for name, number in wanted.items()) for node in there):
            named = " and ".join(f"{number:g} {name}" for name, number in wanted.items() if number)
            told.say(f"no machine of the cluster has {named} for a cell; waiting for one that has")
        work = Work(self.ray, way, self.cpus, wanted["GPU"])
        problems: dict[str, str] = {}
        done, total, said = 0, len(waiting), time.monotonic()

        def end(cell: Cell, problem: str | None) -> None:
            nonlocal done, said
            done, said = done + 1, time.monotonic()
            if problem is not None:
                problems[cell.name] = problem
            told.say(f"{done} of {total}: {cell.label} {'is done' if problem is None else f'was not made: {problem}'}")

        with stop_requests() as stop, work:
            while waiting or work.cells:
                while waiting and len(work.cells) < AT_ONCE:
                    cell = waiting.pop(0)
                    try:
                        problem = failed_needs(cell, problems)
                        begun = problem is None and work.begin(cell)
                    except Busy:
                        begun, problem = False, BUSY
                    if not begun:
                        end(cell, problem)
                for cell, problem in work.ended():
                    end(cell, problem)
                if stop.is_set():
                    raise KeyboardInterrupt
                if time.monotonic() - said > SAID_SECONDS:
                    said = time.monotonic()
                    told.say(f"{done} of {total} done, {len(work.cells)} with the cluster, on {machines(self.ray)}")
        return problems


class Work:
    """The cells that the cluster has, each locked here. What is not finished at the end of `with` is given up."""

    def __init__(self, ray: Any, way: Way, cpus: int, gpus: float) -> None:
        self.ray, self.way, self.cpus = ray, way, cpus
        self.remote = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)(task())
        self.cells: dict[Any, tuple[Cell, ExitStack]] = {}
        self.answers: dict[str, Any] = {}
        """Of cells that others may need."""

    def __enter__(self) -> Work:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Where one machine refuses, others are about to. They are let answer, as Ray can break down, and this process
        with it, when a task ends in the moment in which it is cancelled."""
        with ExitStack() as locks:
            for _, held in self.cells.values():
                locks.push(held)
            seconds = 0.0 if kind is None or issubclass(kind, KeyboardInterrupt) else ANSWER_SECONDS
            given = list(self.cells)
            _, left = self.ray.wait(given, num_returns=len(given), timeout=seconds) if given else ([], [])
            for reference in left:
                self.ray.cancel(reference, force=True)

    def begin(self, cell: Cell) -> bool:
        """Hands a cell over; False: somebody else has finished it in the meantime."""
        with ExitStack() as held:
            held.enter_context(lock(cell.folder))
            if cell.finished:
                return False
            for need in cell.needs:
                if need.name not in self.answers:
                    self.answers[need.name] = self.ray.put({"files": pack(need.folder)})
            order = {
                "study": cell.study.name, "settings": settings_of(cell.study), "name": cell.name,
                "way": vars(self.way), "cpus": self.cpus, "needs": [need.name for need in cell.needs],
                "before": pack(cell.folder),
            }  # fmt: skip
            reference = self.remote.remote(order, *(self.answers[need.name] for need in cell.needs))
            self.cells[reference] = cell, held.pop_all()
            self.answers[cell.name] = reference
        return True

    def ended(self) -> Iterator[tuple[Cell, str | None]]:
        """Waits a second for cells that come to their end; with each, why it was not made, or None."""
        ready = self.ray.wait(list(self.cells), num_returns=len(self.cells), timeout=1.0)[0] if self.cells else []
        for reference in ready:
            cell, held = self.cells.pop(reference)
            with held:
                problem = self._receive(reference, cell)
            yield cell, problem

    def _receive(self, reference: Any, cell: Cell) -> str | None:
        """Puts a finished cell into its folder, or returns why there is none."""
        try:
            answer = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            return f"Ray gave it up: {first_line(error)}"
        if "refusal" in answer:
            raise UserError(answer["refusal"])
        if "problem" in answer:
            return str(answer["problem"])
        unpack(answer["files"], cell.folder)
        return None


def task() -> Any:
    """The function that Ray sends to its machines. It is made here, so that it travels as code and can say what is
    wrong where there is no attndyn, or another one."""

    def cell(order: dict[str, Any], *needed: dict[str, Any]) -> dict[str, Any]:
        import platform

        try:
            from attndyn.sweeping.remote import answer
        except ImportError as error:
            return {"refusal": f"{platform.node()} has no attndyn that can run cells of this sweep: {error}"}
        result: dict[str, Any] = answer(order, needed)
        return result

    return cell


def check_reached(address: str) -> None:
    """Asks in a process of its own, because it cannot be interrupted, whether a cluster answers."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check"]
    if address != "auto":
        command += ["--address", address]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=REACHED_SECONDS)
    except subprocess.TimeoutExpired:
        raise UserError(f"no Ray cluster answers at {address} within {REACHED_SECONDS} s") from None
    if asked.returncode:
        why = next(filter(None, reversed(asked.stderr.splitlines())), "no reason was given")
        raise UserError(f"no Ray cluster answers at {address} ({why}); `ray start --head` starts one")


def machines(ray: Any) -> str:
    count = sum(node["Alive"] for node in ray.nodes())
    return f"{count} machine{'s' * (count != 1)}"
