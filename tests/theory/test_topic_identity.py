"""The identity of score and norm along real gradient descent, in float64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.models.topic import Topic, TopicModel
from attndyn.tasks.topics import Bags, TopicWords
from attndyn.theory import topic_identity as identity

TASK = TopicWords(dictionary=60, others=6, sentences=300)


def descend(model: TopicModel, bags: Bags, steps: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """∫ Σ a_w h·v, and half of what the steps of each embedding square to, summed."""
    pulled, squares = np.zeros(len(bags.words)), np.zeros(len(bags.words))
    for _ in range(steps):
        slope = model.slope(bags)
        pulled += rate * slope.pull
        if "embeddings" in model.trained:
            squares += 0.5 * rate**2 * (slope.weights["embeddings"] ** 2).sum(axis=1)
        model.step(slope, rate)
    return pulled, squares


def residual(kind: str, rate: float) -> float:
    bags = TASK.draw(0).train
    model = Topic(kind, embedding_sd=0.1).build(len(bags.words), 4, 0)
    score, norm, scale = model.scores, model.norms, model.query_square**0.5
    pulled, _ = descend(model, bags, round(60 / rate), rate)
    foretold = identity.general_norm(model.scores, pulled, scale**2, score, scale * norm)
    return float(np.abs(foretold - scale * model.norms).max() / (scale * model.norms.max()))


@pytest.mark.parametrize("kind", ["FC", "TC", "TL"])
def test_the_general_form_is_exact_once_the_steps_are_counted(kind: str) -> None:
    """Every word, any classifier, embeddings and keys far from 0: no assumption is left."""
    bags = TASK.draw(1).train
    model = Topic(kind, embedding_sd=0.5).build(len(bags.words), 4, 1)
    model.weights["keys"][:] = np.random.default_rng(0).normal(size=model.weights["keys"].shape)
    score, square = model.scores, model.norms**2
    pulled, steps = descend(model, bags, 300, 0.3)
    gained = model.query_square * ((model.norms**2 - square) / 2 - steps + pulled)
    assert np.abs(model.scores - score).max() > 0.1
    assert model.scores - score == pytest.approx(gained, abs=1e-12)


@pytest.mark.parametrize("kind", ["FC", "TC", "TL"])
def test_the_general_form_is_first_order_in_the_step(kind: str) -> None:
    coarse, fine = residual(kind, 0.2), residual(kind, 0.05)
    assert 1e-6 < fine < coarse < 0.05
    assert np.log(coarse / fine) / np.log(4) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("kind", ["FC", "TC", "TL"])
def test_the_sum_of_scores_never_changes(kind: str) -> None:
    bags = TASK.draw(2).train
    model = Topic(kind, embedding_sd=0.1).build(len(bags.words), 4, 2)
    descend(model, bags, 500, 0.3)
    assert np.abs(model.scores).max() > 0.1
    assert abs(model.scores.sum()) < 1e-10


def test_a_trained_query_trades_with_the_keys() -> None:
    bags, drifts = TASK.draw(3).train, []
    for rate in (0.4, 0.1):
        model = Topic("FC", query_trained=True).build(len(bags.words), 4, 3)
        before = model.query_square
        descend(model, bags, round(100 / rate), rate)
        assert abs(model.query_square - before) > 0.05
        drifts.append(abs(model.query_square - (model.weights["keys"] ** 2).sum() - before))
    assert drifts[0] / drifts[1] == pytest.approx(4, rel=0.2)


def test_the_simple_form_where_its_assumptions_hold() -> None:
    """Θ so large that no other word comes twice: only the topic words learn."""
    task = TopicWords(topics=2, each=1, dictionary=20_000, others=10, sentences=200)
    bags = task.draw(0).train
    model = Topic("FC").build(len(bags.words), 2, 0)
    descend(model, bags, 400, 0.05)
    scaled = model.query_square**0.5 * model.norms[:2]
    assert model.scores[:2].min() > 0.3
    assert identity.simple_norm(model.scores[:2], 10.0) == pytest.approx(scaled, rel=0.01)


@given(st.floats(0.0, 12.0), st.floats(1.0, 200.0), st.floats(-2.0, 2.0), st.floats(0.0, 3.0))
def test_the_forms_agree_with_each_other(grown: float, others: float, start: float, norm: float) -> None:
    first, begun = np.array([start]), np.array([norm])
    score = first + grown
    found = identity.simple_norm_from(score, others, first, begun)
    assert identity.invariant(score, found, others) == pytest.approx(identity.invariant(first, begun, others), abs=1e-6)
    grew = np.array([grown])
    from_zero = identity.simple_norm_from(grew, others, np.zeros(1), np.zeros(1))
    assert identity.simple_norm(grew, others) == pytest.approx(from_zero, abs=1e-6)


def test_the_law_of_convergence_is_the_limit() -> None:
    score = np.array([8.0, 12.0, 16.0])
    scaled = identity.simple_norm(score, 20.0)
    exact = 20 / (20 + np.exp(score))
    ratio = exact / identity.unattended(scaled)
    assert (np.diff(np.abs(ratio - 1)) < 0).all()
    assert ratio[-1] == pytest.approx(1, abs=1e-4)
    assert np.isnan(identity.simple_norm(np.array([-1.0]), 20.0)).all()
