"""The judgements of learnability on metrics whose outcome is known, and the whole study at a tiny size."""

import json
import math
from pathlib import Path

import pytest

import attndyn
from attndyn.errors import UserError
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies.learnability import Learnability, lifts

from .made import STEPS, ramp

STUDY = Learnability(
    seeds=20, steps=STEPS, length=4, words=6, extra=(0, 1, 2, 4), alphabets=(4,), exponents=(1.0,), weak=1,
    batches=(16,), longer=3,
)  # fmt: skip
BETA = {"4 of 5": 30, "4 of 6": 20, "4 of 8": 10, "4 i.i.d. of 4": 10, "4 Zipf of 6, exponent 1": 10,
        "4 of 5, batch 16": 60}  # fmt: skip


def made(
    learn: int = 10, beta: dict[str, int] | None = None, late: float = 1.0, looks: float = 0.0, spread: float = 0.1
) -> Metrics:
    """`learn` seeds learn permutations in time, the others reach an accuracy of `late` in the end, with α on the right
    word at the share `looks`; all else is learned, with β right just behind the step of `beta`."""
    table = []
    for condition in STUDY.conditions():
        for seed in condition.seeds:
            if condition.name.startswith("proxy"):
                flat = spread if "small" in condition.name else 5.0
                found = {"loss": math.log(5), "probe spread": flat, "probe right": 0.1}
                table += [Row(condition.name, seed, condition.steps, name, value) for name, value in found.items()]
                continue
            fails = condition.name == "4 of 4" and seed >= learn
            step = (BETA | (beta or {})).get(condition.name, 20)
            curves = {
                "accuracy": ramp(60, 0.6 if fails else 1.0),
                "probe on word": ramp(2 * step, 0.0 if fails else 1.0),
                "attention on word": ramp(80, 0.0 if fails else 1.0),
            }
            if fails:
                curves["accuracy"][3 * STEPS], curves["attention on word"][3 * STEPS] = late, looks
            table += [Row(condition.name, seed, s, name, v) for name, curve in curves.items() for s, v in curve.items()]
    for place in STUDY.places:
        table += [Row(place.family, 0, step, metric, value) for step, metric, value in lifts(place)]
    return Metrics(to_table(table))


def verdict(id: str, metrics: Metrics) -> str:
    return {claim.statement.id: claim.judgement.verdict for claim in STUDY.claims(metrics)}[id]


def test_every_statement_is_judged() -> None:
    verdicts = {claim.statement.id: claim.judgement.verdict for claim in STUDY.claims(made())}
    assert set(verdicts) == {statement.id for statement in STUDY.statements}
    assert "not judged at this scale" not in verdicts.values()


@pytest.mark.parametrize(("learn", "expected"), [(10, "holds"), (20, "inconclusive")])
def test_the_least_signal(learn: int, expected: str) -> None:
    assert verdict("N-01", made(learn)) == expected


def test_the_step_of_beta_may_fall_rise_or_stand_with_the_lift() -> None:
    assert verdict("N-02", made()) == "holds"
    assert verdict("N-02", made(beta={"4 of 5": 10, "4 of 6": 20, "4 of 8": 30})) == "differs"
    assert verdict("N-02", made(beta={"4 of 5": 20, "4 of 6": 20, "4 of 8": 20})) == "inconclusive"
    assert verdict("N-03", made()) == "inconclusive"  # α is right at one step everywhere


def test_other_families_lie_on_the_curve_or_not() -> None:
    on = {"4 i.i.d. of 4": 10, "4 Zipf of 6, exponent 1": 10}
    assert verdict("N-04", made(beta=on)) == "holds"
    assert verdict("N-04", made(beta=on | {"4 Zipf of 6, exponent 1": 60})) == "differs"


@pytest.mark.parametrize(
    ("late", "looks", "expected"), [(1.0, 0.0, "holds"), (1.0, 1.0, "differs"), (0.8, 0.0, "differs")]
)
def test_runs_that_fail_in_time_copy_later_and_look_or_do_not(late: float, looks: float, expected: str) -> None:
    assert verdict("N-05", made(late=late, looks=looks)) == expected


def test_a_larger_batch_may_help_or_hurt() -> None:
    assert verdict("N-06", made()) == "holds"
    assert verdict("N-06", made(beta={"4 of 5, batch 16": 10})) == "differs"


@pytest.mark.parametrize(("spread", "expected"), [(0.1, "holds"), (0.5, "differs")])
def test_a_proxy_that_is_not_flat_speaks_against_it(spread: float, expected: str) -> None:
    assert verdict("S-21", made(spread=spread)) == expected
    assert verdict("S-26", made(spread=spread)) == expected


def test_the_published_tables_are_counted() -> None:
    metrics = made()
    assert [verdict(id, metrics) for id in ("S-34", "S-35", "O-08")] == ["holds"] * 3
    rows = [Row(*row.values()) for row in metrics.table.to_pylist()]
    bent = [
        r._replace(value=1.01) if r[0] == "k of n" and r.step == 4 and r.metric == "counted lift" else r for r in rows
    ]
    assert verdict("S-35", Metrics(to_table(bent))) == "differs"


@pytest.mark.parametrize(
    "changes",
    [{"extra": (1, 2)}, {"weak": 5}, {"extra": (0, 0, 2)}, {"longer": 0}, {"length": 1}, {"exponents": (11.0,)}],
)
def test_settings_that_cannot_be(changes: dict[str, object]) -> None:
    with pytest.raises(UserError):
        Learnability(**changes)


def test_the_whole_study(tmp_path: Path) -> None:
    run = attndyn.run(
        "learnability", scale="demo", out=tmp_path / "run", seeds=2, length=4, words=6, hidden=8, batch=8, steps=6,
        extra=(0, 1, 2), alphabets=(4,), exponents=(1.0,), weak=1, batches=(4,), proxies=1, every=3,
    )  # fmt: skip
    assert len(run.claims) == 11
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "finished"
    assert (tmp_path / "run" / "figures" / "learned.svg").exists()
