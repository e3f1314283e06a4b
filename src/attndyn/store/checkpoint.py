"""Saves: enough of a running study to continue it as if it had never stopped.

A save is a folder `checkpoints/save-000012` with the state of the chunk in training, the rows recorded so far and
their checksums. It is written under another name and becomes visible by one rename. The two newest are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attndyn.errors import UserError
from attndyn.spec import digest
from attndyn.store import atomic

if TYPE_CHECKING:
    from torch import Tensor

STATE, ROWS, MANIFEST = "state.safetensors", "rows.parquet", "save.json"
KEPT = 2


@dataclass(frozen=True)
class Save:
    number: int
    chunk: int
    """The chunk in training; all before it are finished."""
    seconds: float
    """Working time so far."""
    rows: bytes
    state: dict[str, Tensor]


def _saves(folder: Path) -> list[Path]:
    """Newest first."""
    return sorted((folder / "checkpoints").glob("save-*"), reverse=True)


def write(folder: Path, save: Save) -> None:
    from safetensors.torch import save as to_bytes

    saves = folder / "checkpoints"
    saves.mkdir(parents=True, exist_ok=True)
    part = saves / f".save-{save.number:06d}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        files = {STATE: to_bytes(save.state), ROWS: save.rows}
        manifest = {
            "chunk": save.chunk,
            "seconds": save.seconds,
            "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        }
        files[MANIFEST] = json.dumps(manifest | {"check": digest(manifest)}, indent=1).encode()
        for name, data in files.items():
            atomic.write_bytes(part / name, data)
        final = saves / f"save-{save.number:06d}"
        shutil.rmtree(final, ignore_errors=True)  # a damaged one that was passed over
        os.replace(part, final)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError):
            error.filename = str(saves)
        raise
    atomic.sync_folder(saves)
    for old in _saves(folder)[KEPT:]:
        shutil.rmtree(old)


def _read(path: Path) -> Save | None:
    """None where a file is missing or is not what was written."""
    from safetensors.torch import load

    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        if manifest.pop("check") != digest(manifest):
            return None
        files = {name: (path / name).read_bytes() for name in (STATE, ROWS)}
        if any(hashlib.sha256(data).hexdigest() != manifest["sha256"][name] for name, data in files.items()):
            return None
        number = int(path.name.removeprefix("save-"))
        return Save(number, manifest["chunk"], manifest["seconds"], files[ROWS], load(files[STATE]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def latest(folder: Path) -> Save | None:
    """The newest save that is whole; None if there is none at all. A damaged one is passed over for the one before
    it: the steps between are trained again, with the same result."""
    saves = _saves(folder)
    for path in saves:
        save = _read(path)
        if save is not None:
            return save
    if saves:
        raise UserError(f"every checkpoint in {folder / 'checkpoints'} is damaged; start again with --fresh")
    return None


def clear(folder: Path) -> None:
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
