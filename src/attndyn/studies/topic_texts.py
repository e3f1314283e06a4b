"""What the study `topic-words` measures on real text, where no line divides topic words from the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float, Int

from attndyn.models.topic import Topic
from attndyn.studies.topic_runs import Measured, Path, all_words, follow
from attndyn.tasks.topics import Bags, Parts
from attndyn.theory import topic_identity as identity

EVERY = 100
"""Epochs between two readings."""
END = 0
"""Training ends when it no longer helps, at another epoch in each seed: what is found at its end is recorded here."""
STRONGEST = 100
"""Words put beside the theory: those with the highest scores at the end, as in the authors' figures."""
PURE = 0.9
"""From this purity on a word counts as one that indicates the label."""
SENTENCE = "in one sentence: "
"""Begins the metrics that hold the attention in the sentence of the page; its place and word follow."""


def text(
    parts: Parts, spec: Topic, rate: float, most: int, patience: int, seed: int, *, followed: Sequence[str], shown: bool
) -> Measured:
    """One model on labelled text, padding masked; `shown`: with the sentence of the page."""
    model = spec.build(len(parts.train.words), len(parts.train.classes), seed).within_span()
    path = follow(model, parts, rate, range(0, most + 1, EVERY), patience=patience)
    yield from _course(path)
    yield from _beside_theory(path, parts.train, parts.train.companions, seed)
    yield from competition(path, parts.train, followed)
    if shown:
        yield from overtaking(path, parts.train)


def padded(parts: Parts, spec: Topic, rate: float, most: int, patience: int, seed: int) -> Measured:
    """The same as the authors had it: every sentence is filled up with a padding word that is attended to. The theory
    is given the m of the sentence (theirs), and then the m that the model sees."""
    longest = max(float(part.lengths.max()) for part in (parts.train, parts.valid, parts.test))
    filled = Parts(*(part.padded(int(longest)) for part in (parts.train, parts.valid, parts.test)))
    model = spec.build(len(filled.train.words), len(filled.train.classes), seed).within_span()
    path = follow(model, filled, rate, range(0, most + 1, EVERY), patience=patience)
    yield from _course(path)
    yield from _beside_theory(path, parts.train, parts.train.companions, seed)
    errors = _errors(path, parts.train, np.full(len(parts.train.words), longest - 1))
    yield END, "median error, m of the model", float(np.median(errors))
    yield END, "padding score", float(path.scores[-1, -1])
    yield END, "words of a sentence", float(parts.train.lengths.mean())
    yield END, "words and padding", longest


def _course(path: Path) -> Measured:
    for row, epoch in enumerate(path.epochs.tolist()):
        yield epoch, "loss", float(path.loss[row])
        yield epoch, "validation loss", float(path.valid_loss[row])
        yield epoch, "accuracy", float(path.accuracy[row])
    best = int(path.valid_loss.argmin())
    yield END, "best epoch", float(path.epochs[best])
    yield END, "accuracy at the best epoch", float(path.accuracy[best])
    yield END, "score sum drift", float(np.abs(path.scores.sum(axis=1) - path.scores[0].sum()).max())
    yield END, "general residual of all words", all_words(path)


def _strongest(path: Path, bags: Bags) -> Int[np.ndarray, " chosen"]:
    return np.argsort(-path.scores[-1, : len(bags.words)], kind="stable")[:STRONGEST]


def _errors(path: Path, bags: Bags, others: Float[np.ndarray, " word"]) -> Float[np.ndarray, " chosen"]:
    """|predicted − measured|/measured |q| |ν| of the strongest words at the end."""
    words = _strongest(path, bags)
    predicted, norm = identity.simple_norm(path.scores[-1, words], others[words]), path.norms[-1, words]
    return np.asarray(np.abs(predicted - norm) / norm)


