"""`attndyn data fetch`: a corpus from the Hugging Face Hub, turned into our files. The only part that uses a network.

No code from the Hub is run, and nothing is unpacked here: `datasets` gives rows, and the names of the files come from
the corpus, never from the Hub. All files appear together, by one rename, or not at all.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from attndyn.errors import RunError, UserError, first_line
from attndyn.store import atomic
from attndyn.tasks.corpora import Corpus, Hub
from attndyn.tasks.draws import shuffled
from attndyn.tasks.presence import MANIFEST, Found, cache_folder, how_to_get, places

SEED = 1234
"""Of everything that is drawn while fetching."""

# file name → lines, and the number of records
Files = dict[str, tuple[list[str], int]]


def fetch(corpus: Corpus, data_dir: Path | str | None = None) -> Found:
    """Downloads into `data_dir`, or the user's cache."""
    if corpus.ships:
        raise UserError(f"{corpus.name} ships with attndyn; there is nothing to fetch")
    if corpus.hub is None:
        raise UserError(f"{corpus.name}: {how_to_get(corpus)}")
    if data_dir is not None:
        places(data_dir)  # refuses a folder that is not there
    root, place = (Path(data_dir), "--data-dir") if data_dir is not None else (cache_folder(), "cache")
    folder = root / corpus.name
    if folder.exists():
        raise UserError(f"{folder} is there already; attndyn data check {corpus.name} checks it, or remove it first")
    try:
        import datasets
    except ImportError:
        raise UserError("data fetch needs the package datasets: pip install 'attndyn[hub]'") from None

    def load(split: str) -> Any:
        hub = corpus.hub
        assert hub is not None
        try:
            return datasets.load_dataset(hub.name, hub.config, split=split, revision=hub.revision)
        except Exception as error:  # whatever the Hub, the network or a changed dataset makes it raise
            raise RunError(f"the Hub did not give {hub.name} ({split}): {first_line(error)}") from error

    try:
        files = CONVERTERS[corpus.kind](corpus.hub, load)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        what = f"{type(error).__name__}: {first_line(error)}"
        raise RunError(f"{corpus.hub.name} on the Hub no longer has the columns that were expected ({what})") from error
    for split, expected in corpus.hub.rows:
        for name, (_, count) in files.items():
            if name.split(".")[0] == split and count != expected:
                raise RunError(f"the Hub gave {count:,} records for {name}, not {expected:,}; nothing was kept")
    write(folder, files, corpus.hub)
    return Found(corpus, folder, place)


def write(folder: Path, files: Files, hub: Hub) -> None:
    """Into a temporary folder beside the last one, which then takes its name."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))
    try:
        records = {}
        for name, (lines, count) in files.items():
            if not count:
                raise RunError(f"{hub.name} on the Hub gave no records for {name}; nothing was kept")
            packed = lzma.compress("".join(f"{line}\n" for line in lines).encode())
            atomic.write_bytes(temporary / f"{name}.xz", packed)
            records[f"{name}.xz"] = {"sha256": hashlib.sha256(packed).hexdigest(), "rows": count}
        origin = {"hub": hub.name, "config": hub.config, "revision": hub.revision, "seed": SEED, "caveat": hub.caveat}
        atomic.write_bytes(temporary / MANIFEST, (json.dumps({**origin, "files": records}, indent=1) + "\n").encode())
        temporary.chmod(0o755)
        os.rename(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    atomic.sync_folder(folder.parent)


def labelled(hub: Hub, load: Callable[[str], Any]) -> Files:
    labels = dict(hub.labels)
    columns = dict(hub.columns)
    files: Files = {}
    for ours, theirs in hub.splits:
        lines = []
        for row in chosen(load(theirs), hub.draw):
            label = labels.get(str(pick(row, columns["label"])))
            text = folded(pick(row, columns["text"]))
            if label is not None and text:
                lines.append(f"{label}\t{text}")
        files[f"{ours}.tsv"] = lines, len(lines)
    return files


def parallel(hub: Hub, load: Callable[[str], Any]) -> Files:
    parts = {}
    for ours, theirs in hub.splits:
        rows = chosen(load(theirs), hub.draw)
        pairs = [tuple(folded(pick(row, column)) for _, column in hub.columns) for row in rows]
        if hub.without_numbers:
            pairs = [pair for pair in pairs if any(character.isalpha() for side in pair for character in side)]
        no_split = hub.held_out is not None or hub.valid_share is not None
        parts[ours] = [pair for pair in dict.fromkeys(pairs) if all(pair)] if no_split else pairs
    if hub.held_out is not None:
        parts = with_held_out(parts["train"], hub.held_out)
    elif hub.valid_share is not None:
        parts = with_share(parts["train"], hub.valid_share)
    return {
        f"{split}.{language}": ([pair[side] for pair in pairs], len(pairs))
        for split, pairs in parts.items()
        for side, (language, _) in enumerate(hub.columns)
    }


def with_held_out(pairs: list[tuple[str, ...]], size: int) -> dict[str, list[tuple[str, ...]]]:
    """Two held-out parts by seed; a pair that shares a side with one of them, ignoring case, leaves the others."""
    order = [pairs[n] for n in shuffled(len(pairs), SEED)]
    parts: dict[str, list[tuple[str, ...]]] = {}
    for name in ("test", "valid"):
        parts[name] = order[:size]
        taken = [{pair[side].lower() for pair in parts[name]} for side in range(2)]
        order = [pair for pair in order[size:] if pair[0].lower() not in taken[0] and pair[1].lower() not in taken[1]]
    return {"train": order, "valid": parts["valid"], "test": parts["test"]}


def with_share(pairs: list[tuple[str, ...]], share: float) -> dict[str, list[tuple[str, ...]]]:
    """A part of the pairs by seed is valid, the rest train; both in their order."""
    held = set(shuffled(len(pairs), SEED)[: round(share * len(pairs))].tolist())
    return {
        "train": [pair for n, pair in enumerate(pairs) if n not in held],
        "valid": [pair for n, pair in enumerate(pairs) if n in held],
    }


def chunking(hub: Hub, load: Callable[[str], Any]) -> Files:
    columns = dict(hub.columns)
    files: Files = {}
    for ours, theirs in hub.splits:
        rows = load(theirs)
        pos, chunks = (rows.features[columns[name]].feature.names for name in ("pos", "chunk"))
        lines, sentences = [], 0
        for row in rows:
            words = row[columns["word"]]
            if not words:
                continue
            for word, a, b in zip(words, row[columns["pos"]], row[columns["chunk"]], strict=True):
                lines.append(f"{folded(word).replace(' ', '')} {pos[a]} {chunks[b]}")
            lines.append("")
            sentences += 1
        files[f"{ours}.txt"] = lines, sentences
    return files


CONVERTERS: dict[str, Callable[[Hub, Callable[[str], Any]], Files]] = {
    "labelled": labelled,
    "parallel": parallel,
    "chunking": chunking,
}


def chosen(rows: Any, draw: int | None) -> Iterable[Any]:
    """All rows, or `draw` of them by seed, in their order."""
    if draw is None or len(rows) <= draw:
        return rows
    return rows.select(sorted(shuffled(len(rows), SEED)[:draw].tolist()))


def pick(row: Any, column: str) -> Any:
    for name in column.split("."):
        row = row[name]
    return row


def folded(text: str) -> str:
    """Any run of white space and control characters is one space; so is a line break of HTML."""
    return " ".join(re.sub(r"<br\s*/?>|[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", text).split())
