"""Word alignments against gold links: precision, recall and the alignment error rate of Och and Ney (2003).

A translator works on pieces of words, and gold links are between words. Two words are linked if any piece of one is
linked to any piece of the other; <s> and </s> belong to no word, so that a piece whose partner is one of them has none.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from attndyn.tasks.gold import Gold, Links
from attndyn.tasks.text import Pairs


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


def word_links(pairs: Pairs, chosen: Int[np.ndarray, "tokens"], words: Pairs) -> list[Links]:
    """The links between words, from the input position chosen for each output piece. `words` holds the word of every
    piece of the pairs, −1 where it belongs to none."""
    found = []
    for n, some in enumerate(links(pairs, chosen)):
        source, target = (side.ids[side.offsets[n] : side.offsets[n + 1]] for side in (words.source, words.target))
        both = ((int(source[l]), int(target[t])) for l, t in some)
        found.append(frozenset((i, j) for i, j in both if i >= 0 and j >= 0))
    return found


def tally(found: Sequence[Links], gold: Sequence[Gold]) -> Int[np.ndarray, "pair 4"]:
    """Of each sentence pair |A|, |S|, |A ∩ S| and |A ∩ P|."""
    if len(found) != len(gold):
        raise ValueError(f"{len(found)} alignments but {len(gold)} gold ones")
    counts = [
        (len(some), len(right.sure), len(some & right.sure), len(some & right.possible))
        for some, right in zip(found, gold, strict=True)
    ]
    return np.array(counts, dtype=np.int64).reshape(-1, 4)


def score(found: Sequence[Links], gold: Sequence[Gold]) -> Score:
    """Over all sentence pairs together. Raises where there is no link to divide by."""
    links, sure, hit_sure, hit = tally(found, gold).sum(axis=0).tolist()
    if not links or not sure:
        raise ValueError("precision and recall are undefined without links that were found, and without sure ones")
    return Score(precision=hit / links, recall=hit_sure / sure, aer=1 - (hit_sure + hit) / (links + sure))
