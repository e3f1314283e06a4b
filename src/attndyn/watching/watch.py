"""`attndyn.watch`: the attention of a model, read on fixed examples at chosen steps of its training."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import math
import shlex
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attndyn import spec
from attndyn.errors import NoCharts, RunError, UserError
from attndyn.provenance import device_name, revision, versions
from attndyn.store import atomic
from attndyn.store.folder import INFO, Run, lock
from attndyn.verbs import check_folder
from attndyn.watching import readings
from attndyn.watching.examples import Examples, tensors_of
from attndyn.watching.probes import find_embedding, tokens_of
from attndyn.watching.record import Record
from attndyn.watching.rules import Cell, layer_name
from attndyn.watching.tap import Call, Tap
from attndyn.watching.undisturbed import bare, undisturbed

STUDY = "watch"
CELLS = 64
OTHER = "choose another out= (--out), or say fresh=True (--fresh)"
_WATCHES: weakref.WeakValueDictionary[Path, Watch] = weakref.WeakValueDictionary()


def watch(
    model: nn.Module,
    examples: Any,
    out: Path | str,
    every: int = 50,
    *,
    steps: str | Iterable[int] | None = None,
    targets: Any = None,
    score: Callable[..., Tensor] | None = None,
    align: Any = None,
    query: int | None = None,
    mask: Any = None,
    tokens: Callable[[int], str] | Sequence[str] | None = None,
    embedding: nn.Module | str | None = None,
    cells: str | Sequence[tuple[Any, ...]] = "layers",
    max_cells: int = CELLS,
    probe: int = 4,
    probes: str = "log",
    batch_axis: int = 0,
    seed: int = 0,
    fresh: bool = False,
) -> Watch:
    """Watches the attention of `model` on fixed `examples` (a tensor, tuple or dict: what the model is called with).

    Say `w.step(n)` in the loop, n the number of updates so far, and `w.close()` at the end, which makes the page in
    `out`. It reads every `every` steps, or at `steps`: "log" (1, 2, 3, 4, 6, 8, 11 …) or a list.

    α needs nothing else. Δ and β need the right outputs: `targets` (one for each example, or one for each position,
    −100 where none counts), or `score`, which turns the model's answer (and the targets, if there are some, of the
    same rows) into the probability of the right output; rows come in any order and number. They
    are taken on the first `probe` examples, at the readings 0, 1, 2, 4, 8 … (`probes="all"`: at each), β for each layer
    as a whole, for each of the "heads", or for the `cells` named, (layer, head, query), None for all.

    `query`: the position an output is read from, where there is one output for each example (0 for BERT's [CLS]).
    `align`: the right input position of each output, if you know it. `mask` [batch, query]: which queries are real,
    where the model's own masks do not say it. `tokens`: the text of a token number. `seed` names the run among others.
    """
    if not isinstance(model, nn.Module):
        raise UserError(f"watch takes an nn.Module, not a {type(model).__name__}")
    spec.fitting("fresh", fresh, bool)
    return Watch(
        bare(model), Examples(examples, targets, score, batch_axis), Path(out), Schedule(every, steps),
        align=None if align is None else torch.as_tensor(align), query=query,
        mask=None if mask is None else torch.as_tensor(mask), tokens=tokens, embedding=embedding, cells=cells,
        max_cells=max_cells, probe=probe, probes=probes, seed=seed, fresh=fresh,
    )  # fmt: skip


class Schedule:
    """Which steps are read."""

    def __init__(self, every: int = 50, steps: str | Iterable[int] | None = None) -> None:
        if every < 1:
            raise UserError(f"a reading is taken every 1 or more steps, not every {every}")
        if isinstance(steps, str) and steps != "log":
            raise UserError(f'steps is "log" or a list of steps, not {steps!r}')
        self.every = every
        self.steps = steps if steps is None or isinstance(steps, str) else sorted(set(steps))

    def due(self, step: int) -> bool:
        if self.steps is None:
            return step % self.every == 0
        if self.steps == "log":  # 0, and the whole numbers nearest to the powers of √2
            return step == 0 or round(2 ** (round(2 * math.log2(step)) / 2)) == step
        return step in self.steps

    def __str__(self) -> str:
        if self.steps is None:
            return f"every {self.every}"
        return "log" if self.steps == "log" else ", ".join(map(str, self.steps))


class Watch:
    """A run that is being watched; `attndyn.watch` makes one."""

    def __init__(
        self, model: nn.Module, examples: Examples, folder: Path, schedule: Schedule, *, align: Tensor | None,
        query: int | None, mask: Tensor | None, tokens: Callable[[int], str] | Sequence[str] | None,
        embedding: nn.Module | str | None, cells: Any, max_cells: int, probe: int, probes: str, seed: int, fresh: bool,
    ) -> None:  # fmt: skip
        if probe < 1 or probes not in ("log", "all"):
            raise UserError('probe is at least 1 example, and probes is "log" or "all"')
        self.model, self.schedule, self.folder = model, schedule, folder
        self.started, self.spent, self.last = time.perf_counter(), 0.0, -1
        calls, ids, self.embedding = self._discover(examples, embedding)
        cells = chosen_cells(cells, calls, query, max_cells)
        self.reader = readings.Reader(
            model,
            examples,
            list(calls),
            cells,
            self.embedding,
            query=query,
            mask=mask,
            align=align,
            probe=probe,
            seed=seed,
        )
        self.reader.check(calls)
        self.probes = probes
        settings = {
            "readings": str(schedule), "examples": examples.count, "content": _digest(examples), "probed": probe,
            "probes": probes if examples.scored else "none: neither targets nor score was given",
            "cells": ", ".join(map(_cell_text, cells)) if examples.scored else "", "query": query, "seed": seed,
        }  # fmt: skip
        info = check_folder(STUDY, folder, fresh)
        if info is not None and not fresh:
            if info["status"] == "finished":
                drawn = (folder / "report.html").exists()
                no_page = "" if drawn else f" without a page, which attndyn report {shlex.quote(str(folder))} makes"
                raise UserError(f"{folder} holds a finished run{no_page}; {OTHER}")
            other = [name for name, value in settings.items() if info["settings"].get(name) != value]
            if other:
                raise UserError(
                    f"{folder} was begun with another {other[0]} ({info['settings'].get(other[0])} instead of "
                    f"{settings[other[0]]}); {OTHER}"
                )
        # A notebook runs its cell again while the watch that was interrupted is still around.
        earlier = _WATCHES.get(folder.resolve())
        if earlier is not None:
            earlier.give_up()
        self._open = contextlib.ExitStack()
        self._open.enter_context(lock(folder))
        _WATCHES[folder.resolve()] = self
        self.record = Record(folder)
        if fresh or info is None:
            self.record.clear()
        self.info: dict[str, Any] = {
            "study": STUDY,
            "title": f"The attention of {type(model).__name__} while it learns",
            "settings": settings,
            "layers": [readings.layer_facts(name, call) for name, call in calls.items()],
            "scored": examples.scored,
            "without": self.reader.without,
            "seed": seed,
            "seeds": [],
            "replicas": [
                {"condition": name, "replica": seed, "chunk": 0} for name in (*self.reader.labels, readings.WORDS)
            ],
            "versions": versions(),
            "device": device_name(next((p.device.type for p in model.parameters()), "cpu")),
            "revision": revision(),
            "command": f'w = attndyn.watch(model, examples, out="{folder.name}"); w.step(n)',
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "seconds": None,
            "status": "running",
            "files": ["metrics.parquet", "run.json", "traces/"],
        }
        self.info["tokens"] = self.reader.name_words(calls, ids, tokens)
        atomic.write_json(folder / INFO, self.info)

    def _discover(
        self, examples: Examples, chosen: nn.Module | str | None
    ) -> tuple[dict[str, Call], Tensor | None, Any]:
        """What attention there is; raises if none can be read, and says why."""
        with undisturbed(self.model), torch.no_grad():
            with Tap(self.model) as tap:
                try:
                    answer = examples.run(self.model)
                except UserError:
                    raise
                except Exception as error:
                    given = ", ".join(f"{[*one.shape]} {one.dtype}" for one in tensors_of(examples.inputs))
                    raise UserError(
                        f"{type(self.model).__name__} cannot be called with the examples ({given}): "
                        f"{type(error).__name__}: {error}"
                    ) from error
            if not tap.calls:
                raise UserError(nothing_found(self.model, tap))
            batch = {call.weights.shape[0] for call in tap.calls.values()}
            if batch != {examples.count}:
                raise UserError(
                    f"there are {examples.count} examples, but the attention has a batch of {sorted(batch)}: is the "
                    "batch the first axis (batch_axis=)?"
                )
            if examples.scored:
                examples.right(answer)
            embedding = find_embedding(self.model, examples, chosen)
            ids = None if embedding is None else tokens_of(self.model, examples, embedding)
        return dict(tap.calls), ids, embedding

    def step(self, step: int) -> None:
        """Reads if this step is due. `step` is the number of updates so far."""
        step = spec.fitting("step", step, int)
        if self.schedule.due(step) and step != self.last:
            self.read(step)

    def read(self, step: int, probing: bool | None = None) -> None:
        """Reads now, due or not."""
        step = spec.fitting("step", step, int)
        self._check_open(("running",))
        began = time.perf_counter()
        if self.last < 0 or step <= self.last:
            self.record.drop_from(step)
        if probing is None:
            taken = len(self.record.steps())
            probing = self.probes == "all" or taken & (taken - 1) == 0
        with undisturbed(self.model):
            rows, tensors = self.reader.read(step, probing)
        self.record.write(step, rows, tensors)
        self.last = step
        self.spent += time.perf_counter() - began

    def report(self) -> Path:
        """The page of what was read so far."""
        from attndyn.watching import page

        return page.write(self.folder)

    def close(self, step: int | None = None) -> Run:
        """Finishes the run and makes its page; with `step`, the number of updates, it reads once more before."""
        self._check_open(("running", "finished"))
        if self.info["status"] == "running":
            if step is not None:
                self.read(step, probing=True)
            if self.last < 0:
                self._open.close()
                raise UserError("nothing was read: say w.step(n) in the training loop, or w.close(n) after it")
            self.record.gather()  # a finished run has its metrics, whatever breaks off its page
            self.info["status"] = "finished"
            self.info["seconds"] = round(time.perf_counter() - self.started, 1)
            self.info["spent reading"] = round(self.spent, 2)
            atomic.write_json(self.folder / INFO, self.info)
            try:
                self.report()
            except NoCharts as error:  # training has ended and everything is stored: no reason to fail
                warnings.warn(f"no page yet, {error}; then `attndyn report {self.folder}` makes it", stacklevel=2)
            finally:
                self._open.close()
        return Run(self.folder)

    def _check_open(self, states: tuple[str, ...]) -> None:
        if self.info["status"] not in states:
            raise RunError(f"the run in {self.folder} is {self.info['status']}")

    def give_up(self) -> None:
        """Leaves the folder to another watch of this process."""
        if self.info["status"] == "running":
            self.info["status"] = "taken over by a later watch"
        self._open.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._open.close()

    def _repr_html_(self) -> str:
        return Run(self.folder)._repr_html_()


def chosen_cells(cells: Any, calls: dict[str, Call], query: int | None, most: int) -> list[Cell]:
    """Where β is taken."""
    layers = list(calls)
    if cells == "layers":
        found = [Cell(layer, None, query) for layer in range(len(layers))]
    elif cells == "heads":
        found = [Cell(i, head, query) for i, name in enumerate(layers) for head in range(calls[name].weights.shape[1])]
    elif isinstance(cells, str):
        raise UserError(f'cells is "layers", "heads" or a list of (layer, head, query), not {cells!r}')
    else:
        try:
            found = [Cell(*cell) for cell in cells]
        except TypeError as error:
            raise UserError(f"cells are (layer, head, query), None for all, not {cells!r}") from error
    for cell in found:
        name = layer_name(cell.layer, layers)
        for call in [calls[name]] if name else calls.values():
            _, heads, queries, _ = call.weights.shape
            for index, count, what in ((cell.head, heads, "head"), (cell.query, queries, "query")):
                if index is not None and not -count <= index < count:
                    raise UserError(f"{_cell_text(cell)}: there is no {what} {index} among {count}")
    if len(found) > most:
        raise UserError(
            f"β at {len(found)} (layer, head, query) cells takes as many passes over all positions; name fewer with "
            f"cells=, or allow them with max_cells={len(found)}"
        )
    return [_by_number(cell, layers, calls) for cell in found]


def _by_number(cell: Cell, layers: list[str], calls: dict[str, Call]) -> Cell:
    """The layer by its place, and a query that was counted from the end by its place too: a module that is called once
    for each query does not know which one is the last."""
    name = layer_name(cell.layer, layers)
    if name is None:
        return cell
    queries = calls[name].weights.shape[2]
    return cell._replace(layer=layers.index(name), query=None if cell.query is None else cell.query % queries)


def _cell_text(cell: Cell) -> str:
    named = zip(("layer", "head", "query"), cell, strict=True)
    return " ".join(f"{what} {value}" for what, value in named if value is not None) or "every layer"


def nothing_found(model: nn.Module, tap: Tap) -> str:
    """Why no attention could be read."""
    said = f"no attention could be read in {type(model).__name__}: no nn.MultiheadAttention, "
    said += "scaled_dot_product_attention, Hugging Face attention function or registered module ran in its forward pass"
    kinds = {name: type(module).__name__ for module, name in tap.names.items()}
    if tap.unread:
        name = tap.unread[0]
        said += (
            f"; a softmax runs in {name} ({kinds[name]}): if that is its attention, say attndyn.register({kinds[name]})"
        )
    if any(isinstance(module, torch.jit.ScriptModule) for module in tap.names):
        said += "; it holds a ScriptModule, which nothing can look into"
    return said


def _digest(examples: Examples) -> str:
    tensors = [*tensors_of(examples.inputs), *([] if examples.targets is None else [examples.targets])]
    content = hashlib.sha256()
    for tensor in tensors:
        content.update(str((tensor.dtype, [*tensor.shape])).encode())
        content.update(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes() if tensor.ndim else b"")
    return content.hexdigest()[:8]
