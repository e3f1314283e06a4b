"""Do watched runs look at the same places? Two seeds, or two moments of training, on the same examples."""

import datetime
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attndyn.errors import UserError
from attndyn.provenance import revision, versions
from attndyn.report import page
from attndyn.report.parts import Cell, Curves, Part, Table
from attndyn.store import atomic
from attndyn.store.folder import INFO, METRICS, Run, lock
from attndyn.store.metrics import Metrics, Row, to_parquet
from attndyn.verbs import check_folder, clear
from attndyn.watching.numbers import Agreed, Pair, agree
from attndyn.watching.page import COLOURED, heads_of, layers_of

STUDY = "watch comparison"
KINDS = {"α": "rows", "β": "beta all"}
"""What is compared, and the array of a trace that holds it. β of single heads is not: runs rarely take it."""
MOMENTS = 8
"""Checkpoints of the table over time."""


def between(folders: Sequence[Path | str], step: int | None = None) -> list[dict[str, Any]]:
    """Agreement of attention between each two runs, head by head, at `step`, or at the last reading of each.

    Each entry holds `where` (layer and head), `first` and `second` (the folders), A of the first's attention with the
    second's, `chance` (Â), a 95 % interval from resampling examples (`low`, `high`) and `n`, the outputs compared.
    """
    runs = _same_examples(folders)
    now = [_trace(run, _step_of(run, step)) for run in runs]
    found = []
    for i, j in combinations(range(len(runs)), 2):
        pairs = _pairs(now[i], now[j], "α")
        for where, agreed in zip(pairs, agree(list(pairs.values())), strict=True):
            found.append(
                {
                    "where": where, "first": str(runs[i].path), "second": str(runs[j].path), "A": agreed.mean,
                    "chance": agreed.chance, "low": agreed.low, "high": agreed.high, "n": agreed.n,
                }
            )  # fmt: skip
    return found


def compare(folders: Sequence[Path | str], out: Path | str) -> Run:
    """A page on how much the runs agree over training: at each step that all of them have read, between the runs, and
    of each run with where it ends. `out` is a run folder of its own, with every number that the page shows; an earlier
    comparison in it is replaced."""
    runs, out = _same_examples(folders), Path(out)
    if out.resolve() in {run.path.resolve() for run in runs}:
        raise UserError(f"{out} is one of the runs to compare; choose another out=")
    steps = sorted(set.intersection(*(set(_steps(run)) for run in runs)))
    if not steps:
        raise UserError("the runs have no reading at the same step")
    check_folder(STUDY, out)
    with lock(out):
        table = to_parquet(list(_rows(runs, steps)))
        clear(out)
        paths = [str(run.path) for run in runs]
        info = runs[0].info | {
            "study": STUDY,
            "title": f"Do {len(runs)} runs learn to look at the same places?",
            "settings": {
                "runs": ", ".join(paths), "seeds": ", ".join(str(run.info["seed"]) for run in runs),
                "examples": runs[0].info["settings"]["probed"], "content": runs[0].info["settings"]["content"],
            },
            "runs": paths, "replicas": [], "versions": versions(), "revision": revision(), "status": "finished",
            "command": f"attndyn.compare({paths}, out={out.name!r})",
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "files": ["metrics.parquet", "run.json"], "seconds": None,
        }  # fmt: skip
        atomic.write_bytes(out / METRICS, table)
        atomic.write_json(out / INFO, info)
        write(out)
    return Run(out)


def write(folder: Path, formats: tuple[str, ...] = ("svg", "png")) -> Path:
    """The page of a comparison, from its folder alone."""
    run = Run(folder)
    metrics = Metrics(run.metrics)
    run.info["finding"] = finding(run, metrics)
    atomic.write_json(folder / INFO, run.info)
    return page.build(run, list(_parts(run, metrics)), run.info["finding"], formats)


# --- the numbers

Traces = list[dict[str, np.ndarray]]
"""One for each layer."""


