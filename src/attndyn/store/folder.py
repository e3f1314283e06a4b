"""The run folder, read; and the lock that one writer holds.

run.json           settings, seeds, versions, device, timings; written first, finished last
metrics.parquet    long table: condition, replica, step, metric, value
claims.json        what was published, what was measured, the verdict
traces/…           α and β of kept examples: chunk-000/step-000010.safetensors
checkpoints/…      enough to continue; gone when the run is finished
figures/, report.html
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import shutil
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attndyn.errors import Busy, UserError, first_line
from attndyn.store.atomic import PART

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

METRICS, CLAIMS, INFO, LOCK = "metrics.parquet", "claims.json", "run.json", ".lock"
TRACES, CHOSEN = "traces", "chosen"
ENDED = ("finished", "diverged")
BEING_CLEARED = "being cleared"
"""The status of a run that --fresh removes."""
FILES = (METRICS, CLAIMS, "report.html", INFO)
FOLDERS = (TRACES, CHOSEN, "weights", "checkpoints", "figures", "readings")
"""What attndyn leaves in a run folder; anything else there is somebody else's."""
SIZES = "sizes"
"""In run.json of a finished study: the bytes of what has to be there."""
NEAREST = 10
"""Conditions that are named to who asks for one that is not there."""


class Run:
    """What a study left on disk."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.info: dict[str, Any] = read_info(self.path)
        self.info.setdefault("finding", "")  # until there is one

    @cached_property
    def metrics(self) -> pa.Table:
        """The metrics of a finished run; of an unfinished one, those up to its last checkpoint."""
        from attndyn.store.checkpoint import latest
        from attndyn.store.metrics import from_parquet, to_table

        if (self.path / METRICS).exists():
            try:
                return from_parquet((self.path / METRICS).read_bytes())
            except (OSError, ValueError) as error:
                raise UserError(f"{self.path / METRICS} cannot be read: {first_line(error)}") from error
        self._check_there(METRICS)
        save = latest(self.path)
        return to_table([]) if save is None else from_parquet(save.rows)

    @cached_property
    def claims(self) -> list[dict[str, Any]]:
        if not (self.path / CLAIMS).exists():
            self._check_there(CLAIMS)
            return []
        found = read_json(self.path / CLAIMS)
        if not isinstance(found, list) or not all(isinstance(claim, dict) for claim in found):
            raise UserError(f"{self.path / CLAIMS} does not hold a list of claims")
        return found

    def _check_there(self, name: str) -> None:
        if self.info.get("status") in ENDED and name in self.info.get("files", FILES):
            raise UserError(lost(self.path / name))

    def place(self, condition: str, replica: int) -> tuple[Path, int]:
        entries = [*self.info["replicas"], *self.info.get("borrowed", [])]
        for index, entry in enumerate(entries):
            if (entry["condition"], entry["replica"]) == (condition, replica):
                return self.path / TRACES / f"chunk-{entry['chunk']:03d}", index
        known = [entry["replica"] for entry in entries if entry["condition"] == condition]
        there = f"its replicas are {', '.join(map(str, known))}"
        if not known:
            names = {entry["condition"] for entry in entries}
            near = get_close_matches(str(condition), names, n=NEAREST, cutoff=0.0)
            there = f"the nearest conditions are {', '.join(map(repr, near))}"
        raise KeyError(f"no replica {replica} of {condition!r} in {self.path}; {there}")

    def trace_steps(self, condition: str, replica: int) -> list[int]:
        """The steps at which a trace was kept."""
        folder, index = self.place(condition, replica)
        steps = []
        for path in sorted(folder.glob("step-*.safetensors")):
            with _open(path) as file:
                if f"{index}.alpha" in file.keys():  # noqa: SIM118 (not a dict)
                    steps.append(int(path.stem.removeprefix("step-")))
        return steps

    def trace(self, condition: str, replica: int, step: int) -> dict[str, np.ndarray]:
        """alpha [example, head, query, key], beta [example, query, key], source, target, align."""
        path, index = self._traced(condition, replica, step)
        return _entries(path, f"{index}.")

    def array(self, condition: str, replica: int, step: int, name: str) -> np.ndarray:
        """One array of a trace."""
        path, index = self._traced(condition, replica, step)
        with _open(path) as file:
            return file.get_tensor(f"{index}.{name}")

    def _traced(self, condition: str, replica: int, step: int) -> tuple[Path, int]:
        folder, index = self.place(condition, replica)
        path = folder / f"step-{step:06d}.safetensors"
        if not path.exists():
            steps = ", ".join(map(str, self.trace_steps(condition, replica)))
            raise UserError(f"there is no {path}: traces of {condition!r} were kept at {steps or 'no step'}")
        return path, index

    def weights(self, condition: str, replica: int, best: str) -> dict[str, np.ndarray]:
        """The parameters of a replica where they were kept, such as at its lowest loss."""
        folder, index = self.place(condition, replica)
        path = self.path / "weights" / f"{folder.name}.safetensors"
        found = _entries(path, f"{index}.{best}.") if path.exists() else {}
        if not found:
            raise UserError(f"no weights of {condition!r} were kept at {best!r} in {self.path}")
        return found

    def tokens(self, condition: str) -> list[str]:
        """The text of each token id."""
        tokens: list[str] | str = self.info["tokens"][condition]
        return self.tokens(tokens) if isinstance(tokens, str) else tokens

    @property
    def needed(self) -> list[Run]:
        """The runs that this one builds on."""
        return [Run(path) for path in self.info.get("needed", [])]

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}): {self.info['study']}, {self.info.get('finding') or self.info.get('status')}"

    def report(self) -> Path:
        """Builds the page again and returns its path."""
        from attndyn.verbs import report

        return report(self.path)

    def _repr_html_(self) -> str:
        """A notebook shows the page."""
        import html

        page = self.path / "report.html"
        if not page.exists():
            return f"<p>{html.escape(str(self.path))} has no page yet: <code>run.report()</code> makes it.</p>"
        source = html.escape(page.read_text(encoding="utf-8"), quote=True)
        return f'<iframe srcdoc="{source}" style="width:100%;height:800px;border:0"></iframe>'


def _entries(path: Path, prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin so, without that beginning."""
    with _open(path) as file:
        return {
            name.removeprefix(prefix): file.get_tensor(name)
            for name in file.keys()  # noqa: SIM118 (not a dict)
            if name.startswith(prefix)
        }


