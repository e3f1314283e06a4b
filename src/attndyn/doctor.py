"""`attndyn doctor`: what this machine has, and whether attndyn works on it; to be pasted into a bug report."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from attndyn import __version__
from attndyn.console import in_bytes
from attndyn.errors import RunError
from attndyn.provenance import device_name, revision
from attndyn.verbs import run

TINY: dict[str, Any] = {"length": 4, "words": 6, "hidden": 8, "batch": 8, "seeds": 2, "steps": 6}


def do_doctor(as_json: bool) -> None:
    found = examine()
    if as_json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        print_found(found)
    if found["self-test"]["problem"]:
        raise RunError(f"the self-test failed: {found['self-test']['problem']}")


def examine() -> dict[str, Any]:
    """Everything, as plain data. What cannot be found out is None; what fails says so in its place."""
    packages = required()
    return {
        "attndyn": __version__,
        "revision": revision(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "engine": attempt(_engine),
        "memory": memory(),
        "disk": {"free": shutil.disk_usage(".").free},
        "needed": packages.pop("", None),
        "extras": packages,
        "corpora": attempt(_corpora),
        "self-test": self_test(),
    }


def attempt(find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `find` gives, or the sentence it failed with: a doctor does not fall ill with the patient."""
    try:
        return find()
    except Exception as error:
        return {"problem": in_words(error)}


def in_words(error: Exception) -> str:
    """One line, without the name of the user's home."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    home = str(Path.home())
    return text.replace(home, "~") if home != "/" else text


def _engine() -> dict[str, Any]:
    import torch

    cuda = torch.cuda.is_available()
    free, total = torch.cuda.mem_get_info() if cuda else (None, None)
    return {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "device": device_name("cuda" if cuda else "cpu"),
        "device memory": {"total": total, "available": free} if cuda else None,
    }


def memory() -> dict[str, int | None]:
    """In bytes; `available` is what Linux would give to a new program."""
    told = Path("/proc/meminfo")
    found = re.search(r"^MemAvailable:\s+(\d+) kB", told.read_text(), re.MULTILINE) if told.exists() else None
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if "SC_PHYS_PAGES" in os.sysconf_names else None
    return {"total": total, "available": int(found[1]) * 1024 if found else None}


def required() -> dict[str, dict[str, str | None]]:
    """Extra → package → its version here, or None. The extra "" is what attndyn always needs; nothing is known where
    attndyn is not installed."""
    try:
        lines = metadata.requires("attndyn") or []
    except metadata.PackageNotFoundError:
        return {}
    packages: dict[str, dict[str, str | None]] = {}
    for line in lines:
        name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
        extra = re.search(r"extra == [\"']([^\"']+)", line)
        if name != "attndyn":
            packages.setdefault(extra[1] if extra else "", {})[name] = version_of(name)
    return packages


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _corpora() -> dict[str, str | None]:
    """Corpus → the place it was found in, by the name that docs/data.md gives it."""
    from attndyn.data import entries

    return {entry["name"]: entry["place"] for entry in entries(whole=False)}


def self_test() -> dict[str, Any]:
    """Trains a tiny study twice, as `attndyn run` would, and compares every byte it leaves but run.json."""
    started, problem = time.perf_counter(), None
    try:
        with tempfile.TemporaryDirectory(prefix="attndyn-") as folder:
            first, second = (
                run("copying", out=Path(folder, name), page=False, deterministic=True, **TINY).path
                for name in ("first", "second")
            )
            other = differing(first, second)
        if other:
            problem = f"two runs of the same study left other bytes in {', '.join(other)}"
    except Exception as error:
        problem = in_words(error)
    return {"seconds": round(time.perf_counter() - started, 1), "problem": problem}


def differing(first: Path, second: Path) -> list[str]:
    a, b = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (first, second)
    )
    return sorted(name for name in a.keys() | b.keys() if name != "run.json" and a.get(name) != b.get(name))


def print_found(found: dict[str, Any]) -> None:
    print_line("attndyn", found["attndyn"], found["revision"] and f"revision {found['revision']}")
    print_line("python", found["python"], found["system"])
    engine = found["engine"]
    if "problem" in engine:
        print_line("torch", engine["problem"])
    else:
        print_line("torch", engine["torch"], engine["cuda"] and f"CUDA {engine['cuda']}")
        print_line("device", engine["device"], memory_in_words(engine["device memory"]))
    print_line("memory", memory_in_words(found["memory"]) or "unknown")
    print_line("disk", f"{in_bytes(found['disk']['free'])} free in this folder")
    if found["needed"] is None:
        print_line("packages", "attndyn is not installed as a package: what it needs is not known here")
    for title, packages in [
        ("needed", found["needed"] or {}),
        *((f"[{name}]", of) for name, of in found["extras"].items()),
    ]:
        if packages:
            print_line(title, *(f"{name} {version or 'missing'}" for name, version in packages.items()))
    corpora = found["corpora"]
    if "problem" in corpora:
        print_line("corpora", corpora["problem"])
    else:
        print_line("corpora", *(f"{name} ({place})" for name, place in corpora.items() if place))
        print_line("not here", *(name for name, place in corpora.items() if not place))
    tested = found["self-test"]
    result = f"failed: {tested['problem']}" if tested["problem"] else "passed: two runs left the same bytes"
    print_line("self-test", f"{result} ({tested['seconds']} s)")
    print("\nFor a bug report, paste the lines above, and the command that failed with all it printed.")


def memory_in_words(memory: dict[str, int | None] | None) -> str | None:
    if not memory or memory["total"] is None:
        return None
    available = f", {in_bytes(memory['available'])} available" if memory["available"] is not None else ""
    return in_bytes(memory["total"]) + available


def print_line(title: str, *parts: str | None) -> None:
    from textwrap import fill

    text = ", ".join(part for part in parts if part) or "none"
    print(fill(text, 118, initial_indent=f"{title:<11}", subsequent_indent=" " * 11, break_on_hyphens=False))
