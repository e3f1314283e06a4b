"""A, Â, τ and ξ of padded batches against their definitions, one row at a time."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import agreement as slow
from scipy import stats

import attndyn
from attndyn.measures.agreement import (
    Rows,
    agreement,
    chance,
    kendall_tau,
    shuffled_chance,
    tau_p_values,
    xi,
    xi_star,
)

GARBAGE = 1e9
percents = st.sampled_from([1, 5, 20, 50, 100])
levels = {
    "coarse": st.integers(-1, 1),
    "fine": st.floats(-10, 10, width=32),
    "with −∞": st.sampled_from([-np.inf, 0.0]),
}
Pair = tuple[list[float], list[float]]


@st.composite
def ragged(draw: Any, longest: int = 25) -> list[Pair]:
    """Pairs of rows, of their own lengths; coarse values make ties and constant rows."""
    pairs = []
    for _ in range(draw(st.integers(1, 6))):
        length, value = draw(st.integers(1, longest)), levels[draw(st.sampled_from(sorted(levels)))]
        row = st.lists(value.map(float), min_size=length, max_size=length)
        pairs.append((draw(row), draw(row)))
    return pairs


def padded(pairs: list[Pair], left: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One batch with garbage where nothing is, and a last row of padding alone."""
    longest = max(len(u) for u, _ in pairs) + left + 1
    u, v = torch.full((2, len(pairs) + 1, longest), GARBAGE, dtype=torch.float64)
    mask = torch.zeros(len(pairs) + 1, longest, dtype=torch.bool)
    for row, (first, second) in enumerate(pairs):
        place = slice(left, left + len(first))
        u[row, place], v[row, place], mask[row, place] = torch.tensor(first), torch.tensor(second), True
    return u, v, mask


def same(measured: Rows, expected: list[float]) -> None:
    """Equal in every row; the row of padding has no value and is not counted."""
    np.testing.assert_allclose(measured.values[:-1].numpy(), np.array(expected), rtol=1e-15, atol=0)
    assert math.isnan(measured.values[-1])
    defined = [value for value in expected if not math.isnan(value)]
    assert (measured.n, measured.n_undefined) == (len(defined), len(expected) - len(defined))
    assert measured.mean == pytest.approx(np.mean(defined), rel=1e-12, abs=1e-12)


@given(pairs=ragged(), percent=percents, left=st.integers(0, 2))
def test_agreement_is_its_definition(pairs: list[Pair], percent: int, left: int) -> None:
    same(agreement(*padded(pairs, left), percent), [slow.agreement(u, v, percent) for u, v in pairs])


@given(pairs=ragged(longest=6), percent=percents)
def test_chance_is_the_mean_over_all_orders(pairs: list[Pair], percent: int) -> None:
    _, v, mask = padded(pairs)
    measured = chance(v, mask, percent).values[:-1].tolist()
    assert measured == pytest.approx([slow.chance(v, percent) for _, v in pairs], rel=1e-12)