@contextlib.contextmanager
def _open(path: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} cannot be read as a trace: {first_line(error)}") from error


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error


def read_info(folder: Path) -> dict[str, Any]:
    """run.json, or one sentence on why this is not a run folder."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    if not (folder / INFO).is_file():
        raise UserError(f"{folder} is not a run folder: it has no {INFO}")
    info = read_json(folder / INFO)
    if not isinstance(info, dict) or "study" not in info:
        raise UserError(f"{folder / INFO} does not describe a run")
    return info


def sizes_of(folder: Path) -> dict[str, int]:
    """What a finished study has to keep, in bytes. A page can be made again, and says where it lacks traces."""
    return {name: size(folder / name) for name in (METRICS, CLAIMS)}


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; a link counts as nothing."""
    if path.is_symlink():
        return 0
    if not path.is_dir():
        return path.lstat().st_size if path.exists() else 0
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(FileNotFoundError):  # a run at work replaces its files
                total += os.lstat(os.path.join(folder, name)).st_size
    return total


def damage(folder: Path, info: dict[str, Any]) -> str | None:
    """What of a finished run is no longer there, or not all of it; it may lie elsewhere, behind a link."""
    needed = dict.fromkeys(info.get("files", (METRICS, CLAIMS)), 1) | info.get(SIZES, {})
    return next(
        (lost(folder / name) for name, least in needed.items() if size((folder / name).resolve()) < least), None
    )


def lost(path: Path) -> str:
    return f"{path} is {'not whole' if path.exists() else 'missing'}, though the run is finished"


def check_whole(folder: Path, info: dict[str, Any], remedy: str | None = None) -> None:
    """Refuses to show a finished study that is damaged."""
    problem = damage(folder, info)
    if problem is not None:
        raise UserError(f"{problem}; {remedy or f'{anew(folder, info)} makes it again'}")


def anew(folder: Path, info: dict[str, Any]) -> str:
    """The command that makes a run again."""
    return f"{info['command']} --out {shlex.quote(str(folder))} --fresh"


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """One writer a folder. The kernel drops the lock when the process ends, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Busy(f"another process is working in {folder}; wait for it or choose another --out") from None
        _remove_parts(folder)
        yield
    finally:
        os.close(handle)


def _remove_parts(folder: Path) -> None:
    """What a killed writer left unfinished: the lock is ours, so nobody is still writing it."""
    inside = [folder / name for name in FOLDERS if not (folder / name).is_symlink()]
    own = [part for name in FILES for part in folder.glob(f".{name}*{PART}")]
    for part in [*own, *(part for place in inside for part in place.rglob(f".*{PART}"))]:
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def is_locked(folder: Path) -> bool:
    """Whether a process works in the folder now. Writes nothing; holds a shared lock for an instant to find out."""
    try:
        handle = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
