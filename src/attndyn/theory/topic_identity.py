"""Score and embedding norm of a word are tied all along training, whatever the classifier reads them (Lu et al.).

Gradient flow on the model of `models/topic.py`, with the query q fixed, h the derivative of a sentence's loss by its
context v, and sums over the sentences χ that hold w:

    ν_w' = −Σ a_w h        s_w' = −|q|² Σ a_w h·(ν_w − v) = |q|² (½ (|ν_w|²)' + Σ a_w h·v).

**General form**, with no assumption: s_w changes by |q|² (½ Δ|ν_w|² + ∫ Σ a_w h·v). Gradient descent with step η adds
½ |η Σ a_w h|² a step to ½ |ν_w|², so there the form is off by a first-order term, and exact with that term counted.

**Simple form**: if a sentence holds one topic word, and the scores and embeddings of its m other words stay at 0, then
ν − v = (1 − a) ν and 1 − a = m/(m + eˢ), so that s + eˢ/m changes by ½ |q|² Δ|ν|². From s = 0 and ν ≈ 0:

    |q| |ν| = √(2 (s + (eˢ − 1)/m)).

For large norms s ≈ ln(½ m |q|² |ν|²), and so 1 − a ≈ 2/(|q|² |ν|²): attention goes to the topic word only as fast as
its embedding grows.

Conserved besides: Σ_w s_w, as the derivatives of a softmax sum to 0; with q trained too, |q|² − Σ_w |κ_w|².
"""

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def simple_norm(score: Float[Array, "*shape"], others: Float[Array, "*shape"] | float) -> Float[Array, "*shape"]:
    """|q| |ν| of a topic word with this score among m others, if both began at 0. NaN where the score is below 0: then
    no norm fits, for from |ν| = 0 it can only grow."""
    square = 2 * (score + np.expm1(score) / others)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(square))


def invariant(
    score: Float[Array, "*shape"], scaled_norm: Float[Array, "*shape"], others: Float[Array, "*shape"] | float
) -> Float[Array, "*shape"]:
    """s + eˢ/m − ½ |q|² |ν|², which the simple form says is constant, from any start."""
    return np.asarray(score + np.exp(score) / others - scaled_norm**2 / 2)


def simple_norm_from(
    score: Float[Array, "*shape"],
    others: Float[Array, "*shape"] | float,
    start_score: Float[Array, "*shape"],
    start_norm: Float[Array, "*shape"],
) -> Float[Array, "*shape"]:
    """|q| |ν| under the simple form from any start; `start_norm` is |q| |ν| there. NaN where no norm fits."""
    square = 2 * (score + np.exp(score) / others - invariant(start_score, start_norm, others))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(square))


def general_norm(
    score: Float[Array, "*shape"],
    pulled: Float[Array, "*shape"],
    query_square: float,
    start_score: Float[Array, "*shape"],
    start_norm: Float[Array, "*shape"],
) -> Float[Array, "*shape"]:
    """|q| |ν| of any word by the general form; where no norm fits, 0, which is the nearest. `pulled` is the integral of
    Σ a_w h·v, `start_norm` |q| |ν| at first."""
    square = 2 * (score - start_score) - 2 * query_square * pulled + start_norm**2
    return np.asarray(np.sqrt(np.maximum(square, 0)))


def unattended(scaled_norm: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """1 − a of a topic word whose |q| |ν| is large: 2/(|q|² |ν|²)."""
    return np.asarray(2 / scaled_norm**2)
