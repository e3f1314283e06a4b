"""A sweep from beginning to end: which cells there are, which are to be made, on what, and the table of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attndyn import spec
from attndyn.errors import Busy, UserError, nearest
from attndyn.options import SweepOptions
from attndyn.own_files import check_own_files
from attndyn.provenance import Precision, code, numerics, resolve_engine
from attndyn.store.folder import INFO, check_whole, read_info
from attndyn.studies import find
from attndyn.sweeping import table
from attndyn.sweeping.cells import BUSY, Cell, Told, Way, carry_out, cell_of, check, count, failed_needs, in_order
from attndyn.sweeping.grid import Grid, as_grid, points
from attndyn.tasks.held import forget

if TYPE_CHECKING:
    from attndyn.studies.base import Study
    from attndyn.sweeping.table import Swept

ANOTHER = "choose another --out for the sweep: its cells are made of them, and these are kept"
ENGINES = ("in-process", "ray")


def sweep(studies: str | Sequence[str], grid: Mapping[str, Any], *, told: Told | None = None, **choices: Any) -> Swept:
    """Runs each study at each point of the grid; what is finished in the folder of the sweep is not run again.

    `grid` has the values of settings, such as `{"lr": [1e-3, 3e-3]}`, or one: `{"lr": 1e-3}`. `choices` are those of
    the command (`out`, `scale`, `engine`, …: `attndyn.options.SweepOptions`), and settings that all cells share.
    """
    if choices.get("engine", "ray") not in ENGINES:
        raise UserError(f"there is no engine {choices['engine']!r}; {nearest(str(choices['engine']), ENGINES)}")
    if choices.get("out") is not None:
        choices["out"] = Path(choices["out"])
    known = {field.name for field in fields(SweepOptions)}
    options = SweepOptions(**{name: value for name, value in choices.items() if name in known})
    spec.fitting("deterministic", options.deterministic, bool)
    settings = {name: value for name, value in choices.items() if name not in known}
    names = [studies] if isinstance(studies, str) else list(studies)
    bases = [find(name).at(options.scale, **settings) for name in names]
    return sweep_from(bases, [as_grid(grid)] * len(bases), options, told or Told())


def sweep_from(bases: Sequence[Study], grids: Sequence[Grid], options: SweepOptions, told: Told) -> Swept:
    """As `sweep`, with a grid for each of the studies, whose values are its own."""
    check_asked(bases, grids)
    studies = [study for base, grid in zip(bases, grids, strict=True) for study in points(base, grid)]
    axes = list(grids[0])
    folder = options.out or Path("sweeps") / "-".join(base.name for base in bases)
    table.check_folder(folder)

    def cells(device: str, precision: Precision, deterministic: bool) -> tuple[Way, list[Cell]]:
        way = Way(options.scale, device, **numerics(device, precision, deterministic), code=code())
        asked = [cell_of(study, folder / table.CELLS, way, axes) for study in studies]
        for cell in (cell for cell in in_order(asked) if (cell.folder / INFO).exists()):
            info = read_info(cell.folder)
            if cell.finished:
                check_whole(cell.folder, info, f"the same command makes it again once {cell.folder} is deleted")
            check_own_files(cell.study, cell.folder, info, ANOTHER)  # their names say nothing of the text
        return way, asked

    forget()

    choices = options.precision, options.deterministic
    if options.engine == "ray":
        from attndyn.sweeping.on_ray import Cluster

        with Cluster(options.address, options.cpus_per_cell, options.gpus_per_cell) as cluster:
            way, asked = cells(cluster.device(options.device), *choices)
            problems = cluster.carry_out(in_order(asked), way, told)
    else:
        device = resolve_engine(options.device, *choices)["device"].split()[0]
        way, asked = cells(device, *choices)
        problems = in_process(in_order(asked), way, told)
    return table.gather(folder, asked, axes, way, problems)


def check_asked(bases: Sequence[Study], grids: Sequence[Grid]) -> None:
    names = [base.name for base in bases]
    if not names:
        raise UserError("sweep needs the name of a study")
    if len(set(names)) < len(names):
        raise UserError(f"a study is named twice: {', '.join(names)}")
    if len(names) == 1 and not grids[0]:
        raise UserError(f"sweep needs a grid (--grid lr=1e-3,3e-3); a single run is: attndyn run {names[0]}")


def in_process(cells: Sequence[Cell], way: Way, told: Told) -> dict[str, str]:
    """One cell after the other; each fills the device with its replicas. Returns why cells were not made."""
    check(cells)
    problems: dict[str, str] = {}
    to_do = [cell for cell in cells if not cell.finished]
    told.say(count(cells, to_do))
    for number, cell in enumerate(to_do, 1):
        problem = failed_needs(cell, problems)
        if problem is None:
            told.say(f"{number} of {len(to_do)}: {cell.label}")
            try:
                problem = carry_out(cell, way, told.progress(cell.study))
            except Busy:
                problem = BUSY
        if problem is not None:
            problems[cell.name] = problem
            told.say(f"{cell.label} was not made: {problem}")
    return problems