def _rows(runs: list[Run], steps: list[int]) -> Iterator[Row]:
    """`A(α, α′)` for each two runs, in both directions, as a replica each; pooled over them (`all`), with the interval
    of resampled examples; and α with where the runs end."""
    ends = [_trace(run, _step_of(run, None)) for run in runs]
    directions = list(permutations(range(len(runs)), 2))
    for step in steps:
        now = [_trace(run, step) for run in runs]
        for kind in KINDS:
            each = [_pairs(now[i], now[j], kind) for i, j in directions]
            yield from _written(each, step, f"{kind}, {kind}′")
        yield from _written([_pairs(now[i], ends[i], "α") for i in range(len(runs))], step, "α, own end")
        yield from _written([_pairs(now[i], ends[j], "α") for i, j in directions], step, "α, other end")


def _written(each: list[dict[str, Pair]], step: int, name: str) -> Iterator[Row]:
    for where in [one for one in each[0] if all(one in other for other in each)]:  # β is not taken at every step
        pairs = [one[where] for one in each]
        *single, pooled = agree([*pairs, *_pooled(pairs)])
        for replica, agreed in enumerate(single):
            yield Row(where, replica, step, f"A({name})", agreed.mean)
        for column, value in zip(("all", "Â", "low", "high", "n"), pooled, strict=True):
            yield Row(where, 0, step, f"{column}({name})", float(value))


def _pooled(pairs: list[Pair]) -> list[Pair]:
    """All rows of an example together, so that examples are what is resampled."""
    u, v, mask = (torch.cat([pair[side] for pair in pairs], dim=1) for side in range(3))
    return [(u, v, mask)]


def _pairs(one: Traces, other: Traces, kind: str) -> dict[str, Pair]:
    """By layer and head: what the one and the other run have there, and where it may be compared."""
    found = {}
    for layer, (here, there) in enumerate(zip(one, other, strict=True)):
        if KINDS[kind] not in here or KINDS[kind] not in there:
            continue
        seen = torch.from_numpy(here["seen"]).bool()
        u, v = (torch.from_numpy(trace[KINDS[kind]]) for trace in (here, there))
        if kind == "β":
            found[f"layer {layer}"] = (u, v, seen.expand(u.shape))
            continue
        for head in range(len(u)):
            found[f"layer {layer} head {head}" if len(u) > 1 else f"layer {layer}"] = (u[head], v[head], seen)
    return found


# --- what is read


def _same_examples(folders: Sequence[Path | str]) -> list[Run]:
    if isinstance(folders, str | Path):
        raise UserError("a comparison needs two runs or more, as a list of folders")
    runs = [Run(folder) for folder in folders]
    if len(runs) < 2:
        raise UserError("a comparison needs two runs or more")
    for run in runs:
        if run.info["study"] != "watch" or not run.info["scored"]:
            raise UserError(f"{run.path} is not a run that was watched with targets= or score=")
        for what, name in (("examples", "content"), ("query", "query"), ("number of probed examples", "probed")):
            if run.info["settings"][name] != runs[0].info["settings"][name]:
                raise UserError(f"{runs[0].path} and {run.path} were watched with other {what}")
        if layers_of(run) != layers_of(runs[0]):
            raise UserError(f"{runs[0].path} and {run.path} have other attention layers")
        if not _steps(run):
            finished = run.info["status"] == "finished"
            raise UserError(f"{run.path} {'has lost its traces' if finished else 'holds no reading yet'}")
    return runs


def _steps(run: Run) -> list[int]:
    return run.trace_steps("layer 0", run.info["seed"])


def _step_of(run: Run, step: int | None) -> int:
    steps = _steps(run)
    if step is not None and step not in steps:
        raise UserError(f"{run.path} has no reading at step {step}; there are: {', '.join(map(str, steps))}")
    return steps[-1] if step is None else step


def _trace(run: Run, step: int) -> Traces:
    return [run.trace(f"layer {layer}", run.info["seed"], step) for layer in range(len(layers_of(run)))]


