"""The verbs of the command line and of the Python API: run, report, reproduce."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attndyn import spec
from attndyn.carry_out import carry_out
from attndyn.errors import Busy, RunError, UserError
from attndyn.own_files import check_own_files, found_again, own_files
from attndyn.provenance import Device, Precision, by_other_code, resolve_engine, restored, settings_of
from attndyn.store import atomic
from attndyn.store.folder import (
    BEING_CLEARED,
    CLAIMS,
    ENDED,
    FILES,
    FOLDERS,
    INFO,
    Run,
    check_whole,
    lock,
    read_info,
    read_json,
)
from attndyn.studies import STUDIES, find
from attndyn.tasks.held import forget

if TYPE_CHECKING:
    from attndyn.runner import Progress
    from attndyn.studies.base import Study


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
    needed_in: Callable[[Study], Path] | None = None,
    **settings: Any,
) -> Run:
    """Runs a study, or continues it where it was interrupted, or opens it if it is finished.

    `settings` are the study's own (`seeds=8`); `out` is the run folder, `runs/<study>/<scale>-<hash>` by default.
    `precision` is that of the matrix products of training (auto: tf32 on a GPU, fp32 on a CPU); `deterministic` makes
    a GPU give the same bits each time, as a CPU always does. `needed_in` says where the runs lie that this one needs,
    if not beside it.
    """
    for name, value in {"deterministic": deterministic, "fresh": fresh, "page": page}.items():
        spec.fitting(name, value, bool)
    declared = find(study).at(scale, **settings) if isinstance(study, str) else study
    if own_files(declared):
        forget()
    folder = Path(out) if out is not None else default_folder(declared, scale)
    if not fresh:
        check_made_so(folder, device, precision, deterministic)
    common: dict[str, Any] = {
        "scale": scale, "device": device, "precision": precision, "deterministic": deterministic, "fresh": fresh,
        "page": page, "progress": progress, "needed_in": needed_in,
    }  # fmt: skip
    return _run(declared, folder, **common)


def _run(declared: Study, folder: Path, *, fresh: bool, **common: Any) -> Run:
    """The runs that this one needs come first."""
    check_same(declared, folder, fresh)
    ready = not fresh and is_finished(folder)
    if ready:
        info = read_info(folder)
        check_whole(folder, info)
        check_own_files(declared, folder, info)
    else:
        engine = resolve_engine(common["device"], common["precision"], common["deterministic"])
        for _ in (*declared.conditions(), *declared.pieces()):  # what cannot be run is refused before a folder is made
            pass
        where = common["needed_in"] or (lambda need: folder_beside(folder, need, common["scale"]))
        needed = [_run(need, where(need), fresh=False, **common) for need in declared.needs()]
    with lock(folder):
        if fresh or _half_cleared(folder):
            clear(folder)
        if not is_finished(folder):
            if ready:
                raise Busy(f"another process has begun {folder} anew; the same command again continues it")
            carry_out(declared, common["scale"], folder, engine, common["progress"], needed)
        finished = Run(folder)
        if common["page"] and finished.info.get("finding", "") is not None and not (folder / "report.html").exists():
            _page(declared, folder)
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
    if info["study"] == "diagnose":
        raise UserError(f"{folder} holds a diagnosis; attndyn diagnose, which takes seconds, makes its page")
    if not is_finished(folder):
        raise UserError(f"the run in {folder} is not finished; run it again to continue it")
    if info.get("finding", "") is None:
        raise UserError(f"{diverged_in_words(Run(folder))}; nothing was compared, so there is no page")
    study = found_again(restored(info["study"], settings_in(folder, info)), folder, info)
    check_whole(folder, info)
    if own_files(study):
        forget()
    check_own_files(study, folder, info)
    with lock(folder):
        return _page(study, folder, formats)


def reproduce(
    names: str | Sequence[str] = (), *, scale: str = "demo", progress: Callable[[type[Study]], Progress] | None = None
) -> list[dict[str, Any]]:
    """The claims of the named study or studies (all, if none is named): published, measured, verdict, and what was
    recorded at paper scale, where this is a checkout that holds it."""
    return [claim for study in chosen(names) for claim in reproduced(study, scale, progress and progress(study))]


def chosen(names: str | Sequence[str]) -> list[type[Study]]:
    names = [names] if isinstance(names, str) else names
    return [find(name) for name in (names if names and list(names) != ["all"] else STUDIES)]


def reproduced(study: type[Study], scale: str, progress: Progress | None) -> list[dict[str, Any]]:
    """The claims of one study, as `reproduce` has them."""
    before = recorded(study)
    found = run(study.name, scale=scale, page=False, progress=progress).claims
    return [{"study": study.name, **claim, "recorded": before.get(claim["id"])} for claim in found]


def recorded(study: type[Study]) -> dict[str, dict[str, Any]]:
    """The claims of docs/results by their id, each with whether its rule has changed since. Of a study that was
    recorded only on other corpora than its own, those of one of them, named in "on": SST, or the first."""
    results = Path(__file__).resolve().parents[2] / "docs" / "results"
    others = sorted(results.glob(f"{study.name}-*/{CLAIMS}"))
    paths = [results / study.name / CLAIMS, results / f"{study.name}-sst" / CLAIMS, *others]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return {}
    rules = {one.id: one.rule for one in study.statements}
    on = path.parent.name.removeprefix(study.name).removeprefix("-")
    return {
        claim["id"]: claim | {"on": on, "earlier_rule": claim["rule"] != rules.get(claim["id"])}
        for claim in read_json(path)
    }


def default_folder(study: Study, scale: str) -> Path:
    return Path("runs") / study.name / f"{scale}-{spec.digest(study)[:8]}"


def folder_beside(folder: Path, study: Study, scale: str) -> Path:
    """Where the run of a study lies that the run in `folder` needs: in its default folder, where that one is in its
    own; otherwise beside it."""
    usual = default_folder(study, scale)
    return usual if folder.parts[:1] == usual.parts[:1] else folder.parent / f"{study.name}-{usual.name}"


def is_finished(folder: Path) -> bool:
    return (folder / INFO).exists() and read_info(folder).get("status") in ENDED


def settings_in(folder: Path, info: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] | None = info.get("settings")
    if not isinstance(settings, dict):
        raise UserError(f"{folder / INFO} does not describe a run of attndyn: it has no settings")
    return settings


def check_made_so(folder: Path, device: Device, precision: Precision, deterministic: bool) -> None:
    """Refuses to show a finished run to who asks for another device or precision. What trains nothing has neither."""
    if not is_finished(folder) or (info := read_info(folder)).get("precision") in (None, "fp64"):
        return
    asked = {"device": device, "precision": precision, "deterministic": deterministic or "auto"}
    there = {"device": info["device"].split()[0], **{name: info.get(name) for name in ("precision", "deterministic")}}
    there["device"] = there["device"] if there["device"] == "cpu" else "cuda"
    for name, wanted in asked.items():
        if wanted not in ("auto", there[name]):
            raise UserError(
                f"the run in {folder} was made with {name} {there[name]}, not {wanted}; choose another --out, or use "
                "--fresh"
            )


def check_same(study: Study, folder: Path, fresh: bool) -> None:
    """Refuses a folder that holds something else."""
    info = check_folder(study.name, folder, fresh)
    if info is None or fresh:
        return
    wanted, there = settings_of(study), settings_in(folder, info)
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


def _half_cleared(folder: Path) -> bool:
    return (folder / INFO).exists() and read_info(folder).get("status") == BEING_CLEARED


def clear(folder: Path) -> None:
    """Removes what a run leaves, and nothing else. run.json says that it is under way, and goes last."""
    if (folder / INFO).exists():
        atomic.write_json(folder / INFO, read_info(folder) | {"status": BEING_CLEARED})
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


def _page(study: Study, folder: Path, formats: Sequence[str] = ("svg", "png")) -> Path:
    from attndyn.report import page
    from attndyn.store.metrics import Metrics

    finished = Run(folder)
    try:
        parts = list(study.figures(Metrics(finished.metrics)))
        return page.build(finished, parts, finished.info["finding"], formats=tuple(formats))
    except UserError as error:
        if not own_files(study):
            raise
        raise UserError(f"the page of {folder} shows its texts, and these cannot be read: {error}") from None
    except KeyError as error:
        if not by_other_code(finished.info):
            raise
        raise UserError(
            f"another version of attndyn made the run in {folder}, and its page cannot be made here "
            f"({error.args[0]}); run it again with --fresh"
        ) from None


def diverged_in_words(finished: Run) -> str:
    first = finished.info["diverged"][0]
    others = len(finished.info["diverged"]) - 1
    more = f" (and {others} more, see {finished.path / INFO})" if others else ""
    return (
        f"seed {first['replica']} of {first['condition']!r} met a loss or gradient that is not finite at step "
        f"{first['step']}{more}; it was frozen there, all other runs are complete in {finished.path}"
    )
