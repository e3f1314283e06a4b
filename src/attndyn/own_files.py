"""Files of one's own that a study reads: they may have changed since, or lie elsewhere, when its run goes on."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attndyn.errors import UserError
from attndyn.store.folder import anew
from attndyn.tasks.corpora import CORPORA, MADE_HERE, SHORT

if TYPE_CHECKING:
    from attndyn.studies.base import Study
    from attndyn.training.condition import Condition

SETTINGS = ("corpus", "vectors", "piece_model", "gold", "inputs", "outputs", "texts")
"""That may name a file, a folder or the beginning of the names of several."""
BEGUN_FROM = "begun from"
"""In run.json: where the command was given, as seen from the run folder."""
BESIDE = ", beside its text"


def own_files(study: Study) -> dict[str, list[str]]:
    """The settings that name files of one's own; those of known corpora have checksums."""
    found, known = {}, {*CORPORA, *SHORT, *MADE_HERE}
    for setting in SETTINGS:
        value = getattr(study, setting, None)
        names = [value] if isinstance(value, str) else value if isinstance(value, tuple) else ()
        own = [name for name in names if isinstance(name, str) and name and name not in known]
        if own:
            found[setting] = own
    return found


def begun_from(folder: Path) -> str:
    return os.path.relpath(Path.cwd(), folder.resolve())


def found_again(study: Study, folder: Path, info: dict[str, Any]) -> Study:
    """The study as seen from here: its files are named from where its run was begun, or, if the run has been moved
    away from them, from here."""
    place = folder.resolve() / info.get(BEGUN_FROM, Path.cwd())  # runs of earlier versions do not say it
    if place.resolve() == Path.cwd():
        return study

    def there(name: str) -> str:
        return str(place / name) if exists(place / name) or not exists(Path(name)) else name

    changes: dict[str, Any] = {}
    for setting, own in own_files(study).items():
        value = getattr(study, setting)
        changes[setting] = there(value) if isinstance(value, str) else tuple(
            there(name) if name in own else name for name in value
        )  # fmt: skip
    data_dir = getattr(study, "data_dir", None)
    if data_dir:
        changes["data_dir"] = there(data_dir)
    return replace(study, **changes)


def exists(path: Path) -> bool:
    """Whether there is a file, a folder, or one whose name begins so: data/mine for data/mine.de and data/mine.en."""
    return path.exists() or any(path.parent.glob(f"{glob.escape(path.name)}.*"))


def content_of(study: Study) -> dict[str, str]:
    """A digest of what each condition reads; of a study that trains none, of its files."""
    conditions = [*study.conditions(), *study.borrowed()]
    return data_of(conditions) if conditions else files_of(study)


def data_of(conditions: Sequence[Condition]) -> dict[str, str]:
    """A digest of the examples of each condition that has them from files, and of what else it has from there."""
    text = {one.name: one.task.content for one in conditions}
    return {name: found for name, found in text.items() if found} | {
        one.name + BESIDE: found for one in conditions if (found := one.task.beside)
    }


def files_of(study: Study) -> dict[str, str]:
    import hashlib

    found = {}
    for setting, names in own_files(study).items():
        whole = hashlib.sha256()
        for name in names:
            try:
                whole.update(Path(name).read_bytes())
            except OSError as error:
                raise UserError(f"{name}: {(error.strerror or str(error)).lower()}") from None
        found[f"--{setting}"] = whole.hexdigest()[:16]
    return found


def check_same_data(folder: Path, before: dict[str, Any], found: dict[str, str], remedy: str | None = None) -> None:
    """A run is continued, and shown again, with the text and the vectors it was begun with. `remedy`: what helps, if
    not to begin this run anew."""
    for name, content in found.items():
        if before.get("data", {}).get(name, content) != content:
            of = name.removesuffix(BESIDE)
            read_by = f"of {of} that {folder}" if of.startswith("--") else f"that {of!r} in {folder}"
            usual = f"{anew(folder, before)} would train it on them, another --out keeps it"
            raise UserError(f"the files {read_by} was trained on have changed since; {remedy or usual}")


def check_own_files(study: Study, folder: Path, info: dict[str, Any], remedy: str | None = None) -> None:
    """Refuses to show a run on files of one's own that have changed since; those that are gone do not matter."""
    own = [name for names in own_files(study).values() for name in names]
    if not own:
        return
    try:
        found = content_of(study)
    except UserError as error:
        meant = max((name for name in own if name in str(error)), key=len, default=None)  # one may begin another
        if meant is not None and exists(Path(meant)):
            raise UserError(f"what {folder} was made from has changed since: {error}") from None
        return
    check_same_data(folder, info, found, remedy)