def _beside_theory(path: Path, bags: Bags, others: Float[np.ndarray, " word"], seed: int) -> Measured:
    words, errors = _strongest(path, bags), _errors(path, bags, others)
    pure = bags.purity[words] >= PURE
    yield END, "median error", float(np.median(errors))
    yield END, "median error of pure words", float(np.median(errors[pure])) if pure.any() else np.nan
    yield END, "median error of other words", float(np.median(errors[~pure])) if (~pure).any() else np.nan
    yield END, "pure among the strongest", float(pure.mean())
    if seed == 0:
        for place, word in enumerate(words.tolist()):
            predicted = float(identity.simple_norm(path.scores[-1, word, None], others[word, None])[0])
            yield place, "predicted strength", predicted
            yield place, "strength", float(path.norms[-1, word])
            yield place, "strength if exact", predicted


def top_words(bags: Bags, scores: Float[np.ndarray, " word"]) -> Int[np.ndarray, " sentence"]:
    """The word with the highest score in each sentence; of equals the first in the dictionary."""
    inside, starts = scores[bags.counts.indices], bags.counts.indptr[:-1]
    best = np.repeat(np.maximum.reduceat(inside, starts), np.diff(bags.counts.indptr))
    words = np.where(inside == best, bags.counts.indices, len(bags.words))
    return np.asarray(np.minimum.reduceat(words, starts))


def competition(path: Path, bags: Bags, followed: Sequence[str]) -> Measured:
    """Who is attended to most: how frequent and how pure the strongest word is, in the sentences that hold a followed
    word, and in all. Before the first step all scores are equal, so the first reading is left out."""
    groups = {word: _holding(bags, word) for word in followed if word in bags.words}
    groups[""] = np.arange(len(bags))
    share, purity = bags.sentences_with / len(bags), bags.purity
    leaders = [top_words(bags, scores[: len(bags.words)]) for scores in path.scores[1:]]
    for epoch, leader in zip(path.epochs[1:].tolist(), leaders, strict=True):
        for word, sentences in groups.items():
            ahead = leader[sentences]
            yield epoch, f"frequency {word}".strip(), float(share[ahead].mean())
            yield epoch, f"purity {word}".strip(), float(purity[ahead].mean())
    yield END, "overtaken", float((leaders[0] != leaders[-1]).mean())
    ends = [(leaders[0][sentences], leaders[-1][sentences]) for word, sentences in groups.items() if word]
    if ends:
        rarer = [np.log(share[after].mean() / share[before].mean()) for before, after in ends]
        purer = [purity[after].mean() - purity[before].mean() for before, after in ends]
        yield END, "change of frequency", float(np.mean(rarer))
        yield END, "change of purity", float(np.mean(purer))


def _holding(bags: Bags, word: str) -> Int[np.ndarray, " sentence"]:
    return np.sort(bags.transposed[bags.words.index(word)].indices)


def overtaking(path: Path, bags: Bags) -> Measured:
    """The attention in one sentence of 6 to 14 words, none twice: the one whose leader at an eighth of the training is
    passed by the widest margin, where margin is the smaller of its lead then and its lag at the end."""
    counts, sizes = bags.counts, np.where(np.diff(bags.counts.indptr) == bags.lengths, bags.lengths, 0)
    early, end = path.scores[1 + len(path.scores) // 8], path.scores[-1]
    before, after = top_words(bags, early), top_words(bags, end)
    margin = np.minimum(early[before] - early[after], end[after] - end[before])
    chosen = int(np.where((sizes >= 6) & (sizes <= 14), margin, -np.inf).argmax())
    words = counts.indices[counts.indptr[chosen] : counts.indptr[chosen + 1]]
    for row, epoch in enumerate(path.epochs.tolist()):
        e = np.exp(path.scores[row, words] - path.scores[row, words].max())
        for place, (word, share) in enumerate(zip(words.tolist(), (e / e.sum()).tolist(), strict=True)):
            yield epoch, f"{SENTENCE}{place:02d} {bags.words[word]}", share


def sentence(metrics: Iterable[str]) -> list[tuple[str, str]]:
    """(metric, word) of the sentence of the page, in the order of its places."""
    found = sorted(name for name in metrics if name.startswith(SENTENCE))
    return [(name, name.removeprefix(SENTENCE).partition(" ")[2]) for name in found]
