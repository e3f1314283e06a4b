"""Where examples come from. The specs import no torch; their `build` does."""

from attndyn.tasks.synthetic import CopyTask, Iid, PermutationMixture, Permutations, PermutedCopy, Subsets, Zipf

KINDS = (Permutations, Subsets, PermutationMixture, Iid, Zipf, PermutedCopy)

__all__ = ["KINDS", "CopyTask", "Iid", "PermutationMixture", "Permutations", "PermutedCopy", "Subsets", "Zipf"]