@pytest.mark.parametrize("length", [1, 7, 19, 20, 21, 40, 41, 100])
def test_chance_without_ties_is_five_percent_rounded_up(length: int) -> None:
    row = torch.randperm(length, generator=torch.Generator().manual_seed(0))
    assert chance(row).mean == -(-5 * length // 100) / length


def test_shuffled_chance_comes_near_the_exact_one() -> None:
    """Within four standard errors of 20,000 draws; ties in v raise both alike."""
    v = torch.randint(0, 12, (20_000, 30), generator=torch.Generator().manual_seed(0))
    mask = torch.arange(30) < torch.arange(20_000)[:, None] % 30 + 1
    exact = chance(v, mask).mean
    error = math.sqrt(exact * (1 - exact) / len(v))
    assert abs(shuffled_chance(v, mask, seed=3).mean - exact) < 4 * error
    assert torch.equal(shuffled_chance(v, mask, seed=3).values, shuffled_chance(v, mask, seed=3).values)
    assert not torch.equal(shuffled_chance(v, mask, seed=3).values, shuffled_chance(v, mask, seed=4).values)


@given(pairs=ragged(), left=st.integers(0, 2))
def test_tau_is_its_definition(pairs: list[Pair], left: int) -> None:
    expected = [slow.kendall_tau(u, v) for u, v in pairs]
    if all(map(math.isnan, expected)):
        with pytest.raises(ValueError, match=f"undefined in all of the {len(pairs)} rows"):
            kendall_tau(*padded(pairs, left))
    else:
        measured = kendall_tau(*padded(pairs, left))
        assert measured.values[:-1].tolist() == pytest.approx(expected, rel=1e-14, nan_ok=True)
        assert measured.n_undefined == sum(map(math.isnan, expected))


@given(pairs=ragged())
def test_tau_equals_scipy(pairs: list[Pair]) -> None:
    """The same integers, divided in the same order; torch's vectorised square root may round otherwise."""
    pairs = [*pairs, ([1.0, 2.0], [1.0, 2.0])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy warns about rows of one position
        same(kendall_tau(*padded(pairs)), [float(stats.kendalltau(u, v).statistic) for u, v in pairs])


@given(pairs=ragged(), seed=st.integers(0, 99))
def test_tau_does_not_see_the_order_of_the_positions_and_changes_sign_with_one_side(
    pairs: list[Pair], seed: int
) -> None:
    u, v, mask = padded([*pairs, ([1.0, 2.0], [1.0, 2.0])])
    order = torch.randperm(u.shape[1], generator=torch.Generator().manual_seed(seed))
    there = kendall_tau(u, v, mask).values
    torch.testing.assert_close(kendall_tau(u[:, order], v[:, order], mask[:, order]).values, there, equal_nan=True)
    torch.testing.assert_close(kendall_tau(-u, v, mask).values, -there, equal_nan=True)
    torch.testing.assert_close(kendall_tau(v, u, mask).values, there, equal_nan=True)


def test_a_tie_in_v_agrees_and_the_first_peak_of_u_counts() -> None:
    flat, rising = torch.zeros(30), torch.arange(30.0)
    assert agreement(rising, flat).mean == 1
    assert agreement(flat, rising).mean == 0, "the first position of a constant row is its peak, and the lowest here"
    assert agreement(flat, rising, percent=100).mean == 1
    two_peaks = torch.tensor([0.0, 5.0, 5.0])
    assert agreement(two_peaks, torch.tensor([1.0, 3.0, 2.0])).mean == 1
    assert agreement(two_peaks, torch.tensor([1.0, 2.0, 3.0])).mean == 0


def test_it_is_not_symmetric() -> None:
    u, v = torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1.0, 1.0, 0.0])
    assert (agreement(u, v).mean, agreement(v, u).mean) == (1, 1)
    assert (agreement(u, v.flip(0)).mean, agreement(v.flip(0), u).mean) == (0, 0)
    u, v = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 1.0, 2.0])
    assert (agreement(u, v).mean, agreement(v, u).mean) == (1, 0)


def test_rows_of_nan_are_undefined_and_counted() -> None:
    u = torch.tensor([[1.0, torch.nan], [1.0, 2.0]])
    v = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for measure in (agreement, kendall_tau):
        rows = measure(u, v)
        assert (rows.mean, rows.n, rows.n_undefined) == (1, 1, 1)
    mask = torch.tensor([[True, False], [True, True]])
    assert agreement(u, v, mask).n_undefined == 0, "the NaN is padding"
    with pytest.raises(ValueError, match="undefined in all of the 1 rows"):
        agreement(u[:1], v[:1])
    with pytest.raises(ValueError, match="undefined in all of the 0 rows"):
        agreement(u, v, torch.zeros(2, 2, dtype=torch.bool))


def test_leading_axes_stay_and_one_mask_serves_all_queries() -> None:
    generator = torch.Generator().manual_seed(0)
    u, v = torch.rand(2, 3, 4, 5, 6, generator=generator)
    mask = torch.ones(1, 4, 1, 6, dtype=torch.bool)
    mask[:, 2, :, 4:] = False
    rows = kendall_tau(u, v, mask)
    assert rows.values.shape == (3, 4, 5)
    assert rows.values[1, 2, 3] == stats.kendalltau(u[1, 2, 3, :4], v[1, 2, 3, :4]).statistic
    by_hand = [rows.values[replica].mean().item() for replica in range(3)]
    assert rows.mean_for_each().tolist() == pytest.approx(by_hand)
    assert agreement(u[:1], v, mask).values.shape == (3, 4, 5), "one gold α against three replicas"


def test_plain_arrays_and_lists() -> None:
    alpha, beta = np.array([[0.1, 0.9], [0.7, 0.3]]), [[1, 2], [2**53, 2**53 + 1]]
    alpha.setflags(write=False)
    assert attndyn.agreement(alpha, beta, np.ones((2, 2), dtype=bool)).values.tolist() == [1, 1], "2⁵³ + 1 is 2⁵³"
    assert attndyn.kendall_tau([1, 2, 3], (3, 2, 1)).mean == -1
    assert agreement(torch.rand(4, requires_grad=True), torch.rand(4)).n == 1


