"""Parallel text in pieces of words: one SentencePiece unigram model for both languages, trained on the training part.

A model is trained once for a corpus and kept in the user's cache, under the hash of the text and the settings. The two
directions of a corpus share it. Sources are <s> … </s>, and both ends can be attended to, as in the authors' program;
targets end with </s>, which is an answer like any other.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attndyn.errors import UserError
from attndyn.store import atomic
from attndyn.tasks.base import Sampler
from attndyn.tasks.corpus import CorpusTask, Examples, loaded, without_first
from attndyn.tasks.parallel import held_out, named, parallel_files
from attndyn.tasks.presence import cache_folder, is_known
from attndyn.tasks.repeats import repeated

if TYPE_CHECKING:
    import numpy as np
    import sentencepiece

    from attndyn.tasks.text import Pairs, Text

SPECIALS: dict[str, Any] = {
    "pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "pad_piece": "<pad>", "hard_vocab_limit": True,
}  # fmt: skip
FIXED: dict[str, Any] = {"model_type": "unigram", "character_coverage": 1.0, "num_threads": 1, "minloglevel": 2}


@dataclass(frozen=True)
class PieceExamples(Examples):
    """Pairs in pieces, with what is needed to read pieces as text again."""

    model: sentencepiece.SentencePieceProcessor
    references: dict[str, list[str]]
    """Of each part, the target sides as they were written: what translations are compared with."""
    kept: dict[str, tuple[int, int]]
    """Of each part, how many pairs are short enough, and how many there are."""
    note: str = field(default="", kw_only=True)
    """What was done to one's own text, to be said beside the verdicts."""

    def spell(self, pieces: Sequence[int]) -> str:
        """The text of a translation, up to its </s>."""
        ids = list(pieces)
        end = ids.index(self.model.eos_id()) if self.model.eos_id() in ids else len(ids)
        return str(self.model.decode(ids[:end]))


@dataclass(frozen=True)
class PieceText(CorpusTask):
    """Pairs of sentences in pieces; the answers are the pieces of the target sentence."""

    source: str = "de"
    target: str = "en"
    pieces: int = 8000
    """Pieces of both languages together, <pad>, <unk>, <s> and </s> among them."""
    longest: int = 200
    """A pair with more pieces on one side, <s> and </s> counted, is left out."""
    model: str = ""
    """A SentencePiece model of one's own; empty: one is trained on the training part."""

    def __post_init__(self) -> None:
        if self.pieces < 5:
            raise UserError(f"a vocabulary must have at least 5 pieces, four of which are no text; not {self.pieces}")
        if self.longest < 3:
            raise UserError(f"longest must be at least 3, which is one piece between <s> and </s>; not {self.longest}")

    @property
    def start(self) -> int:
        """The number of <s>."""
        return int(loaded(self).model.bos_id())  # type: ignore[attr-defined]

    @property
    def end(self) -> int:
        """The number of </s>."""
        return int(loaded(self).model.eos_id())  # type: ignore[attr-defined]

    def load(self) -> PieceExamples:
        sides, drawn = self.written(), ""
        if "valid" not in sides:
            sides = divided(sides["train"])
            counts = [f"{len(part.source):,}" for part in sides.values()]
            drawn = f"no validation part: {counts[1]} of the pairs drawn for it, {counts[0]} left to train on"
        twice = "" if is_known(self.corpus) else in_two_parts(sides, "validation pairs")
        return replace(self.examples(sides), note="; ".join(filter(None, (drawn, twice))))

    def more(self) -> bytes:
        """Translations are compared with the text as it was written."""
        references: dict[str, list[str]] = loaded(self).references  # type: ignore[attr-defined]
        return "\n".join(line for lines in references.values() for line in lines).encode()

    def written(self) -> dict[str, Sides]:
        """The text of both parts as it stands; one's own may have no validation part."""
        files = parallel_files(self.corpus, self.source, self.target, data_dir=self.data_dir)
        return {split: read_sides(*files[split]) for split in ("train", "valid") if split in files}

    def examples(self, sides: dict[str, Sides]) -> PieceExamples:
        if self.model:
            model = own_model(Path(self.model), self.pieces)
        else:
            # sorted by language: the two directions of a corpus share one model
            order = sorted(range(2), key=lambda side: (self.source, self.target)[side])
            model = trained_model([line for side in order for line in sides["train"][side]], self.pieces, self.corpus)
        words = [model.id_to_piece(number) for number in range(model.vocab_size())]
        parts, references, kept = {}, {}, {}
        for split, part in sides.items():
            pairs, short = self.cut(encode(model, part.source, words), encode(model, part.target, words), part.names)
            parts[split], kept[split] = pairs, (len(pairs), len(part.source))
            references[split] = [part.target[line] for line in short]
        return PieceExamples(parts["train"], parts["valid"], words, words, model, references, kept)

    def epoch(self, batch: int) -> int:
        kept, written = loaded(self).kept["train"]  # type: ignore[attr-defined]
        if kept < batch and kept < written:
            raise UserError(
                f"{kept} of the {written} training pairs of {self.corpus} have at most {self.longest} pieces a side, "
                f"fewer than a batch of {batch}; --batch can be at most {kept}"
            )
        return super().epoch(batch)

    def build(self, seeds: Sequence[int], device: Any = "cpu") -> Sampler:
        from attndyn.tasks.ragged import RaggedSampler
        from attndyn.tasks.shifted import Shifted

        sampler = super().build(seeds, device)
        assert isinstance(sampler, RaggedSampler)
        return Shifted(sampler, self.start)

    def cut(self, source: Text, target: Text, names: str) -> tuple[Pairs, np.ndarray]:
        """The pairs that are short enough, targets without <s>, and their numbers."""
        import numpy as np

        from attndyn.tasks.text import Pairs

        short = np.flatnonzero(np.maximum(source.lengths, target.lengths) <= self.longest)
        if not len(short):
            raise UserError(f"no pair of {names} has at most {self.longest} pieces on both sides (--longest)")
        return Pairs(source.take(short), without_first(target.take(short))), short