# --- the page


def finding(run: Run, metrics: Metrics) -> str:
    heads = heads_of(run)
    curves = {where: metrics.curves(where, "all(α, α′)") for where in heads}
    first, last = (float(np.nanmean([curve.values[0, i] for curve in curves.values()])) for i in (0, -1))
    chance = float(np.nanmean([metrics.curves(where, "Â(α, α′)").last[0] for where in heads]))
    step = int(next(iter(curves.values())).steps[-1])
    said = f"{len(run.info['runs'])} runs: the agreement of attention between runs went from {first:.2f} to "
    said += f"{last:.2f} at step {step}, where chance is {chance:.2f}"
    if len(heads) > 1:
        most = max(heads, key=lambda where: np.nan_to_num(curves[where].last[0], nan=-1))
        at = _agreed(metrics, most, "α, α′", -1)
        said += f"; the runs agree most in {most} ({at.mean:.2f}, {at.low:.2f} to {at.high:.2f})"
    return said + "."


def _agreed(metrics: Metrics, where: str, name: str, place: int) -> Agreed:
    mean, chance, low, high, n = (
        float(metrics.curves(where, f"{column}({name})").values[0, place])
        for column in ("all", "Â", "low", "high", "n")
    )
    return Agreed(mean, chance, low, high, int(n))


def _parts(run: Run, metrics: Metrics) -> Iterator[Part]:
    heads = heads_of(run)
    shown = tuple(heads[:COLOURED])
    rest = f" The first {COLOURED} of {len(heads)} heads; the tables hold all." if len(heads) > COLOURED else ""
    yield Curves(
        name="seeds", title="Do the runs look at the same places?",
        caption="A(α, α′): the position with the largest α of one run is among the highest 5 % of another run's, at "
        "the same step. Thin: each two runs, in both directions; thick: the median of those." + rest,
        metric=(("A(α, α′)", "between runs"), ("Â(α, α′)", "chance Â")), y_title="agreement", conditions=shown,
        y_domain=(0.0, 1.0),
    )  # fmt: skip
    yield Curves(
        name="ends", title="When they get to where they end",
        caption="α of each step against the last α of the same run, and against the last α of the other runs. At the "
        "last step a run agrees with itself by definition." + rest,
        metric=(
            ("A(α, own end)", "with its own end"), ("A(α, other end)", "with another's end"),
            ("Â(α, other end)", "chance Â"),
        ),
        y_title="agreement", conditions=shown, y_domain=(0.0, 1.0),
    )  # fmt: skip
    yield Table(
        name="over-time", title="Agreement between the runs over time",
        caption="Over all pairs of runs; the interval (95 %) comes from resampling examples. Â: what a random order "
        "gets. n counts the outputs of all pairs.",
        columns=("where", "what", "step", "A", "from", "to", "chance Â", "n"), rows=tuple(_over_time(metrics)),
    )  # fmt: skip
    yield Table(
        name="runs", title="The runs",
        caption="In metrics.parquet, the replicas of A(α, α′) are the pairs (0, 1), (0, 2), … (1, 0), … of these.",
        columns=("run", "folder"), rows=tuple(enumerate(run.info["runs"])),
    )  # fmt: skip


def _over_time(metrics: Metrics) -> Iterator[tuple[Cell, ...]]:
    for where in metrics.conditions:
        for kind in KINDS:
            name = f"{kind}, {kind}′"
            try:
                steps = metrics.curves(where, f"all({name})").steps
            except KeyError:
                continue
            for place in sorted({round(i) for i in np.linspace(0, len(steps) - 1, min(MOMENTS, len(steps)))}):
                at = _agreed(metrics, where, name, place)
                numbers = (
                    None if np.isnan(value) else round(value, 3) for value in (at.mean, at.low, at.high, at.chance)
                )
                yield (where, kind, int(steps[place]), *numbers, at.n)
