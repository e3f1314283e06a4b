"""What the study `topic-words` measures on the topic task: gradient descent on the whole training set, word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attndyn.errors import RunError
from attndyn.models.topic import Classifier, Topic, TopicModel
from attndyn.tasks.topics import Parts, TopicWords
from attndyn.theory import topic_identity as identity

Measured = Iterator[tuple[int, str, float]]

SUPPRESSED = 0.01
"""A word is suppressed once its score has fallen by this much and its norm by this share, both at one reading."""
EARLY = 150.0
"""Step size × epochs up to which a word is watched for suppression."""
SMALL = {"dictionary": 500, "sentences": 500}
"""The task on which step sizes are compared."""
TIME = 100.0
"""Step size × epochs there."""


class Path(NamedTuple):
    """What was read along training, word by word."""

    epochs: Int[np.ndarray, " reading"]
    scores: Float[np.ndarray, "reading word"]
    norms: Float[np.ndarray, "reading word"]
    """|q| |ν_w|"""
    pulled: Float[np.ndarray, "reading word"]
    """∫ Σ a_w h·v"""
    query_square: Float[np.ndarray, " reading"]
    key_square: Float[np.ndarray, " reading"]
    """Σ_w |κ_w|²"""
    loss: Float[np.ndarray, " reading"]
    valid_loss: Float[np.ndarray, " reading"]
    accuracy: Float[np.ndarray, " reading"]
    """On the test part."""
    attention: Float[np.ndarray, "reading topic"]
    """On each topic word, its mean over the training sentences that hold it."""


def follow(
    model: TopicModel,
    parts: Parts,
    rate: float,
    readings: Sequence[int],
    *,
    topic_words: int = 0,
    patience: int | None = None,
) -> Path:
    """Trains up to the last reading; with patience, until the validation loss has not fallen for that many epochs.
    Words 0 … `topic_words` − 1 are the topic words, of which each sentence holds one."""
    model.check(parts.train)
    pulled = np.zeros(len(parts.train.words))
    held = np.asarray(parts.train.counts[:, :topic_words].argmax(axis=1)).ravel() if topic_words else None
    rows: list[tuple[Any, ...]] = []
    best, best_at, epoch = np.inf, 0, 0
    for reading in readings:
        for _ in range(reading - epoch):
            slope = model.slope(parts.train)
            pulled += rate * slope.pull
            model.step(slope, rate)
        epoch = reading
        loss = model.read(parts.train).loss(parts.train.labels)
        if not np.isfinite(loss):
            raise RunError(f"the loss is not finite at epoch {epoch:,} with step size {rate:g}; a smaller one may help")
        valid = model.read(parts.valid).loss(parts.valid.labels)
        attention = np.zeros(0)
        if held is not None:
            attention = np.bincount(held, model.attention(parts.train, held)) / np.bincount(held)
        rows.append(
            (
                epoch,
                model.scores,
                model.query_square**0.5 * model.norms,
                pulled.copy(),
                model.query_square,
                (model.weights["keys"] ** 2).sum(),
                loss,
                valid,
                model.read(parts.test).accuracy(parts.test.labels),
                attention,
            )
        )
        if valid < best:
            best, best_at = valid, epoch
        if patience is not None and epoch - best_at >= patience:
            break
    return Path(*(np.array(column) for column in zip(*rows, strict=True)))


def readings(epochs: int) -> list[int]:
    """Every 10 epochs at first, where words may be suppressed, then every 50."""
    return sorted({epoch for epoch in range(epochs + 1) if epoch % (10 if epoch <= 300 else 50) == 0} | {epochs})


def train(task: TopicWords, spec: Topic, rate: float, at: Sequence[int], seed: int) -> Path:
    parts = task.draw(seed)
    model = spec.build(len(parts.train.words), len(parts.train.classes), seed)
    return follow(model, parts, rate, at, topic_words=task.topic_words)


def foretold(path: Path, words: int, others: int) -> tuple[np.ndarray, np.ndarray]:
    """|q| |ν| of the first `words` words at every reading: by the simple form, by the general form."""
    score, norm, pulled = (column[:, :words] for column in (path.scores, path.norms, path.pulled))
    first, begun = np.broadcast_to(score[0], score.shape), np.broadcast_to(norm[0], norm.shape)
    simple = identity.simple_norm_from(score, float(others), first, begun)
    # a score too low for any norm counts as a norm of 0, as in the general form
    return np.nan_to_num(simple), identity.general_norm(score, pulled, float(path.query_square[0]), first, begun)


def variant(task: TopicWords, spec: Topic, rate: float, epochs: int, seed: int) -> Measured:
    """One model on the topic task. Residuals are those of the worst topic word, as a share of its final norm."""
    path = train(task, spec, rate, readings(epochs), seed)
    n, last = task.topic_words, int(path.epochs[-1])
    score, norm = path.scores[:, :n], path.norms[:, :n]
    columns = {
        "loss": path.loss,
        "accuracy": path.accuracy,
        "topic score": score.mean(axis=1),
        "topic norm": norm.mean(axis=1),
        "attention": path.attention.mean(axis=1),
    }
    halved = np.flatnonzero(path.loss <= path.loss[0] / 2)
    ends = {
        "epochs to half the loss": path.epochs[halved[0]] if len(halved) else np.inf,
        "score sum drift": np.abs(path.scores.sum(axis=1) - path.scores[0].sum()).max(),
        "largest other score": np.abs(path.scores[:, n:]).max(),
    }
    if not spec.frozen:
        simple, general = foretold(path, n, task.others)
        columns["simple residual"] = (np.abs(simple - norm) / norm[-1]).max(axis=1)
        columns["general residual"] = (np.abs(general - norm) / norm[-1]).max(axis=1)
        together = np.sign(np.diff(score, axis=0)) * np.sign(np.diff(norm, axis=0))
        sunk = (score < score[0] - SUPPRESSED) & (norm < (1 - SUPPRESSED) * norm[0])
        ends |= {
            "moves together": (together > 0).mean(),
            "suppressed": sunk.any(axis=0).mean(),
            "general residual of all words": all_words(path),
            "unattended over law": ((1 - path.attention[-1]) / identity.unattended(norm[-1])).mean(),
        }
    if spec.query_trained:
        balance = path.query_square - path.key_square
        ends["balance drift"] = np.abs(balance - balance[0]).max()
    for row, epoch in enumerate(path.epochs.tolist()):
        yield from ((epoch, name, float(values[row])) for name, values in columns.items())
    yield from ((last, name, float(value)) for name, value in ends.items())
    if not spec.frozen:
        yield from _lowest(path, n, rate)
        if seed == 0:
            yield from _each_word(path, n, task.others)


def _lowest(path: Path, words: int, rate: float) -> Measured:
    """The early course of the topic word whose score falls lowest."""
    word = int(path.scores[:, :words].min(axis=0).argmin())
    score, norm = (column[:, word] - column[0, word] for column in (path.scores, path.norms))
    for row in np.flatnonzero(rate * path.epochs <= EARLY).tolist():
        yield int(path.epochs[row]), "change of score", float(score[row])
        yield int(path.epochs[row]), "change of norm", float(norm[row])


def _each_word(path: Path, words: int, others: int) -> Measured:
    """The topic words of one seed one by one, at about a dozen readings; the step tells reading and word apart. Their
    attention is given where the law, one for large norms, asks for less than all of it. Then the predicted curve."""
    norm, attention = path.norms[:, :words], path.attention
    law = identity.unattended(norm)
    for row in np.unique(np.geomspace(1, len(path.epochs) - 1, 16).astype(int)).tolist():
        for word in range(words):
            values = {"word score": path.scores[row, word], "word norm": norm[row, word]}
            if law[row, word] < 1:
                values["word norm square"] = norm[row, word] ** 2
                values["unattended"] = 1 - attention[row, word]
                values["unattended predicted"] = law[row, word]
            yield from ((row * words + word, name, float(value)) for name, value in values.items())
    yield from _curve(path.scores[-1, :words].max(), others, len(path.epochs) * words, "word")


def _curve(highest: float, others: int, after: int, name: str) -> Measured:
    """The simple form from a score of 0 on, at steps behind those of the words."""
    line = highest * np.linspace(0, 1, 60) ** 2
    for step, (score, norm) in enumerate(
        zip(line, identity.simple_norm(line, float(others)), strict=True), start=after
    ):
        yield step, f"{name} score", float(score)
        yield step, f"{name} norm predicted", float(norm)


def all_words(path: Path) -> float:
    """The general form at the end, at the word that it fits worst, as a share of the largest norm."""
    found = identity.general_norm(
        path.scores[-1], path.pulled[-1], float(path.query_square[0]), path.scores[0], path.norms[0]
    )
    return float(np.abs(found - path.norms[-1]).max() / path.norms[-1].max())


def steps(task: TopicWords, kind: Classifier, rates: Sequence[float], seed: int) -> Measured:
    """Both forms at one time of training, reached in steps of several sizes, on a small dictionary."""
    small = replace(task, **SMALL)
    residuals: dict[str, list[float]] = {"simple": [], "general": []}
    for rate in sorted(rates):
        path = train(small, Topic(kind), rate, [0, round(TIME / rate)], seed)
        norm = path.norms[-1, : small.topic_words]
        for name, found in zip(residuals, foretold(path, small.topic_words, small.others), strict=True):
            residuals[name].append(float((np.abs(found[-1] - norm) / norm).max()))
    for step, rate in enumerate(sorted(rates)):
        yield step, "step size", rate
        yield step, "simple residual", residuals["simple"][step]
        yield step, "general residual", residuals["general"][step]
        yield step, "first order", residuals["general"][0] * rate / min(rates)
    slope = np.polyfit(np.log(sorted(rates)), np.log(residuals["general"]), 1)[0]
    yield len(rates), "exponent", float(slope)


def dictionaries(task: TopicWords, sizes: Sequence[int], rate: float, epochs: int, seed: int) -> Measured:
    """The simple form with ever more other words."""
    for size in sorted(sizes):
        made = replace(task, dictionary=size)
        at = np.unique(np.linspace(0, epochs, 21).astype(int)).tolist()
        path = train(made, Topic("FC"), rate, at, seed)
        norm = path.norms[:, : made.topic_words]
        simple, _ = foretold(path, made.topic_words, made.others)
        yield size, "simple residual", float((np.abs(simple - norm) / norm[-1]).max())
        yield size, "largest other score", float(np.abs(path.scores[:, made.topic_words :]).max())


def frequencies(task: TopicWords, seed: int) -> Measured:
    """The share of training sentences that hold a word."""
    bags = task.draw(seed).train
    shares = bags.sentences_with / len(bags)
    topic, others = shares[: task.topic_words], shares[task.topic_words :]
    values = {"topic share": topic.mean(), "least topic share": topic.min()}
    values |= {"other share": others.mean(), "largest other share": others.max()}
    yield from ((0, name, float(value)) for name, value in values.items())


@lru_cache(maxsize=1)
def _end(task: TopicWords, rate: float, epochs: int) -> tuple[np.ndarray, np.ndarray]:
    path = train(task, Topic("FC"), rate, [0, epochs], 0)
    return path.scores[-1], path.norms[-1]


def scatter(task: TopicWords, rate: float, epochs: int, topic: bool) -> Measured:
    """Where the topic words, or every tenth of the others, end with FC in seed 0; with the former, the curve."""
    scores, norms = _end(task, rate, epochs)
    words = range(task.topic_words) if topic else range(task.topic_words, len(scores), 10)
    for word in words:
        yield word, "final score", float(scores[word])
        yield word, "final norm", float(norms[word])
    if topic:
        yield from _curve(scores.max(), task.others, len(scores), "final")
