"""The rows of `feature-importance`: τ in every text, its distribution, and the scores of the classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from attndyn.measures.estimates import interval
from attndyn.store.metrics import Row
from attndyn.studies.explained import BEST, BILSTM, SUMMARY
from attndyn.studies.explained_read import Ranks, evaluated_texts, few_of, left_out, ranks, read
from attndyn.studies.feature_importance import BINS, BOTH, GRADIENT, LEFT_OUT, TAUS
from attndyn.studies.kept import model_at
from attndyn.studies.read_part import APART

if TYPE_CHECKING:
    from attndyn.store.folder import Run
    from attndyn.studies.feature_importance import FeatureImportance
    from attndyn.training.condition import Condition

MOST_LEFT_OUT = 1000
"""Texts in which each word is left out."""


def tables(study: FeatureImportance, run: Run, device: str) -> Iterator[Row]:
    for condition in study.bases():
        yield from _of_condition(study, condition, run, device)


def _of_condition(study: FeatureImportance, condition: Condition, run: Run, device: str) -> Iterator[Row]:
    model = model_at(condition, run, condition.seeds, BEST, device)
    pairs = evaluated_texts(study.task, study.evaluation)
    found = read(model, pairs, device)
    chosen, some, texts, kept = few_of(pairs, found.texts, MOST_LEFT_OUT)
    delta = left_out(model, some, device)
    compared = {
        GRADIENT: ranks(found.texts, found.alpha, found.gradient),
        LEFT_OUT: ranks(texts, found.alpha[:, kept], delta),
        BOTH: ranks(texts, found.gradient[:, kept], delta),
    }
    predicted = (found.answers > 0.5).long().cpu().numpy()
    classes = study.task.data.classes
    for replica, seed in enumerate(condition.seeds):
        for name, value in found.scores(replica).items():
            yield Row(condition.name, seed, condition.steps, name, value)
        for name, one in compared.items():
            labels = predicted[replica] if name == GRADIENT else predicted[replica, chosen]
            for ending, value in one.rows(replica, labels, classes).items():
                yield Row(condition.name, seed, condition.steps, name + ending, value)
            undefined = float(np.isnan(one.tau[replica]).sum())
            yield Row(condition.name, seed, condition.steps, f"{name} undefined", undefined)
            if name != BOTH:
                yield from _distribution(condition.name, seed, name, one.tau[replica], labels, classes)
    if condition.name == BILSTM:
        yield from _summary(compared, chosen)
        lengths = found.texts.lengths.double().cpu().numpy()
        chance = np.ceil(0.05 * lengths) / lengths
        yield Row(SUMMARY, 0, 0, "chance", float(chance.mean()))
        for how, among, scores, places in (
            ("gradient", found.texts, found.gradient, slice(None)),
            ("leaving out", texts, delta, chosen),
        ):
            attended = found.alpha if how == "gradient" else found.alpha[:, kept]
            agrees = torch.stack(
                [among.agreement(among.peaks(a), s, among.limits(s)) for a, s in zip(attended, scores, strict=True)]
            )
            values = agrees.double().cpu().numpy()
            name = f"A(α, Δ) by {how}"
            yield Row(SUMMARY, 0, 0, name, float(values.mean()))
            yield from bounds(f"{name} minus chance", values - chance[places])


def bounds(name: str, values: np.ndarray, within: tuple[float, float] = APART) -> Iterator[Row]:
    """The interval of a mean over seeds and texts, of what lies `within`: τ, and differences of shares, do so."""
    for end, value in zip(("low", "high"), interval(values, within=within), strict=True):
        yield Row(SUMMARY, 0, 0, f"{name} {end}", value)


def _summary(compared: dict[str, Ranks], chosen: np.ndarray) -> Iterator[Row]:
    same = {name: one.tau[:, chosen] if name == GRADIENT else one.tau for name, one in compared.items()}
    for name in TAUS:
        yield from bounds(name, compared[name].tau)
    for name in (GRADIENT, LEFT_OUT):
        yield from bounds(f"{BOTH} minus {name}", same[BOTH] - same[name], (-2.0, 2.0))


def _distribution(
    condition: str, seed: int, name: str, tau: np.ndarray, predicted: np.ndarray, classes: list[str]
) -> Iterator[Row]:
    edges = np.linspace(-1, 1, BINS + 1)
    for number, label in enumerate(classes):
        values = tau[(predicted == number) & ~np.isnan(tau)]
        if len(values):
            shares = np.histogram(values, edges)[0] / len(values)
            for left, share in zip(edges[:-1], shares, strict=True):
                place = round(100 * left + 100 / BINS)
                yield Row(f"{condition}, predicted {label}", seed, place, f"share of texts by {name}", float(share))
