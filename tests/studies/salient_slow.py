"""What salient-words reads of a run, compared by plain loops over texts and words: slow, and by the definitions."""

import numpy as np

from attndyn.probes.influence import gradient_influence
from attndyn.store.folder import Run
from attndyn.studies.kept import model_at
from attndyn.studies.salient_names import PROXY, UNIFORM
from attndyn.studies.salient_words import SalientWords
from attndyn.tasks.ragged import Parallel, examined, in_slices
from attndyn.tasks.text import Pairs
from attndyn.theory.logistic import logistic

SMALL = {
    "seeds": 2, "uniform": 2, "blog": 1, "proxies": 2, "steps": 24, "width": 8, "hidden": 8, "evaluation": 30,
    "every": 12, "early": (5,), "epochs": 2, "proxy_lr": 1e-2, "lr": 1e-2, "batch": 16,
}  # fmt: skip
STEPS = [0, 5, 12, 24]


def pairs(study: SalientWords, part: str = "valid") -> Pairs:
    return examined(study.task.data.train, study.task.data.valid, study.evaluation, part)


def rows(
    finished: Run, study: SalientWords, condition: str, seed: int, step: int, name: str, part: str = "valid"
) -> list[np.ndarray]:
    """A scoring, one array for each text."""
    name = name if part == "valid" else f"{part} {name}"
    return np.split(finished.array(condition, seed, step, name), pairs(study, part).source.offsets[1:-1])


def agreeing(u: list[np.ndarray], v: list[np.ndarray]) -> list[bool]:
    """A(u, v) of each text, by its definition."""
    found = []
    for a, b in zip(u, v, strict=True):
        peak = next(n for n, score in enumerate(a) if score == max(a))
        above = 0
        for score in b:
            above += bool(score > b[peak])
        found.append(100 * above < 5 * len(a))
    return found


def slow_agreement(u: list[np.ndarray], v: list[np.ndarray]) -> float:
    return float(np.mean(agreeing(u, v)))


def largest(u: list[np.ndarray], along: list[list[np.ndarray]]) -> list[bool]:
    """A(u, v(τ)) of each text at the first checkpoint where the mean is largest."""
    return max((agreeing(u, v) for v in along), key=np.mean)


def betas(finished: Run, study: SalientWords, seed: int, part: str = "valid") -> list[list[np.ndarray]]:
    """β of a run under uniform attention at each checkpoint."""
    return [rows(finished, study, UNIFORM, seed, step, "beta", part) for step in STEPS]


def proxy_votes(finished: Run, study: SalientWords, seed: int, part: str = "valid") -> list[np.ndarray]:
    """How each word speaks for the label of its text, word by word."""
    weights = finished.weights(PROXY, seed, "lowest loss")
    texts, found = pairs(study, part), []
    for n, label in enumerate(texts.target.ids):
        words = texts.source.ids[slice(*texts.source.offsets[n : n + 2])]
        votes = [float(weights["output.weight"][0] @ weights["embedding.weight"][word]) for word in words]
        found.append(np.array([vote if label else -vote for vote in votes]))  # the second label is voted for
    return found


def logistic_of(study: SalientWords) -> list[np.ndarray]:
    data, texts = study.task.data, pairs(study)
    twin = logistic(data.train, data.valid)
    words = np.split(texts.source.ids, texts.source.offsets[1:-1])
    return [twin.beta[twin.labels.index(data.classes[label])][ids]
            for label, ids in zip(texts.target.ids, words, strict=True)]  # fmt: skip


def influence(finished: Run, study: SalientWords, seed: int, texts: Pairs) -> list[np.ndarray]:
    """Δ at the gold checkpoint of the training part, one text after the other."""
    condition = next(study.conditions())
    model = model_at(condition, finished, [seed], "highest train accuracy", "cpu")
    found = []
    for n in range(len(texts)):
        (batch,) = in_slices(Parallel(texts.take(np.array([n])), "cpu"), 1, 10_000)
        delta, *_ = gradient_influence(model, condition.rule, batch)
        found.append(delta[0, 0].numpy())
    return found
