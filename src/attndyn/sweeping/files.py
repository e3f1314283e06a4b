"""A run folder as plain data, to travel between machines."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

from attndyn.errors import RunError
from attndyn.store import atomic
from attndyn.store.folder import FILES, FOLDERS, INFO
from attndyn.verbs import clear

Files = dict[str, bytes]
"""Path inside the run folder → content."""


def pack(folder: Path) -> Files:
    """What attndyn left in a run folder; nothing where there is no run yet. Links are not followed."""
    if not (folder / INFO).is_file():
        return {}
    paths = [folder / name for name in FILES] + [path for name in FOLDERS for path in (folder / name).rglob("*")]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(paths)
        if path.is_file() and not path.is_symlink()
    }


def unpack(files: Files, folder: Path) -> None:
    """Writes a run folder in place of what was there. Its run.json says that it is not finished until all the rest is
    written; the runs that it builds on lie beside it here too."""
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or path.parts[0] not in (*FILES, *FOLDERS):
            raise RunError(f"a machine of the cluster sent a file that belongs to no run: {name!r}")
    info = json.loads(files[INFO])
    info["needed"] = [str(folder.parent / PurePosixPath(path).name) for path in info["needed"]]
    clear(folder)
    atomic.write_json(folder / INFO, info | {"status": "running"})
    for name, data in files.items():
        if name != INFO:
            atomic.write_bytes(folder / name, data)
    atomic.write_json(folder / INFO, info)
