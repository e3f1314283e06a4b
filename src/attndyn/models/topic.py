"""The attention model of Lu et al. §3, with exact gradients: embeddings, keys and one query for a whole dictionary.

A word w has an embedding ν_w and a key κ_w; its score is s_w = q·κ_w. The context of a sentence is v = Σ a_w ν_w with
a = softmax of the scores of its words, and a classifier reads v. Every classifier here begins with a linear map A:

    FC    A v, A fixed: standard normal with a diagonal of ones
    TC    A v, A trained, no bias
    TL    B relu(A v + b) + c, trained, 10 hidden units

As A v = Σ a_w A ν_w, the dictionary goes through A once a step, and sentences only add up numbers of their words: a
step costs two sparse products with as many columns as A has rows, instead of one of width d for each token. In numpy,
because that is faster here: on one core a step of the authors' setting takes about a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attndyn.errors import UserError
from attndyn.tasks.topics import Bags

Classifier = Literal["FC", "TC", "TL"]
Array = np.ndarray
Weights = dict[str, Array]


@dataclass(frozen=True)
class Topic:
    """Data only. The published controls: frozen=("keys",) is KF, ("embeddings",) is EF; query_trained is QT."""

    classifier: Classifier = "FC"
    frozen: tuple[str, ...] = ()
    query_trained: bool = False
    width: int = 10
    """Dimensions d of the embeddings."""
    key_width: int = 10
    hidden: int = 10
    embedding_sd: float = 1e-6
    query_sd: float = 0.3

    def __post_init__(self) -> None:
        for name in self.frozen:
            if name not in ("keys", "embeddings"):
                raise UserError(f"only keys and embeddings can be frozen, not {name!r}")
        for name in ("width", "key_width", "hidden"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")

    def build(self, words: int, classes: int, seed: int) -> TopicModel:
        """Keys start at 0, embeddings and query are normal, trained layers as PyTorch's own linear layers."""
        random = np.random.Generator(np.random.PCG64([seed, 1]))
        embeddings = self.embedding_sd * random.standard_normal((words, self.width))
        query = self.query_sd * random.standard_normal(self.key_width)
        if not self.query_trained:  # keys that begin at 0 move along q only: one number a key is enough
            query = np.array([np.linalg.norm(query)])
        weights = {"embeddings": embeddings, "keys": np.zeros((words, len(query))), "query": query}
        if self.classifier == "FC":
            weights["A"] = random.standard_normal((classes, self.width))
            np.fill_diagonal(weights["A"], 1.0)
        elif self.classifier == "TC":
            weights["A"] = _uniform(random, self.width, (classes, self.width))
        else:
            weights["A"] = _uniform(random, self.width, (self.hidden, self.width))
            weights["b"] = _uniform(random, self.width, (self.hidden,))
            weights["B"] = _uniform(random, self.hidden, (classes, self.hidden))
            weights["c"] = _uniform(random, self.hidden, (classes,))
        fixed = {
            *self.frozen,
            *(() if self.query_trained else ("query",)),
            *(("A",) if self.classifier == "FC" else ()),
        }
        return TopicModel(weights, tuple(name for name in weights if name not in fixed))


class Reading(NamedTuple):
    """What the model makes of sentences."""

    inside: Float[Array, "sentence row"]
    """A v"""
    logits: Float[Array, "sentence class"]
    normaliser: Float[Array, " sentence"]
    """Σ exp(s_w − largest s) over the words of a sentence."""

    def loss(self, labels: Int[Array, " sentence"]) -> float:
        """Mean cross-entropy."""
        top = self.logits.max(axis=1)
        log_sum = top + np.log(np.exp(self.logits - top[:, None]).sum(axis=1))
        return float((log_sum - self.logits[np.arange(len(labels)), labels]).mean())

    def accuracy(self, labels: Int[Array, " sentence"]) -> float:
        return float((self.logits.argmax(axis=1) == labels).mean())


class Slope(NamedTuple):
    """The derivative of the mean loss."""

    weights: Weights
    """By the trained weights."""
    pull: Float[Array, " word"]
    """Σ a_w h·v over the sentences, h the derivative by v: what the identity of `theory/topic_identity.py` adds up."""


