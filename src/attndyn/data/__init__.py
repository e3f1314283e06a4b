"""`attndyn data list | check | facts | fetch`: which corpora are here, whether they are whole, what is in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attndyn.errors import RunError, UserError
from attndyn.tasks.corpora import CORPORA, find
from attndyn.tasks.presence import Found, locate, obtain, problems

__all__ = ["do_check", "do_facts", "do_fetch", "do_list", "entries"]


def entries(data_dir: Path | None = None, *, whole: bool = True) -> list[dict[str, Any]]:
    """Every corpus: where it is, and with `whole` whether its bytes are those that are known."""
    listed = []
    for corpus in CORPORA.values():
        found = locate(corpus, data_dir)
        listed.append(
            {
                "name": corpus.name,
                "title": corpus.title,
                "kind": corpus.kind,
                "licence": corpus.licence,
                "attribution": corpus.attribution,
                "caveat": found.caveat if found else corpus.caveat,
                "hub": corpus.hub.name if corpus.hub else None,
                "place": found.place if found else None,
                "folder": str(found.folder) if found else None,
                "fetched": found is not None and found.manifest is not None,
                "whole": not any(problems(found, rows=False)) if found and whole else None,
            }
        )
    return listed


def do_list(names: Sequence[str], data_dir: Path | None, as_json: bool) -> None:
    if names:
        raise UserError(f"data list takes no {names[0]!r}")
    listed = entries(data_dir)
    if as_json:
        print(json.dumps(listed, indent=1, ensure_ascii=False))
        return
    for entry in listed:
        if entry["folder"]:
            state = "whole" if entry["whole"] else f"damaged: attndyn data check {entry['name']}"
            where = f"{state}, in {entry['folder']}"
        else:
            where = f"not here; attndyn data fetch {entry['name']}" if entry["hub"] else "not here"
        print(f"{entry['name']:<20} {entry['kind']:<10} {where}\n{'':20} {entry['title']}")
        print(f"{'':20} by: {entry['attribution']}; licence: {entry['licence']}")
        if entry["caveat"]:
            print(f"{'':20} note: {entry['caveat']}")


def do_check(names: Sequence[str], data_dir: Path | None, as_json: bool) -> None:
    """Checksums and numbers of records of the named corpora, or of all that are here."""
    every = [obtain(find(name), data_dir) for name in names] or [
        found for corpus in CORPORA.values() if (found := locate(corpus, data_dir)) is not None
    ]
    wrong = {found.corpus.name: list(problems(found)) for found in every}
    if as_json:
        print(json.dumps([_checked(found, wrong[found.corpus.name]) for found in every], indent=1, ensure_ascii=False))
    else:
        for found in every:
            bad = wrong[found.corpus.name]
            state = f"{len(bad)} of {len(found.files)} files wrong" if bad else f"{len(found.files)} files, whole"
            print(f"{found.corpus.name:<20} {state} ({found.folder})")
            for file, what in bad:
                print(f"{'':20} {file} {what}")
    first = next((problem for bad in wrong.values() for problem in bad), None)
    if first:
        total = sum(map(len, wrong.values()))
        more = f" (and {total - 1} more)" if total > 1 else ""
        raise RunError(f"{first.file} {first.what}{more}")


def _checked(found: Found, bad: Sequence[Any]) -> dict[str, Any]:
    return {
        "name": found.corpus.name,
        "folder": str(found.folder),
        "files": {name: known._asdict() for name, known in found.files.items()},
        "problems": [{"file": str(file), "what": what} for file, what in bad],
    }


def do_facts(names: Sequence[str], data_dir: Path | None, as_json: bool) -> None:
    """Sizes, lengths and vocabularies of labelled and parallel corpora, or of one's own text."""
    from attndyn.data import facts

    found = facts.of_all(names, data_dir)
    print(json.dumps(found, indent=1, ensure_ascii=False) if as_json else facts.tables(found))


def do_fetch(names: Sequence[str], data_dir: Path | None, as_json: bool) -> None:
    from attndyn.data.fetch import fetch

    if len(names) != 1:
        raise UserError("data fetch needs the name of one corpus: attndyn data fetch NAME")
    if as_json:
        raise UserError("data fetch has no --json")
    found = fetch(find(names[0]), data_dir)
    rows = ", ".join(f"{name} {known.rows:,}" for name, known in found.files.items())
    print(f"{found.corpus.name}: {rows}\nin {found.folder}; licence: {found.corpus.licence}")
    first = locate(found.corpus, data_dir)
    if first is not None and first.folder != found.folder:
        print(f"note: {first.folder} ({first.place}) comes first when attndyn looks for {found.corpus.name}")
