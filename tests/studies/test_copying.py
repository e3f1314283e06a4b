"""The copying study's judgements, on metrics whose outcome is known."""

import numpy as np
import pytest

from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies.base import Judgement
from attndyn.studies.copying import Copying
from attndyn.studies.outcomes import Outcomes, both, first_step

from .made import STEPS, ramp, rows


def made(failing: int, n: int = 20, study: Copying | None = None) -> Metrics:
    """The first `failing` seeds of the permutations fail; everything else learns, β at 40 and α at 80."""
    study = study or Copying(controls=False, longer=1)
    table = []
    for seed in range(n):
        fails = seed < failing
        table += rows(
            study.permutations,
            seed,
            ramp(120, 0.7 if fails else 1.0),
            ramp(60, 0.3 if fails else 1.0),
            ramp(140, 0.2 if fails else 1.0),
        )
        table += rows(study.control, seed, ramp(50), ramp(20), ramp(40))
    return Metrics(to_table(table))


def verdicts(metrics: Metrics, study: Copying) -> dict[str, str]:
    return {claim.statement.id: claim.judgement.verdict for claim in study.claims(metrics)}


def test_published_counts_hold() -> None:
    study = Copying(controls=False, longer=1)
    found = verdicts(made(8), study)
    assert found["S-22"] == found["S-23"] == found["S-24"] == found["B-10"] == found["S-01"] == "holds"
    assert found["S-25"] == found["O-09"] == found["B-11"] == "not judged at this scale"


@pytest.mark.parametrize(
    ("failing", "verdict"), [(0, "differs"), (2, "inconclusive"), (4, "holds"), (15, "holds"), (20, "differs")]
)
def test_the_count_of_failures_is_compared_with_the_published_one(failing: int, verdict: str) -> None:
    assert verdicts(made(failing), Copying(controls=False, longer=1))["S-22"] == verdict


def test_at_another_size_only_the_direction_is_compared() -> None:
    study = Copying.at("demo")
    metrics = made(4, 8, study)
    claims = {claim.statement.id: claim.judgement for claim in study.claims(metrics)}
    assert claims["S-22"].verdict == "holds"
    assert "direction only" in claims["S-22"].why
    assert verdicts(made(0, 8, study), study)["S-22"] == "inconclusive"
    assert verdicts(made(0, 30, study), study)["S-22"] == "differs"


def test_attention_before_the_probe_differs() -> None:
    study = Copying(controls=False, longer=1)
    table = []
    for seed in range(20):
        for condition in (study.permutations, study.control):
            table += rows(condition, seed, ramp(120), ramp(150), ramp(40))
    found = verdicts(Metrics(to_table(table)), study)
    assert found["S-01"] == "differs"
    assert found["B-13"] == "holds"
    assert found["B-10"] == "inconclusive"


def test_outcomes_are_read_at_the_published_step() -> None:
    late = {step: float(step >= 400) for step in range(0, 601, 10)}
    table = rows("c", 0, late, late, late) + rows("c", 1, {**late, **dict.fromkeys(late, 1.0)}, late, late)
    outcomes = Outcomes(Metrics(to_table(table)), "c", STEPS)
    assert outcomes.learned.tolist() == [False, True]
    assert np.isnan(outcomes.learned_at[0])
    assert outcomes.failures.tolist() == [0.0]
    assert outcomes.example(True) == 1
    assert outcomes.example(False) == 0


def test_first_step_is_strictly_above() -> None:
    table = [Row("c", 0, step, "m", value) for step, value in enumerate([0.2, 0.5, 0.5, 0.6])]
    curves = Metrics(to_table(table)).curves("c", "m")
    assert first_step(curves, 0.5).tolist() == [3.0]
    assert np.isnan(first_step(curves, 0.9)).all()


def test_a_statement_of_two_parts() -> None:
    def part(verdict: str) -> Judgement:
        return Judgement(measured=verdict, verdict=verdict)

    assert both(part("holds"), part("holds")).verdict == "holds"
    assert both(part("holds"), part("differs")).verdict == "differs"
    assert both(part("holds"), part("inconclusive")).verdict == "inconclusive"


def test_the_finding_counts() -> None:
    study = Copying(controls=False, longer=1)
    finding = study.finding(made(8))
    assert finding.startswith("12 of 20 seeds learned to copy permutations of 40, 20 of 20 learned 40 of 60")
    assert "in 32 of the 32 runs that learned" in finding
    assert study.finding(made(20)).startswith("0 of 20")
