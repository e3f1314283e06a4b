"""The verbs of the command line and of the Python API: run, report, reproduce."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attndyn import __version__, spec
from attndyn.errors import RunError, UserError
from attndyn.store import atomic
from attndyn.store.folder import CLAIMS, FILES, FOLDERS, INFO, Run, lock, read_info, read_json
from attndyn.studies import STUDIES, find

if TYPE_CHECKING:
    from attndyn.runner import Progress, Runner
    from attndyn.studies.base import Piece, Study
    from attndyn.training.condition import Condition

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "fp32", "tf32", "bf16"]


def run(
    study: str | Study,
    *,
    scale: str = "demo",
    out: Path | str | None = None,
    device: Device = "auto",
    precision: Precision = "auto",
    deterministic: bool = False,
    fresh: bool = False,
    page: bool = True,
    progress: Progress | None = None,
    **settings: Any,
) -> Run:
    """Runs a study, or continues it where it was interrupted, or opens it if it is finished.

    `settings` are the study's own (`seeds=8`); `out` is the run folder, `runs/<study>/<scale>-<hash>` by default.
    `precision` is that of the matrix products of training (auto: tf32 on a GPU, fp32 on a CPU); `deterministic` makes
    a GPU give the same bits each time, as a CPU always does.
    """
    declared = find(study).at(scale, **settings) if isinstance(study, str) else study
    folder = Path(out) if out is not None else default_folder(declared, scale)
    check_same(declared, folder, fresh)
    if fresh or not is_finished(folder):
        engine = resolve_engine(device, precision, deterministic)
        for _ in (*declared.conditions(), *declared.pieces()):  # what cannot be run is refused before a folder is made
            pass
        common: dict[str, Any] = {"device": device, "precision": precision, "deterministic": deterministic}
        needed = [
            run(need, scale=scale, out=folder_beside(folder, need, scale), page=page, progress=progress, **common)
            for need in declared.needs()
        ]
    with lock(folder):
        if fresh:
            clear(folder)
        if not is_finished(folder):
            _carry_out(declared, scale, folder, engine, progress, needed)
        if page and not (folder / "report.html").exists():
            _page(declared, folder)
    finished = Run(folder)
    if finished.info["status"] == "diverged":
        raise RunError(diverged_in_words(finished))
    return finished


def report(folder: Path | str, formats: Sequence[str] = ("svg", "png")) -> Path:
    """Builds the page and the figures of a finished run again."""
    folder = Path(folder)
    info = read_info(folder)
    if info["study"] in ("watch", "watch comparison"):
        from attndyn.watching import compare
        from attndyn.watching import page as watched

        with lock(folder):
            return (watched if info["study"] == "watch" else compare).write(folder, tuple(formats))
    if not is_finished(folder):
        raise UserError(f"the run in {folder} is not finished; run it again to continue it")
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in info["settings"].items()}
    study = find(info["study"]).at("paper", **settings)
    with lock(folder):
        return _page(study, folder, formats)


def reproduce(
    names: Sequence[str] = (), *, scale: str = "demo", progress: Callable[[type[Study]], Progress] | None = None
) -> list[dict[str, Any]]:
    """The claims of the named studies (all, if none is named): published, measured, verdict, and what was recorded at
    paper scale, where this is a checkout that holds it."""
    chosen = [find(name) for name in (names if names and list(names) != ["all"] else STUDIES)]
    claims = []
    for study in chosen:
        before = recorded(study.name)
        for claim in run(study.name, scale=scale, page=False, progress=progress and progress(study)).claims:
            claims.append({"study": study.name, **claim, "recorded": before.get(claim["id"])})
    return claims


def recorded(study: str) -> dict[str, dict[str, Any]]:
    """The claims of docs/results by their id."""
    path = Path(__file__).resolve().parents[2] / "docs" / "results" / study / CLAIMS
    return {claim["id"]: claim for claim in read_json(path)} if path.exists() else {}


def default_folder(study: Study, scale: str) -> Path:
    return Path("runs") / study.name / f"{scale}-{spec.digest(study)[:8]}"


def folder_beside(folder: Path, study: Study, scale: str) -> Path:
    """Where the run of a study lies that the run in `folder` needs: in its default folder, where that one is in its
    own; otherwise beside it."""
    usual = default_folder(study, scale)
    return usual if folder.parts[:1] == usual.parts[:1] else folder.parent / f"{study.name}-{usual.name}"


def settings_of(study: Study) -> dict[str, Any]:
    return {field.name: spec.encode(getattr(study, field.name)) for field in fields(study)}


def command_of(study: Study, scale: str) -> str:
    """The command line that repeats this run; of a study declared elsewhere, the call."""
    if study.name not in STUDIES:
        return f"attndyn.run({study!r})"
    words = ["attndyn", "run", study.name, "--scale", scale]
    usual = settings_of(type(study).at(scale))
    for name, value in settings_of(study).items():
        if value != usual[name]:
            flag = name.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--{flag}" if value else f"--no-{flag}")
            elif isinstance(value, list):
                words += [f"--{flag}", *map(str, value)]
            else:
                words += [f"--{flag}", str(value)]
    return shlex.join(words)


def is_finished(folder: Path) -> bool:
    return (folder / INFO).exists() and read_info(folder)["status"] in ("finished", "diverged")


def check_same(study: Study, folder: Path, fresh: bool) -> None:
    """Refuses a folder that holds something else."""
    info = check_folder(study.name, folder, fresh)
    if info is None or fresh:
        return
    wanted, there = settings_of(study), info["settings"]
    other = [name for name in {**wanted, **there} if wanted.get(name) != there.get(name)]
    if other:
        named = ", ".join(f"{name} {there.get(name)} instead of {wanted.get(name)}" for name in other)
        raise UserError(f"{folder} holds a run with other settings ({named}); choose another --out, or use --fresh")


def check_folder(name: str, folder: Path, fresh: bool = False) -> dict[str, Any] | None:
    """What a folder says of the run in it, or None; refuses one with strangers, or with another study's run."""
    if not folder.exists():
        return None
    if not folder.is_dir():
        raise UserError(f"{folder} is a file, not a run folder")
    if not (folder / INFO).exists():
        strangers = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
        if strangers:
            raise UserError(f"{folder} is not a run folder (it holds {strangers[0]}); choose another --out")
        return None
    info = read_info(folder)
    if info["study"] != name and not fresh:
        raise UserError(f"{folder} holds a run of {info['study']}, not of {name}; choose another --out")
    return info