@pytest.mark.parametrize(
    ("u", "v", "mask", "sentence"),
    [
        (torch.zeros(3, 3, 5), torch.zeros(3, 3, 5), torch.ones(3, 5), r"\[3, 3, 5\], \[3, 3, 5\], \[3, 5\]"),
        (torch.zeros(3, 5), torch.zeros(3, 4), None, "same lengths"),
        (torch.tensor(1.0), torch.tensor(1.0), None, "input positions last"),
    ],
)
def test_shapes_that_do_not_fit(u: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, sentence: str) -> None:
    for measure in (agreement, kendall_tau):
        with pytest.raises(attndyn.UserError, match=sentence):
            measure(u, v, mask)


def test_impossible_requests() -> None:
    for percent in (0, -5, 101, math.nan):
        with pytest.raises(attndyn.UserError, match="at most 100"):
            agreement(torch.zeros(3), torch.zeros(3), percent=percent)
    with pytest.raises(ValueError, match="no row"):
        agreement(torch.zeros(0, 3), torch.zeros(0, 3))


curves = st.integers(1, 4).flatmap(
    lambda seeds: st.lists(
        st.lists(st.integers(0, 8).map(lambda eighth: eighth / 8), min_size=seeds, max_size=seeds),
        min_size=1,
        max_size=6,
    )
)


@given(curve=curves, threshold=st.integers(0, 16).map(lambda part: part / 16))
def test_xi_is_its_definition(curve: list[list[float]], threshold: float) -> None:
    agreements = np.array(curve).T
    performances = np.arange(agreements.size).reshape(agreements.shape) / 2
    expected = slow.xi(threshold, agreements.tolist(), performances.tolist())
    assert xi(threshold, agreements, performances).item() == pytest.approx(expected, nan_ok=True)


def test_xi_takes_many_thresholds_and_never_is_an_answer() -> None:
    found = attndyn.xi([0.1, 0.5, 0.9], [0.1, 0.4, 0.8, 0.6], [50, 60, 70, 75])
    assert found[:2].tolist() == [60, 70]
    assert math.isnan(found[2])
    assert xi(0.05, [0.1, 0.4], [50, 60]).item() == 50


def test_xi_star_of_the_program_and_of_the_text() -> None:
    assert xi_star([50, 90, 80]) == 90
    assert xi_star([50, 90, 80], at="last") == 80


def test_xi_of_curves_that_do_not_fit() -> None:
    with pytest.raises(attndyn.UserError, match=r"\[3\] and \[2\]"):
        xi(0.5, [0.1, 0.2, 0.3], [1, 2])
    with pytest.raises(attndyn.UserError, match="NaN"):
        xi(math.nan, [0.1], [1])
    with pytest.raises(attndyn.UserError, match="one run"):
        xi_star([])


def test_p_values_of_tau_are_those_of_scipy() -> None:
    """Exact to 33 positions, by the normal limit beyond; without ties."""
    draw = np.random.default_rng(0)
    for length in (2, 3, 5, 12, 33, 34, 120):
        u, v = draw.normal(size=(2, 6, length))
        v += u * np.linspace(0, 2, 6)[:, None]
        wanted = [stats.kendalltau(a, b).pvalue for a, b in zip(u, v, strict=True)]
        found = tau_p_values(kendall_tau(u, v).values, torch.tensor([length]))
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-12)


def test_the_p_value_of_an_undefined_tau_is_undefined() -> None:
    found = tau_p_values(torch.tensor([math.nan, 0.0], dtype=torch.float64), torch.tensor([5, 5]))
    assert found.isnan().tolist() == [True, False]
    assert found[1] == 1


def test_infinities_are_numbers_and_nan_is_none() -> None:
    """A sum of both infinities is NaN, too: that alone makes no row undefined."""
    v = [[np.inf, -np.inf, 0.0], [np.nan, 1.0, 0.0], [2.0, 1.0, 0.0]]
    found = agreement([[3.0, 2.0, 1.0]] * 3, v)
    assert found.values.tolist() == pytest.approx([1.0, np.nan, 1.0], nan_ok=True)
    assert (found.n, found.n_undefined) == (2, 1)
