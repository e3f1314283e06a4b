"""Text as integers: reading files, cutting lines into words, numbering the words.

A side of a corpus is one flat array of word numbers with the offset of each line, never a list of lists. No torch here.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from attndyn.errors import UserError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from gzip import GzipFile
    from io import BufferedReader
    from lzma import LZMAFile

    from attndyn.tasks.synthetic import CopyTask

BLOCK = 1 << 20
"""Words that are renumbered at once, which takes some 50 bytes of memory each."""
LINE_LIMIT = 1_000_000
"""Bytes of the longest line that is read; the longest review of IMDB has 14,000."""

Tokeniser = Callable[[str], list[str]]
"""Cuts at white space, and further; what stands between two white spaces is cut alike wherever it stands."""


@dataclass(frozen=True, eq=False)
class Text:
    """Lines of words: `ids[offsets[n]:offsets[n + 1]]` are the word numbers of line n, `words` their spelling."""

    ids: np.ndarray
    offsets: np.ndarray
    words: list[str]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each word occurs."""
        return np.bincount(self.ids, minlength=len(self.words))

    @cached_property
    def rows(self) -> np.ndarray:
        """The line of each token."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.lengths)

    def line(self, n: int) -> list[str]:
        return [self.words[word] for word in self.ids[self.offsets[n] : self.offsets[n + 1]]]

    def take(self, lines: np.ndarray) -> Text:
        """The lines of these numbers, in this order; the numbering of the words stays."""
        lengths = self.lengths[lines]
        offsets = np.concatenate([[0], lengths.cumsum()])
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return Text(self.ids[np.repeat(self.offsets[:-1][lines], lengths) + inside], offsets, self.words)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Line n of `source` goes with line n of `target`."""

    source: Text
    target: Text

    def __len__(self) -> int:
        return len(self.source)

    def swapped(self) -> Pairs:
        return Pairs(self.target, self.source)

    def take(self, lines: np.ndarray) -> Pairs:
        return Pairs(self.source.take(lines), self.target.take(lines))


def number(lines: Iterable[Sequence[str]]) -> Text:
    """Words are numbered in the order in which they first occur."""
    known: defaultdict[str, int] = defaultdict()
    known.default_factory = known.__len__
    ids, offsets = array("i"), array("q", [0])
    for line in lines:
        ids.extend(map(known.__getitem__, line))
        offsets.append(len(ids))
    return Text(np.array(ids, dtype=np.int32), np.array(offsets, dtype=np.int64), list(known))


def cut_and_number(lines: Iterable[str], cut: Tokeniser) -> Text:
    """`number(map(cut, lines))` in less time: what stands between two white spaces is cut once, however often it
    occurs."""
    spaced = number(map(str.split, lines))
    if cut is str.split:
        return spaced
    inside = number(map(cut, spaced.words))
    blocks = [inside.take(some).ids for some in np.split(spaced.ids, range(BLOCK, len(spaced.ids), BLOCK))]
    ends = np.concatenate([[0], inside.lengths[spaced.ids].cumsum()])
    return Text(np.concatenate(blocks), ends[spaced.offsets], inside.words)


def pairs(sources: Iterable[Sequence[str]], targets: Iterable[Sequence[str]]) -> Pairs:
    """Pairs of token lists."""
    both = Pairs(number(sources), number(targets))
    if len(both.source) != len(both.target):
        raise UserError(f"{len(both.source)} sources but {len(both.target)} targets")
    return both


def read_parallel(source: Path | str, target: Path | str, *, tokenised: bool = False) -> Pairs:
    """Two files, line n of one beside line n of the other."""
    cut = tokeniser(tokenised)
    both = Pairs(*(cut_and_number(read_lines(path), cut) for path in (source, target)))
    if len(both.source) != len(both.target):
        raise UserError(
            f"{source} has {len(both.source):,} lines but {target} has {len(both.target):,}: "
            "line n of one must belong to line n of the other"
        )
    if not len(both):
        raise UserError(f"{source} and {target} hold no lines")
    for path, text in ((source, both.source), (target, both.target)):
        if not len(text.ids):
            raise UserError(f"{path} holds no words, only empty lines")
    return both


