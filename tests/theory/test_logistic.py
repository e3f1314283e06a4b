"""β_log against a direct minimisation of the penalised likelihood, and what it says of words."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

from attndyn.errors import RunError, UserError
from attndyn.tasks import text
from attndyn.theory import logistic as module
from attndyn.theory.logistic import GRID, Logistic, logistic, shares

WORDS = [f"w{i}" for i in range(8)]


def made(seed: int, texts: int, labels: int) -> text.Pairs:
    """Texts of 1 to 12 words; a label prefers the words of its own number."""
    random = np.random.default_rng(seed)
    sources, targets = [], []
    for _ in range(texts):
        label = int(random.integers(labels))
        weights = np.where(np.arange(8) % labels == label, 2.0, 1.0)
        sources.append([str(word) for word in random.choice(WORDS, random.integers(1, 13), p=weights / weights.sum())])
        targets.append([f"label {label}"])
    return text.pairs(sources, targets)


def by_hand(pairs: text.Pairs, c: float, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    """Minimises −Σ log p + |β|² / (2 C) from the definition; two labels have one row, whose sign is the label's."""
    x = np.array([[line.count(word) / len(line) for word in pairs.source.words]
                  for line in map(pairs.source.line, range(len(pairs)))])  # fmt: skip
    y, labels = pairs.target.ids, len(pairs.target.words)
    rows = 1 if labels == 2 else labels

    def loss(flat: np.ndarray) -> float:
        beta, bias = flat[: rows * x.shape[1]].reshape(rows, -1), flat[rows * x.shape[1] :] * intercept
        logits = x @ beta.T + bias
        if rows == 1:
            logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
        right = special.log_softmax(logits, axis=1)[np.arange(len(y)), y]
        return float(-right.sum() + (beta**2).sum() / (2 * c))

    found = optimize.minimize(loss, np.zeros(rows * (x.shape[1] + 1)), method="BFGS", options={"gtol": 1e-4})
    beta, bias = found.x[: rows * x.shape[1]].reshape(rows, -1), found.x[rows * x.shape[1] :] * intercept
    return (np.stack([-beta[0], beta[0]]), np.array([-bias[0], bias[0]])) if rows == 1 else (beta, bias)


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("c", [0.1, 10.0])
def test_it_is_the_minimum_of_the_penalised_likelihood(labels: int, intercept: bool, c: float) -> None:
    pairs = made(0, 120, labels)
    fit = logistic(pairs, pairs, intercept=intercept, grid=[c])
    beta, bias = by_hand(pairs, c, intercept)
    np.testing.assert_allclose(fit.beta, beta, atol=2e-3)
    np.testing.assert_allclose(fit.intercept - fit.intercept.mean(), bias - bias.mean(), atol=2e-3)


def test_the_grid_is_that_of_the_program() -> None:
    assert len(GRID) == 19
    np.testing.assert_allclose(GRID, np.logspace(-5, 4, 19))


@pytest.fixture(scope="module")
def fitted() -> Logistic:
    return logistic(made(1, 400, 2), made(2, 200, 2))


def test_the_best_of_the_path_is_chosen(fitted: Logistic) -> None:
    assert [fit.c for fit in fitted.path] == list(GRID)
    assert all(fit.converged for fit in fitted.path), "a warm start must not stop before its first step"
    assert fitted.chosen.accuracy == max(fit.accuracy for fit in fitted.path)
    assert fitted.chosen.c == min(fit.c for fit in fitted.path if fit.accuracy == fitted.chosen.accuracy)
    alone = logistic(made(1, 400, 2), made(2, 200, 2), grid=[fitted.chosen.c])
    np.testing.assert_allclose(alone.beta, fitted.beta, rtol=0.01, atol=1e-3)


def test_words_are_ranked_for_their_label(fitted: Logistic) -> None:
    for label in (0, 1):
        ranked = [word for word, _ in fitted.ranking(f"label {label}")]
        assert {int(word[1:]) % 2 for word in ranked[:4]} == {label}
        assert len(ranked) == 8
    assert fitted.ranking("label 0", 2) == fitted.ranking("label 0")[:2]
    assert fitted.ranking("label 0") == [(word, -beta) for word, beta in reversed(fitted.ranking("label 1"))]


def test_shares_count_unknown_words_for_the_length_only() -> None:
    found = shares(text.number([["a", "b", "a", "new"], [], ["b"]]), ["b", "a", "absent"])
    assert found.toarray().tolist() == [[0.25, 0.5, 0], [0, 0, 0], [1, 0, 0]]


def test_a_fit_that_did_not_converge_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEPS", 1)
    with pytest.raises(RunError, match="did not converge at C = 10000"):
        logistic(made(3, 100, 2), made(4, 50, 2), grid=[1e4])


@pytest.mark.parametrize(
    ("train", "valid", "sentence"),
    [
        ([("a", "x"), ("b", "x")], [("a", "x")], "there is only x"),
        ([("a", "x"), ("b", "y")], [("a", "z")], "the label 'z', which no training text has"),
        ([("a", "x"), ("b", "y z")], [("a", "x")], "text 2 has 2 labels"),
    ],
)
def test_texts_that_cannot_be_fitted(train: Any, valid: Any, sentence: str) -> None:
    sets = [text.pairs([a.split() for a, _ in part], [b.split() for _, b in part]) for part in (train, valid)]
    with pytest.raises(UserError, match=sentence):
        logistic(*sets)


def test_an_unknown_label_names_the_others(fitted: Logistic) -> None:
    with pytest.raises(UserError, match="there are: label"):
        fitted.ranking("label 7")
