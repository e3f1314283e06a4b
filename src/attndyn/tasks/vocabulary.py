"""One numbering of the words for all splits of a corpus, made from its training part.

Ids 0 to 3 are <pad>, <unk>, <bos> and <eos>; then come the words that are kept, the most frequent first. A text is
<bos>, its words, <eos>: both ends can be attended to, as in the authors' code.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attndyn.tasks.text import Text

SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")
PAD, UNK, BOS, EOS = range(4)
LONGEST = 4096
"""Tokens of the longest text, <bos> and <eos> counted; the rest of a longer one is cut off."""
SEEN = 3
"""How often a word must occur in the training part (Snell et al. A.8: fewer than 3 times is <unk>)."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    words: list[str]

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def ids(self) -> dict[str, int]:
        """A text that spells out a special token does not get it: there it is an unknown word."""
        return {word: n for n, word in enumerate(self.words) if n >= len(SPECIALS)}

    def encode(self, text: Text, longest: int = LONGEST) -> Text:
        """The text with the ids of this vocabulary, framed by <bos> and <eos>, and cut."""
        table = np.array([self.ids.get(word, UNK) for word in text.words], dtype=np.int32)
        lengths = np.minimum(text.lengths, longest - 2)
        offsets = np.concatenate([[0], (lengths + 2).cumsum()])
        ids = np.full(offsets[-1], BOS, dtype=np.int32)
        ids[offsets[1:] - 1] = EOS
        inside = np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)
        ids[np.repeat(offsets[:-1] + 1, lengths) + inside] = table[
            text.ids[np.repeat(text.offsets[:-1], lengths) + inside]
        ]
        return Text(ids, offsets, self.words)


def build(train: Text, *, with_vector: Container[str] = (), integers_unknown: bool = False) -> Vocabulary:
    """The words seen at least three times, and those that have a vector, where vectors are given."""
    kept = [
        (count >= SEEN or word in with_vector)
        and word not in SPECIALS
        and not (integers_unknown and is_long_integer(word))
        for word, count in zip(train.words, train.counts.tolist(), strict=True)
    ]
    order = np.argsort(-train.counts, kind="stable")
    return Vocabulary([*SPECIALS, *(train.words[n] for n in order if kept[n])])


def is_long_integer(word: str) -> bool:
    return len(word) > 1 and word.isdecimal()
