"""Word vectors in the text format of GloVe: a word and its numbers a line, separated by single spaces."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attndyn.errors import UserError
from attndyn.tasks.text import Text, read_lines, shortened
from attndyn.tasks.vocabulary import SPECIALS, Vocabulary


class Coverage(NamedTuple):
    words: float
    """Share of the different words that have a vector."""
    tokens: float
    """Share of the running words."""


@dataclass(frozen=True, eq=False)
class Vectors:
    words: list[str]
    values: np.ndarray
    """float32 [word, dimension]"""

    @cached_property
    def rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    def matrix(self, vocabulary: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """A row for each word, zeros where it has no vector, and which words have one."""
        found = np.array([self.rows.get(word, -1) for word in vocabulary])
        matrix = np.zeros((len(vocabulary), self.values.shape[1]), dtype=np.float32)
        matrix[found >= 0] = self.values[found[found >= 0]]
        return matrix, found >= 0

    def check_covers(self, vocabulary: Vocabulary, name: Path | str | None, corpus: Path | str) -> None:
        """Refuses vectors that no word has."""
        if not self.matrix(vocabulary.words[len(SPECIALS) :])[1].any():
            raise UserError(f"{name or 'glove'} has no vector for any word of the vocabulary of {corpus}")

    def coverage(self, text: Text) -> Coverage:
        has = np.array([word in self.rows for word in text.words])
        return Coverage(float(has.mean()), float(text.counts[has].sum() / text.counts.sum()))


def read_vectors(path: Path | str, wanted: Container[str] | None = None) -> Vectors:
    """The vectors of the wanted words, or of all. A first line of two integers (word2vec, fastText) is skipped;
    of two vectors of a word the first counts."""
    words: list[str] = []
    values: list[np.ndarray] = []
    seen: set[str] = set()
    width = 0
    for place, line in enumerate(read_lines(path), 1):
        word, _, rest = line.rstrip(" ").partition(" ")
        if place == 1 and word.isdecimal() and rest.isdecimal():
            continue
        here = rest.count(" ") + 1 if rest else 0
        width = width or here
        if not word or not here or here != width:
            expected = f"{width} numbers, as above," if width else "numbers"
            raise UserError(
                f"{path}, line {place}: a word and {expected} are expected, found {here} after {shortened(word)!r}"
            )
        if word in seen or (wanted is not None and word not in wanted):
            continue
        seen.add(word)
        try:
            with np.errstate(over="ignore"):  # what is too large is no number, and is refused below
                vector = np.array(rest.split(" "), dtype=np.float32)
        except ValueError:
            vector = np.array([np.nan])
        if not np.isfinite(vector).all():
            raise UserError(f"{path}, line {place}: the vector of {shortened(word)!r} holds what is not a number")
        words.append(word)
        values.append(vector)
    if not width:
        raise UserError(f"{path} holds no vectors")
    return Vectors(words, np.array(values, dtype=np.float32).reshape(len(words), width))
