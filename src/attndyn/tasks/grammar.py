"""A made language with chunks, so that a tagger can be trained without any data.

A sentence is a noun phrase, a verb phrase, and up to three more phrases. Some words are nouns here and verbs there
("watch", "plan"), and a noun begins a phrase or continues one: the right tag always depends on the words before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attndyn.errors import UserError
from attndyn.tasks.corpus import Examples
from attndyn.tasks.tagging import ENDS, Tagging

if TYPE_CHECKING:
    import numpy as np

WORDS = {
    "determiner": "the a this every our some",
    "adjective": "old red small new quiet green long open",
    "noun": "dog house river teacher story train garden song city bird letter bridge",
    "both": "watch plan order report answer visit paint cook guard test",
    "verb": "sees finds likes brings keeps sells hears builds",
    "modal": "will can must may",
    "adverb": "never often soon again",
    "preposition": "in on with from near after",
}
"""Words of the class "both" are nouns, or verbs after a modal verb."""
LEXICON = {kind: words.split() for kind, words in WORDS.items()}
ANSWERS = [*ENDS, "O", "B-NP", "I-NP", "B-PP", "I-PP", "B-VP", "I-VP"]
Token = tuple[str, str]


@dataclass(frozen=True)
class MadeChunks(Tagging):
    """Sentences of a made language whose words get chunk tags; the right tag depends on the words before.

    Drawn once, by a seed of its own; a tenth is for validation, a fifth for the test.
    """

    corpus: str = "made"
    sentences: int = 1500

    def __post_init__(self) -> None:
        if self.sentences < 10:
            raise UserError(f"sentences must be at least 10, not {self.sentences}: a tenth of them is for validation")

    def load(self) -> Examples:
        import numpy as np

        from attndyn.tasks.tagged import framed
        from attndyn.tasks.text import Pairs, pairs
        from attndyn.tasks.vocabulary import build

        random = np.random.Generator(np.random.PCG64(0))
        drawn = [_sentence(random) for _ in range(self.sentences)]
        whole = pairs(*([[token[side] for token in sentence] for sentence in drawn] for side in range(2)))
        vocabulary = build(whole.source)
        made = Pairs(vocabulary.encode(whole.source), framed(whole.target, ANSWERS))
        valid, test, train = np.split(np.arange(self.sentences), [self.sentences // 10, 3 * self.sentences // 10])
        return Examples(made.take(train), made.take(valid), vocabulary.words, ANSWERS, test=made.take(test))


def _sentence(random: np.random.Generator) -> list[Token]:
    tokens = [*_nouns(random), *_verbs(random)]
    for _ in range(random.integers(4)):
        if random.random() < 0.5:
            tokens.append((_word(random, "preposition"), "B-PP"))
            tokens += _nouns(random)
        elif tokens[-1][1].endswith("NP"):
            tokens.append(("and", "O"))
            tokens += _nouns(random) if random.random() < 0.5 else _verbs(random)
        else:
            tokens += _nouns(random)
    return [*tokens, (".", "O")]


def _nouns(random: np.random.Generator) -> list[Token]:
    words = [_word(random, "determiner")] if random.random() < 0.6 else []
    words += [_word(random, "adjective") for _ in range(random.integers(3))]
    words += [_word(random, "both" if random.random() < 0.5 else "noun") for _ in range(1 + random.integers(2))]
    return _chunk(words, "NP")


def _verbs(random: np.random.Generator) -> list[Token]:
    before = [_word(random, "adverb")] if random.random() < 0.3 else []
    if random.random() < 0.5:
        return _chunk([_word(random, "modal"), *before, _word(random, "both")], "VP")
    return _chunk([*before, _word(random, "verb")], "VP")


def _chunk(words: list[str], kind: str) -> list[Token]:
    return [(word, f"{'I' if n else 'B'}-{kind}") for n, word in enumerate(words)]


def _word(random: np.random.Generator, kind: str) -> str:
    return LEXICON[kind][random.integers(len(LEXICON[kind]))]