class Sides(NamedTuple):
    """The lines of both sides of a part, and where they come from."""

    source: list[str]
    target: list[str]
    names: str


def read_sides(source: Path, target: Path) -> Sides:
    lines = sentences(source), sentences(target)
    check((source, target), *lines)
    return Sides(*lines, names=named((source, target)))


def divided(whole: Sides) -> dict[str, Sides]:
    """Training and validation part of text that has none, both in their order."""
    drawn = held_out(whole.source, whole.names)

    def some(part: bool) -> Sides:
        chosen = [n for n, is_drawn in enumerate(drawn.tolist()) if is_drawn == part]
        return Sides([whole.source[n] for n in chosen], [whole.target[n] for n in chosen], whole.names)

    return {"train": some(False), "valid": some(True)}


def in_two_parts(sides: dict[str, Sides], judged: str) -> str:
    train, valid = (list(zip(part.source, part.target, strict=True)) for part in (sides["train"], sides["valid"]))
    return repeated(train, {judged: valid})


def sentences(path: Path) -> list[str]:
    from attndyn.tasks.text import read_lines

    return [line.strip() for line in read_lines(path)]


def check(files: tuple[Path, Path], source: list[str], target: list[str]) -> None:
    """Every line of one file has its translation in the other."""
    if len(source) != len(target):
        raise UserError(
            f"{files[0]} has {len(source):,} lines but {files[1]} has {len(target):,}: "
            "line n of one must belong to line n of the other"
        )
    if not source:
        raise UserError(f"{files[0]} and {files[1]} hold no lines")
    for path, lines in zip(files, (source, target), strict=True):
        empty = [number for number, line in enumerate(lines, 1) if not line]
        if empty:
            more = f" (and {len(empty) - 1:,} more)" if len(empty) > 1 else ""
            raise UserError(
                f"{path}, line {empty[0]:,}{more}: an empty line has no translation; remove it on both sides"
            )


def trained_model(lines: Iterable[str], pieces: int, corpus: str) -> sentencepiece.SentencePieceProcessor:
    """The model of these lines, from the cache if it is there."""
    import sentencepiece

    settings = {**SPECIALS, **FIXED, "vocab_size": pieces}
    lines = list(lines)
    key = hashlib.sha256(repr((sentencepiece.__version__, sorted(settings.items()))).encode())
    for line in lines:
        key.update(line.encode() + b"\n")
    path = cache_folder() / "pieces" / f"{key.hexdigest()}.model"
    if not path.exists():
        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=written, **settings)
        except RuntimeError as error:
            raise UserError(
                f"{corpus}: no vocabulary of {pieces:,} pieces can be made of its training part: {reason(error)}"
            ) from None
        atomic.write_bytes(path, written.getvalue())
    return own_model(path, pieces)


def reason(error: RuntimeError) -> str:
    """SentencePiece names a source line and a condition of its own first, and options that are not ours last."""
    said = str(error).strip().splitlines()[-1].rpartition("] ")[2].strip().rstrip(".")
    if fewest := re.search(r"required_chars\. \d+ vs (\d+)", said):
        return f"with its characters it needs at least --vocabulary {fewest[1]}"
    if most := re.search(r"value <= (\d+)", said):
        return f"its words give at most --vocabulary {most[1]}"
    return said


def own_model(path: Path, pieces: int) -> sentencepiece.SentencePieceProcessor:
    """A stored model, if it is one of this many pieces."""
    import sentencepiece

    try:
        model = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except RuntimeError:
        raise UserError(f"{path} is no SentencePiece model, or damaged") from None
    if model.vocab_size() != pieces:
        raise UserError(
            f"{path} has {model.vocab_size():,} pieces, not the {pieces:,} that were asked for: "
            f"--vocabulary {model.vocab_size()} takes it"
        )
    if min(model.bos_id(), model.eos_id()) < 0:
        raise UserError(f"{path} has no <s> or no </s>; a translator needs both")
    return model


def encode(model: sentencepiece.SentencePieceProcessor, lines: list[str], words: list[str]) -> Text:
    return ragged(model.encode(lines, add_bos=True, add_eos=True), words)


def ragged(lines: list[list[int]], words: list[str]) -> Text:
    import numpy as np

    from attndyn.tasks.text import Text

    offsets = np.concatenate([[0], np.cumsum([len(line) for line in lines])])
    return Text(np.concatenate([np.array(line, dtype=np.int32) for line in lines]), offsets, words)
