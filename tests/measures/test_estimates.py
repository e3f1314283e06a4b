"""Intervals over runs and examples: each part against its definition, and how often they hold the truth."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.measures import estimates
from attndyn.measures.verdicts import Interval, mean_interval


def test_one_run_has_the_interval_of_resampled_examples() -> None:
    random = np.random.default_rng(0)
    values = random.random((1, 1, 60)) ** 2
    values[0, 0, :5] = np.nan
    means = [np.nanmean(values[..., random.integers(60, size=60)]) for _ in range(4000)]
    found = estimates.interval(values)
    assert np.abs(np.array(found) - np.quantile(means, [0.025, 0.975])).max() < 0.01
    assert found.low < np.nanmean(values) < found.high
    assert estimates.interval(values) == found, "it repeats itself"
    assert estimates.interval(np.ones((2, 5))) == (1.0, 1.0)


@pytest.mark.parametrize("scores", [[0.2, 0.5], [0.1, 0.4, 0.6, 0.3, 0.35, 0.2]])
def test_runs_that_do_the_same_in_every_example_have_students_interval(scores: list[float]) -> None:
    values = np.repeat(np.array(scores)[:, None], 30, axis=1)
    assert tuple(estimates.interval(values)) == pytest.approx(mean_interval(scores))
    assert tuple(estimates.interval(values, within=(0.0, 0.4))) == pytest.approx(mean_interval(scores, 0.0, 0.4))
    unknown = np.concatenate([values, np.full_like(values[:1], np.nan)])  # is no run that is like the mean
    assert tuple(estimates.interval(unknown)) == pytest.approx(mean_interval(scores))


def test_squares_of_the_distances_add_up() -> None:
    """Of two sets of runs that each add their own."""
    first, second = np.array([0.0, 3.0, 1.0]), np.array([2.0, 1.0, 0.0, 4.0])
    values = np.repeat((first[:, None] + second)[..., None], 7, axis=-1)
    halves = [high - sum(one) / len(one) for one in (first, second) for _, high in [mean_interval(one.tolist())]]
    found = estimates.ratio(values, np.ones_like(values))
    assert found.interval.high - found.value == pytest.approx(np.hypot(*halves))
    assert found.value - found.interval.low == pytest.approx(np.hypot(*halves))


def one_set(random: np.random.Generator, runs: int) -> np.ndarray:
    """Runs that differ more than the examples do."""
    return random.normal(size=(runs, 1)) + 0.5 * random.normal(size=(1, 40)) + random.normal(size=(runs, 40))


def one_set_of_runs_alone(random: np.random.Generator, runs: int) -> np.ndarray:
    """Runs that differ ten times as much as the examples do."""
    return random.normal(size=(runs, 1)) + 0.1 * random.normal(size=(1, 40))


def pairs(random: np.random.Generator, runs: int) -> np.ndarray:
    """Each run with each other: what a run is counts in both places."""
    own, examples = random.normal(size=runs), random.normal(size=(1, 1, 40))
    found = own[:, None, None] + own[None, :, None] + 0.5 * examples + random.normal(size=(runs, runs, 40))
    found[range(runs), range(runs)] = np.nan
    return estimates.of_pairs(found)


def two_sets(random: np.random.Generator, runs: int) -> np.ndarray:
    """Gold runs beside three others."""
    own, others = random.normal(size=(runs, 1, 1)), random.normal(size=(1, 3, 1))
    return own + others + random.normal(size=(1, 1, 40)) + random.normal(size=(runs, 3, 40))


@pytest.mark.parametrize(
    ("made", "runs"),
    [
        *((made, runs) for made in (one_set, one_set_of_runs_alone, two_sets) for runs in (2, 3, 6)),
        *((pairs, runs) for runs in (3, 4, 6)),
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(
    made: Callable[[np.random.Generator, int], np.ndarray], runs: int
) -> None:
    """Of 400 sets of runs at least 92 % (95 % less three standard deviations)."""
    random = np.random.default_rng(runs)
    held = 0
    for _ in range(400):
        found = estimates.interval(made(random, runs))
        held += found.low <= 0 <= found.high
    assert held >= 0.92 * 400


def test_resampling_runs_would_not() -> None:
    """Why it is not done: of three runs."""
    random, held = np.random.default_rng(0), 0
    for _ in range(400):
        values = one_set(random, 3)
        draws = [values[random.integers(3, size=3)][:, random.integers(40, size=40)].mean() for _ in range(200)]
        low, high = np.quantile(draws, [0.025, 0.975])
        held += low <= 0 <= high
    assert held < 0.85 * 400


def test_pairs_taken_for_two_sets_of_runs_would_not() -> None:
    """Why `of_pairs` is there: of four runs and all their pairs."""
    random, held = np.random.default_rng(0), 0
    for _ in range(400):
        own = random.normal(size=4)
        values = np.repeat((own[:, None] + own)[..., None], 5, axis=-1)
        values[range(4), range(4)] = np.nan
        low, high = estimates.interval(values)
        held += low <= 0 <= high
    assert held < 0.9 * 400


def test_a_run_is_left_out_with_all_its_pairs() -> None:
    """The jackknife by its definition: n times the mean less n − 1 times the mean without the run."""
    values = np.random.default_rng(0).random((5, 5, 3))
    values[range(5), range(5)] = np.nan
    kept = [[i for i in range(5) if i != run] for run in range(5)]
    wanted = [5 * np.nanmean(values, axis=(0, 1)) - 4 * np.nanmean(values[k][:, k], axis=(0, 1)) for k in kept]
    assert estimates.of_pairs(values) == pytest.approx(np.array(wanted))
    two = estimates.of_pairs(values[:2, :2])
    assert two == pytest.approx((values[:1, 1] + values[1:2, 0]) / 2), "one pair, one value"


def test_groups_are_drawn_whole() -> None:
    """Rows of one sentence that are all alike count once: the interval of ten sentences of ten equal rows is about √10
    times as wide as that of a hundred rows."""
    sentences = np.random.default_rng(0).random(10) < 0.5
    rows = np.repeat(sentences, 10)[None].astype(float)
    together, apart = estimates.interval(rows, np.repeat(np.arange(10), 10)), estimates.interval(rows, np.arange(100))
    assert together.low < rows.mean() < together.high
    assert (together.high - together.low) / (apart.high - apart.low) == pytest.approx(10**0.5, rel=0.25)
    missing = np.where(np.arange(100) % 2, rows, np.nan)
    assert estimates.interval(missing, np.repeat(np.arange(10), 10)) == together


def test_a_difference_is_of_the_same_examples_and_may_be_of_the_same_runs() -> None:
    """Two scorings that differ by .1 in every example differ by exactly .1, however much runs and examples differ."""
    random = np.random.default_rng(0)
    counts = random.integers(1, 9, (3, 30)).astype(float)
    sums = random.random((3, 1)) * counts * random.random(30)
    first, second = estimates.ratio(sums + 0.1 * counts, counts), estimates.ratio(sums, counts)
    assert first.minus(second, same_runs=True).interval == pytest.approx((0.1, 0.1))
    other_runs = first.minus(second)
    assert other_runs.value == pytest.approx(0.1)
    widths = [one.interval.high - one.value for one in (first, second)]
    assert max(widths) / 3 < other_runs.interval.high - 0.1 < np.hypot(*widths)  # the examples do not count


def test_an_interval_ends_where_the_values_do() -> None:
    found = estimates.ratio(np.array([[1.0, 0, 1, 1], [1, 1, 1, 1]]), np.ones((2, 4)), 0.0, 1.0)
    assert found.interval.high == 1
    assert found.minus(found, same_runs=True).most == 1
    assert estimates.interval(np.array([[1.0, 0, 1, 1], [1, 1, 1, 1]]), within=(0.0, 1.0)).high == 1


def test_a_run_of_which_one_of_two_is_not_known_has_no_difference() -> None:
    counts = np.array([[4.0, 4.0], [4.0, 4.0], [0.0, 0.0]])
    first, second = (
        estimates.ratio(counts / 2, counts, 0.0, 1.0),
        estimates.ratio(np.ones((3, 2)), np.full((3, 2), 4.0)),
    )
    apart = first.minus(second, same_runs=True)
    assert apart.value == pytest.approx(0.25)
    assert tuple(apart.interval) == pytest.approx((0.25, 0.25)), "the third run has no part in it"


def test_a_score_of_all_examples_of_each_run() -> None:
    draws = np.array([[1.0] * 500, [3.0] * 500])
    found = estimates.of_runs([1.0, 3.0], draws)
    assert found.value == 2
    assert found.interval == pytest.approx(mean_interval([1.0, 3.0]))
    one = estimates.of_runs([1.0], np.linspace(0, 2, 1001)[None])
    assert one.interval == pytest.approx((0.05, 1.95))


def test_of_what_is_not_known_nothing_is_known() -> None:
    assert np.isnan(estimates.interval(np.full((2, 3), np.nan))).all()
    assert isinstance(estimates.interval(np.zeros((2, 3))), Interval)


@given(values=st.lists(st.floats(-1, 1), min_size=3, max_size=8, unique=True))
def test_the_jackknife_of_a_mean_is_students_interval(values: list[float]) -> None:
    whole = float(np.mean(values))
    without = [float(np.mean([*values[:k], *values[k + 1 :]])) for k in range(len(values))]
    assert estimates.jackknifed(whole, [without]) == pytest.approx(mean_interval(values), abs=1e-9)
    assert estimates.jackknifed(whole, [without, [whole, whole]]) == pytest.approx(mean_interval(values), abs=1e-9)
