"""A language made for its gold links: every word of a sentence gets a cipher word, and some neighbours swap places.

A cipher word is a few drawn syllables, the same wherever the word stands and different for every word. A word has one
of two classes, drawn too; where a word of the first class stands before one of the second, they change places, from
left to right, each at most once. So the order depends on the words as in a grammar, and is never more than one place
off. Punctuation has cipher words as well, and stays where it is. All of it follows from the words alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from attndyn.tasks.gold import Gold

LANGUAGE = "cipher"
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
SEED = "attndyn cipher 1"


class Cipher:
    """Knows the words of some sentences."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words: dict[str, str] = {}
        taken: set[str] = set()
        for word in sorted(set(words)):
            again = 0
            while (made := made_up(word, again)) in taken:
                again += 1
            taken.add(made)
            self.words[word] = made

    def translate(self, words: list[str]) -> tuple[list[str], Gold]:
        """The sentence in cipher, and the links of its words, all sure."""
        order = reordered(words)
        links = frozenset((l, t) for t, l in enumerate(order))
        return [self.words[words[l]] for l in order], Gold(links, links)


def reordered(words: list[str]) -> list[int]:
    """The place in the sentence of each word of its translation."""
    order, place = list(range(len(words))), 0
    while place + 1 < len(words):
        if goes_back(words[place]) and comes_forward(words[place + 1]):
            order[place], order[place + 1] = place + 1, place
            place += 1
        place += 1
    return order


def goes_back(word: str) -> bool:
    return word.isalnum() and drawn("class", word)[0] % 2 == 0


def comes_forward(word: str) -> bool:
    return word.isalnum() and drawn("class", word)[0] % 2 == 1


def made_up(word: str, again: int) -> str:
    """One syllable and another for every three letters, four at most; one more for each word that has it already."""
    bits = drawn("word", word, str(again))
    count = min(4, 1 + len(word) // 3) + again
    syllables = (
        CONSONANTS[bits[2 * n] % len(CONSONANTS)] + VOWELS[bits[2 * n + 1] % len(VOWELS)] for n in range(count)
    )
    return "".join(syllables)


def drawn(*what: str) -> bytes:
    return hashlib.sha256("\0".join((SEED, *what)).encode()).digest()
