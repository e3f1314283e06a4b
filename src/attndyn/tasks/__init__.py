"""Where examples come from. The specs import no torch; their `build` does."""

from attndyn.tasks.synthetic import CopyTask, Iid, PermutationMixture, Permutations, PermutedCopy, Subsets

KINDS = (Permutations, Subsets, PermutationMixture, Iid, PermutedCopy)

__all__ = ["KINDS", "CopyTask", "Iid", "PermutationMixture", "Permutations", "PermutedCopy", "Subsets"]
