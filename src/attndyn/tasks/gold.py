"""Gold word alignments: which word of one sentence translates which word of the other, as people linked them.

A gold line holds links separated by spaces: `i-j` is sure, `i?j` possible, with i the position in the first-named
language and j in the second, from 0. Sure links are possible ones too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from attndyn.errors import UserError
from attndyn.tasks.text import Pairs, read_lines

Links = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Gold:
    """The gold links of one sentence pair."""

    sure: Links
    possible: Links
    """All sure links are among them."""

    def swapped(self) -> Gold:
        """The links of the same pair in the other direction."""
        return Gold(*(frozenset((j, i) for i, j in links) for links in (self.sure, self.possible)))


def read_gold(path: Path | str, pairs: Pairs | None = None) -> list[Gold]:
    """Reads a gold file; with `pairs`, their number and the range of each link are checked."""
    lines = list(read_lines(path))
    if pairs is not None and len(lines) != len(pairs):
        raise UserError(f"{path} has {len(lines):,} lines, but the text has {len(pairs):,}")
    return [_parse(line, path, place, pairs) for place, line in enumerate(lines, 1)]


def _parse(line: str, path: Path | str, place: int, pairs: Pairs | None) -> Gold:
    sure, possible = set(), set()
    for word in line.split():
        match = re.fullmatch(r"(\d+)([-?])(\d+)", word, re.ASCII)
        if match is None:
            raise UserError(f"{path}, line {place}: {word!r} is not a link; i-j (sure) or i?j (possible) is expected")
        link = int(match[1]), int(match[3])
        if pairs is not None:
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