def clear(folder: Path) -> None:
    """Removes what a run leaves, and nothing else."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)


def resolve_engine(device: Device, precision: Precision, deterministic: bool) -> dict[str, Any]:
    """Where and how to compute, in the words of run.json."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda was asked for, but torch sees no CUDA device here; use --device cpu")
    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    if where == "cpu" and precision in ("tf32", "bf16"):
        raise UserError(f"--precision {precision} needs a GPU; on a CPU everything is fp32")
    if where == "cuda" and deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS when it is first used
    usual = "tf32" if where == "cuda" else "fp32"
    return {
        "device": device_name(where),
        "precision": usual if precision == "auto" else precision,
        "deterministic": deterministic or where == "cpu",
    }


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


def _carry_out(
    study: Study,
    scale: str,
    folder: Path,
    engine: dict[str, Any],
    progress: Progress | None,
    needed: Sequence[Run] = (),
) -> None:
    from attndyn.plan import listed
    from attndyn.runner import Runner
    from attndyn.store import checkpoint
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
        "versions": versions(),
        **engine,
        "memory": [*(before or {}).get("memory", []), *runner.memory],
        "revision": revision(),
        "command": command_of(study, scale),
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
    metrics, run = Metrics(to_table(recorder.rows)), Run(folder)
    recorder.rows += study.from_traces(metrics, run, engine["device"].split()[0])
    recorder.finish(info["conditions"], study.analyse(Metrics(to_table(recorder.rows))))
    whole = Metrics(run.metrics)
    shown = study.shown(run, whole)
    if shown is not None:
        recorder.keep(run, shown, study.weights_stay)
    atomic.write_json(folder / CLAIMS, [claim.as_json(scale) for claim in study.claims(whole)])
    failed = bool(runner.diverged) and not study.divergence_is_an_outcome
    info |= {
        "seconds": round(runner.seconds, 1),
        "diverged": runner.diverged,
        "finding": study.finding(whole),
        "status": "diverged" if failed else "finished",
    }
    atomic.write_json(folder / INFO, info)
    checkpoint.clear(folder)


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


def _page(study: Study, folder: Path, formats: Sequence[str] = ("svg", "png")) -> Path:
    from attndyn.report import page
    from attndyn.store.metrics import Metrics

    finished = Run(folder)
    parts = list(study.figures(Metrics(finished.metrics)))
    return page.build(finished, parts, finished.info["finding"], formats=tuple(formats))


def diverged_in_words(finished: Run) -> str:
    first = finished.info["diverged"][0]
    others = len(finished.info["diverged"]) - 1
    more = f" (and {others} more, see {finished.path / INFO})" if others else ""
    return (
        f"seed {first['replica']} of {first['condition']!r} met a loss or gradient that is not finite at step "
        f"{first['step']}{more}; it was frozen there, all other runs are complete in {finished.path}"
    )


def versions() -> dict[str, str]:
    import numpy
    import torch

    return {
        "attndyn": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
    }


def device_name(device: str) -> str:
    import torch

    if device == "cuda":
        return f"cuda ({torch.cuda.get_device_name()})"
    from attndyn.process import cores

    return f"cpu ({cores()} cores, {platform.machine()})"


def revision() -> str | None:
    """The git revision of the code, where it runs from a checkout."""
    import subprocess

    source = Path(__file__).resolve().parent
    if not (source.parents[1] / ".git").exists():
        return None
    command = ["git", "-C", str(source), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() or None
    except (OSError, subprocess.CalledProcessError):
        return None