def read_labelled(path: Path | str, *, tokenised: bool = False, cut: Tokeniser | None = None) -> Pairs:
    """`label<TAB>text` a line; the label is an output of one word. `cut` is another tokeniser."""
    cut = cut or tokeniser(tokenised)
    labels: list[list[str]] = []

    def texts() -> Iterator[str]:
        for place, line in enumerate(read_lines(path), 1):
            label, tab, text = line.partition("\t")
            if not tab or not label.strip():
                raise UserError(f"{path}, line {place}: expected label<TAB>text, found {shortened(line)!r}")
            labels.append([label.strip()])
            yield text

    source = cut_and_number(texts(), cut)
    if not len(source):
        raise UserError(f"{path} holds no lines")
    if not len(source.ids):
        raise UserError(f"{path} holds labels but no words")
    return Pairs(source, number(labels))


def drawn(task: CopyTask, count: int, seed: int = 0) -> Pairs:
    """Pairs of a synthetic task, without the end token, which is in every line."""
    batch = task.build([seed]).batch(0, count)
    offsets = np.arange(count + 1, dtype=np.int64) * task.length
    sides = (rows[0, :, :-1].flatten().numpy().astype(np.int32) for rows in (batch.source, batch.target))
    return Pairs(*(Text(ids, offsets, task.tokens) for ids in sides))


def tokeniser(tokenised: bool) -> Tokeniser:
    """Text that is already tokenised is cut at white space and otherwise left as it is."""
    return str.split if tokenised else tokenise


def tokenise(line: str) -> list[str]:
    """Lower case; a word is a run of letters, digits and their combining marks, with apostrophes and hyphens inside
    it; every other character that is not white space stands alone. (So text without spaces between its words, as
    Chinese or Thai, wants a tokeniser of its own and `--tokenised`.)"""
    lower = line.lower()
    # Below U+0300 there are no combining marks, and a pattern without them is five times as fast.
    plain = lower.isascii() or max(lower) < "\u0300"
    return _word("" if plain else _marks()).findall(lower)


@cache
def _word(marks: str) -> re.Pattern[str]:
    letters = rf"[\w{marks}]+"
    return re.compile(rf"{letters}(?:['’\-]{letters})*|\S")


@cache
def _marks() -> str:
    """What the regular expression of a letter lacks: without them a Hindi word would be cut at each vowel sign."""
    import unicodedata

    return "".join(char for char in map(chr, range(0x300, 0x1E950)) if unicodedata.category(char)[0] == "M")


def read_lines(path: Path | str) -> Iterator[str]:
    """The lines of a UTF-8 file, plain, gzip or xz, without their ends; a byte-order mark is dropped."""
    import gzip
    import lzma
    import zlib

    place = 0
    try:
        with _opened(Path(path)) as raw, _unpacked(raw) as file:
            while line := file.readline(LINE_LIMIT + 2):
                place += 1
                yield _decoded(line.removesuffix(b"\n").removesuffix(b"\r"), path, place)
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError):
        raise UserError(f"{path}: the compressed file is damaged or cut short after line {place}") from None


def _opened(path: Path) -> BufferedReader:
    try:
        return open(path, "rb")
    except OSError as error:
        raise UserError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def _unpacked(raw: BufferedReader) -> AbstractContextManager[BinaryIO | GzipFile | LZMAFile]:
    """The file's own first bytes say how it is compressed; they are looked at, not taken, so that it may be a pipe."""
    import gzip
    import lzma

    start = raw.peek(6)
    if start.startswith(b"\x1f\x8b"):
        return gzip.open(raw)
    return lzma.open(raw) if start.startswith(b"\xfd7zXZ\0") else nullcontext(raw)


def _decoded(line: bytes, path: Path | str, place: int) -> str:
    if len(line) > LINE_LIMIT:
        raise UserError(f"{path}, line {place}: longer than {LINE_LIMIT:,} bytes; one sentence a line is expected")
    if b"\0" in line:
        raise UserError(f"{path}, line {place}: holds a NUL byte; UTF-8 text is expected")
    try:
        return (line.removeprefix(b"\xef\xbb\xbf") if place == 1 else line).decode()
    except UnicodeDecodeError as error:
        column, byte = error.start + 1, error.object[error.start]
        raise UserError(f"{path}, line {place}: not UTF-8 (byte {byte:#04x} at column {column})") from None


def shortened(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
