"""What is in a text, counted before anything is trained on it: `attndyn data facts`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attndyn.errors import UserError, nearest
from attndyn.tasks.corpora import CORPORA, find, named
from attndyn.tasks.languages import facts as facts_of_pairs
from attndyn.tasks.languages import own_files
from attndyn.tasks.presence import is_known, locate

LABELLED = (
    "corpus", "train / valid / test", "published train", "left out", "cut", "median length", "published median",
    "V, seen 3 times", "V, or has a vector", "published V",
)  # fmt: skip
PARALLEL = (
    "corpus",
    "language",
    "train / valid / test",
    "median length",
    "longest",
    "different words",
    "V, seen 3 times",
)
SPLITS = ("train", "valid", "test")


def of_all(names: Sequence[str], data_dir: Path | None) -> list[dict[str, Any]]:
    """Of the named texts, or of all labelled and parallel corpora that are here."""
    from attndyn.tasks.labelled import Rule, facts, load_labelled

    chosen = list(names) or [
        corpus.name
        for corpus in CORPORA.values()
        if corpus.kind in ("labelled", "parallel") and locate(corpus, data_dir)
    ]
    rule: Rule = "count or vector" if locate(find("glove"), data_dir) else "count"
    return [
        facts_of_pairs(name, data_dir)
        if is_parallel(name)
        else facts(load_labelled(name, data_dir=data_dir, rule=rule))
        for name in chosen
    ]


def is_parallel(name: str) -> bool:
    """By the name of the corpus, or by the names of the files."""
    if is_known(name):
        kind = find(name).kind
        if kind not in ("labelled", "parallel"):
            raise UserError(f"{name} is a {kind} corpus; labelled or parallel text is needed here")
        return kind == "parallel"
    path = Path(name)
    languages = {} if path.is_file() or any(path.glob("train.tsv*")) else own_files(path)
    if not path.exists() and not languages:
        near = nearest(name, [*named("labelled"), *named("parallel")])
        raise UserError(f"{name!r} is neither a corpus, nor a file, nor a folder; {near}")
    return len(languages) > 1


def tables(found: Sequence[dict[str, Any]]) -> str:
    """One for labelled and one for parallel text, and what is to be said of one's own."""
    pairs = [entry for entry in found if "languages" in entry]
    texts = [entry for entry in found if "languages" not in entry]
    parts = []
    if texts:
        parts.append(_table(LABELLED, map(_labelled, texts)))
    if pairs:
        parts.append(_table(PARALLEL, (row for entry in pairs for row in _parallel(entry))))
    notes = "\n".join(f"note: {entry['corpus']}: {entry['caveat']}" for entry in found if entry["caveat"])
    return "\n\n".join([*parts, *([notes] if notes else [])])


def _table(heads: Sequence[str], rows: Iterator[list[str]]) -> str:
    return "\n".join([f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}", *(f"| {' | '.join(r)} |" for r in rows)])


def _labelled(entry: dict[str, Any]) -> list[str]:
    parts, published = entry["parts"], entry["published"]
    examples = " / ".join(f"{parts[split]['examples']:,}" for split in SPLITS)
    left, cut = (sum(parts[split][what] for split in ("train", "test")) for what in ("dropped", "cut"))
    sizes = [entry["vocabulary"]["count"], entry["vocabulary"].get("count or vector"), published["vocabulary"]]
    cells = [entry["corpus"], examples, _or_dash(published["train"]), f"{left:,}", str(cut)]
    return [*cells, f"{parts['train']['median']:g}", _or_dash(published["median"]), *map(_or_dash, sizes)]


def _parallel(entry: dict[str, Any]) -> Iterator[list[str]]:
    for language, known in entry["languages"].items():
        sentences = " / ".join(_or_dash(known["parts"].get(split)) for split in SPLITS)
        counts = (f"{known[what]:,}" for what in ("longest", "words", "vocabulary"))
        yield [entry["corpus"], language, sentences, f"{known['median']:g}", *counts]


def _or_dash(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"
