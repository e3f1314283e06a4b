"""The gated toy on a small budget, and each of its rules on numbers that should turn it round."""

import math
from collections.abc import Callable

import pytest

import attndyn
from attndyn.cli import parse_run
from attndyn.errors import UserError
from attndyn.provenance import command_of
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies import gated_toy as study
from attndyn.studies.gated_toy import GatedToy

SMALL = GatedToy(seeds=2, starts=60, depths=(2.0, 3.0))


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Metrics:
    run = attndyn.run(SMALL, out=tmp_path_factory.mktemp("toy") / "run")
    assert (run.path / "figures" / "phase.svg").exists()
    return Metrics(run.metrics)


def changed(metrics: Metrics, condition: str, metric: str, change: Callable[[float], float]) -> Metrics:
    rows = [Row(*row.values()) for row in metrics.table.to_pylist()]
    assert any((row.condition, row.metric) == (condition, metric) for row in rows)
    return Metrics(
        to_table(
            row._replace(value=change(row.value)) if (row.condition, row.metric) == (condition, metric) else row
            for row in rows
        )
    )


def verdicts(metrics: Metrics) -> dict[str, str]:
    return {claim.statement.id: claim.judgement.verdict for claim in SMALL.claims(metrics)}


def test_the_verdicts(metrics: Metrics) -> None:
    assert verdicts(metrics) == {
        "B-01": "holds", "B-02": "holds", "B-03": "holds", "B-04": "differs", "B-05": "holds", "B-06": "differs",
        "B-07": "differs",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("id", "condition", "metric", "change", "verdict"),
    [
        ("B-01", study.EQUAL, "b0", lambda value: -value, "differs"),
        ("B-02", study.EQUAL, "p = 1 at", lambda value: value + 1e-3, "differs"),
        ("B-02", study.EQUAL, "p' at the start", lambda value: 0.1, "differs"),
        ("B-02", study.EQUAL, "p", lambda value: -value, "differs"),
        ("B-03", study.MISTAKEN, "p = 0 at", lambda value: math.nan, "differs"),
        ("B-03", study.MISTAKEN, "p", lambda value: abs(value), "differs"),
        ("B-04", study.DRAWN, "ends right", lambda value: 1.0, "holds"),
        ("B-04", study.DRAWN, "ends right", lambda value: 119 / 120, "inconclusive"),
        ("B-05", study.PRINTED, "low loss", lambda value: 1.001 * value, "differs"),
        ("B-06", study.GRID_FREE, "ends right", lambda value: 1.0, "holds"),
        ("B-07", study.PRINTED, "printed loss error", lambda value: 0.0, "holds"),
    ],
)
def test_each_rule_can_turn(
    metrics: Metrics, id: str, condition: str, metric: str, change: Callable[[float], float], verdict: str
) -> None:
    assert verdicts(changed(metrics, condition, metric, change))[id] == verdict


def test_integration_and_prediction_are_recorded_side_by_side(metrics: Metrics) -> None:
    for name in (study.EQUAL, study.ABOVE, study.ON, study.BELOW, study.MISTAKEN):
        found, foretold = (metrics.curves(name, metric).values for metric in ("p", "p predicted"))
        assert found == pytest.approx(foretold, abs=1e-6)
    times, integrals = (metrics.curves(study.CLOSED, metric).values for metric in ("recovery time", "exact time"))
    assert times == pytest.approx(integrals, rel=1e-7)
    assert metrics.curves(study.DRAWN, "as foretold").values == pytest.approx(1.0)
    assert metrics.curves(study.GRID_SOFTMAX, "ends right").values.all()


def test_the_finding_has_the_numbers(metrics: Metrics) -> None:
    finding = SMALL.finding(metrics)
    assert "passes 1 at t = 0.931" in finding
    assert "from δ₀ = −3 only after t = 11" in finding


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"seeds": 1}, "seeds must be at least 2"),
        ({"starts": 0}, "starts must be at least 1"),
        ({"spreads": (0.0,)}, "spreads must be numbers above 0"),
        ({"spreads": ()}, "spreads must be numbers above 0"),
        ({"depths": (math.nan,)}, "depths must be numbers above 0"),
        ({"depths": (20.0,)}, "10 is the most"),
    ],
)
def test_impossible_settings_are_refused(settings: dict, says: str) -> None:
    with pytest.raises(UserError, match=says):
        GatedToy(**settings)


def test_the_command_that_repeats_a_run_names_lists() -> None:
    study = GatedToy(seeds=2, starts=5, spreads=(0.5, 1.0), depths=(2.0,))
    command = "attndyn run gated-toy --scale demo --seeds 2 --starts 5 --spreads 0.5 1.0 --depths 2.0"
    assert command_of(study, "demo") == command
    assert parse_run(GatedToy, command.split()[3:])[1] == study
