"""The judgements of permuted-copying, on metrics whose outcome is known."""

import pytest

from attndyn.errors import UserError
from attndyn.store.metrics import Metrics, to_table
from attndyn.studies.permuted_copying import COPY, COPY_UNIFORM, PERMUTED, PERMUTED_UNIFORM, PermutedCopying

from .made import STEPS, ramp, rows

STUDY = PermutedCopying(steps=STEPS, patience=STEPS)


def made(learning: int = 0, known: float = 0.9, n: int = 20) -> Metrics:
    """All seeds copy in order; the first `learning` also learn the permuted task; `known` is its β_uf."""
    table = []
    for seed in range(n):
        wobble = 0.001 * (seed % 3)
        table += rows(COPY, seed, ramp(50), ramp(20), ramp(40))
        table += rows(PERMUTED, seed, ramp(100, 1.0 if seed < learning else 0.5), ramp(20), ramp(150, 0.4))
        table += rows(COPY_UNIFORM, seed, ramp(100, 0.3), ramp(100, 0.9 + wobble), ramp(100, 0.0))
        table += rows(PERMUTED_UNIFORM, seed, ramp(100, 0.3), ramp(100, known + wobble), ramp(100, 0.0))
    return Metrics(to_table(table))


def verdicts(metrics: Metrics) -> dict[str, str]:
    return {claim.statement.id: claim.judgement.verdict for claim in STUDY.claims(metrics)}


def test_the_published_picture_holds() -> None:
    assert verdicts(made()) == {"S-45": "holds", "S-46": "holds", "S-47": "holds", "S-48": "holds"}


@pytest.mark.parametrize(("learning", "verdict"), [(1, "inconclusive"), (10, "differs")])
def test_a_permuted_run_that_learns_speaks_against_never(learning: int, verdict: str) -> None:
    assert verdicts(made(learning))["S-46"] == verdict


def test_if_all_learn_both_no_bias_shows() -> None:
    assert verdicts(made(20))["S-48"] == "inconclusive"


@pytest.mark.parametrize(("known", "verdict"), [(0.9, "holds"), (0.85, "inconclusive"), (0.7, "differs")])
def test_the_same_beta_means_within_the_margin(known: float, verdict: str) -> None:
    assert verdicts(made(known=known))["S-47"] == verdict


def test_the_finding_counts() -> None:
    finding = STUDY.finding(made(3))
    assert finding.startswith("20 of 20 seeds learned to copy in order within 200 steps, 3 of 20 under a fixed")
    assert "at 90% and 90% of the positions" in finding


def test_patience_below_the_steps_is_refused() -> None:
    with pytest.raises(UserError, match="patience must be at least the 300 steps"):
        PermutedCopying(patience=100)


def test_pi_is_a_seeds_own_and_not_the_order() -> None:
    (permuted,) = [condition for condition in STUDY.conditions() if condition.name == PERMUTED]
    orders = permuted.task.build([0, 1]).order
    assert orders[0].tolist() != orders[1].tolist()
    assert sorted(orders[0].tolist()) == list(range(40))
