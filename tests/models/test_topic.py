"""The topic model against autograd on its token-by-token definition."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attndyn.errors import UserError
from attndyn.models.topic import Topic, TopicModel
from attndyn.tasks.topics import Bags, TopicWords
from tests.reference import topic as reference

TASK = TopicWords(topics=3, each=2, dictionary=12, others=5, sentences=100)
KINDS = ("FC", "TC", "TL")


def started(spec: Topic, bags: Bags, seed: int = 0) -> TopicModel:
    """Every weight away from 0, keys too, so that no term of a gradient hides."""
    model = spec.build(len(bags.words), len(bags.classes), seed)
    random = np.random.default_rng(seed)
    for name in ("keys", "embeddings"):
        model.weights[name][:] = random.normal(0, 0.7, model.weights[name].shape)
    return model


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 1000), padded=st.booleans())
@settings(max_examples=8, deadline=None)
def test_gradients_are_those_of_autograd(kind: str, seed: int, padded: bool) -> None:
    bags = TASK.draw(seed).test
    if padded:
        bags = bags.padded(9)
    model = started(Topic(kind, query_trained=True, width=7, key_width=4), bags, seed)
    w = reference.weights(model)
    value = reference.loss(w, bags, reference.contexts(w, bags))
    value.backward()
    slope = model.slope(bags)
    assert model.read(bags).loss(bags.labels) == pytest.approx(value.item(), rel=1e-12)
    for name in model.trained:
        assert slope.weights[name] == pytest.approx(w[name].grad.numpy(), rel=1e-9, abs=1e-13)
    assert slope.pull == pytest.approx(reference.pull(model, bags), rel=1e-9, abs=1e-13)
    if kind == "FC":
        assert "A" not in slope.weights


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_frozen_stays(kind: str) -> None:
    bags = TASK.draw(0).train
    for frozen in ((), ("keys",), ("embeddings",)):
        model = Topic(kind, frozen=frozen, embedding_sd=0.1).build(len(bags.words), 3, 0)
        before = {name: value.copy() for name, value in model.weights.items()}
        for _ in range(3):
            model.step(model.slope(bags), 0.5)
        still = {name for name, value in before.items() if (value == model.weights[name]).all()}
        assert still == {"query", *frozen, *(["A"] if kind == "FC" else [])}


def test_gradient_descent_is_that_of_torch() -> None:
    bags = TASK.draw(1).train
    model = started(Topic("TL", query_trained=True), bags)
    w = reference.weights(model)
    optimiser = torch.optim.SGD(w.values(), lr=0.3)
    for _ in range(5):
        optimiser.zero_grad()
        reference.loss(w, bags, reference.contexts(w, bags)).backward()
        optimiser.step()
        model.step(model.slope(bags), 0.3)
    for name, value in model.weights.items():
        assert value == pytest.approx(w[name].detach().numpy(), rel=1e-10)


def test_attention_is_that_of_the_definition() -> None:
    bags = TASK.draw(2).test
    model = started(Topic("TC"), bags)
    word = bags.counts[:, : TASK.topic_words].toarray().argmax(axis=1)
    wanted = []
    for sentence, topic in zip(reference.tokens(bags), word.tolist(), strict=True):
        e = np.exp(model.scores[sentence])
        wanted.append(e[np.array(sentence) == topic].sum() / e.sum())
    assert model.attention(bags, word) == pytest.approx(np.array(wanted), rel=1e-12)


def test_fewer_dimensions_train_the_same() -> None:
    bags = TASK.draw(0).train
    wide = Topic("FC", width=40, embedding_sd=0.1).build(len(bags.words), 3, 5)
    narrow = wide.within_span()
    narrow = TopicModel({name: value.copy() for name, value in narrow.weights.items()}, narrow.trained)
    outside = wide.norms**2 - narrow.norms**2
    assert narrow.weights["embeddings"].shape[1] == 3
    for _ in range(50):
        for model in (wide, narrow):
            model.step(model.slope(bags), 0.5)
    assert narrow.scores == pytest.approx(wide.scores, rel=1e-9, abs=1e-12)
    assert wide.norms**2 - narrow.norms**2 == pytest.approx(outside, rel=1e-9)
    assert wide.read(bags).logits == pytest.approx(narrow.read(bags).logits, rel=1e-9, abs=1e-12)
    with pytest.raises(ValueError, match="only a linear classifier"):
        Topic("TL").build(5, 2, 0).within_span()


def test_a_trained_linear_classifier_stays_in_the_span_where_it_began() -> None:
    bags = TASK.draw(0).train
    wide = Topic("TC", width=40).build(len(bags.words), 3, 5)
    narrow = wide.within_span()
    basis = np.linalg.qr(wide.weights["A"].T)[0]
    wide.weights["embeddings"][:] = wide.weights["embeddings"] @ basis @ basis.T
    narrow = TopicModel({name: value.copy() for name, value in narrow.weights.items()}, narrow.trained)
    for _ in range(200):
        for model in (wide, narrow):
            model.step(model.slope(bags), 0.5)
    assert np.abs(wide.scores).max() > 0.1
    assert narrow.scores == pytest.approx(wide.scores, rel=1e-8, abs=1e-12)
    assert narrow.norms == pytest.approx(wide.norms, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_one_number_a_key_is_enough_for_a_fixed_query(kind: str) -> None:
    bags = TASK.draw(0).train
    short = Topic(kind, embedding_sd=0.1).build(len(bags.words), 3, 1)
    whole = Topic(kind, embedding_sd=0.1, query_trained=True).build(len(bags.words), 3, 1)
    whole = TopicModel(whole.weights, tuple(name for name in whole.trained if name != "query"))
    assert (short.weights["keys"].shape[1], whole.weights["keys"].shape[1]) == (1, 10)
    for _ in range(100):
        for model in (short, whole):
            model.step(model.slope(bags), 0.5)
    assert np.abs(whole.scores).max() > 0.1
    assert short.scores == pytest.approx(whole.scores, rel=1e-10, abs=1e-13)
    assert short.query_square == pytest.approx(whole.query_square)


def test_the_start_is_the_published_one() -> None:
    model = Topic("FC").build(50_000, 4, 0)
    assert not model.weights["keys"].any()
    assert model.weights["embeddings"].std() == pytest.approx(1e-6, rel=0.01)
    assert (np.diag(model.weights["A"]) == 1).all()
    assert np.std(
        [Topic(query_trained=True).build(1, 2, seed).weights["query"] for seed in range(500)]
    ) == pytest.approx(0.3, rel=0.05)
    bound = 10**-0.5
    trained = Topic("TC").build(1, 1000, 0).weights["A"]
    assert 0.99 * bound < abs(trained).max() <= bound


def test_what_does_not_fit_is_refused() -> None:
    bags = TASK.draw(0).train
    with pytest.raises(UserError, match="the fixed classifier has 2 rows, but there are 3 topics"):
        Topic("FC").build(len(bags.words), 2, 0).check(bags)
    with pytest.raises(UserError, match="knows 5 words, the sentences 18"):
        Topic("TL").build(5, 3, 0).check(bags)
    with pytest.raises(UserError, match="only keys and embeddings"):
        Topic(frozen=("query",))
    with pytest.raises(UserError, match="width must be at least 1"):
        Topic(width=0)
