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


def judge(pairs: Pairs, counts: Presence | None = None, *, own: bool = True, rivals: bool = True) -> Judged:
    """Looks for the partner of each output token.

    `counts` are those of these very pairs, whose own contribution is taken off for each token, or of others (`own` is
    false). Without `rivals` an input needs only to beat the usual rate: of the words of a text, several may speak for
    its label.
    """
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
        alone = root(met, rates, np.repeat(usual, lengths))
        best = entries.peaks(alone)
        others = rates.copy()
        others[best] = -1
        second = entries.peaks(others)
        beside[some] = np.maximum(usual, others[second]) if rivals else usual
        partner[some], rate[some] = np.where(alone[best] > 0, entries.inputs[best], -1), rates[best]
        rival[some] = np.where(lengths > 1, entries.inputs[second], -1)
        evidence[some] = root(met[best], rate[some], beside[some])
        needed[some] = ndtri(1 - FALSE_ALARMS / lengths)
    return Judged(target.row, target.col, target.data, partner, rival, rate, beside, evidence, needed)


def root(n: Floats, rate: Floats, usual: Floats) -> Floats:
    """√(2 n KL(rate ‖ usual)), 0 where the rate is not above the usual one."""
    within = np.clip(usual, 1e-12, 1 - 1e-12)
    divergence = xlogy(rate, rate / within) + xlogy(1 - rate, (1 - rate) / (1 - within))
    return np.where(rate > usual, np.sqrt(2 * np.maximum(n * divergence, 0)), 0.0)


def _present(text: Text) -> sp.csr_array:
    """[line, word], 1 where the word occurs."""
    present = matrix(text)
    present.data[:] = 1
    return present


@dataclass(frozen=True, eq=False)
class Words:
    """What `judge` found, gathered for each output word; arrays over the output vocabulary."""

    tokens: Floats
    """Occurrences in pairs where both sides have words."""
    share: Floats
    """Of the occurrences, those whose partner is singled out."""
    partner: Ints
    """The most frequent partner, of singled-out tokens where there are any; −1: none."""
    rival: Ints
    """The most frequent best rival of that partner."""
    with_partner: Floats
    """In what share of the pairs with the partner the word occurs,"""
    with_rival: Floats
    """of the pairs with the rival,"""
    usually: Floats
    """and of all pairs."""
    evidence: Floats
    """The mean z of the tokens with that partner."""
    too_rare: np.ndarray
    """Even a partner that always comes with the word, and never without, would not be singled out."""


def by_word(judged: Judged, counts: Presence) -> Words:
    size = counts.joint.shape[1]
    tokens = np.bincount(judged.outputs, judged.repeats, size)
    singled = np.bincount(judged.outputs, judged.repeats * judged.singled_out, size)
    with np.errstate(invalid="ignore"):
        share = np.where(tokens > 0, singled / tokens, 0.0)
    # Of a word with any singled-out token only those vote on its partner.
    votes = judged.singled_out | ((singled == 0)[judged.outputs] & (judged.partner >= 0))
    partner = _commonest(judged.outputs[votes], judged.partner[votes], size)
    agreed = votes & (judged.partner == partner[judged.outputs])
    rival = _commonest(judged.outputs[agreed], judged.rival[agreed], size)
    with np.errstate(invalid="ignore"):
        evidence = np.bincount(judged.outputs[agreed], judged.evidence[agreed], size) / np.bincount(
            judged.outputs[agreed], minlength=size
        )
        needed = np.bincount(judged.outputs, judged.needed, size) / np.bincount(judged.outputs, minlength=size)
    usually = counts.outputs / counts.pairs
    n = np.maximum(counts.outputs - 1, 0)
    usual = n / max(1, counts.pairs - 1)
    best_case = root(n, (n + PRIOR * usual) / (n + PRIOR), usual)
    return Words(
        tokens=tokens,
        share=share,
        partner=partner,
        rival=rival,
        with_partner=_beside(counts, partner),
        with_rival=_beside(counts, rival),
        usually=usually,
        evidence=np.nan_to_num(evidence),
        too_rare=(best_case < np.nan_to_num(needed, nan=np.inf)) & (usual < 0.5),
    )


