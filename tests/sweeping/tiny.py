"""A sweep of seconds."""

from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = {"length": 4, "words": 6, "hidden": 8, "batch": 8, "steps": 6}
LEARNABILITY: dict[str, Any] = SETTINGS | {
    "extra": (0, 1), "alphabets": (4,), "exponents": (1.0,), "weak": 1, "batches": (4,), "proxies": 1,
}  # fmt: skip
TABLES = ("sweep.csv", "metrics.csv", "sweep.json")


def options(settings: dict[str, Any]) -> list[str]:
    """Settings as words of a command."""
    words: list[str] = []
    for name, value in settings.items():
        words += [f"--{name}", *(map(str, value) if isinstance(value, tuple) else [str(value)])]
    return words


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in TABLES}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of every cell, but run.json, which holds times and machines, and locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted((folder / "cells").rglob("*"))
        if path.is_file() and path.name not in ("run.json", ".lock")
    }
