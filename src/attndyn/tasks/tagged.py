"""CoNLL-2000, or a folder of one's own, as a task: words lower-cased, every digit 0 (Yang's program), and B- and I- of
every kind of chunk in the training part as answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attndyn.errors import UserError, nearest
from attndyn.tasks import corpora
from attndyn.tasks.chunks import Chunks, read_chunks
from attndyn.tasks.corpus import Examples, loaded
from attndyn.tasks.draws import shuffled
from attndyn.tasks.held import held
from attndyn.tasks.presence import by_name, obtain
from attndyn.tasks.tagging import ENDS, Tagging
from attndyn.tasks.text import Pairs, Text, number, read_lines
from attndyn.tasks.vectors import Vectors, read_vectors
from attndyn.tasks.vocabulary import LONGEST, build

if TYPE_CHECKING:
    from torch import Tensor

VALID_SHARE = 0.1
"""Of the training sentences, for choosing the checkpoint."""


@dataclass(frozen=True)
class TaggedText(Tagging):
    """A chunking corpus, or a folder of one's own with train.txt and test.txt (plain, .gz or .xz). The vocabulary: what
    is seen three times in training, and all words with a vector, where there are vectors."""

    vectors: str | None = None
    """A file of word vectors, or glove, the corpus. Words without one start at random, of the same size."""

    def load(self) -> Examples:
        paths = self._paths()
        train, test = (read_chunks(path) for path in paths)
        kinds = sorted({tag[2:] for tag in train.chunks.words if tag != "O"})
        answers = [*ENDS, "O", *(f"{place}-{kind}" for kind in kinds for place in "BI")]
        _refuse_unknown(paths[1], test, answers)
        for path, chunks in zip(paths, (train, test), strict=True):
            _refuse_long(path, chunks)
        order, held = shuffled(len(train), 0), round(VALID_SHARE * len(train))
        if not held:
            raise UserError(f"{paths[0]}: {len(train)} sentences are too few, a tenth of them is for validation")
        parts = {"train": (train, np.sort(order[held:])), "valid": (train, np.sort(order[:held])),
                 "test": (test, np.arange(len(test)))}  # fmt: skip
        pairs = {name: Pairs(plain(chunks.words).take(lines), chunks.chunks.take(lines))
                 for name, (chunks, lines) in parts.items()}  # fmt: skip
        for path, name, what in ((paths[0], "valid", "validation"), (paths[1], "test", "test")):
            tags = pairs[name].target
            if {tags.words[n] for n in np.unique(tags.ids)} == {"O"}:
                raise UserError(f"{path}: there is no chunk in the {len(tags)} {what} sentences, so they have no F1")
        known = self.known
        vocabulary = build(pairs["train"].source, with_vector=known.rows if known else ())
        if known is not None:
            known.check_covers(vocabulary, self.vectors, self.corpus)
        made = {name: Pairs(vocabulary.encode(one.source), framed(one.target, answers)) for name, one in pairs.items()}
        return Examples(words=vocabulary.words, answers=answers, **made)

    @property
    def known(self) -> Vectors | None:
        return None if self.vectors is None else _known((self.vectors, self.data_dir))

    def more(self) -> bytes:
        return b"" if self.known is None else self.known.matrix(loaded(self).words)[0].tobytes()

    def embed(self, weights: Tensor) -> None:
        import torch

        self.check_width(weights.shape[2])
        known = self.known
        if known is None:
            return
        matrix, has = known.matrix(loaded(self).words)
        where = torch.as_tensor(has, device=weights.device)
        weights *= float(matrix[has].std())
        weights[:, where] = torch.as_tensor(matrix[has], device=weights.device)

    def check_width(self, width: int) -> None:
        """Refuses a model whose word vectors have another width."""
        if self.known is not None and self.known.values.shape[1] != width:
            raise UserError(
                f"the vectors of {self.vectors} have {self.known.values.shape[1]} numbers, those of the model {width}"
            )

    def _paths(self) -> list[Path]:
        if (found := by_name(self.corpus, "chunking", self.data_dir)) is not None:
            return [found.file(f"{part}.txt.xz") for part in ("train", "test")]
        folder = Path(self.corpus)
        if not folder.is_dir():
            near = nearest(self.corpus, corpora.named("chunking"))
            raise UserError(f"{self.corpus!r} is neither a chunking corpus nor a folder; {near}")
        paths = []
        for part in ("train", "test"):
            there = [path for end in ("", ".gz", ".xz") if (path := folder / f"{part}.txt{end}").exists()]
            if not there:
                raise UserError(f"{folder} holds no {part}.txt (plain, .gz or .xz)")
            paths.append(there[0])
        return paths


@held
def _known(source: tuple[str, str | None]) -> Vectors:
    vectors, data_dir = source
    if vectors != "glove":
        return read_vectors(vectors)
    found = obtain(corpora.find("glove"), data_dir)
    return read_vectors(found.file(next(iter(found.files))))


def plain(text: Text) -> Text:
    """Lower-cased, every digit 0; words that become the same have one number."""
    spelling = [re.sub(r"\d", "0", word.lower()) for word in text.words]
    merged = number([spelling])
    return Text(merged.ids[text.ids], text.offsets, merged.words)


def framed(tags: Text, answers: Sequence[str]) -> Text:
    """Tags by their place in `answers`, with those of <bos> and <eos> around each sentence."""
    place = np.array([answers.index(tag) for tag in tags.words], dtype=np.int32)
    # where one sentence ends and the next begins, <eos> comes first
    around = np.concatenate([tags.offsets[1:], tags.offsets[:-1]])
    ids = np.insert(place[tags.ids], around, np.repeat([ENDS.index("<eos>"), ENDS.index("<bos>")], len(tags)))
    return Text(ids, tags.offsets + 2 * np.arange(len(tags.offsets)), list(answers))


def _refuse_unknown(path: Path, chunks: Chunks, answers: Sequence[str]) -> None:
    """A kind of chunk that the training part has not cannot be learned."""
    for n, tag in enumerate(chunks.chunks.words):
        if tag not in answers:
            line = _line_of(path, int((chunks.chunks.ids == n).argmax()))
            raise UserError(f"{path}, line {line}: the tag {tag!r} is not in the training part; "
                            f"{nearest(tag, answers[len(ENDS) :])}")  # fmt: skip


def _refuse_long(path: Path, chunks: Chunks) -> None:
    """A text that is too long is cut elsewhere; here its tags would be left over."""
    lengths, most = chunks.words.lengths, LONGEST - 2  # <bos> and <eos> count
    for sentence in np.flatnonzero(lengths > most)[:1]:
        line = _line_of(path, int(chunks.words.offsets[sentence]))
        raise UserError(f"{path}, line {line}: a sentence of {lengths[sentence]:,} words begins here, and at most "
                        f"{most:,} can be read; does an empty line end each sentence?")  # fmt: skip


def _line_of(path: Path, token: int) -> int:
    filled = (place for place, line in enumerate(read_lines(path), 1) if line.split())
    return next(islice(filled, token, None))
