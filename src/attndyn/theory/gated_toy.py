"""The toy classifier of the blog post: two word weights β₀, β₁ and a gate p, under gradient flow.

Source: the post's warm-up. The sequences {0, 0} (negative) and {0, 1} (positive) are scored s₀ = β₀ and
s₁ = (1 − p) β₀ + p β₁, and the loss is L = s₀ − s₁ = p (β₀ − β₁). (The post prints s₁ − s₀, and the wrong variable
under the derivative for β₁; its algebra is that of s₀ − s₁.) With δ = β₁ − β₀ gradient flow is

    free gate      β₀' = −p,  β₁' = p,  p' = δ                     (the post's)
    softmax gate   β₀' = −p,  β₁' = p,  a' = p (1 − p) δ,  p = σ(a)  (a softmax over the scores a and 0)

The free gate is linear. With r = √2

    p(t) = p₀ cosh rt + (δ₀/r) sinh rt,    δ(t) = δ₀ cosh rt + r p₀ sinh rt,

so p ends at +∞ above the line √2 p₀ + δ₀ = 0, at −∞ below it, and at 0 on it; the loss falls to −∞ on both sides. The
softmax gate has δ' = 2p > 0, so p ends at 1 from every start; a + eᵃ − δ²/4 never changes. But a gate that has closed
opens again only after a time of about √π exp(δ₀²/4 − 1).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

ROOT = np.sqrt(2.0)


class State(NamedTuple):
    """β₀, β₁ and the gate's own parameter: p itself for the free gate, the score a for the softmax gate."""

    b0: float
    b1: float
    gate: float


class Path(NamedTuple):
    """A trajectory; the last time is the one at which it was told to end, or at which it met its `until`."""

    times: Float[np.ndarray, " time"]
    b0: Float[np.ndarray, " time"]
    b1: Float[np.ndarray, " time"]
    gate: Float[np.ndarray, " time"]

    @property
    def delta(self) -> Float[np.ndarray, " time"]:
        return self.b1 - self.b0


Number = Any
"""A float, an array or a tensor."""
Rates = Callable[[float, np.ndarray], tuple[Number, Number, Number]]


def scores(b0: Number, b1: Number, p: Number) -> tuple[Number, Number]:
    """s₀ and s₁."""
    return b0, (1 - p) * b0 + p * b1


def loss(b0: Number, b1: Number, p: Number) -> Number:
    """s₀ − s₁"""
    negative, positive = scores(b0, b1, p)
    return negative - positive


def free(time: float, state: np.ndarray) -> tuple[Number, Number, Number]:
    """d/dτ of (β₀, β₁, p), p unbounded."""
    b0, b1, p = state
    return -p, p, b1 - b0


def softmax(time: float, state: np.ndarray) -> tuple[Number, Number, Number]:
    """d/dτ of (β₀, β₁, a), p = σ(a)."""
    b0, b1, a = state
    p = sigmoid(a)
    return -p, p, p * (1 - p) * (b1 - b0)


def integrate(
    rates: Rates, state: State, end: float, *, points: int = 201, until: Callable[[np.ndarray], float] | None = None
) -> Path:
    """Runge-Kutta of order 8 at a relative tolerance of 1e-10, read at evenly spaced times; stops early where
    `until(state)` rises through 0."""
    from scipy.integrate import solve_ivp

    event = None
    if until is not None:

        def event(time: float, now: np.ndarray) -> float:
            return until(now)

        event.terminal, event.direction = True, 1  # type: ignore[attr-defined]
    times = np.linspace(0.0, end, points)
    found = solve_ivp(
        rates, (0.0, end), np.array(state), method="DOP853", t_eval=times, events=event, rtol=1e-10, atol=1e-12
    )
    if found.status < 0:
        raise ArithmeticError(f"the integration stopped at {found.t[-1]:g}: {found.message}")
    stopped, values = found.t, found.y
    if found.status == 1:
        stopped = np.append(stopped, found.t_events[0][-1])
        values = np.column_stack([values, found.y_events[0][-1]])
    return Path(stopped, *values)


def ends(rates: Rates, states: Float[np.ndarray, "3 start"], end: float) -> Float[np.ndarray, "3 start"]:
    """Where many starts are at time `end`, integrated together."""
    from scipy.integrate import solve_ivp

    def together(time: float, flat: np.ndarray) -> np.ndarray:
        return np.concatenate(rates(time, flat.reshape(states.shape)))

    found = solve_ivp(together, (0.0, end), states.ravel(), method="DOP853", t_eval=[end], rtol=1e-10, atol=1e-12)
    return found.y[:, -1].reshape(states.shape)


def closed_form(p: float, delta: float, times: Float[np.ndarray, " time"]) -> tuple[np.ndarray, np.ndarray]:
    """p(t) and δ(t) of the free gate."""
    even, odd = np.cosh(ROOT * times), np.sinh(ROOT * times)
    return p * even + delta / ROOT * odd, delta * even + ROOT * p * odd


def side(p: Number, delta: Number) -> Number:
    """Above 0: the free gate ends on the right token; below 0: on the wrong one; 0: the separatrix."""
    return ROOT * p + delta


def share_right(spread: float, p: float = 0.5) -> float:
    """The share of starts β ~ N(0, spread²) from which the free gate ends on the right token: Φ(p₀/spread)."""
    from scipy.special import ndtr

    return float(ndtr(p / spread)) if spread > 0 else 1.0


def gate_at(delta: Number, start: float) -> Number:
    """a of the softmax gate where it passes δ, having started at δ = `start` with p = ½: it solves
    a + eᵃ = 1 + (δ² − start²)/4."""
    from scipy.special import wrightomega

    level = 1 + (delta**2 - start**2) / 4
    return level - wrightomega(level)


def recovery_time(delta: float) -> float:
    """How long the softmax gate takes from (δ, p = ½), δ < 0, back to p = ½, which it reaches at −δ: the integral of
    dδ/2p over the way."""
    from scipy.integrate import quad

    half, _ = quad(lambda x: (1 + np.exp(-gate_at(x, delta))) / 2, 0.0, abs(delta), epsabs=0, epsrel=1e-10)
    return 2 * float(half)  # p is the same at δ and at −δ


def recovery_law(delta: float) -> float:
    """√π exp(δ²/4 − 1): what `recovery_time` tends to as δ falls."""
    return float(np.sqrt(np.pi) * np.exp(delta**2 / 4 - 1))


def sigmoid(score: Number) -> Number:
    from scipy.special import expit

    return expit(score)
