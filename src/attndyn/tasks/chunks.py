"""Tagged sentences in the columns of CoNLL-2000: `word POS chunk` a line, an empty line after each sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from attndyn.errors import UserError
from attndyn.tasks.text import Text, number, read_lines, shortened

TAG = re.compile(r"O|[BI]-\S+")


@dataclass(frozen=True, eq=False)
class Chunks:
    """Token n of `pos` and `chunks` belongs to token n of `words`; the spelling is that of the file."""

    words: Text
    pos: Text
    chunks: Text

    def __len__(self) -> int:
        return len(self.words)


def read_chunks(path: Path | str) -> Chunks:
    sentences: list[list[list[str]]] = []
    open_sentence = False
    for place, line in enumerate(read_lines(path), 1):
        columns = line.split()
        if not columns:
            open_sentence = False
            continue
        if len(columns) != 3:
            raise UserError(f"{path}, line {place}: expected `word POS chunk`, found {shortened(line)!r}")
        if not TAG.fullmatch(columns[2]):
            raise UserError(f"{path}, line {place}: {columns[2]!r} is no chunk tag; O, B-… or I-… is expected")
        if not open_sentence:
            sentences.append([])
            open_sentence = True
        sentences[-1].append(columns)
    if not sentences:
        raise UserError(f"{path} holds no sentences")
    return Chunks(*(number([token[column] for token in sentence] for sentence in sentences) for column in range(3)))
