from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest, t, ttest_ind

from attndyn.measures import verdicts
from attndyn.measures.verdicts import DIFFERS, HOLDS, INCONCLUSIVE, Interval


@given(n=st.integers(1, 200), data=st.data())
def test_share_interval_is_clopper_and_pearsons(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    expected = binomtest(k, n).proportion_ci(confidence_level=0.95, method="exact")
    interval = verdicts.share_interval(k, n)
    assert interval.low == pytest.approx(expected.low, abs=1e-9)
    assert interval.high == pytest.approx(expected.high, abs=1e-9)
    assert interval.low <= k / n <= interval.high


def test_share_interval_of_all_and_of_none() -> None:
    """With no success the upper end solves (1 − p)^n = .025."""
    assert verdicts.share_interval(0, 20) == pytest.approx((0, 1 - 0.025 ** (1 / 20)))
    assert verdicts.share_interval(20, 20) == pytest.approx((0.025 ** (1 / 20), 1))


@pytest.mark.parametrize(("k", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_what_is_no_share_raises(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="not a share"):
        verdicts.share_interval(k, n)


def by_hand(a: int, n_a: int, b: int, n_b: int) -> tuple[float, float, float]:
    """Fisher's p from the hypergeometric distribution in fractions: two-sided, greater, less."""
    total = comb(n_a + n_b, a + b)

    def chance(x: int) -> Fraction:
        return Fraction(comb(n_a, x) * comb(n_b, a + b - x), total)

    possible = range(max(0, a + b - n_b), min(n_a, a + b) + 1)
    here = chance(a)
    two_sided = sum(chance(x) for x in possible if chance(x) <= here)
    return (
        float(two_sided),
        float(sum(chance(x) for x in possible if x >= a)),
        float(sum(chance(x) for x in possible if x <= a)),
    )


def test_fisher_on_the_lady_tasting_tea() -> None:
    """Three of four cups against one of four: 17/70, and twice that."""
    assert verdicts.fisher(3, 4, 1, 4, "greater") == pytest.approx(17 / 70)
    assert verdicts.fisher(3, 4, 1, 4) == pytest.approx(34 / 70)
    assert verdicts.fisher(1, 4, 3, 4, "less") == pytest.approx(17 / 70)


@given(n_a=st.integers(1, 15), n_b=st.integers(1, 15), data=st.data())
def test_fisher_by_hand(n_a: int, n_b: int, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(0, n_a)), data.draw(st.integers(0, n_b))
    found = [verdicts.fisher(a, n_a, b, n_b, side) for side in ("two-sided", "greater", "less")]
    assert found == pytest.approx(by_hand(a, n_a, b, n_b), abs=1e-9)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.1, 2.0, HOLDS),
        (-2.0, -0.1, DIFFERS),
        (-1.0, 1.0, INCONCLUSIVE),
        (0.0, 1.0, INCONCLUSIVE),
        (-1.0, 0.0, INCONCLUSIVE),
    ],
)
def test_by_sign(low: float, high: float, verdict: str) -> None:
    assert verdicts.by_sign(Interval(low, high)) == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.51, 0.9, HOLDS),
        (0.1, 0.49, DIFFERS),
        (0.4, 0.6, INCONCLUSIVE),
        (0.5, 1.0, INCONCLUSIVE),
        (0.0, 0.5, INCONCLUSIVE),
    ],
)
def test_by_majority(low: float, high: float, verdict: str) -> None:
    assert verdicts.by_majority(Interval(low, high)) == verdict


def test_there_are_five_different_verdicts() -> None:
    assert len(set(verdicts.VERDICTS)) == 5
    assert {HOLDS, DIFFERS, INCONCLUSIVE} < set(verdicts.VERDICTS)


def test_the_interval_of_a_mean_is_students() -> None:
    interval = verdicts.mean_interval([1.0, 2.0, 3.0])
    expected = t.interval(0.95, 2, loc=2.0, scale=3**-0.5)
    assert interval == pytest.approx(expected)
    with pytest.raises(ValueError, match="at least two runs"):
        verdicts.mean_interval([1.0])


def test_one_mean_of_several_has_a_wider_interval() -> None:
    one, of_six = (verdicts.mean_interval([1.0, 2.0, 3.0], tries=tries) for tries in (1, 6))
    assert of_six.high - 2 == pytest.approx((one.high - 2) * 10.886 / 4.3027, rel=1e-3)  # t(2) at 1 − .05/12


def test_the_interval_of_a_mean_ends_where_the_values_do() -> None:
    ranks = [0.95, -0.2, 0.98]
    free, bounded = verdicts.mean_interval(ranks), verdicts.mean_interval(ranks, -1.0, 1.0)
    assert free.low < -1 < 1 < free.high
    assert bounded == (-1, 1)
    assert verdicts.mean_interval([0.1, 0.2, 0.15], -1.0, 1.0) == verdicts.mean_interval([0.1, 0.2, 0.15])


@given(
    first=st.lists(st.floats(-1, 1), min_size=2, max_size=6),
    second=st.lists(st.floats(-1, 1), min_size=2, max_size=6),
    tries=st.integers(1, 6),
)
def test_welch_interval_is_scipys(first: list[float], second: list[float], tries: int) -> None:
    assume(min(np.std(first), np.std(second)) > 1e-3)
    expected = ttest_ind(first, second, equal_var=False).confidence_interval(1 - 0.05 / tries)
    found = verdicts.welch_interval(first, second, tries)
    assert found == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-9)


def test_welch_interval_needs_two_runs_and_takes_runs_that_do_not_differ() -> None:
    assert verdicts.welch_interval([0.5] * 3, [0.25] * 3) == (0.25, 0.25)
    for first, second in (([0.5] * 2, [0.25] * 3), ([0.5] * 3, [0.25] * 2)):  # two equal values tell of no spread
        assert verdicts.by_sign(verdicts.welch_interval(first, second)) == INCONCLUSIVE
    with pytest.raises(ValueError, match="at least two runs on each side"):
        verdicts.welch_interval([0.5], [0.25, 0.3])


def test_two_equal_values_do_not_tell_how_far_runs_differ() -> None:
    assert verdicts.mean_interval([0.4, 0.4], 0.0, 1.0) == (0, 1)
    assert verdicts.mean_interval([0.4] * 3, 0.0, 1.0) == pytest.approx((0.4, 0.4))


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ([100.0, 200.0, 150.0], [400.0, 700.0, 650.0], HOLDS),
        ([400.0, 700.0, 650.0], [100.0, 200.0, 150.0], DIFFERS),
        ([1500.0, 4000.0, 2000.0, 1000.0], [1500.0, 4000.0, 2000.0, 500.0], INCONCLUSIVE),
        ([0.0, 0.0, 0.0], [10.0, 20.0, 10.0], HOLDS),
        ([100.0], [400.0], INCONCLUSIVE),
        ([100.0] * 2, [400.0] * 2, INCONCLUSIVE),
    ],
)
def test_which_of_two_steps_comes_later(first: list[float], second: list[float], verdict: str) -> None:
    found = verdicts.later_by(first, second)
    assert verdicts.by_factor(found) == verdict
    if len(first) > 2:
        factors = [(b + 1) / (a + 1) for a, b in zip(first, second, strict=True)]
        assert found.low < np.exp(np.mean(np.log(factors))) < found.high
        back = verdicts.later_by(second, first)
        assert (1 / back.high, 1 / back.low) == pytest.approx(found)
