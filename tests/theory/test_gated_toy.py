"""Closed forms against the integrated equations, and the equations against autograd."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attndyn.theory import gated_toy as toy

numbers = st.floats(-2, 2, allow_nan=False)


@settings(max_examples=15)
@given(p=numbers, delta=numbers, total=numbers)
def test_the_closed_form_solves_the_free_gate(p: float, delta: float, total: float) -> None:
    path = toy.integrate(toy.free, toy.State((total - delta) / 2, (total + delta) / 2, p), 3.0, points=31)
    gate, difference = toy.closed_form(p, delta, path.times)
    np.testing.assert_allclose(path.gate, gate, atol=1e-6)
    np.testing.assert_allclose(path.delta, difference, atol=1e-6)
    np.testing.assert_allclose(path.b0 + path.b1, total, atol=1e-6)
    np.testing.assert_allclose(gate**2 - difference**2 / 2, p**2 - delta**2 / 2, atol=1e-7)


@given(b0=numbers, b1=numbers, gate=numbers)
def test_the_rates_are_the_gradient_of_the_loss(b0: float, b1: float, gate: float) -> None:
    for rates, bound in ((toy.free, lambda a: a), (toy.softmax, torch.sigmoid)):
        state = torch.tensor([b0, b1, gate], dtype=torch.float64, requires_grad=True)
        toy.loss(state[0], state[1], bound(state[2])).backward()
        np.testing.assert_allclose(rates(0.0, np.array([b0, b1, gate])), -state.grad.numpy(), atol=1e-12)


@settings(max_examples=15)
@given(p=st.floats(-1, 1), delta=numbers)
def test_the_line_decides_where_the_free_gate_ends(p: float, delta: float) -> None:
    side = toy.side(p, delta)
    assume(abs(side) > 1e-3)
    end = toy.ends(toy.free, np.array([[-delta / 2], [delta / 2], [p]]), 15.0)
    assert np.sign(end[2, 0]) == np.sign(side)
    assert abs(end[2, 0]) > 10
    assert toy.loss(*end[:, 0]) < -100, "the loss falls on both sides"


def test_on_the_line_the_gate_dies_away() -> None:
    path = toy.integrate(toy.free, toy.State(np.sqrt(0.5) / 2, -np.sqrt(0.5) / 2, 0.5), 5.0)
    np.testing.assert_allclose(path.gate, 0.5 * np.exp(-toy.ROOT * path.times), atol=1e-6)


@settings(max_examples=15)
@given(delta=st.floats(-4, 4))
def test_the_softmax_gate_keeps_its_constant(delta: float) -> None:
    path = toy.integrate(toy.softmax, toy.State(-delta / 2, delta / 2, 0.0), 20.0)
    np.testing.assert_allclose(path.gate, toy.gate_at(path.delta, delta), atol=1e-7)
    assert (np.diff(path.delta) > 0).all()


def test_the_softmax_gate_opens_in_the_end() -> None:
    for delta in (-3.0, 0.0, 3.0):
        state = toy.State(-delta / 2, delta / 2, -1.0)
        path = toy.integrate(toy.softmax, state, 1e5, points=2, until=lambda now: toy.sigmoid(now[2]) - 0.99)
        assert path.times[-1] < 1e5


@pytest.mark.parametrize(("delta", "time"), [(-4.0, 43.0), (-5.0, 347.0)])
def test_the_time_of_recovery(delta: float, time: float) -> None:
    path = toy.integrate(toy.softmax, toy.State(-delta / 2, delta / 2, 0.0), 1e4, points=2, until=lambda now: now[2])
    assert path.times[-1] == pytest.approx(time, abs=0.5)
    assert toy.recovery_time(delta) == pytest.approx(path.times[-1], rel=1e-8)
    assert path.delta[-1] == pytest.approx(-delta, rel=1e-8)


def test_the_law_of_recovery_is_its_limit() -> None:
    ratios = [toy.recovery_time(-depth) / toy.recovery_law(depth) for depth in (4.0, 6.0, 8.0, 20.0)]
    assert ratios[0] > 1.2
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[-1] == pytest.approx(1, abs=1e-9)


def test_the_share_of_drawn_starts() -> None:
    b0, b1 = np.random.default_rng(0).normal(0, 0.7, (2, 200_000))
    assert toy.share_right(0.7) == pytest.approx((toy.side(0.5, b1 - b0) > 0).mean(), abs=0.005)
    assert toy.share_right(0.0) == 1.0


def test_many_starts_together_are_each_alone() -> None:
    states = np.random.default_rng(1).normal(size=(3, 5))
    ends = toy.ends(toy.softmax, states, 4.0)
    for start, end in zip(states.T, ends.T, strict=True):
        path = toy.integrate(toy.softmax, toy.State(*start), 4.0, points=2)
        np.testing.assert_allclose([path.b0[-1], path.b1[-1], path.gate[-1]], end, atol=1e-7)


def test_a_path_stops_where_it_is_told() -> None:
    path = toy.integrate(toy.free, toy.State(0.0, 0.0, 0.5), 5.0, points=11, until=lambda now: now[2] - 1)
    assert path.times[-1] == pytest.approx(np.arccosh(2) / np.sqrt(2), abs=1e-8)
    assert path.times.tolist()[:2] == [0.0, 0.5]
    assert path.gate[-1] == pytest.approx(1)
