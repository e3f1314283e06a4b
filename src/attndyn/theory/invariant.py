"""One first integral for four models of learning to attend: x + eˣ/m = y²/2 + c.

x is the attention logit of the one useful position beside m useless ones, whose logits stay at 0, so that its weight
is a = eˣ/(m + eˣ); y is the strength of what that position says, in units in which gradient flow moves the two as

    y' = a g,    x' = a (1 − a) y g,    hence  dx/dy = (1 − a) y = m/(m + eˣ) y,  whatever g is.

So x and y never leave one curve, however fast they go along it. It is Lu et al.'s identity of score and norm
(`theory/topic_identity.py`: x = s, y = |q| |ν|); the constant of the blog's toy with a softmax gate
(`theory/gated_toy.py`: x = a, y = δ/√2, m = 1); and it holds in Zucchet et al.'s reduced model (arXiv 2505.17863),
where a linear map w learns from one of T positions, m = T − 1:

    w' = a (√d − a w)/d,    D' = a (1 − a) w (√d − a w)/d,    a = 1/(1 + (T − 1) e^−D).

In a network that is not such a model the unit of y is unknown: `fitted` takes the one that fits best.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Array = np.ndarray
GRID, SCALES = 200, (-5.0, 12.0)
"""Scales that are tried before the best is refined: the logarithm of the largest y lies between these."""


def level(x: Float[Array, "*shape"], others: float) -> Float[Array, "*shape"]:
    """x + eˣ/m"""
    return np.asarray(x + np.exp(x) / others)


def logit(levels: Float[Array, "*shape"], others: float) -> Float[Array, "*shape"]:
    """The x whose level this is: with ω + ln ω = level − ln m it is level − ω = ln mω, of which the one that does not
    cancel is taken."""
    from scipy.special import wrightomega

    omega = np.asarray(wrightomega(levels - np.log(others)))
    return np.where(omega < 1, levels - omega, np.log(others * np.maximum(omega, 1)))


def constant(x: Float[Array, "*shape"], y: Float[Array, "*shape"], others: float) -> Float[Array, "*shape"]:
    """x + eˣ/m − y²/2"""
    return np.asarray(level(x, others) - y**2 / 2)


def logit_at(
    y: Float[Array, " reading"], others: float, start: Float[Array, ""] | float = 0.0
) -> Float[Array, " reading"]:
    """x along a run whose strengths are y, from the first of them on, where x is `start`."""
    return logit(level(np.asarray(start, dtype=float), others) + (y**2 - y[0] ** 2) / 2, others)


def reduced(time: float, state: Float[Array, "2"], length: int, width: int) -> tuple[float, float]:
    """d/dτ of Zucchet et al.'s (w, D)."""
    w, gap = state
    a = 1 / (1 + (length - 1) * np.exp(-gap))
    force = (np.sqrt(width) - a * w) / width
    return a * force, a * (1 - a) * w * force


def reduced_path(
    length: int, width: int, points: int = 201
) -> tuple[Float[Array, " time"], Float[Array, " time"], Float[Array, " time"]]:
    """(τ, w, D) from w = D = 0, until a w is 99 % of the √d at which nothing is left to learn."""
    from scipy.integrate import solve_ivp

    def done(time: float, state: Array, *sizes: int) -> float:
        return float(state[0] / (1 + (length - 1) * np.exp(-state[1])) - 0.99 * np.sqrt(width))

    done.terminal, done.direction = True, 1  # type: ignore[attr-defined]
    end = 100.0 * length * width
    found = solve_ivp(
        reduced,
        (0.0, end),
        np.zeros(2),
        method="DOP853",
        events=done,
        args=(length, width),
        rtol=1e-10,
        atol=1e-12,
        dense_output=True,
    )
    times = np.linspace(0.0, found.t[-1], points)
    w, gap = found.sol(times)
    return times, w, gap


class Fit(NamedTuple):
    """How a run lies on the curve: root mean square deviations of x, as shares of the range of x."""

    scale: float
    """y = scale × the strength that was measured."""
    error: float
    linear: float
    """Of the best x = x₀ + b (k − k₀)."""
    quadratic: float
    """Of the best x = x₀ + b (k² − k₀²)."""
    logarithmic: float
    """Of the best x = x₀ + ln (1 + b k²) − ln (1 + b k₀²): as the curve for large k, but for m."""

    @property
    def best_rival(self) -> float:
        return min(self.linear, self.quadratic, self.logarithmic)


def fitted(x: Float[Array, " reading"], strength: Float[Array, " reading"], others: float) -> Fit:
    """The one unit of y with which a run lies best on the curve through its start, beside rivals that have one number
    to choose as well."""
    span = float(x.max() - x.min())
    if not span > 0 or not np.ptp(strength) > 0:
        raise ValueError("neither the logit nor the strength may stand still")

    def curve(scale: float) -> Array:
        return logit_at(scale * strength, others, x[0])

    def logarithm(scale: float) -> Array:
        grown = np.log1p((scale * strength) ** 2)
        return np.asarray(x[0] + grown - grown[0])

    scale, error = _best(x, curve, strength)
    _, logarithmic = _best(x, logarithm, strength)
    return Fit(scale, *(off / span for off in (error, rival(x, strength), rival(x, strength**2), logarithmic)))


def _best(x: Array, predicted: Callable[[float], Array], strength: Array) -> tuple[float, float]:
    """The scale whose prediction is nearest to x, and its distance; a grid first, as there may be two valleys."""
    from scipy.optimize import minimize_scalar

    def off(log_scale: float) -> float:
        return rms(x - predicted(float(np.exp(log_scale))))

    grid = np.linspace(*SCALES, GRID) - np.log(np.abs(strength).max())
    nearest = int(np.argmin([off(one) for one in grid]))
    bounds = (grid[max(0, nearest - 1)], grid[min(GRID - 1, nearest + 1)])
    found = minimize_scalar(off, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return float(np.exp(found.x)), float(found.fun)


def rival(x: Float[Array, " reading"], feature: Float[Array, " reading"]) -> float:
    """What least squares through the start leaves."""
    rise, along = x - x[0], feature - feature[0]
    return rms(rise - along * (rise @ along) / (along @ along))


def rms(values: Float[Array, " reading"]) -> float:
    return float(np.sqrt(np.mean(values**2)))
