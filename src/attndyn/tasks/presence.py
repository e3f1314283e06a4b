"""Where a corpus is, and whether it is whole.

Looked for in --data-dir, then $ATTNDYN_DATA, then the user's cache, then among what ships with attndyn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from attndyn.errors import UserError
from attndyn.tasks.corpora import CORPORA, NEEDED, PACKAGED, SHORT, Corpus, Kind, Record, find

MANIFEST = "fetched.json"
"""What `attndyn data fetch` leaves beside the files: their origin, SHA-256 and number of records."""


class Place(NamedTuple):
    name: str
    folder: Path


class Problem(NamedTuple):
    file: Path
    what: str


@dataclass(frozen=True)
class Found:
    """A corpus in a folder: the files whose checksums are known, or others that were fetched from the Hub."""

    corpus: Corpus
    folder: Path
    place: str

    @cached_property
    def manifest(self) -> dict[str, Any] | None:
        path = self.folder / MANIFEST
        if not path.exists():
            return None
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            for name, entry in manifest["files"].items():
                Record(**entry)
                if Path(name).name != name:
                    raise ValueError(f"{name} is not in the folder")
            return manifest
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UserError(f"{path} is damaged; remove {self.folder} and fetch {self.corpus.name} again") from None

    @property
    def files(self) -> dict[str, Record]:
        if self.manifest is None:
            return self.corpus.files
        return {name: Record(**entry) for name, entry in self.manifest["files"].items()}

    @property
    def tokenised(self) -> bool:
        if self.manifest is not None and self.corpus.hub is not None:
            return self.corpus.hub.tokenised
        return self.corpus.tokenised

    @property
    def caveat(self) -> str:
        return self.corpus.caveat if self.manifest is None else self.manifest.get("caveat", "")

    def file(self, name: str) -> Path:
        path = self.folder / name
        if not path.is_file():
            raise UserError(f"{path} is missing; attndyn data check {self.corpus.name} lists what is wrong")
        return path


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "attndyn"


def places(data_dir: Path | str | None = None) -> list[Place]:
    """The folders that are looked into, in this order."""
    found = []
    for name, folder in (("--data-dir", data_dir), ("$ATTNDYN_DATA", os.environ.get("ATTNDYN_DATA"))):
        if folder:
            if not Path(folder).is_dir():
                raise UserError(f"{name} {folder}: there is no such folder")
            found.append(Place(name, Path(folder)))
    return [*found, Place("cache", cache_folder()), Place("package", PACKAGED)]


def locate(corpus: Corpus, data_dir: Path | str | None = None) -> Found | None:
    """The first place that holds a file of the corpus, or None."""
    for place in places(data_dir):
        folder = place.folder / corpus.name
        if any((folder / name).exists() for name in (MANIFEST, *corpus.files)):
            return Found(corpus, folder, place.name)
    return None


def obtain(corpus: Corpus, data_dir: Path | str | None = None) -> Found:
    found = locate(corpus, data_dir)
    if found is None:
        looked = [place.folder / corpus.name for place in places(data_dir)]
        raise UserError(
            f"the corpus {corpus.name} is not here ({how_to_get(corpus)}); looked in {', '.join(map(str, looked))}"
            + "".join(f"; {folder} is there, but holds no {_wanted(corpus)}" for folder in looked if folder.is_dir())
        )
    return found


def _wanted(corpus: Corpus) -> str:
    files = sorted(corpus.files) or [MANIFEST]
    return " and no ".join(files) if len(files) <= 3 else f"file of the corpus, such as {files[0]}"


def is_known(name: str) -> bool:
    return name in CORPORA or name in SHORT


def by_name(name: str | Path, kind: Kind, data_dir: Path | str | None = None, *, begun: bool = False) -> Found | None:
    """The corpus of that name; None: it is text of one's own. `begun` says that names of files begin so, too."""
    if not isinstance(name, str) or not is_known(name):
        return None
    corpus = find(name)
    if (Path(name).exists() or begun) and not _is_meant(name, locate(corpus, data_dir)):
        raise UserError(_both(name, corpus, kind))
    if corpus.kind != kind:
        raise UserError(f"{name} is a {corpus.kind} corpus; {NEEDED[kind]} needed here")
    return obtain(corpus, data_dir)


def _is_meant(name: str, found: Found | None) -> bool:
    """Whether what lies under that name here is the corpus itself, or was told apart from it."""
    if found is None:
        return False
    here = Path(name).exists() and found.folder.samefile(name)
    return here or (found.place == "--data-dir" and name == found.corpus.name)


def _both(name: str, corpus: Corpus, kind: Kind) -> str:
    what = "a folder here" if Path(name).is_dir() else "a file here" if Path(name).exists() else "how files here begin"
    said = f"{name!r} is {what} and the name of a {corpus.kind} corpus: say './{name}' for your own text"
    if corpus.kind != kind:
        return said
    other = [word for word in (corpus.name, *SHORT) if find(word) is corpus and not Path(word).exists()]
    return (
        f"{said}, {other[0]!r} for the corpus"
        if other
        else (f"{said}; for the corpus, say also --data-dir and the folder that holds its folder {corpus.name}")
    )


def how_to_get(corpus: Corpus) -> str:
    if corpus.hub is not None:
        return f"attndyn data fetch {corpus.name} downloads it"
    folder = cache_folder() / corpus.name
    return f"it cannot be fetched: put {', '.join(corpus.files)} into {folder} yourself, as docs/data.md says"


def problems(found: Found, *, rows: bool = True) -> Iterator[Problem]:
    """What is wrong with the files: missing, other bytes, other number of records (only with `rows`)."""
    for name, known in found.files.items():
        path = found.folder / name
        if not path.is_file():
            yield Problem(path, "is missing")
        elif (sha256 := digest(path)) != known.sha256:
            yield Problem(
                path, f"has SHA-256 {sha256[:12]}…, not {known.sha256[:12]}…: it is damaged or another edition"
            )
        elif rows and (count := count_rows(found.corpus, path)) != known.rows:
            yield Problem(path, f"has {count:,} records, not {known.rows:,}")


def digest(path: Path) -> str:
    import hashlib

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def count_rows(corpus: Corpus, path: Path) -> int:
    from attndyn.tasks.text import read_lines

    lines = read_lines(path)
    if corpus.kind == "chunking":
        return sum(not line for line in lines)
    return sum(1 for _ in lines)
