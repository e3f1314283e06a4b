"""Which output tokens have an input word that co-occurrence singles out, beyond chance and beyond its rivals.

For each output token y of each pair, all counts are taken from the *other* pairs (the pair itself would vouch for
every word in it): n, in how many of them an input word x occurs; a, in how many of those y occurs too; b, the share of
all of them with y. The rate of y beside x is (a + κb) / (n + κ), so that a rare word claims little. Its evidence is
z = √(2 n KL(rate ‖ b)), the signed root of the likelihood ratio: about standard normal where x says nothing about y.
The partner is the input with the largest evidence. It is singled out if z, measured against the rate of its best rival
in the same line and not only against b, still exceeds what chance gives one token in a thousand, all inputs tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri, xlogy

from attndyn.tasks.text import Pairs, Text
from attndyn.theory.ibm1 import Floats, Ints, look_up, matrix

PRIOR = 4.0
"""κ: pairs of the usual rate that are added to those of each word."""
FALSE_ALARMS = 0.001
"""How often a token without any partner may be given one, by the normal approximation."""


@dataclass(frozen=True, eq=False)
class Presence:
    """In how many pairs words occur, however often they do so in one."""

    joint: sp.csr_array
    inputs: Floats
    outputs: Floats
    pairs: int


@dataclass(frozen=True, eq=False)
class Judged:
    """One row for each different output word of each pair; input words by their numbers, −1 where there is none."""

    rows: Ints
    outputs: Ints
    repeats: Floats
    """How often the word stands in that output."""
    partner: Ints
    rival: Ints
    """The best of the other inputs, by its rate."""
    rate: Floats
    """Of the output word beside its partner, in the other pairs."""
    beside: Floats
    """The larger of the rival's rate and the usual one."""
    evidence: Floats
    needed: Floats
    """The evidence that chance alone exceeds once in a thousand tokens."""

    @property
    def singled_out(self) -> np.ndarray:
        return self.evidence >= self.needed


def presence(pairs: Pairs) -> Presence:
    source, target = (_present(text) for text in (pairs.source, pairs.target))
    joint = (source.T.tocsr() @ target).tocsr()
    joint.sort_indices()
    return Presence(joint, source.sum(axis=0), target.sum(axis=0), len(pairs))


def judge(pairs: Pairs, counts: Presence | None = None, *, rivals: bool = True) -> Judged:
    """Looks for the partner of each output token, in counts of other pairs if they are given, else in those of all
    pairs but its own. Without `rivals` an input needs only to beat the usual rate: of the words of a text, several
    may speak for its label."""
    own = 1 if counts is None else 0
    counts = presence(pairs) if counts is None else counts
    source, target = _present(pairs.source), matrix(pairs.target).tocoo()
    inputs = Text(source.indices, source.indptr.astype(np.int64), pairs.source.words)
    joint = np.append(counts.joint.data, own)  # what never met in other pairs
    seen = max(1, counts.pairs - own)

    tokens = len(target.row)
    partner, rival = np.full(tokens, -1), np.full(tokens, -1)
    rate, beside, evidence, needed = (np.zeros(tokens) for _ in range(4))
    for entries in look_up(inputs, target.row, target.col, counts.joint):
        some, lengths = entries.tokens, entries.lengths
        usual = (counts.outputs[target.col[some]] - own) / seen
        met, together = counts.inputs[entries.inputs] - own, joint[entries.index] - own
        rates = (together + PRIOR * np.repeat(usual, lengths)) / (met + PRIOR)
        best = entries.peaks(root(met, rates, np.repeat(usual, lengths)))
        others = rates.copy()
        others[best] = -1
        second = entries.peaks(others)
        alone = lengths == 1
        beside[some] = np.maximum(usual, others[second]) if rivals else usual
        partner[some], rate[some] = entries.inputs[best], rates[best]
        rival[some] = np.where(alone, -1, entries.inputs[second])
        evidence[some] = root(met[best], rate[some], beside[some])
        needed[some] = ndtri(1 - FALSE_ALARMS / lengths)
    return Judged(target.row, target.col, target.data, partner, rival, rate, beside, evidence, needed)


def root(n: Floats, rate: Floats, usual: Floats) -> Floats:
    """√(2 n KL(rate ‖ usual)), 0 where the rate is not above the usual one."""
    usual = np.clip(usual, 1e-12, 1 - 1e-12)
    divergence = xlogy(rate, rate / usual) + xlogy(1 - rate, (1 - rate) / (1 - usual))
    return np.where(rate > usual, np.sqrt(2 * np.maximum(n * divergence, 0)), 0.0)


def _present(text: Text) -> sp.csr_array:
    """[line, word], 1 where the word occurs."""
    present = matrix(text)
    present.data[:] = 1
    return present
