"""Verdicts on runs that learn or fail: few runs decide nothing, and no exception is hidden by the published 20."""

import numpy as np
import pytest

from attndyn.store.metrics import Metrics, to_table
from attndyn.studies.outcomes import (
    Outcomes,
    always_learned,
    fails_like,
    later,
    never_learned,
    often_fails,
    same,
)
from studies.made import STEPS, ramp, rows


def runs(learned: int, failed: int, at: int = 100) -> Outcomes:
    table = []
    for seed in range(learned + failed):
        height = 1.0 if seed < learned else 0.3
        table += rows("c", seed, ramp(at + 10 * (seed % 3), height), ramp(60), ramp(140, height))
    return Outcomes(Metrics(to_table(table)), "c", STEPS)


@pytest.mark.parametrize(
    ("learned", "failed", "verdict"),
    [
        (1, 0, "inconclusive"),
        (5, 0, "inconclusive"),
        (6, 0, "holds"),
        (20, 0, "holds"),
        (19, 1, "inconclusive"),
        (98, 2, "inconclusive"),
        (86, 14, "differs"),  # Fisher's test against 20 of 20 cannot tell: p .06
        (12, 8, "differs"),
        (0, 3, "differs"),
    ],
)
def test_always_and_never(learned: int, failed: int, verdict: str) -> None:
    assert always_learned(runs(learned, failed)).verdict == verdict
    assert never_learned(runs(failed, learned)).verdict == verdict


@pytest.mark.parametrize(
    ("learned", "failed", "verdict"),
    [
        (1, 0, "inconclusive"),
        (10, 0, "inconclusive"),  # no failure is no evidence for failures, though 7 of 20 are not told apart from it
        (20, 0, "differs"),
        (13, 7, "holds"),
        (12, 8, "holds"),
        (0, 20, "differs"),
        (18, 2, "inconclusive"),
        (16, 4, "holds"),
    ],
)
def test_failing_as_often_as_published(learned: int, failed: int, verdict: str) -> None:
    assert fails_like(runs(learned, failed), [(7, 20), (8, 20)]).verdict == verdict


def test_failing_often_at_another_size() -> None:
    found = {failed: often_fails(runs(20 - failed, failed)).verdict for failed in (0, 2, 10)}
    assert found == {0: "differs", 2: "inconclusive", 10: "holds"}


def test_the_delay_of_few_runs_has_a_wide_interval() -> None:
    low, high = later(runs(2, 0, at=110), runs(3, 0, at=60)).interval
    assert low < 50 < high
    assert high - low > 40  # the runs themselves span 10 and 20 steps
    assert later(runs(20, 0, at=110), runs(20, 0, at=60)).verdict == "holds"
    assert later(runs(1, 5), runs(20, 0)).verdict == "inconclusive"


def test_two_runs_of_each_do_not_decide_that_they_are_the_same() -> None:
    apart, close = np.array([0.50, 0.53]), np.array([0.51, 0.52])
    assert same(apart, close, 0.05).verdict == "inconclusive"
    assert same(np.tile(apart, 10), np.tile(close, 10), 0.05).verdict == "holds"


def test_stages_overlap_where_beta_never_arrives() -> None:
    never = Outcomes(Metrics(to_table(rows("c", 0, ramp(100), ramp(100, 0.6), ramp(100)))), "c", STEPS)
    assert never.overlaps.tolist() == [True]
    apart = Outcomes(Metrics(to_table(rows("c", 0, ramp(100), ramp(20), ramp(200)))), "c", STEPS)
    assert apart.overlaps.tolist() == [False]
