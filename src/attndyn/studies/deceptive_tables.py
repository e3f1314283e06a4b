"""The rows of `deceptive-attention`: every model on the test texts, beside the base."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attndyn.measures.divergence import jsd_terms, kl_terms
from attndyn.models.rules import Given, Uniform
from attndyn.probes.counterfactual import most_different
from attndyn.store.metrics import Row
from attndyn.studies.deceptive_names import (
    ADVERSARIES,
    ADVERSARY_BEST,
    BY_ADVERSARY,
    BY_BASE,
    EPSILONS,
    LAMBDA_UNIT,
    SEEDS,
    instance,
)
from attndyn.studies.exclusive import of_neighbours
from attndyn.studies.explained import AVERAGE, BEST, BILSTM, SUMMARY
from attndyn.studies.explained_read import evaluated_texts, few_of, left_out, ranks, read, reference
from attndyn.studies.feature_importance import GRADIENT, LEFT_OUT
from attndyn.studies.importance_tables import bounds
from attndyn.studies.kept import model_at
from attndyn.studies.strengths import as_step
from attndyn.tasks.bare import REFERENCES

if TYPE_CHECKING:
    from attndyn.models.base import Model
    from attndyn.store.folder import Run
    from attndyn.studies.deceptive_attention import DeceptiveAttention
    from attndyn.studies.explained_read import Reading
    from attndyn.tasks.text import Pairs
    from attndyn.training.condition import Condition

MOST_LEFT_OUT = 300
"""Texts in which each word is left out, of every adversary."""


def remember(study: DeceptiveAttention, needed: Sequence[Run], device: str) -> None:
    """What the bases, and the adversaries that guide, do on the texts, for the models that are trained beside them."""
    base = next(study.bases())
    models = {
        BY_BASE if study.guided else BILSTM: model_at(base, needed[0], base.seeds[: study.followed], BEST, device)
    }
    if study.guided:
        guide = study.guiding()
        models[BY_ADVERSARY] = model_at(guide, needed[1], guide.seeds, ADVERSARY_BEST, device)
    data = study.task.data
    parts = {"train": data.train, "valid": data.valid, "test": evaluated_texts(study.task, study.evaluation)}
    for name, model in models.items():
        known = {part: reference(model, pairs, device) for part, pairs in parts.items()}
        REFERENCES[study.reference(name)] = known


def copied(run: Run, conditions: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of another run, of some conditions or of all."""
    for row in run.metrics.to_pylist():
        if conditions is None or row["condition"] in conditions:
            yield Row(**row)


def tables(study: DeceptiveAttention, run: Run, device: str) -> Iterator[Row]:
    """Of the run without guided models."""
    yield from copied(run.needed[0], (BILSTM, AVERAGE))
    pairs = evaluated_texts(study.task, study.evaluation)
    first, words = study.bases()
    learned = read(model_at(first, run.needed[0], first.seeds, BEST, device), pairs, device)
    uniform = study.uniform()
    spread = read(model_at(uniform, run, uniform.seeds, BEST, device), pairs, device, Uniform())
    for replica, seed in enumerate(uniform.seeds):
        for name, value in (spread.scores(replica) | beside(learned, replica, spread, replica)).items():
            yield Row(uniform.name, seed, uniform.steps, name, value)
    if len(first.seeds) > 1:
        yield from _beside_seeds(learned, first.seeds)
    alone = read(model_at(words, run.needed[0], words.seeds, BEST, device), pairs, device)
    for replica, seed in enumerate(words.seeds):
        for name, value in beside(learned, replica % study.followed, alone, replica).items():
            yield Row(words.name, seed, words.steps, name, value)
    yield from _instance(learned, study.followed)
    for condition in (first, *study.deceivers()):
        best, where = (BEST, run.needed[0]) if condition is first else (ADVERSARY_BEST, run)
        model = model_at(condition, where, condition.seeds, best, device)
        found = learned if condition is first else read(model, pairs, device)
        yield from _adversary(condition, model, learned, study.followed, found, pairs, device)


