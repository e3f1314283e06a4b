"""Writing so that a reader sees the old file or the new one, never a part of one."""

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PART = ".part"
"""How the names of unfinished files and folders end; they begin with a dot."""


def sync_folder(folder: Path) -> None:
    """Makes renames inside `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: Path, data: bytes) -> None:
    """Temporary file in the same folder, fsync, rename. On an error the old file stands and no part is left."""
    with _told(path, len(data)):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(path.parent)


@contextlib.contextmanager
def _told(path: Path, size: int) -> Iterator[None]:
    """A full disk says neither where it is nor what did not fit."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            what = f"{error.strerror} for the {size:,} bytes of {path.name}"
            raise OSError(error.errno, what, str(path.parent)) from error
        error.filename = error.filename or str(path)
        raise


def write_json(path: Path, value: Any, allow_nan: bool = True) -> None:
    write_bytes(path, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=allow_nan) + "\n").encode())


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
