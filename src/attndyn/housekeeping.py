"""`attndyn runs list | show | compare | clean`: the run folders on this disk."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attndyn.console import duration, in_bytes, print_claims, print_table
from attndyn.errors import RunError, UserError
from attndyn.store.folder import (
    BEING_CLEARED,
    CLAIMS,
    ENDED,
    FILES,
    FOLDERS,
    INFO,
    LOCK,
    METRICS,
    Run,
    damage,
    is_locked,
    lock,
    read_info,
    size,
)

USAGE = """usage: attndyn runs list [--under DIR] [--json]
       attndyn runs show DIR [--json]
       attndyn runs compare DIR DIR [--json]
       attndyn runs clean [--under DIR] [--unfinished] [--yes]"""
MADE_BY = ("study", "scale", "status", "seeds", "device", "precision", "deterministic", "revision", "code")
SHOWN = 40
"""Metrics that `compare` prints; --json has all."""


def below(under: Path | None) -> Iterator[Path]:
    """The folders with a run.json, and those where a run is just starting. Links are not followed."""
    top = under or Path("runs")
    if under is not None and not under.is_dir():
        raise UserError(f"there is no folder {under}")
    for folder, inner, files in os.walk(top):
        inner.sort()
        path = Path(folder)
        if INFO in files and not (path / INFO).is_symlink():
            inner[:] = [name for name in inner if name not in FOLDERS]
            yield path
        elif LOCK in files and is_locked(path):
            yield path


def described(folder: Path) -> dict[str, Any]:
    """What a run folder says of itself. `status` is finished, diverged, running (a process works there), unfinished,
    starting (no run.json yet), or damaged (run.json, or what a finished run has lost), with the `problem`."""
    entry: dict[str, Any] = dict.fromkeys(("study", "scale", "seconds", "seeds", "started", "problem"))
    entry |= {"folder": str(folder), "locked": is_locked(folder), "size": size(folder)}
    if entry["locked"] and not (folder / INFO).exists():
        return entry | {"status": "starting"}
    try:
        info = checked(folder)
    except UserError as error:
        return entry | {"status": "damaged", "problem": str(error)}
    status = info["status"]
    if status == "running" and not entry["locked"]:
        status = "unfinished"
    entry["problem"] = damage(folder, info) if status in ENDED else None
    if entry["problem"]:
        status = "damaged"
    named = {name: info.get(name) for name in ("study", "scale", "seconds", "started")}
    return entry | named | {"seeds": len(info["seeds"]), "status": status}


def checked(folder: Path) -> dict[str, Any]:
    """run.json, with what every version of attndyn has written into it: other programs have files of that name too."""
    info = read_info(folder)
    kinds = {"status": str, "versions": dict, "settings": dict, "seeds": list}
    for name, kind in kinds.items():
        if not isinstance(info.get(name), kind):
            raise UserError(f"{folder / INFO} does not describe a run of attndyn: its {name!r} is missing or wrong")
    if "attndyn" not in info["versions"] or info["status"] not in (*ENDED, BEING_CLEARED, "running"):
        raise UserError(f"{folder / INFO} does not describe a run of attndyn")
    return info


def do_list(names: Sequence[str], under: Path | None, flags: set[str]) -> None:
    if names:
        raise UserError(f"runs list takes no {names[0]!r}; --under DIR says where to look")
    entries = [described(folder) for folder in below(under)]
    if "--json" in flags:
        print_json(entries)
        return
    if not entries:
        print(f"no runs below {under or 'runs'}")
        return
    columns = ("study", "scale", "status", "time", "seeds", "size", "started", "folder")
    rows = []
    for entry in entries:
        status = entry["status"] + (", locked" if entry["locked"] and entry["status"] in ENDED else "")
        time = duration(entry["seconds"]) if isinstance(entry["seconds"], int | float) else None
        started = str(entry["started"] or "")[:16].replace("T", " ")
        cells = (entry["study"], entry["scale"], status, time, entry["seeds"], in_bytes(entry["size"]), started)
        rows.append([*(cell or "–" for cell in cells), entry["folder"]])
    print_table(columns, rows, whole=columns)  # a folder is copied, and looked for with grep
    for entry in entries:
        if entry["problem"]:
            print(f"damaged: {entry['problem']}")


def opened(name: str) -> tuple[Run, list[dict[str, Any]]]:
    """A run and its claims, or one sentence on what is wrong with the folder."""
    folder = Path(name)
    checked(folder)
    run = Run(folder)
    claims = run.claims
    wanted = {"id", "statement", "published", "measured", "interval", "verdict"}
    if not isinstance(claims, list) or not all(isinstance(one, dict) and wanted <= one.keys() for one in claims):
        raise UserError(f"{folder / CLAIMS} does not hold claims")
    return run, claims


def do_show(names: Sequence[str], under: Path | None, flags: set[str]) -> None:
    if len(names) != 1:
        raise UserError("runs show needs one run folder: attndyn runs show DIR")
    run, claims = opened(names[0])
    known = (
        "title",
        "source",
        "command",
        "settings",
        "versions",
        "device",
        "precision",
        "deterministic",
        "revision",
        "code",
    )
    facts = described(run.path) | {name: run.info.get(name) for name in known}
    facts |= {"seeds": run.info["seeds"], "finding": run.info.get("finding")}
    if "--json" in flags:
        print_json(facts | {"claims": claims})
        return
    print(f"{facts['study']}: {facts['title']}\n")
    versions = [f"{name} {version}" for name, version in facts["versions"].items()]
    shown = facts | {"size": in_bytes(facts["size"]), "versions": versions}
    names = ("folder", "status", "size", "started", "seconds", "scale", "seeds", "command", "device", "precision")
    for name in (*names, "versions", "revision", "code"):
        print(f"{name:<12}{in_words(shown[name])}")
    if facts["problem"]:
        print(f"damaged: {facts['problem']}")
    print_table(("setting", "value"), [(name, in_words(value)) for name, value in facts["settings"].items()])
    print(facts["finding"] or "no finding is recorded")
    if claims:
        print()
        print_claims(claims)


def do_compare(names: Sequence[str], under: Path | None, flags: set[str]) -> None:
    if len(names) != 2:
        raise UserError("runs compare needs two run folders: attndyn runs compare DIR DIR")
    (a, claims_a), (b, claims_b) = map(opened, names)
    verdicts_a, verdicts_b = ({claim["id"]: claim["verdict"] for claim in claims} for claims in (claims_a, claims_b))
    both = {name: (verdict, verdicts_b[name]) for name, verdict in verdicts_a.items() if name in verdicts_b}
    made_a, made_b = ({name: run.info.get(name) for name in MADE_BY} | run.info["versions"] for run in (a, b))
    found = {
        "folders": [str(a.path), str(b.path)],
        "settings": differing(a.info["settings"], b.info["settings"]),
        "made by": differing(made_a, made_b),
        "metrics": common_metrics(a, b),
        "claims in both": len(both),
        "verdicts": {name: pair for name, pair in both.items() if pair[0] != pair[1]},
    }
    if "--json" in flags:
        print_json(found)
    else:
        print_comparison(found)


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (a.get(name), b.get(name)) for name in {**a, **b} if a.get(name) != b.get(name)}


def common_metrics(a: Run, b: Run) -> list[dict[str, Any]]:
    """Each metric of a condition that both have: the mean over the seeds of their last values, b minus a, and the
    step of the last value."""
    lasts_a, lasts_b = last_values(a), last_values(b)
    listed = []
    for condition, metric in (key for key in lasts_a if key in lasts_b):
        pair = lasts_a[condition, metric], lasts_b[condition, metric]
        means = [math.fsum(value for _, value in last) / len(last) for last in pair]
        where = {"step": [max(last)[0] for last in pair], "seeds": [len(last) for last in pair]}
        values = {"mean": means, "difference": means[1] - means[0]}
        listed.append({"condition": condition, "metric": metric, **where, **values})
    return listed


def last_values(run: Run) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """(condition, metric) → the last step and value of each seed; what is not a finite number is left out."""
    from attndyn.store.metrics import Row, to_table

    table = run.metrics
    if not table.schema.equals(to_table([]).schema):
        raise UserError(f"{run.path / METRICS} is not a table of metrics: it has {', '.join(table.column_names)}")
    last: dict[tuple[str, str], dict[int, tuple[int, float]]] = {}
    for condition, seed, step, metric, value in zip(*(table[name].to_pylist() for name in Row._fields), strict=True):
        of = last.setdefault((condition, metric), {})
        if seed not in of or step >= of[seed][0]:
            of[seed] = (step, value)
    finite = {key: [one for one in of.values() if math.isfinite(one[1])] for key, of in last.items()}
    return {key: values for key, values in finite.items() if values}


def print_comparison(found: dict[str, Any]) -> None:
    print(f"A  {found['folders'][0]}\nB  {found['folders'][1]}")
    for kind, same in (("settings", "the settings are the same"), ("made by", "made in the same way")):
        rows = [(name, in_words(a), in_words(b)) for name, (a, b) in found[kind].items()]
        if rows:
            print_table((kind, "A", "B"), rows)
        else:
            print(same)
    metrics = found["metrics"]
    other = [entry for entry in metrics if entry["difference"] != 0]
    if metrics:
        print(f"{len(metrics)} metrics in both, of which {len(other)} differ (last value, mean over seeds)")
    else:
        print("no metric is stored in both")
    rows = [
        (entry["condition"], entry["metric"], *(f"{mean:.4g}" for mean in entry["mean"]),
         f"{entry['difference']:+.3g}", in_words(entry["step"]), in_words(entry["seeds"]))
        for entry in other[:SHOWN]
    ]  # fmt: skip
    if rows:
        print_table(("condition", "metric", "A", "B", "B − A", "step", "seeds"), rows)
    if len(other) > SHOWN:
        print(f"and {len(other) - SHOWN} more, with --json\n")
    print(f"{found['claims in both']} claims in both, of which {len(found['verdicts'])} have another verdict")
    if found["verdicts"]:
        print_table(("claim", "A", "B"), [(name, *pair) for name, pair in found["verdicts"].items()])


def removable(folder: Path, unfinished: bool) -> tuple[str, list[Path]]:
    """What of a run folder may go, and what that is in words; raises where the folder is not a run."""
    status = checked(folder)["status"]
    if status in ENDED:
        names, what = ["checkpoints"], f"checkpoints of a {status} run"
    elif unfinished:
        names, what = [*FOLDERS, *FILES], "an unfinished run"  # run.json last: until then it is known as a run folder
    else:
        return "unfinished: kept without --unfinished", []
    return what, [folder / name for name in names if (folder / name).exists() and not (folder / name).is_symlink()]


def do_clean(names: Sequence[str], under: Path | None, flags: set[str]) -> None:
    if names:
        raise UserError(f"runs clean takes no {names[0]!r}; --under DIR says where to look")
    sure, unfinished = "--yes" in flags, "--unfinished" in flags
    freed, cleaned, failed = 0, 0, 0
    for folder in below(under):
        try:
            if is_locked(folder):
                raise UserError("another process is working there")
            with lock(folder) if sure else contextlib.nullcontext():
                what, paths = removable(folder, unfinished)
                count = sum(map(size, paths))
                if sure:
                    remove(folder, paths)
        except UserError as error:
            print(f"left alone    {folder}: {error}")
            continue
        except OSError as error:
            failed += 1
            print(f"failed        {error.filename or folder}: {error.strerror}")
            continue
        if paths:
            freed, cleaned = freed + count, cleaned + 1
            print(f"{'removed' if sure else 'would remove':<14}{folder}: {what}, {in_bytes(count)}")
            if sure and folder.exists() and INFO in {path.name for path in paths}:
                print(f"{'kept':<14}{folder}: it holds {', '.join(sorted(os.listdir(folder)))}")
        elif what.startswith("unfinished"):
            print(f"{'kept':<14}{folder}: {what}")
    print(f"{'freed' if sure else 'would free'} {in_bytes(freed)} in {cleaned} run{'s' * (cleaned != 1)}", end="")
    print("; --yes does it" if cleaned and not sure else "")
    if failed:
        raise RunError(f"{failed} run folder{'s' * (failed > 1)} could not be cleaned")


def remove(folder: Path, paths: Sequence[Path]) -> None:
    """Removes these; and the folder, once run.json is gone and nothing of somebody else's is in it."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    if folder / INFO in paths:
        for part in folder.glob(".*.part"):  # what a killed process was writing
            part.unlink()
        if os.listdir(folder) == [LOCK]:
            (folder / LOCK).unlink()
            with contextlib.suppress(OSError):  # a run has just begun here
                folder.rmdir()


def in_words(value: Any) -> str:
    """A cell of a table; a dash for None and for an empty list."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return "–" if value is None or not text else text


def print_json(value: Any) -> None:
    """NaN, which JSON does not have, becomes null."""
    plain = json.loads(json.dumps(value), parse_constant=lambda name: None)
    print(json.dumps(plain, indent=1, ensure_ascii=False))


Act = Callable[[Sequence[str], Path | None, set[str]], None]
VERBS: dict[str, tuple[Act, tuple[str, ...]]] = {
    "list": (do_list, ("--under", "--json")),
    "show": (do_show, ("--json",)),
    "compare": (do_compare, ("--json",)),
    "clean": (do_clean, ("--under", "--unfinished", "--yes")),
}
