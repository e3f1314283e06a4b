"""How much more a word co-occurs with its own copy than with its rivals: the lift, from the task alone.

For an output token y that copies the input token x_r, the lift is Trans(y|x_r) / Trans(y|x_l), averaged over the
rivals x_l of the same input that are other words; Trans is the count table with its rows divided by their sums
(`theory/ibm1.py`). 1: co-occurrence tells nothing. Over a task it is the geometric mean over output tokens.
"""

import math

import numpy as np

from attndyn.errors import UserError
from attndyn.tasks.synthetic import CopyTask, Iid, PermutationMixture, Permutations, Subsets
from attndyn.tasks.text import Pairs
from attndyn.theory.ibm1 import count_table, translation


def predicted_lift(task: CopyTask) -> float:
    """In expectation over the task, in closed form."""
    rivals = task.length - 1
    if rivals < 1:
        raise UserError("a sequence of one word has no rivals to compare it with")
    if isinstance(task, Permutations | PermutationMixture):
        return 1.0
    if isinstance(task, Subsets):
        return (task.of - 1) / rivals
    if isinstance(task, Iid):
        # E[c_o²] = L p (1 + (L − 1) p) and E[c_i c_o] = L (L − 1) p_i p, with c the counts of words in an input
        p = np.array(task.probabilities)
        return math.exp(float((p * np.log1p(1 / (rivals * p))).sum()))
    raise UserError(f"the lift of {type(task).__name__} is not known in closed form; count it")


def counted_lift(pairs: Pairs, order: np.ndarray | None = None) -> float:
    """Of drawn pairs of equal lengths; output t copies input `order[t]` (None: input t). A token whose input holds no
    other word is left out."""
    lines, length = len(pairs), len(pairs.source.ids) // len(pairs)
    trans = translation(count_table(pairs)).toarray()
    sources, targets = pairs.source.ids.reshape(lines, length), pairs.target.ids.reshape(lines, length)
    right = sources[:, np.arange(length) if order is None else order]
    values = trans[sources[:, None, :], targets[:, :, None]]  # [line, output, input]
    rivals = sources[:, None, :] != right[:, :, None]
    counts = rivals.sum(axis=2)
    if not counts.any():
        raise UserError("no input holds two different words")
    mean = (values * rivals).sum(axis=2) / np.maximum(counts, 1)
    logs = np.log(trans[right, targets]) - np.log(np.where(counts > 0, mean, 1))
    return math.exp(float(logs[counts > 0].mean()))
