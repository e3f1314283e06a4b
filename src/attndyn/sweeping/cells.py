"""The cells of a sweep: one study with one choice of settings, in one run folder whose name is its content hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attndyn import spec
from attndyn.errors import Busy, RunError, UserError
from attndyn.provenance import settings_of
from attndyn.store.folder import read_info
from attndyn.sweeping.grid import point_in_words
from attndyn.verbs import check_folder, is_finished, run

if TYPE_CHECKING:
    from attndyn.runner import Progress
    from attndyn.studies.base import Study

DIGITS = 12
BUSY = "another process is working on it; the same command again completes the table"


class Told:
    """Is told how a sweep goes; this one keeps it to itself."""

    def say(self, line: str) -> None:
        """Where the sweep stands."""

    def progress(self, study: Study) -> Progress | None:
        """Is told how one cell goes."""
        return None


@dataclass(frozen=True)
class Way:
    """How all cells of a sweep are computed."""

    scale: str
    device: str
    """cpu or cuda."""
    precision: str
    deterministic: bool
    code: dict[str, str]
    """`provenance.code()`: the source and the packages that compute."""

    def name(self, study: Study) -> str:
        """The folder of a study's cell: same name, same work."""
        made = {"study": study.name, "settings": settings_of(study), **vars(self)}
        return f"{study.name}-{spec.digest(made)[:DIGITS]}"


@dataclass(frozen=True)
class Cell:
    study: Study
    folder: Path
    needs: tuple[Cell, ...]
    """Cells that have to be finished before this one."""
    label: str
    """For people: the study, and where in the grid it is."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def finished(self) -> bool:
        return is_finished(self.folder)

    @property
    def status(self) -> str | None:
        """finished or diverged; None: neither."""
        return read_info(self.folder)["status"] if self.finished else None


def cell_of(study: Study, cells: Path, way: Way, axes: Sequence[str] = ()) -> Cell:
    point = point_in_words({name: getattr(study, name) for name in axes})
    needs = tuple(cell_of(need, cells, way) for need in study.needs())
    name = way.name(study)
    return Cell(study, cells / name, needs, f"{study.name} at {point}" if point else name)


def in_order(asked: Sequence[Cell]) -> list[Cell]:
    """Those asked for and those they need, each once, behind what it needs."""
    ordered: dict[str, Cell] = {}

    def add(cell: Cell) -> None:
        for need in cell.needs:
            add(need)
        ordered.setdefault(cell.name, cell)

    for cell in asked:
        add(cell)
    return list((ordered | {cell.name: cell for cell in asked}).values())  # by the label it was asked for


def check(cells: Sequence[Cell]) -> None:
    """Refuses what cannot be carried out on this machine, and folders of something else, before anything runs."""
    for cell in cells:
        if check_folder(cell.study.name, cell.folder) is None or not cell.finished:
            for _ in (*cell.study.conditions(), *cell.study.pieces()):
                pass


def carry_out(cell: Cell, way: Way, progress: Progress | None = None) -> str | None:
    """Makes a cell, or continues it. Returns the sentence it failed with, or None; raises Busy where another process
    is at work. With one thread for all that is not training, so that no bit depends on the machine's cores."""
    from attndyn.process import single_threaded

    choices: dict[str, Any] = {"device": way.device, "precision": way.precision, "deterministic": way.deterministic}
    try:
        with single_threaded():
            run(
                cell.study, scale=way.scale, out=cell.folder, page=False, progress=progress,
                needed_in=lambda need: cell.folder.parent / way.name(need), **choices,
            )  # fmt: skip
    except Busy:
        raise
    except Exception as error:  # whatever it was: the other cells go on
        return None if cell.finished else reason(error)
    return None


def failed_needs(cell: Cell, problems: dict[str, str]) -> str | None:
    """Why a cell cannot be begun."""
    return next((f"it needs {one.label}: {problems[one.name]}" for one in cell.needs if one.name in problems), None)


def reason(error: Exception) -> str:
    """One line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    first = next(filter(None, str(error).splitlines()), "")
    return first if isinstance(error, UserError | RunError) else f"{type(error).__name__}: {first}"


def count(cells: Sequence[Cell], to_do: Sequence[Cell]) -> str:
    return f"{len(cells)} cell{'s' * (len(cells) != 1)}, {len(to_do)} of them to be run"
