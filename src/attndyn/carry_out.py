"""A study carried out in its run folder, or continued there: trained, measured, judged."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attndyn import spec
from attndyn.errors import UserError
from attndyn.own_files import BEGUN_FROM, begun_from, check_same_data, content_of
from attndyn.provenance import command_of, resolve_engine, revision, settings_of, source_digest, versions
from attndyn.store import atomic
from attndyn.store.folder import CLAIMS, INFO, SIZES, Run, read_info, sizes_of

if TYPE_CHECKING:
    from attndyn.runner import Progress, Runner
    from attndyn.studies.base import Piece, Study
    from attndyn.training.condition import Condition
    from attndyn.training.recorder import Recorder


JUDGED, CHOSEN_STAY = "judged", "chosen traces stay"
"""In run.json while a run that is judged is brought to its end."""


def carry_out(
    study: Study,
    scale: str,
    folder: Path,
    engine: dict[str, Any],
    progress: Progress | None,
    needed: Sequence[Run] = (),
) -> None:
    from attndyn.plan import listed
    from attndyn.process import single_threaded
    from attndyn.runner import Runner
    from attndyn.store.metrics import Metrics, to_table
    from attndyn.training.recorder import Recorder

    conditions, pieces, borrowed = list(study.conditions()), list(study.pieces()), list(study.borrowed())
    names: dict[str, str | None] = dict.fromkeys(
        [*(one.name for one in conditions), *(piece.condition for piece in pieces)]
    )
    if not conditions and not needed:
        engine = resolve_engine("cpu", "fp32", True) | {"precision": "fp64"}
    recorder = Recorder(folder)
    before = read_info(folder) if (folder / INFO).exists() else None
    if before is not None:
        check_same_work(folder, before, engine, list(names))
        check_same_data(folder, before, content_of(study))
        if JUDGED in before:
            _conclude(study, recorder, before)
            return
    study.prepare(needed, engine["device"].split()[0])
    runner = Runner(
        conditions,
        recorder,
        engine["device"].split()[0],
        progress or (lambda *where: None),
        precision=engine["precision"] if conditions or needed else "fp32",
        repeatable=engine["deterministic"],
        before=before["replicas"] if before else None,
    )
    info: dict[str, Any] = {
        "study": study.name,
        "title": study.title,
        "source": study.source,
        "scale": scale,
        "settings": settings_of(study),
        "seeds": sorted(
            {seed for one in (*conditions, *borrowed) for seed in one.seeds} | {piece.replica for piece in pieces}
        ),
        "conditions": names | {condition.name: spec.digest(condition) for condition in conditions},
        "later": [],
        "replicas": listed(runner.chunks),
        "borrowed": [
            {"condition": one.name, "replica": seed, "chunk": len(runner.chunks)}
            for one in borrowed
            for seed in one.seeds
        ],
        "tokens": tokens_of([*conditions, *borrowed]),
        "data": content_of(study),
        "versions": versions(),
        **engine,
        "memory": [*(before or {}).get("memory", []), *runner.memory],
        "revision": revision(),
        "code": source_digest(),
        "command": command_of(study, scale),
        BEGUN_FROM: (before or {}).get(BEGUN_FROM, begun_from(folder)),
        "needed": [str(one.path) for one in needed],
        "started": before["started"] if before else datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": None,
        "status": "running",
        "diverged": [],
    }
    atomic.write_json(folder / INFO, info)
    study.begin(engine["device"].split()[0])
    runner.execute()
    while later := list(study.then(Metrics(to_table(runner.trained)))):
        runner.follow(later, before["replicas"] if before else None)
        info |= _followed(info, later, runner, before)
        atomic.write_json(folder / INFO, info)
        runner.execute()
    _measure(pieces, runner)
    run = Run(folder)
    info |= {"seconds": round(runner.seconds, 1), "diverged": runner.diverged, "finding": None, JUDGED: "all stay"}
    claims: list[dict[str, Any]] = []
    if _failed(study, info) and study.compares:  # some of what is to be compared is not there
        recorder.finish(info["conditions"])
    else:
        comparing = getattr(progress, "comparing", None)
        if study.compares and comparing is not None and (conditions or pieces):
            comparing(runner.seconds)
        # no bit depends on the cores of a CPU; and where others are at work too, threads that wait for each other crawl
        device = engine["device"].split()[0]
        with single_threaded() if device == "cpu" else contextlib.nullcontext():
            recorder.rows += study.from_traces(Metrics(to_table(recorder.rows)), run, device)
        recorder.finish(info["conditions"], study.analyse(Metrics(to_table(recorder.rows))))
        whole = Metrics(run.metrics)
        # judged while everything is there: what fails here is not lost, and the next call tries again
        claims, info["finding"] = [claim.as_json(scale) for claim in study.claims(whole)], study.finding(whole)
        shown = study.shown(run, whole)
        if shown is not None:
            recorder.choose(run, shown)
            info[JUDGED] = CHOSEN_STAY
    atomic.write_json(folder / CLAIMS, claims, allow_nan=False)
    atomic.write_json(folder / INFO, info)
    _conclude(study, recorder, info)


def _conclude(study: Study, recorder: Recorder, info: dict[str, Any]) -> None:
    """Removes what is not kept of a run that is judged. Where this is broken off, the next call does it again."""
    from attndyn.store import checkpoint

    if info[JUDGED] == CHOSEN_STAY:
        recorder.keep_chosen(study.weights_stay)
    checkpoint.clear(recorder.folder)
    ended = {name: value for name, value in info.items() if name != JUDGED}
    status = "diverged" if _failed(study, info) else "finished"
    atomic.write_json(recorder.folder / INFO, ended | {"status": status, SIZES: sizes_of(recorder.folder)})


def _failed(study: Study, info: dict[str, Any]) -> bool:
    return bool(info["diverged"]) and not study.divergence_is_an_outcome


def check_same_work(folder: Path, before: dict[str, Any], engine: dict[str, Any], names: list[str]) -> None:
    """A run is continued as it was begun."""
    if before["device"].split()[0] != engine["device"].split()[0]:
        raise UserError(f"{folder} was begun on {before['device']}; continue it there, or use --fresh")
    for name in ("precision", "deterministic"):
        if before.get(name, engine[name]) != engine[name]:
            raise UserError(
                f"{folder} was begun with {name} {before[name]}, not {engine[name]}; continue it so, or use --fresh"
            )
    first = [name for name in before["conditions"] if name not in before.get("later", [])]
    if first != names:
        other = ", ".join(sorted(set(first) ^ set(names)))
        raise UserError(f"{folder} was begun with other data ({other}); use --fresh")


def _followed(
    info: dict[str, Any], later: Sequence[Condition], runner: Runner, before: dict[str, Any] | None
) -> dict[str, Any]:
    """What run.json says when another stage begins."""
    from attndyn.plan import listed

    new = {one.name: spec.digest(one) for one in later if one.name not in info["conditions"]}
    return {
        "seeds": sorted({*info["seeds"], *(seed for one in later for seed in one.seeds)}),
        "conditions": info["conditions"] | new,
        "later": [*info["later"], *new],
        "replicas": listed(runner.chunks),
        "tokens": tokens_of(runner.conditions),
        "memory": [*(before or {}).get("memory", []), *runner.memory],
    }


def tokens_of(conditions: Sequence[Condition]) -> dict[str, list[str] | str]:
    """The tokens of each condition, or the name of one that has the same."""
    first: dict[tuple[str, ...], str] = {}
    listed: dict[str, list[str] | str] = {}
    for condition in conditions:
        tokens = condition.task.tokens
        known = first.setdefault(tuple(tokens), condition.name)
        listed[condition.name] = tokens if known == condition.name else known
    return listed


def _measure(pieces: Sequence[Piece], runner: Runner) -> None:
    """Measures the pieces that are not measured yet. A save counts them behind the chunks of the training."""
    import time

    from attndyn.process import stop_requests
    from attndyn.runner import SAVE_SECONDS
    from attndyn.store.checkpoint import latest
    from attndyn.store.metrics import Row

    recorder, first = runner.recorder, len(runner.chunks)
    save = latest(recorder.folder)
    done = max(0, save.chunk - first) if save is not None else 0
    costs = [piece.cost for piece in pieces]
    with stop_requests() as stop:
        saved = time.monotonic()
        for number, piece in enumerate(pieces[done:], start=done + 1):
            started = time.monotonic()
            for step, metric, value in piece.measure():
                recorder.metric(Row(piece.condition, piece.replica, step, metric, value))
            now = time.monotonic()
            runner.seconds += now - started
            share = round(1000 * sum(costs[:number]) / sum(costs))
            runner.progress(share, 1000, runner.seconds, recorder.rows)
            if stop.is_set() or now - saved > SAVE_SECONDS:
                recorder.save(first + number, runner.seconds, {})
                saved = time.monotonic()
            if stop.is_set():
                raise KeyboardInterrupt
