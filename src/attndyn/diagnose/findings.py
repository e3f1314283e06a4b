"""The numbers of a diagnosis, and what may be said about them.

Every statement about training names a study of this repository that measured it (docs/copying.md,
docs/permuted-copying.md); what none has measured is called a prediction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attndyn.tasks.text import Pairs
from attndyn.theory.ibm1 import Floats, Ints, count_table
from attndyn.theory.partners import (
    PRIOR,
    Checks,
    Judged,
    Presence,
    Words,
    by_word,
    check,
    forward,
    judge,
    one_word_answers,
    presence,
    root,
)

LISTED = 20
CLEAR, AT_TIMES = 0.5, 0.05
"""A word has a clear partner if that many of its occurrences are singled out; at times; none below."""
SHOWN, LONGEST = 6, 30

GROUPS = ("a clear partner", "a partner at times", "no partner", "too rare to tell")

FAILS = (
    "Expect runs that fail, or that succeed without looking. On permutations of 40 words, where co-occurrence says "
    "nothing, 44 of 100 seeds failed within 200 steps; trained longer 42 of them copied, and none of them attended to "
    "the right word (docs/copying.md). That the other 56 learned says that co-occurrence is not the only signal there "
    "is."
)
TOO_FEW = (
    "Too many of the words are too rare here to tell an absent signal from too few pairs: give it more pairs before "
    "you conclude anything."
)
REST = (
    "For the other tokens co-occurrence does not say where to look. Attention may still find out from positions and "
    "contexts, later or not at all: on permutations of 40 words, where co-occurrence says nothing, 56 of 100 seeds "
    "learned, at steps 42 to 186 instead of 34 to 38 (docs/copying.md)."
)
HELPS = (
    "Inputs that do not all hold the same words, and very little is enough: with one word that is missing from each "
    "input (40 of 41 instead of permutations of 40) 40 of 40 seeds learned instead of 21; the more words are missing, "
    "the earlier; larger batches, where the signal is weak; words of even rather than of Zipf's frequencies "
    "(docs/learnability.md). One embedding for input and output words: with two, all runs needed longer, at demo "
    "scale. Longer training made failing runs copy, but not look (docs/copying.md)."
)
ORDER = (
    "Co-occurrence does not see order, but it matters: where outputs followed the input's order 100 of 100 seeds "
    "learned, in an unrelated fixed order 0 of 100 within 300 steps (docs/permuted-copying.md)."
)
MANY_RARE = 0.25
"""From this share of tokens on the finding says how many are of words too rare to tell."""
UNRELATED = 0.65
"""Below this share of steps forward the finding itself warns of the order."""


def parallel(pairs: Pairs) -> dict[str, Any]:
    """Output words and their partners."""
    counts = presence(pairs)
    judged = judge(pairs, counts, own=True)
    words = by_word(judged, counts)
    share = float(np.average(judged.singled_out, weights=judged.repeats))
    checks, ahead = check(pairs), forward(pairs, judged)
    group = np.select([words.share >= CLEAR, words.share >= AT_TIMES, ~words.too_rare], [0, 1, 2], 3)
    groups = [
        {
            "group": name,
            "words": int(((group == number) & (words.tokens > 0)).sum()),
            "tokens": float(words.tokens[group == number].sum() / words.tokens.sum()),
        }
        for number, name in enumerate(GROUPS)
    ]
    table = _word_table(pairs, words, group)
    first = sorted((row for row in table if row["group"] == GROUPS[0]), key=lambda row: -row["first"])[:LISTED]
    found = {
        "kind": "parallel",
        "pairs": len(pairs),
        "input_words": int((counts.inputs > 0).sum()),
        "output_words": int((counts.outputs > 0).sum()),
        "output_tokens": int(words.tokens.sum()),
        "share": share,
        "groups": groups,
        "forward": ahead,
        "checks": _checks(checks),
        "learned_first": first,
        "words": table,
        "examples": _examples(pairs, judged),
    }
    return {"finding": _finding(found), "answers": _answers(found, checks), **found}


def _word_table(pairs: Pairs, words: Words, group: np.ndarray) -> list[dict[str, Any]]:
    """All output words, the most frequent first."""
    score = _excess(pairs, words.partner)
    names = [*pairs.source.words, None]
    return [
        {
            "word": pairs.target.words[o],
            "occurrences": int(words.tokens[o]),
            "group": GROUPS[group[o]],
            "partner": names[words.partner[o]],
            "with_partner": float(words.with_partner[o]) if words.partner[o] >= 0 else None,
            "rival": names[words.rival[o]],
            "with_rival": float(words.with_rival[o]) if words.rival[o] >= 0 else None,
            "usually": float(words.usually[o]),
            "evidence": float(words.evidence[o]),
            "share": float(words.share[o]),
            "first": float(score[o]),
        }
        for o in np.argsort(-words.tokens, kind="stable")
        if words.tokens[o] > 0
    ]


def _excess(pairs: Pairs, partner: np.ndarray) -> np.ndarray:
    """C_io − C_i C_o / C: what the count table holds for a word and its partner beyond what their frequencies give."""
    table = count_table(pairs)
    inputs, outputs = table.sum(axis=1), table.sum(axis=0)
    found = np.flatnonzero(partner >= 0)
    score = np.zeros(len(partner))
    score[found] = (
        np.asarray(table[partner[found], found]).ravel() - inputs[partner[found]] * outputs[found] / table.sum()
    )
    return score


def _examples(pairs: Pairs, judged: Judged) -> list[dict[str, Any]]:
    """A few lines across the corpus, each output word with its partner, where one is singled out."""
    shown = _spread(pairs)
    chosen = np.isin(judged.rows, shown) & judged.singled_out
    partner = {
        (int(m), int(o)): pairs.source.words[i]
        for m, o, i in zip(judged.rows[chosen], judged.outputs[chosen], judged.partner[chosen], strict=True)
    }
    return [
        {
            "input": pairs.source.line(m),
            "output": pairs.target.line(m),
            "partners": [
                partner.get((m, int(o)))
                for o in pairs.target.ids[pairs.target.offsets[m] : pairs.target.offsets[m + 1]]
            ],
        }
        for m in shown
    ]


def _spread(pairs: Pairs) -> list[int]:
    short = np.flatnonzero((pairs.source.lengths <= LONGEST) & (pairs.target.lengths <= LONGEST))
    lines = short if len(short) >= SHOWN else np.argsort(pairs.source.lengths, kind="stable")[: 4 * SHOWN]
    return [int(m) for m in np.unique(lines[np.linspace(0, len(lines) - 1, SHOWN + 2, dtype=int)[1:-1]])]


def _hold(share: float) -> str:
    return "nothing" if share < 0.01 else "little" if share < 0.25 else "something" if share < 0.75 else "a lot"


def _of_each_label(pairs: Pairs) -> list[int]:
    """Texts of all labels in turn."""
    lines = [np.flatnonzero(pairs.target.ids == label) for label in range(len(pairs.target.words))]
    spread = [some[_spread(pairs.take(some))] for some in lines if len(some)]
    return [int(some[k]) for k in range(SHOWN) for some in spread if k < len(some)][:SHOWN]


def _finding(found: dict[str, Any]) -> str:
    share = found["share"]
    tokens = "no output token" if share == 0 else f"{percent(share)} of the output tokens"
    finding = (
        f"Attention has {_hold(share)} to hold on to: in these {found['pairs']:,} pairs co-occurrence singles out an "
        f"input word for {tokens}."
    )
    if found["groups"][3]["tokens"] >= MANY_RARE:
        finding += f" {percent(found['groups'][3]['tokens'])} belong to words that are too rare here to tell."
    if found["forward"] is not None and found["forward"] < UNRELATED:
        finding += " But these words come in another order than the outputs, which is learned slowly or not at all."
    return finding


def _answers(found: dict[str, Any], checks: Checks) -> list[tuple[str, str]]:
    clear, _, _, rare = found["groups"]
    which = (
        f"{clear['words']:,} of {found['output_words']:,} output words, with {percent(clear['tokens'])} of the tokens, "
        "have a clear partner"
    )
    if rare["words"]:
        which += (
            f"; {rare['words']:,}, with {percent(rare['tokens'])} of the tokens, are too rare here to tell, and more "
            "pairs may change that"
        )
    answers = [("Which words have an identifiable partner?", f"{which}.")]
    if clear["words"]:
        answers.append(("Which will be learned first?", _first(found)))
    if found["share"] < 1:
        absent = REST if found["share"] >= 0.01 else TOO_FEW if rare["tokens"] >= MANY_RARE else FAILS
        answers.append(("What if the signal is absent?", absent))
    if found["forward"] is not None:
        order = (
            f"Neighbouring partners go forward in {percent(found['forward'])} of the cases: 100 % if outputs follow "
            "the input's order, about half if the orders are unrelated."
        )
        answers.append(("Is the order easy?", f"{order} {ORDER}"))
    return [*answers, ("What helps?", HELPS), ("How sure is this?", _sure(checks, "tokens", "pairs", "partner"))]


def _first(found: dict[str, Any]) -> str:
    scores = [row["first"] for row in found["words"] if row["group"] == GROUPS[0]]
    if max(scores) < 2 * min(scores):
        return "All at about the same time: their scores (see the table) differ by less than a factor of two."
    named = ", ".join(f"{row['word']} ({row['partner']})" for row in found["learned_first"][:8])
    return f"{named}. {PREDICTION}"


PREDICTION = (
    "This is a prediction, not a measurement: the order is by how far the count of the two words exceeds what their "
    "frequencies give, which is what moves a bag-of-words model when training starts (Snell et al., equation 12)."
)


def _sure(checks: Checks, tokens: str, pairs: str, partner: str) -> str:
    shuffled = (
        f"With the outputs shuffled among the inputs the same rule singles out {percent(checks.false_alarms)} "
        f"of the {tokens}."
    )
    if checks.stays is None:
        return f"{shuffled} Half of the {pairs} singles out nothing that the other half could confirm."
    return (
        f"Of the {tokens} that one half of the {pairs} singles out, {percent(checks.stays)} have the same {partner} "
        f"first by the counts of the other half (by chance {percent(checks.chance)}). {shuffled}"
    )


def _checks(checks: Checks) -> dict[str, float | None]:
    return {"false_alarms": checks.false_alarms, "stays": checks.stays, "chance": checks.chance}


def labelled(pairs: Pairs) -> dict[str, Any]:
    """Labels and the words that speak for them."""
    counts = presence(pairs)
    judged = judge(pairs, counts, own=True, rivals=False)
    checks = check(pairs, rivals=False)
    share = float(judged.singled_out.mean())
    one_word = float((one_word_answers(pairs, counts) == pairs.target.ids).mean())
    commonest = float(counts.outputs.max() / counts.pairs)
    too_rare = by_word(judged, counts).too_rare
    labels: list[dict[str, Any]] = [
        {
            "label": label,
            "texts": int(counts.outputs[o]),
            "share": float(judged.singled_out[judged.outputs == o].mean()),
            "too_rare": bool(too_rare[o] and not judged.singled_out[judged.outputs == o].any()),
            "words": _carriers(pairs, counts, o, judged),
        }
        for label, o in sorted((label, o) for o, label in enumerate(pairs.target.words))
        if counts.outputs[o]
    ]
    found = {
        "kind": "labelled",
        "pairs": len(pairs),
        "input_words": int((counts.inputs > 0).sum()),
        "share": share,
        "one_word": one_word,
        "commonest": commonest,
        "labels": labels,
        "checks": _checks(checks),
        "examples": _label_examples(pairs, counts),
    }
    shares = sorted(label["share"] for label in labels)
    finding = (
        f"Attention has {_hold(share)} to hold on to: {percent(share)} of these {len(pairs):,} texts hold a word that "
        f"by itself speaks for their label; by label, {percent(shares[0])} to {percent(shares[-1])}."
    )
    if rare := [label["label"] for label in labels if label["too_rare"]]:
        finding += (
            f" There are too few texts to tell for {', '.join(rare)}: even a word in all texts of the label, and in no "
            "other, would not be enough."
        )
    words = "; ".join(
        f"{label['label']}: {', '.join(row['word'] for row in label['words'][:6]) or 'none'}" for label in labels
    )
    single = (
        f"The likeliest label beside a text's most telling word, by the counts of the other texts, is right in "
        f"{percent(one_word)} of the texts; the most frequent label in {percent(commonest)}. (A long text holds words "
        "for several labels, so this says more than the share of texts with a word for the right one.)"
    )
    answers = [
        ("How far does looking at one word get?", single),
        ("Which words speak for which label, and which first?", f"{words}. {PREDICTION}"),
        ("What if the signal is absent?", WEAK),
        ("What helps?", "No study in this repository has measured yet what helps a classifier's attention."),
        ("How sure is this?", _sure(checks, "texts", "texts", "strongest word")),
    ]
    return {"finding": finding, "answers": answers, **found}


WEAK = (
    "A text without such a word may still be classified by several weak words together; then no single position is the "
    "right one to look at."
)


def _carriers(pairs: Pairs, counts: Presence, label: int, judged: Judged) -> list[dict[str, Any]]:
    """The words that carry a text of the label, by the counts of the others; by what the count table holds beyond their
    frequencies."""
    column = counts.joint[:, [label]].tocoo()
    usual = counts.outputs[label] / counts.pairs
    rate = column.data / counts.inputs[column.row]
    evidence = _by_others(counts, column.row, column.data, label)
    strong = evidence >= _least_needed(pairs, judged, label)[column.row]
    table = count_table(pairs)
    inputs, total = table.sum(axis=1), table.sum()
    expected = inputs[column.row] * table[:, [label]].sum() / total
    excess = np.asarray(table[column.row, np.full(len(rate), label)]).ravel() - expected
    order = np.flatnonzero(strong)[np.argsort(-excess[strong], kind="stable")][:LISTED]
    return [
        {
            "word": pairs.source.words[column.row[k]],
            "texts": int(counts.inputs[column.row[k]]),
            "rate": float(rate[k]),
            "usually": float(usual),
            "evidence": float(evidence[k]),
            "first": float(excess[k]),
        }
        for k in order
    ]


def _by_others(counts: Presence, words: Ints, together: Floats, label: int) -> Floats:
    """The evidence of words in a text of the label, by the counts of the other texts."""
    usual = np.full(len(words), (counts.outputs[label] - 1) / (counts.pairs - 1))
    n = counts.inputs[words] - 1
    return root(n, (together - 1 + PRIOR * usual) / (n + PRIOR), usual)


def _least_needed(pairs: Pairs, judged: Judged, label: int) -> Floats:
    """Of each word, the least evidence that is needed in a text of the label with it: a long text needs more."""
    own = judged.outputs == label
    texts = pairs.source.take(judged.rows[own])
    least = np.full(len(pairs.source.words), np.inf)
    np.minimum.at(least, texts.ids, judged.needed[own][texts.rows])
    return least


def _label_examples(pairs: Pairs, counts: Presence) -> list[dict[str, Any]]:
    """A few texts, each word with its evidence for the text's label in the other texts."""
    shown = []
    for m in _of_each_label(pairs):
        ids = pairs.source.ids[pairs.source.offsets[m] : pairs.source.offsets[m + 1]]
        label = int(pairs.target.ids[m])
        together = np.asarray(counts.joint[ids, np.full(len(ids), label)]).ravel()
        evidence = _by_others(counts, ids, together, label)
        shown.append({"label": pairs.target.words[label], "input": pairs.source.line(m), "evidence": evidence.tolist()})
    return shown


def percent(share: float) -> str:
    """Never 0 or 100 for what is neither."""
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    return "under 0.1 %" if share < 0.001 else "over 99.9 %" if share > 0.999 else f"{100 * share:.3g} %"
