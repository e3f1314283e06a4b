"""Parallel text in all the languages that it has: which files there are, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attndyn.errors import UserError
from attndyn.tasks.parallel import SPLITS, endings, endings_of, existing, files_of, only_beginning
from attndyn.tasks.presence import by_name, is_known
from attndyn.tasks.repeats import repeated
from attndyn.tasks.text import cut_and_number, read_lines, tokeniser
from attndyn.tasks.vocabulary import build

OTHERS = {"gold", "auto_align", "tsv", "txt", "json", "md", "log"}
"""What ends so is no sentences."""

Files = dict[str, dict[str, Path]]
"""Language → part → file."""


def facts(corpus: str, data_dir: Path | str | None = None) -> dict[str, Any]:
    """Sizes, lengths and words of each language, for JSON."""
    own = {} if is_known(corpus) and Path(corpus).is_dir() else own_files(Path(corpus))
    found = by_name(corpus, "parallel", data_dir, begun=len(own) > 1)
    files = own if found is None else own_files(found.folder)
    cut = tokeniser(found.tokenised if found else False)
    known: dict[str, dict[str, Any]] = {}
    for language, parts in files.items():
        train = cut_and_number(read_lines(parts["train"]), cut)
        if not len(train):
            raise UserError(f"{parts['train']} holds no lines")
        counts = {split: sum(1 for _ in read_lines(path)) for split, path in parts.items() if split != "train"}
        known[language] = {
            "parts": {"train": len(train), **counts},
            "median": float(np.median(train.lengths)),
            "longest": int(train.lengths.max()),
            "words": len(train.words),
            "vocabulary": len(build(train)),
        }
    _refuse_unequal(files, known)
    return {
        "corpus": found.corpus.name if found else corpus,
        "languages": known,
        "caveat": found.caveat if found else _caveat(files),
    }


def own_files(path: Path) -> Files:
    """In a folder, or of the files whose names begin so."""
    if not path.is_dir():
        return {language: {"train": existing(path, language)} for language in _languages(endings(path))}
    parts = {split: _part(path, split) for split in SPLITS}
    beginning = only_beginning(path)
    if beginning is not None and not any(parts.values()):
        return own_files(beginning)
    return {
        language: {split: part[language] for split, part in parts.items() if language in part}
        for language in parts["train"]
    }


def _part(folder: Path, split: str) -> dict[str, Path]:
    found = _languages(endings_of(folder.glob(f"{split}*.*")))
    return {language: files_of(folder, split, language)[0] for language in found}


def _languages(found: list[str]) -> list[str]:
    return [language for language in found if language not in OTHERS]


def _refuse_unequal(files: Files, known: dict[str, dict[str, Any]]) -> None:
    first = next(iter(files))
    for language, parts in files.items():
        for split in parts.keys() & files[first].keys():
            here, there = (known[code]["parts"][split] for code in (language, first))
            if here != there:
                raise UserError(
                    f"{files[first][split]} has {there:,} lines but {parts[split]} has {here:,}: "
                    "line n of one must belong to line n of the other"
                )


def _caveat(files: Files) -> str:
    if not all("valid" in parts for parts in files.values()):
        return "no validation part: a tenth of the pairs is drawn for it"
    train, valid = (list(_together(files, split)) for split in ("train", "valid"))
    return repeated(train, {"validation pairs": valid})


def _together(files: Files, split: str) -> Iterator[tuple[str, ...]]:
    """Each line in all languages."""
    lines = zip(*(read_lines(parts[split]) for parts in files.values()), strict=True)
    return (tuple(map(str.strip, line)) for line in lines)
