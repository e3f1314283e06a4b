"""β_log, the logistic twin of the bag-of-words proxy (Snell et al. A.10): which words speak for which label?

p = softmax(β_log x), where x holds the counts of the words of a text divided by its length. For labels the proxy model
is this model (its rank is no limit), so its β_px should order words as β_log does. As in the authors' program, C, the
inverse of the ℓ2 penalty, is one of 19 values from 10⁻⁵ to 10⁴, the one with the best validation accuracy. (The paper's
text says ten orders of magnitude; these are nine.)
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from attndyn.errors import RunError, UserError
from attndyn.tasks.text import Pairs, Text
from attndyn.theory.ibm1 import matrix

GRID = tuple(10 ** (half / 2) for half in range(-10, 9))
# scikit-learn's own 10⁻⁴ is too coarse: shares of a text make gradients as small as that, so that on IMDB a warm
# start looked solved before its first step from C = 100 on. Even 10⁻⁵ moved accuracies there by up to .03.
TOLERANCE, STEPS = 1e-6, 200


class Fit(NamedTuple):
    """One value of C."""

    c: float
    accuracy: float
    """On the validation texts."""
    gradient: float
    """The largest slope of the penalised mean loss where the solver stopped; 0 at the minimum."""
    converged: bool


@dataclass(frozen=True, eq=False)
class Logistic:
    """The fit with the best validation accuracy; of equals the one with the smallest C."""

    words: list[str]
    labels: list[str]
    beta: Float[np.ndarray, "label word"]
    """Log-odds of a label, or with more than two labels its logits, if the whole text were that one word."""
    intercept: Float[np.ndarray, " label"]
    chosen: Fit
    path: list[Fit]

    def ranking(self, label: str, most: int | None = None) -> list[tuple[str, float]]:
        """The words that speak for a label, the strongest first."""
        if label not in self.labels:
            raise UserError(f"there is no label {label!r}; there are: {', '.join(self.labels)}")
        row = self.beta[self.labels.index(label)]
        return [(self.words[i], float(row[i])) for i in np.argsort(-row, kind="stable")[:most]]


def logistic(train: Pairs, valid: Pairs, *, intercept: bool = True, grid: Sequence[float] = GRID) -> Logistic:
    """Fits labelled texts, as `tasks.text.read_labelled` gives them, along the grid; each fit starts from the last."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    words, labels = train.source.words, train.target.words
    if len(labels) < 2:
        raise UserError(f"a classifier needs two labels or more, and there is only {', '.join(labels) or 'none'}")
    x, y = shares(train.source, words), _labels(train, labels)
    x_valid, y_valid = shares(valid.source, words), _labels(valid, labels)
    model = LogisticRegression(
        solver="newton-cg", tol=TOLERANCE, max_iter=STEPS, warm_start=True, fit_intercept=intercept
    )
    path: list[Fit] = []
    kept: tuple[Any, Any] = (None, None)
    for c in sorted(grid):
        model.C = c
        with warnings.catch_warnings():
            # Judged by the gradient, for the fit that is chosen and in `path`.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(x, y)
        slope = _largest_slope(model, x, y)
        path.append(Fit(c, float(model.score(x_valid, y_valid)), slope, slope <= TOLERANCE))
        if path[-1].accuracy > max((fit.accuracy for fit in path[:-1]), default=-1.0):
            kept = model.coef_.copy(), model.intercept_.copy()
    chosen = max(path, key=lambda fit: fit.accuracy)
    if not chosen.converged:
        raise RunError(
            f"the logistic regression did not converge at C = {chosen.c:g}: "
            f"its gradient is {chosen.gradient:.1e} after {STEPS} steps, {TOLERANCE:.0e} was asked for"
        )
    beta, bias = (np.stack([-each[0], each[0]]) if len(each) == 1 else each for each in kept)
    return Logistic(words, labels, beta, np.broadcast_to(bias, len(labels)).copy(), chosen, path)


def shares(text: Text, words: Sequence[str]) -> sp.csr_matrix:
    """[text, word]: counts divided by the length, numbered as `words`; other words count for the length only."""
    lengths = np.maximum(text.lengths, 1)
    table = matrix(text, np.repeat(1 / lengths, text.lengths))
    known = {word: place for place, word in enumerate(text.words)}
    columns = np.array([known.get(word, -1) for word in words])
    found = np.flatnonzero(columns >= 0)
    picked = table[:, columns[found]].tocoo()
    x = sp.csr_matrix((picked.data, (picked.row, found[picked.col])), shape=(len(text), len(words)))
    x.indices, x.indptr = x.indices.astype(np.int32), x.indptr.astype(np.int32)  # scikit-learn takes no others
    return x


def _labels(pairs: Pairs, labels: list[str]) -> Int[np.ndarray, " text"]:
    if (pairs.target.lengths != 1).any():
        place = int(np.flatnonzero(pairs.target.lengths != 1)[0])
        raise UserError(f"text {place + 1} has {pairs.target.lengths[place]} labels; a classifier needs one for each")
    new = sorted({*pairs.target.words} - {*labels})
    if new:
        raise UserError(f"the validation texts have the label {new[0]!r}, which no training text has")
    return np.array([labels.index(word) for word in pairs.target.words])[pairs.target.ids]


def _largest_slope(model: Any, x: sp.csr_matrix, y: Int[np.ndarray, " text"]) -> float:
    """Of the mean of −log p plus |β|² / (2 C n), which is what scikit-learn minimises."""
    residual = model.predict_proba(x)
    residual[np.arange(len(y)), y] -= 1
    residual = residual[:, -len(model.coef_) :]  # two labels share one row of weights
    slopes = residual.T @ x / len(y) + model.coef_ / (model.C * len(y))
    of_intercept = residual.mean(axis=0) if model.fit_intercept else np.zeros(1)
    return float(max(np.abs(slopes).max(), np.abs(of_intercept).max()))