def _commonest(groups: Ints, values: Ints, size: int) -> Ints:
    """The most frequent value of each group, the smallest of equals; −1 for a group without any."""
    result = np.full(size, -1)
    if len(groups):
        span = int(values.max()) + 2
        keys, times = np.unique(groups.astype(np.int64) * span + values + 1, return_counts=True)
        order = np.lexsort((-keys, times))  # the last of a group wins
        result[keys[order] // span] = keys[order] % span - 1
    return result


def _beside(counts: Presence, partner: Ints) -> Floats:
    """The share of the pairs with the partner in which the output word occurs; 0 without a partner."""
    found = partner >= 0
    rate = np.zeros(len(partner))
    together = np.asarray(counts.joint[partner[found], np.flatnonzero(found)]).ravel()
    rate[found] = together / counts.inputs[partner[found]]
    return rate


@dataclass(frozen=True)
class Checks:
    """What speaks for the answer itself."""

    false_alarms: float
    """The share of tokens that are singled out when each output is put beside the input of another pair."""
    stays: float | None
    """Of the tokens that one half of the pairs singles out, those whose partner is also first in the other half."""
    chance: float
    """What `stays` would be if the other half drew its partner from the line's words."""


def check(pairs: Pairs, *, rivals: bool = True, seed: int = 0) -> Checks:
    order = np.random.default_rng(seed).permutation(len(pairs))
    shuffled = judge(Pairs(pairs.source, pairs.target.take(order)), rivals=rivals)
    one, other = pairs.take(order[::2]), pairs.take(order[1::2])
    here, there = judge(one, rivals=rivals), judge(one, presence(other), own=False, rivals=rivals)
    singled = here.singled_out
    widths = np.diff(_present(one.source).indptr)[here.rows]
    return Checks(
        false_alarms=float(np.average(shuffled.singled_out, weights=shuffled.repeats)),
        stays=float((here.partner == there.partner)[singled].mean()) if singled.any() else None,
        chance=float((1 / widths[singled if singled.any() else slice(None)]).mean()),
    )


def one_word_answers(pairs: Pairs, counts: Presence) -> Ints:
    """What looking at one word gives: each text's most likely label beside its word with the largest evidence, for
    whichever label, all by the counts of the other texts. Each output must be one label."""
    words = _present(pairs.source)
    lines = np.repeat(np.arange(len(pairs)), np.diff(words.indptr))
    columns = counts.joint.tocsc()

    def rates(at: Ints, label: int) -> tuple[Floats, Floats, Floats]:
        """n, the rate and the usual rate of a label beside the words `at` these places."""
        own = pairs.target.ids[lines[at]] == label
        usual = (counts.outputs[label] - own) / (counts.pairs - 1)
        met = counts.inputs[words.indices[at]] - 1
        together = columns[:, [label]].toarray().ravel()
        return met, (together[words.indices[at]] - own + PRIOR * usual) / (met + PRIOR), usual

    every, known = np.arange(len(lines)), range(len(counts.outputs))
    strongest = np.zeros(len(lines))
    for label in known:
        np.maximum(strongest, root(*rates(every, label)), out=strongest)
    peak = np.repeat(np.maximum.reduceat(strongest, words.indptr[:-1]), np.diff(words.indptr))
    at = np.minimum.reduceat(np.where(strongest == peak, every, len(every)), words.indptr[:-1])
    return np.argmax([rates(at, label)[1] for label in known], axis=0)


def forward(pairs: Pairs, judged: Judged) -> float | None:
    """Of two neighbouring singled-out tokens of an output line, how often the partner of the later one stands later in
    the input: 1 if outputs follow the order of the inputs, about half if the orders are unrelated. None: no two."""
    singled = judged.singled_out
    rows = judged.rows[singled]
    t = _first_place(pairs.target, rows, judged.outputs[singled])
    l = _first_place(pairs.source, rows, judged.partner[singled])
    order = np.lexsort((t, rows))
    same_line = np.diff(rows[order]) == 0
    steps = np.diff(l[order])[same_line]
    steps = steps[steps != 0]
    return float((steps > 0).mean()) if len(steps) else None


def _first_place(text: Text, rows: Ints, words: Ints) -> Ints:
    """The first position of a word in its line."""
    keys, first = np.unique(text.rows.astype(np.int64) * len(text.words) + text.ids, return_index=True)
    return first[np.searchsorted(keys, rows.astype(np.int64) * len(text.words) + words)] - text.offsets[rows]
