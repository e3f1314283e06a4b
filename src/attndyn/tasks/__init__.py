"""Where examples come from. The specs import no torch; their `build` does."""

from attndyn.tasks.grammar import MadeChunks
from attndyn.tasks.keyword import Keyword
from attndyn.tasks.synthetic import CopyTask, Iid, PermutationMixture, Permutations, PermutedCopy, Subsets, Zipf

KINDS = (Permutations, Subsets, PermutationMixture, Iid, Zipf, PermutedCopy, Keyword, MadeChunks)

__all__ = [
    "KINDS",
    "CopyTask",
    "Iid",
    "Keyword",
    "MadeChunks",
    "PermutationMixture",
    "Permutations",
    "PermutedCopy",
    "Subsets",
    "Zipf",
]
