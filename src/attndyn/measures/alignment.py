"""Word alignments against gold links: precision, recall and the alignment error rate of Och and Ney (2003).

A gold line holds links separated by spaces: `i-j` is sure, `i?j` possible, with i the position in the first-named
language and j in the second, from 0. Sure links are possible ones too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from attndyn.errors import UserError
from attndyn.tasks.text import Pairs, read_lines

Links = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Gold:
    """The gold links of one sentence pair."""

    sure: Links
    possible: Links
    """All sure links are among them."""


@dataclass(frozen=True)
class Score:
    precision: float
    """Of the links found, those that are possible."""
    recall: float
    """Of the sure links, those that were found."""
    aer: float
    """1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)"""


def links(pairs: Pairs, chosen: Int[np.ndarray, "tokens"], *, swapped: bool = False) -> list[Links]:
    """The links of each pair, from the input position chosen for each output token (−1: none), as `Ibm1.align` gives
    them. `swapped` turns those of swapped pairs round, so that `a & b` of both directions is their intersection."""
    found = []
    for begin, end in itertools.pairwise(pairs.target.offsets):
        some = [(int(l), t) for t, l in enumerate(chosen[begin:end]) if l >= 0]
        found.append(frozenset((t, l) if swapped else (l, t) for l, t in some))
    return found


def score(found: Sequence[Links], gold: Sequence[Gold]) -> Score:
    """Over all sentence pairs together. Raises where there is no link to divide by."""
    if len(found) != len(gold):
        raise ValueError(f"{len(found)} alignments but {len(gold)} gold ones")
    links, sure = sum(map(len, found)), sum(len(right.sure) for right in gold)
    if not links or not sure:
        raise ValueError("precision and recall are undefined without links that were found, and without sure ones")
    hit_sure = sum(len(some & right.sure) for some, right in zip(found, gold, strict=True))
    hit = sum(len(some & right.possible) for some, right in zip(found, gold, strict=True))
    return Score(precision=hit / links, recall=hit_sure / sure, aer=1 - (hit_sure + hit) / (links + sure))


def read_gold(path: Path | str, pairs: Pairs | None = None) -> list[Gold]:
    """Reads a gold file; with `pairs`, their number and the range of each link are checked."""
    gold = [_parse(line, path, place, pairs) for place, line in enumerate(read_lines(path), 1)]
    if pairs is not None and len(gold) != len(pairs):
        raise UserError(f"{path} has {len(gold):,} lines, but the text has {len(pairs):,}")
    return gold


def _parse(line: str, path: Path | str, place: int, pairs: Pairs | None) -> Gold:
    sure, possible = set(), set()
    for word in line.split():
        match = re.fullmatch(r"(\d+)([-?])(\d+)", word, re.ASCII)
        if match is None:
            raise UserError(f"{path}, line {place}: {word!r} is not a link; i-j (sure) or i?j (possible) is expected")
        link = int(match[1]), int(match[3])
        if pairs is not None and place <= len(pairs):
            for position, text in zip(link, (pairs.source, pairs.target), strict=True):
                if position >= text.lengths[place - 1]:
                    raise UserError(
                        f"{path}, line {place}: {word!r} points past the end of a sentence of "
                        f"{text.lengths[place - 1]} words"
                    )
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))