def beside(base: Reading, number: int, other: Reading, replica: int) -> dict[str, float]:
    """How far a model is from one of the base models: means over texts, and the median of JSD."""
    ours, theirs = other.alpha[replica], base.alpha[number]
    divergence = base.texts.total(jsd_terms(ours, theirs))
    return {
        "JSD": float(divergence.mean()),
        "JSD median": float(np.median(divergence.cpu().numpy())),
        "KL(it ‖ base)": float(base.texts.total(kl_terms(ours, theirs)).mean()),
        "KL(base ‖ it)": float(base.texts.total(kl_terms(theirs, ours)).mean()),
        "TVD": float((other.answers[replica] - base.answers[number]).abs().mean()),
    }


def _beside_seeds(learned: Reading, seeds: Sequence[int]) -> Iterator[Row]:
    """Every seed beside the one before it. Two seeds are one pair, which has no interval."""
    for replica, seed in enumerate(seeds):
        for name, value in (learned.scores(replica) | beside(learned, replica - 1, learned, replica)).items():
            yield Row(SEEDS, seed, 0, name, value)
    if len(seeds) > 2:
        others = learned.texts.total(jsd_terms(learned.alpha, learned.alpha.roll(1, dims=0)))
        yield from bounds("JSD of another seed", of_neighbours(others.cpu().numpy()), (0.0, math.log(2)))


def _instance(base: Reading, followed: int) -> Iterator[Row]:
    """The adversaries of each text alone, of every base that is followed."""
    each = zip(base.wide(base.alpha[:followed]), base.wide(base.votes[:followed]), strict=True)
    for number, (alpha, votes) in enumerate(each):
        for epsilon in EPSILONS:
            other, divergence = most_different(alpha, votes, base.mask, epsilon)
            moved = ((other * votes).sum(dim=1).sigmoid() - (alpha * votes).sum(dim=1).sigmoid()).abs()
            yield Row(instance(epsilon), number, 0, "JSD", float(divergence.mean()))
            yield Row(instance(epsilon), number, 0, "TVD", float(moved.mean()))


def _adversary(
    condition: Condition, model: Model, base: Reading, followed: int, found: Reading, pairs: Pairs, device: str
) -> Iterator[Row]:
    """An adversary, or the base models themselves before: distance, scores, and attention beside its own influence."""
    _, some, texts, kept = few_of(pairs, found.texts, MOST_LEFT_OUT)
    taus = {
        GRADIENT: ranks(texts, found.alpha[:, kept], found.gradient[:, kept]).tau,
        LEFT_OUT: ranks(texts, found.alpha[:, kept], left_out(model, some, device)).tau,
    }
    for name, tau in taus.items():
        yield Row(SUMMARY, 0, 0, f"{condition.name}: {name}", float(np.nanmean(tau)))
        yield from bounds(f"{condition.name}: {name}", tau)
    if condition.name == BILSTM:
        return
    objective = condition.objective
    family, place = ADVERSARIES[objective.direction], as_step(objective.lam, LAMBDA_UNIT)
    for replica, seed in enumerate(condition.seeds):
        values = found.scores(replica) | beside(base, seed % followed, found, replica) | {"λ": objective.lam}
        values |= {name: float(np.nanmean(tau[replica])) for name, tau in taus.items()}
        for name, value in values.items():
            yield Row(family, 0, 100 * place + replica, name, value)  # every adversary is a point of its own
            yield Row(condition.name, seed, condition.steps, name, value)


def guided_tables(study: DeceptiveAttention, run: Run, device: str) -> Iterator[Row]:
    """Of the run with guided models: theirs, and all that was found without them."""
    yield from copied(run.needed[1])
    pairs = evaluated_texts(study.task, study.evaluation)
    first = next(study.bases())
    base = read(model_at(first, run.needed[0], first.seeds[: study.followed], BEST, device), pairs, device)
    for condition in study.conditions():
        model = model_at(condition, run, condition.seeds, BEST, device)
        given = None
        if isinstance(condition.rule, Given):
            given = REFERENCES[study.reference(condition.name)]["test"], condition.seeds
        found = read(model, pairs, device, condition.rule, given)
        for replica, seed in enumerate(condition.seeds):
            number = study.base_of(condition.name, seed)
            for name, value in (found.scores(replica) | beside(base, number, found, replica)).items():
                yield Row(condition.name, seed, condition.steps, name, value)