@dataclass(frozen=True, eq=False)
class TopicModel:
    weights: Weights
    trained: tuple[str, ...]

    @property
    def scores(self) -> Float[Array, " word"]:
        return self.weights["keys"] @ self.weights["query"]

    @property
    def norms(self) -> Float[Array, " word"]:
        return np.sqrt(np.einsum("wd,wd->w", self.weights["embeddings"], self.weights["embeddings"]))

    @property
    def query_square(self) -> float:
        return float(self.weights["query"] @ self.weights["query"])

    def check(self, bags: Bags) -> None:
        """Refuses sentences that the model cannot read."""
        rows = len(self.weights["B" if "B" in self.weights else "A"])
        if rows < len(bags.classes):
            kind = "trained" if "A" in self.trained else "fixed"
            raise UserError(
                f"the {kind} classifier has {rows} rows, but there are {len(bags.classes)} topics: each needs one"
            )
        if len(self.weights["embeddings"]) != len(bags.words):
            raise UserError(f"the model knows {len(self.weights['embeddings'])} words, the sentences {len(bags.words)}")

    def read(self, bags: Bags) -> Reading:
        w, e = self.weights, self._exponentials()
        return self._read(bags, e, w["embeddings"] @ w["A"].T)

    def attention(self, bags: Bags, word: Int[Array, " sentence"]) -> Float[Array, " sentence"]:
        """What one word of each sentence gets, however often it occurs there."""
        e = self._exponentials()
        times = np.asarray(bags.counts[np.arange(len(bags)), word]).ravel()
        return times * e[word] / (bags.counts @ e)

    def slope(self, bags: Bags) -> Slope:
        w, e = self.weights, self._exponentials()
        inner = w["embeddings"] @ w["A"].T
        inside, logits, normaliser = self._read(bags, e, inner)
        n = len(bags)
        # class by class: numpy is slow along rows as short as these
        columns = np.ascontiguousarray(logits.T)
        columns = np.exp(columns - columns.max(axis=0))
        columns /= columns.sum(axis=0)
        columns[bags.labels, np.arange(n)] -= 1
        columns /= n
        error = np.ascontiguousarray(columns.T)
        made: Weights = {}
        if "B" in w:
            hidden = np.maximum(inside + w["b"], 0)
            made |= {"B": error.T @ hidden, "c": error.sum(axis=0)}
            error = (error @ w["B"]) * (hidden > 0)
            made["b"] = error.sum(axis=0)
        # by A ν_w: Σ a_w g, with g the derivative by A v; and Σ a_w g·(A v) = Σ a_w h·v, as h = Aᵀ g
        error /= normaliser[:, None]
        inward = bags.transposed @ error
        inward *= e[:, None]
        pull = e * (bags.transposed @ np.einsum("nr,nr->n", error, inside))
        by_score = np.einsum("wr,wr->w", inward, inner) - pull
        if "embeddings" in self.trained:
            made["embeddings"] = inward @ w["A"]
        if "A" in self.trained:
            made["A"] = inward.T @ w["embeddings"]
        if "keys" in self.trained:
            made["keys"] = by_score[:, None] * w["query"]
        if "query" in self.trained:
            made["query"] = by_score @ w["keys"]
        return Slope(made, pull)

    def step(self, slope: Slope, rate: float) -> None:
        """One step of gradient descent, in place."""
        for name in self.trained:
            change = slope.weights[name]
            change *= rate
            self.weights[name] -= change

    def within_span(self) -> TopicModel:
        """The same training in as many dimensions as A has rows. Embeddings move along the rows of A only, and a
        trained linear A along the embeddings, so both stay in the span of A's first rows, if embeddings begin there:
        what they have outside it is dropped. A fixed A never sees that part, which only adds a constant to |ν|²."""
        if "B" in self.weights:
            raise ValueError("only a linear classifier leaves embeddings in the span of its rows")
        basis, _ = np.linalg.qr(self.weights["A"].T)
        smaller = {name: self.weights[name] @ basis for name in ("embeddings", "A")}
        return TopicModel(self.weights | smaller, self.trained)

    def _exponentials(self) -> Float[Array, " word"]:
        scores = self.scores
        return np.exp(scores - scores.max())

    def _read(self, bags: Bags, e: Float[Array, " word"], inner: Float[Array, "word row"]) -> Reading:
        normaliser = bags.counts @ e
        inside = bags.counts @ (e[:, None] * inner)
        inside /= normaliser[:, None]
        if "B" not in self.weights:
            return Reading(inside, inside, normaliser)
        hidden = np.maximum(inside + self.weights["b"], 0)
        return Reading(inside, hidden @ self.weights["B"].T + self.weights["c"], normaliser)


def _uniform(random: np.random.Generator, inputs: int, shape: tuple[int, ...]) -> Array:
    return random.uniform(-(inputs**-0.5), inputs**-0.5, shape)
