"""The common first integral against integrated equations and plain definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attndyn.theory import gated_toy, invariant, topic_identity

others = st.floats(0.5, 1e4)


@given(st.floats(-20, 20), others)
def test_logit_is_the_inverse_of_level(x: float, m: float) -> None:
    assert float(invariant.logit(invariant.level(np.array(x), m), m)) == pytest.approx(x, abs=1e-9)


@settings(max_examples=15)
@given(st.floats(-3, 5), st.floats(-3, 3), others, st.floats(0.1, 2.0))
def test_the_flow_keeps_it_whatever_drives_it(x0: float, y0: float, m: float, force: float) -> None:
    """y' = a g, x' = a (1 − a) y g with a force g that depends on everything, by small steps of order 4."""

    def rates(state: np.ndarray, time: float) -> np.ndarray:
        x, y = state
        a = 1 / (1 + m * np.exp(-x))
        g = force * (1 + 0.5 * np.sin(3 * time)) * (2 - 0.1 * y)
        return np.array([a * (1 - a) * y * g, a * g])

    state, h = np.array([x0, y0]), 0.02
    for number in range(50):
        time = number * h
        k1 = rates(state, time)
        k2 = rates(state + h / 2 * k1, time + h / 2)
        k3 = rates(state + h / 2 * k2, time + h / 2)
        k4 = rates(state + h * k3, time + h)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    before, after = (float(invariant.constant(np.array(x), np.array(y), m)) for x, y in ((x0, y0), state))
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6)
    predicted = invariant.logit_at(np.array([y0, state[1]]), m, x0)[1]
    assert predicted == pytest.approx(state[0], abs=1e-5)


def test_it_is_the_identity_of_topic_words() -> None:
    score, norm = np.array([0.0, 1.0, 3.0]), np.array([0.1, 1.5, 2.0])
    np.testing.assert_allclose(invariant.constant(score, norm, 20.0), topic_identity.invariant(score, norm, 20.0))
    on_curve = topic_identity.simple_norm(score, 20.0)
    np.testing.assert_allclose(invariant.logit_at(on_curve, 20.0), score, atol=1e-12)


def test_it_is_the_constant_of_the_softmax_gate() -> None:
    path = gated_toy.integrate(gated_toy.softmax, gated_toy.State(1.0, -1.0, 0.0), 16.0)
    kept = invariant.constant(path.gate, path.delta / np.sqrt(2), 1.0)
    assert np.ptp(kept) < 1e-9 * invariant.level(path.gate, 1.0).max()
    np.testing.assert_allclose(kept, path.gate + np.exp(path.gate) - path.delta**2 / 4, atol=1e-12)


@pytest.mark.parametrize(("length", "width"), [(2, 16), (64, 64), (512, 1024)])
def test_it_is_a_constant_of_the_reduced_model(length: int, width: int) -> None:
    times, w, gap = invariant.reduced_path(length, width)
    assert np.ptp(invariant.constant(gap, w, float(length - 1))) < 1e-6
    a = 1 / (1 + (length - 1) * np.exp(-gap))
    assert a[-1] * w[-1] / np.sqrt(width) == pytest.approx(0.99, abs=1e-6)
    slope = np.gradient(w, times)[len(times) // 2]
    middle = invariant.reduced(0.0, np.array([w[len(times) // 2], gap[len(times) // 2]]), length, width)
    assert slope == pytest.approx(middle[0], rel=0.02)


@pytest.mark.parametrize(("sizes", "published"), [(((256, 256), (1024, 256)), 0.99), (((512, 64), (512, 256)), 0.49)])
def test_the_plateau_of_the_reduced_model_grows_as_published(sizes, published: float) -> None:
    """Zucchet et al.: the time until attention is there grows as T^.99 and as d^.49."""
    ends = []
    for length, width in sizes:
        times, _, gap = invariant.reduced_path(length, width, 2001)
        ends.append(times[np.argmax(gap > np.log(length - 1))])  # a = ½
    assert np.log(ends[1] / ends[0]) / np.log(4) == pytest.approx(published, abs=0.02)


@settings(max_examples=15)
@given(st.floats(0.01, 50), st.integers(1, 200))
def test_a_run_on_the_curve_gives_its_unit_back(scale: float, m: int) -> None:
    y = np.linspace(0.0, 8.0, 40)
    fit = invariant.fitted(invariant.logit_at(y, float(m)), y / scale, float(m))
    assert fit.scale == pytest.approx(scale, rel=1e-4)
    assert fit.error < 1e-5
    assert fit.best_rival > 1e-3


def test_rivals_win_on_their_own_curves() -> None:
    k = np.linspace(0.1, 5.0, 50)
    assert invariant.fitted(2 * k, k, 40.0).linear < 1e-12 < invariant.fitted(2 * k, k, 40.0).error
    assert invariant.fitted(k**2, k, 40.0).quadratic < 1e-12
    logarithm = invariant.fitted(np.log1p(3 * k**2), k, 40.0)
    assert logarithm.logarithmic < 1e-6
    assert logarithm.best_rival == logarithm.logarithmic < logarithm.error


def test_the_fit_is_the_best_of_many_scales() -> None:
    random = np.random.default_rng(0)
    k = np.cumsum(random.uniform(size=60))
    x = np.log1p(k) + 0.1 * random.normal(size=60)
    fit = invariant.fitted(x, k, 12.0)
    tried = [
        np.sqrt(np.mean((x - invariant.logit_at(scale * k, 12.0, x[0])) ** 2)) / np.ptp(x)
        for scale in np.geomspace(1e-3, 1e3, 5000)
    ]
    assert fit.error <= min(tried) + 1e-9
    assert fit.error == pytest.approx(min(tried), rel=1e-3)


def test_a_run_that_stands_still_cannot_be_fitted() -> None:
    with pytest.raises(ValueError, match="may stand still"):
        invariant.fitted(np.zeros(5), np.arange(5.0), 3.0)
