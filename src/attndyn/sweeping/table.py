"""What a sweep found: one row for each cell, read from the run folders. It holds no time and no name of a machine, so
that it has the same bytes whichever engine made the cells."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attndyn import spec
from attndyn.errors import UserError
from attndyn.housekeeping import last_values
from attndyn.measures.verdicts import VERDICTS
from attndyn.store import atomic
from attndyn.store.folder import Run
from attndyn.sweeping.cells import Cell, Way, in_order
from attndyn.sweeping.grid import in_words

TABLE, METRICS, WHOLE, CELLS = "sweep.csv", "metrics.csv", "sweep.json", "cells"
SHOWN = 5
"""Cells that are named in one sentence."""
KEPT = ("id", "measured", "interval", "n", "verdict")


@dataclass(frozen=True)
class Swept:
    """A sweep that came to its end, also where cells failed."""

    folder: Path
    found: dict[str, Any]
    """What sweep.json holds."""
    problems: dict[str, str]
    """Cell → why it was not made."""

    def problems_in_words(self) -> str:
        named = [f"{name} ({problem})" for name, problem in list(self.problems.items())[:SHOWN]]
        more = f" and {len(self.problems) - SHOWN} more" if len(self.problems) > SHOWN else ""
        return f"not made: {'; '.join(named)}{more}; the same command again tries them again"

    @property
    def cells(self) -> list[dict[str, Any]]:
        return list(self.found["cells"])


def check_folder(folder: Path) -> None:
    """Refuses a folder that holds what no sweep has left: its tables would be written over."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file, not a folder of a sweep")
    strangers = [path.name for path in folder.iterdir() if not path.name.startswith(".")] if folder.exists() else []
    if strangers and not {WHOLE, CELLS} & set(strangers):
        raise UserError(f"{folder} is not a folder of a sweep (it holds {strangers[0]}); choose another --out")


def gather(folder: Path, cells: Sequence[Cell], axes: Sequence[str], way: Way, problems: dict[str, str]) -> Swept:
    """Reads the cells and writes the tables, each at once."""
    rows = [row_of(cell, axes, problems) for cell in cells]
    found = {"studies": list(dict.fromkeys(cell.study.name for cell in cells)), "axes": list(axes), **vars(way)}
    found |= {"cells": rows}
    folder.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(folder / METRICS, as_csv(metric_rows(cells, axes)))
    atomic.write_bytes(folder / TABLE, as_csv(wide(rows, axes)))
    atomic.write_json(folder / WHOLE, found)
    labels = {cell.name: cell.label for cell in in_order(cells)}
    return Swept(folder, found, {labels[name]: problem for name, problem in problems.items()})


def row_of(cell: Cell, axes: Sequence[str], problems: dict[str, str]) -> dict[str, Any]:
    row = {
        "cell": cell.name,
        "study": cell.study.name,
        "settings": {name: spec.encode(getattr(cell.study, name)) for name in axes},
        "status": cell.status or ("failed" if cell.name in problems else "unfinished"),
    }
    made = Run(cell.folder) if cell.finished else None
    claims = made.claims if made else []
    return row | {
        "finding": made.info["finding"] if made else None,
        "claims": [{name: claim[name] for name in KEPT} for claim in claims],
    }


def wide(rows: Sequence[dict[str, Any]], axes: Sequence[str]) -> Iterator[list[Any]]:
    """study | settings | status | finding | measured and verdict of each claim | cell"""
    ids = list(dict.fromkeys(claim["id"] for row in rows for claim in row["claims"]))
    kinds = ("measured", "verdict")
    yield ["study", *axes, "status", "finding", *(f"{id} {kind}" for id in ids for kind in kinds), "cell"]
    for row in rows:
        claims = {claim["id"]: claim for claim in row["claims"]}
        judged = [claims[id][kind] if id in claims else "" for id in ids for kind in kinds]
        settings = map(in_words, row["settings"].values())
        yield [row["study"], *settings, row["status"], row["finding"], *judged, row["cell"]]


def metric_rows(cells: Sequence[Cell], axes: Sequence[str]) -> Iterator[list[Any]]:
    """Every metric of every condition: its last value, averaged over the seeds that have a finite one."""
    yield ["study", *axes, "condition", "metric", "step", "n", "mean", "cell"]
    for cell in cells:
        settings = [in_words(getattr(cell.study, name)) for name in axes]
        for (condition, metric), last in last_values(Run(cell.folder)).items() if cell.finished else ():
            mean = math.fsum(value for _, value in last) / len(last)
            yield [cell.study.name, *settings, condition, metric, max(last)[0], len(last), repr(mean), cell.name]


def as_csv(rows: Iterator[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def print_swept(swept: Swept) -> None:
    """A table for each study: the settings, then the claims by their verdicts."""
    from attndyn.console import print_table

    for study in swept.found["studies"]:
        rows = [row for row in swept.cells if row["study"] == study]
        given = {claim["verdict"] for row in rows for claim in row["claims"]}
        verdicts = [verdict for verdict in VERDICTS if verdict in given]
        columns = [*swept.found["axes"], "status", *verdicts]
        lines = []
        for row in rows:
            by = [[claim["id"] for claim in row["claims"] if claim["verdict"] == verdict] for verdict in verdicts]
            lines.append([*map(in_words, row["settings"].values()), row["status"], *map(in_words, by)])
        print(study)
        print_table(columns, lines, whole=("status", *swept.found["axes"]))
    print(f"tables  {swept.folder / TABLE}, {swept.folder / METRICS}\nruns    {swept.folder / 'cells'}")
