"""What the first moment of training does to the bag-of-words proxy: gradient flow at initialisation, exactly.

Source: Snell et al. §2.3, §4.1 and A.2. The proxy averages the embeddings e_i of an input, maps the mean through W and
takes a softmax; its loss is summed over pairs m and output words t. With γ_io = W_o·e_i, p^m the prediction for pair m
and n_mi/L_m the share of word i among its L_m input words, let

    G_io = Σ_m Σ_t (n_mi/L_m) (1[y_t = o] − p^m_o).

Then gradient flow has dE = G W and dW = Gᵀ E, so that exactly, at any time and any width d,

    dγ/dτ = (E Eᵀ) G + G (W Wᵀ).

If e_i and W_o are drawn from N(0, 1/d), both Gram matrices tend to 1 and p to 1/|O| as d grows, so that with the count
table C the logit tends to dγ/dτ = 2 (C − row mean), and the probability θ = softmax(γ) to 2/|O| of C − row mean. (The
paper's equation 12 prints 2 for the probability; its appendix derives that 2 for the logit.) Since
E (E Eᵀ − 1)² = (|I| + 1)/d, the relative error at width d is ½ √((|I| + |O| + 2)/d), root mean square over draws.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from attndyn.errors import UserError
from attndyn.tasks.text import Pairs

Init = Literal["theorem", "pytorch"]

BLOCK = 1024
"""Dimensions drawn at once: only the three products of E and W are kept, so memory does not grow with the width."""
SENTENCES = 4096
"""Pairs whose predictions are held at once."""


class Bags(NamedTuple):
    """A corpus of pairs as the proxy sees it; both are sparse, a row for each pair."""

    inputs: Any
    """n_mi/L_m [pair, input]"""
    outputs: Any
    """How often each output word is in the pair [pair, output]."""
    counts: Float[np.ndarray, "input output"]
    """C of equation 13: the product of the two."""


class Start(NamedTuple):
    """All that the derivative needs to know of the initial weights."""

    inputs: Float[np.ndarray, "input input"]
    """E Eᵀ"""
    outputs: Float[np.ndarray, "output output"]
    """W Wᵀ"""
    logits: Float[np.ndarray, "input output"]
    """γ = E Wᵀ"""


class Flow(NamedTuple):
    """d/dτ of the logits γ and of the probabilities θ = softmax(γ)."""

    through_output: Float[np.ndarray, "input output"]
    """(E Eᵀ) G: the part that comes from moving W."""
    through_embeddings: Float[np.ndarray, "input output"]
    """G (W Wᵀ): the part that comes from moving E."""
    probabilities: Float[np.ndarray, "input output"]

    @property
    def logits(self) -> Float[np.ndarray, "input output"]:
        return self.through_output + self.through_embeddings


def bags(corpus: Pairs) -> Bags:
    """A pair without words on one side says nothing and is left out."""
    from attndyn.theory.ibm1 import matrix

    kept = np.flatnonzero((corpus.source.lengths > 0) & (corpus.target.lengths > 0))
    if not len(kept):
        raise UserError("the corpus has no pair with words on both sides")
    source, target = corpus.source.take(kept), corpus.target.take(kept)
    inputs, outputs = matrix(source, 1 / source.lengths[source.rows]), matrix(target)
    return Bags(inputs, outputs, (inputs.T @ outputs).toarray())


def first_pass(corpus: Pairs, translation: Float[np.ndarray, "input output"]) -> Float[np.ndarray, "input output"]:
    """The counts that IBM Model 1 (without a NULL word) collects in one pass: each output word is shared out among the
    input words of its pair in proportion to the translation table."""
    counts = np.zeros_like(translation)
    for n in range(len(corpus)):
        source, target = (text.ids[text.offsets[n] : text.offsets[n + 1]] for text in (corpus.source, corpus.target))
        if len(source) and len(target):
            shares = translation[np.ix_(source, target)]
            np.add.at(counts, np.ix_(source, target), shares / shares.sum(axis=0))
    return counts


def centred(counts: Float[np.ndarray, "input output"]) -> Float[np.ndarray, "input output"]:
    """C − row mean: the direction of both limits. The logit moves along it at 2, the probability at 2/|O|."""
    return counts - counts.mean(axis=1, keepdims=True)


def width_law(inputs: int, outputs: int, width: int) -> float:
    """The relative error of the limit over the whole table, root mean square over draws; it is the same for every G."""
    return 0.5 * float(np.sqrt((inputs + outputs + 2) / width))


def row_law(counts: Float[np.ndarray, "input output"], word: int, width: int) -> float:
    """As `width_law`, for the row of one input word: the more of the table it holds, the smaller its error."""
    squares = (centred(counts) ** 2).sum(axis=1)
    return 0.5 * float(np.sqrt((squares.sum() / squares[word] + counts.shape[1] + 2) / width))


def start(inputs: int, outputs: int, width: int, *, seed: int, init: Init = "theorem") -> Start:
    """Draws E and W. `theorem`: N(0, 1/d) both; `pytorch`: what nn.Embedding and nn.Linear do, N(0, 1) and
    U(±1/√d)."""
    random = np.random.Generator(np.random.PCG64([seed, width]))
    drawn = Start(np.zeros((inputs, inputs)), np.zeros((outputs, outputs)), np.zeros((inputs, outputs)))
    for first in range(0, width, BLOCK):
        size = min(BLOCK, width - first)
        embeddings = random.standard_normal((inputs, size))
        if init == "theorem":
            embeddings /= np.sqrt(width)
            weights = random.standard_normal((outputs, size)) / np.sqrt(width)
        else:
            weights = random.uniform(-1, 1, (outputs, size)) / np.sqrt(width)
        drawn.inputs[:] += embeddings @ embeddings.T
        drawn.outputs[:] += weights @ weights.T
        drawn.logits[:] += embeddings @ weights.T
    return drawn


def pull(corpus: Bags, logits: Float[np.ndarray, "input output"]) -> Float[np.ndarray, "input output"]:
    """G: how much more often each output word stands beside each input word than the model predicts."""
    total = corpus.counts.copy()
    for first in range(0, corpus.inputs.shape[0], SENTENCES):
        chosen = slice(first, first + SENTENCES)
        inputs, words = corpus.inputs[chosen], corpus.outputs[chosen].sum(axis=1)
        total -= inputs.T @ (words[:, None] * softmax(inputs @ logits))
    return total


def flow(initial: Start, corpus: Bags) -> Flow:
    """The exact derivative of γ and θ under gradient flow."""
    gradient = pull(corpus, initial.logits)
    through_output, through_embeddings = initial.inputs @ gradient, gradient @ initial.outputs
    theta, moved = softmax(initial.logits), through_output + through_embeddings
    probabilities = theta * (moved - (theta * moved).sum(axis=1, keepdims=True))
    return Flow(through_output, through_embeddings, probabilities)


def slope(values: Float[np.ndarray, "input output"], direction: Float[np.ndarray, "input output"]) -> float:
    """The least-squares slope of one table on another."""
    return float((values * direction).sum() / (direction**2).sum())


def relative_error(values: Float[np.ndarray, "*shape"], predicted: Float[np.ndarray, "*shape"]) -> float:
    return float(np.linalg.norm(values - predicted) / np.linalg.norm(predicted))


def softmax(logits: Float[np.ndarray, "row output"]) -> Float[np.ndarray, "row output"]:
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)
