"""Parallel text in pieces whose evaluation pairs have gold links between their words.

A word is what stands between white space; each is cut into pieces by itself, which for a model whose pieces never go
across words gives the pieces of the whole line. So it is known which word every piece belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attndyn.errors import UserError
from attndyn.tasks import corpora
from attndyn.tasks.cipher import LANGUAGE, Cipher
from attndyn.tasks.corpus import loaded
from attndyn.tasks.gold import Gold, read_gold
from attndyn.tasks.parallel import existing
from attndyn.tasks.pieces import PieceExamples, PieceText, Sides, in_two_parts, ragged, read_sides
from attndyn.tasks.presence import obtain

if TYPE_CHECKING:
    import numpy as np
    import sentencepiece

    from attndyn.tasks.text import Pairs, Text

CIPHER, CIPHERED = "tatoeba-cipher", "tatoeba-sample"
LINKED = {"europarl_de_en": ("de", "en")}
"""Corpora with gold links of their own, and the languages in the order in which a link names them."""
NO_WORD = -1


@dataclass(frozen=True)
class AlignedExamples(PieceExamples):
    """The evaluation pairs are those with gold links."""

    gold: list[Gold]
    words_of: Pairs
    """Like `valid`, with the word of each piece in place of the piece: −1 for <s> and </s>."""
    whole: tuple[Pairs, Pairs]
    """Training and evaluation pairs in words, both with the same numbers."""


@dataclass(frozen=True)
class AlignedText(PieceText):
    """tatoeba-cipher (made of what ships), a corpus with gold links, or one's own text with one's own links."""

    gold: str = ""
    """The beginning of three files: data/test for data/test.de, data/test.en and data/test.gold, whose links name the
    position in the source first. Empty: the links that belong to the corpus."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gold and self.corpus == CIPHER:
            raise UserError(
                f"--gold {self.gold} cannot be used with {CIPHER}, which has exact links; choose a --corpus"
            )

    def load(self) -> AlignedExamples:
        sides, gold = self.ciphered() if self.corpus == CIPHER else self.linked()
        plain = self.examples(sides)
        across = next((piece for piece in plain.words if "▁" in piece.strip("▁")), None)
        if across is not None:
            raise UserError(f"{self.model} has pieces that go across words ({across!r}): no word has pieces of its own")
        valid = sides["valid"]
        if self.model:
            self.check(plain.model, [*valid.source, *valid.target])
        (source, source_words), (target, target_words) = (
            in_words(plain.model, lines, plain.words) for lines in (valid.source, valid.target)
        )
        pairs, short = self.cut(source, target, valid.names)
        words_of, _ = self.cut(source_words, target_words, valid.names)
        kept = {"valid": [valid.target[line] for line in short]}
        return AlignedExamples(
            plain.train, pairs, plain.words, plain.answers, plain.model, plain.references | kept, plain.kept,
            gold=[gold[line] for line in short], words_of=words_of, whole=whole(sides, short),
            note=in_two_parts(sides, "gold pairs") if self.gold else "",
        )  # fmt: skip

    def more(self) -> bytes:
        gold: list[Gold] = loaded(self).gold  # type: ignore[attr-defined]
        return super().more() + repr([(sorted(links.sure), sorted(links.possible)) for links in gold]).encode()

    def check(self, model: sentencepiece.SentencePieceProcessor, lines: list[str]) -> None:
        """The pieces of a word have to be those that the translator is trained on, which is whole lines."""
        from attndyn.tasks.text import shortened

        for line in lines:
            if model.encode(line) != [piece for word in model.encode(line.split()) for piece in word]:
                raise UserError(
                    f"{self.model} cuts a line ({shortened(line)!r}) otherwise than its words one by one, so that no "
                    "word has pieces of its own; was it made with add_dummy_prefix=False?"
                )

    def linked(self) -> tuple[dict[str, Sides], list[Gold]]:
        """Training pairs of the corpus, and pairs with links that people made."""
        name = corpora.SHORT.get(self.corpus, self.corpus)
        if not self.gold and name not in LINKED:
            raise UserError(
                f"{self.corpus} has no gold links: --gold data/test would read them from data/test.{self.source}, "
                f"data/test.{self.target} and data/test.gold; {CIPHER} and {', '.join(LINKED)} have some of their own"
            )
        sides = {"train": self.written()["train"]}
        start = Path(self.gold) if self.gold else obtain(corpora.find("align_gold"), self.data_dir).folder / name
        files = [existing(start, language) for language in (self.source, self.target)]
        sides["valid"] = read_sides(*files)
        turned = not self.gold and LINKED[name] != (self.source, self.target)
        text = in_numbers([sides["valid"]])
        gold = read_gold(existing(start, "gold"), text.swapped() if turned else text)
        if not any(links.sure for links in gold):
            raise UserError(f"{existing(start, 'gold')} has no sure link (i-j)")
        return sides, [links.swapped() for links in gold] if turned else gold

    def ciphered(self) -> tuple[dict[str, Sides], list[Gold]]:
        """Sentences that ship with attndyn, and themselves in cipher, with exact links."""
        from attndyn.tasks.pieces import sentences
        from attndyn.tasks.text import tokenise

        if (self.source == LANGUAGE) == (self.target == LANGUAGE):
            raise UserError(
                f"{CIPHER} is English or German on one side and {LANGUAGE} on the other "
                f"(--source-language en --target-language {LANGUAGE}), not {self.source} and {self.target}"
            )
        language = self.source if self.target == LANGUAGE else self.target
        found = obtain(corpora.find(CIPHERED), self.data_dir)
        files = {split: existing(found.folder / split, language) for split in ("train", "valid")}
        plain = {split: [tokenise(line) for line in sentences(file)] for split, file in files.items()}
        cipher = Cipher(word for lines in plain.values() for line in lines for word in line)
        sides, gold = {}, {}
        for split, lines in plain.items():
            translated = [cipher.translate(line) for line in lines]
            texts = [" ".join(line) for line in lines], [" ".join(line) for line, _ in translated]
            ahead = self.target == LANGUAGE
            sides[split] = Sides(*(texts if ahead else texts[::-1]), names=f"{files[split]} in cipher")
            gold[split] = [links if ahead else links.swapped() for _, links in translated]
        return sides, gold["valid"]


def in_words(model: sentencepiece.SentencePieceProcessor, lines: list[str], pieces: list[str]) -> tuple[Text, Text]:
    """The lines in pieces, <s> and </s> around them, and for each piece its word."""
    found, numbers = [], []
    for line in lines:
        words = model.encode(line.split())
        found.append([model.bos_id(), *(piece for word in words for piece in word), model.eos_id()])
        numbers.append([NO_WORD, *(n for n, word in enumerate(words) for _ in word), NO_WORD])
    return ragged(found, pieces), ragged(numbers, [])


def in_numbers(parts: list[Sides]) -> Pairs:
    """All lines of the parts in words, numbered."""
    from attndyn.tasks.text import pairs

    return pairs(*([line.split() for part in parts for line in part[side]] for side in range(2)))


def whole(sides: dict[str, Sides], short: np.ndarray) -> tuple[Pairs, Pairs]:
    import numpy as np

    both, count = in_numbers([sides["train"], sides["valid"]]), len(sides["train"].source)
    return both.take(np.arange(count)), both.take(count + short)
