"""The judgements of probe-locality, on metrics whose outcome is known; and one tiny real run."""

import json
from pathlib import Path

import numpy as np
import pytest

from attndyn.cli import main
from attndyn.errors import UserError
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies.probe_locality import ENCODERS, Locality, ProbeLocality, Story, ordered

SECOND, THIRD = (4.0, 2.0, 0.1, 0.0), (0.1, 2.0, 0.0, 4.0)
"""γ keyword, next, mean, last as hypothesis 2 and as observation 3 have them."""
OTHER = (1.0, 2.0, 3.0, 4.0)
STUDY = ProbeLocality(steps=30)


def made(
    early: dict[str, tuple[float, ...]],
    late: dict[str, tuple[float, ...]],
    n: int = 20,
    own: tuple[float, float] = (0.6, 0.6),
) -> Metrics:
    """Solved half-way at step 10; γ as given at steps 10 and 20, and at step 30; the share of the own word at step 0,
    and later."""
    table = []
    for condition in ENCODERS:
        for seed in range(n):
            for step, accuracy in ((0, 0.5), (10, 0.8), (20, 0.9), (30, 1.0)):
                gamma = OTHER if step == 0 else late[condition] if step == 30 else early[condition]
                values = {f"γ {place}": value for place, value in
                          zip(("keyword", "next", "mean", "last"), gamma, strict=True)}  # fmt: skip
                values |= {"states: own word": own[step > 0] + 0.001 * seed,
                           "states: word before": 0.1 + 0.001 * (seed % 3), "states: word after": 0.05,
                           "states: keyword": 0.5}  # fmt: skip
                for metric, value in {"accuracy": accuracy, **values}.items():
                    table.append(Row(condition, seed, step, metric, value))
    return Metrics(to_table(table))


def verdicts(metrics: Metrics) -> dict[str, str]:
    return {claim.statement.id: claim.judgement.verdict for claim in STUDY.claims(metrics)}


def test_the_published_picture_holds() -> None:
    same = dict.fromkeys(ENCODERS, SECOND), dict.fromkeys(ENCODERS, THIRD)
    assert verdicts(made(*same)) == {"S-43": "holds", "S-44": "holds", "B-12": "holds"}
    claims = {claim.statement.id: claim.judgement for claim in STUDY.claims(made(*same))}
    assert claims["S-43"].measured == "one direction: 20 of 20 seeds; two directions: 20 of 20 seeds"


def test_one_encoder_is_enough_to_hold_and_both_are_needed_to_differ() -> None:
    one, two = ENCODERS
    mixed = verdicts(made({one: SECOND, two: OTHER}, {one: OTHER, two: THIRD}))
    assert (mixed["S-43"], mixed["S-44"]) == ("holds", "holds")
    neither = verdicts(made(dict.fromkeys(ENCODERS, THIRD), dict.fromkeys(ENCODERS, SECOND)))
    assert (neither["S-43"], neither["S-44"]) == ("differs", "differs")


@pytest.mark.parametrize(
    ("own", "verdict", "moments"),
    [
        ((0.6, 0.6), "holds", "at step 0 holds, at step 30 holds"),
        # More than both neighbours, which explain .15, but far from most of the state.
        ((0.6, 0.3), "differs", "at step 0 holds, at step 30 differs"),
        ((0.12, 0.6), "differs", "at step 0 differs, at step 30 holds"),
        ((0.6, 0.4905), "inconclusive", "at step 0 holds, at step 30 inconclusive"),
    ],
)
def test_mostly_its_own_word_means_more_than_all_the_rest(own: tuple[float, float], verdict: str, moments: str) -> None:
    metrics = made(dict.fromkeys(ENCODERS, SECOND), dict.fromkeys(ENCODERS, THIRD), own=own)
    judgement = {claim.statement.id: claim.judgement for claim in STUDY.claims(metrics)}["B-12"]
    assert judgement.verdict == verdict
    assert judgement.why.startswith(moments)


def test_a_state_that_holds_only_its_own_word_differs() -> None:
    metrics = made(dict.fromkeys(ENCODERS, SECOND), dict.fromkeys(ENCODERS, THIRD))
    alone = [row._replace(value=0.0 if "word " in row.metric else row.value) for row in rows_of(metrics)]
    assert verdicts(Metrics(to_table(alone)))["B-12"] == "differs"


def rows_of(metrics: Metrics) -> list[Row]:
    return [Row(**row) for row in metrics.table.to_pylist()]


@pytest.mark.parametrize(
    ("values", "so"),
    [(SECOND, True), (THIRD, False), ((4, 2, 0, 1.5), False), ((4, 3.9, 0.2, 0), False), ((4, 2, 1, 1), True)],
)
def test_much_larger_means_more_than_about_equal(values: tuple[float, ...], so: bool) -> None:
    assert bool(ordered(*(np.array([value], dtype=float) for value in values))) == so


def test_the_steps_of_the_orders() -> None:
    metrics = made(dict.fromkeys(ENCODERS, SECOND), dict.fromkeys(ENCODERS, THIRD), n=2)
    events = {name: values.tolist() for name, values in Story(metrics, "one direction").events.items()}
    assert events == {
        "early at": [10, 10], "hypothesis 2 until": [20, 20], "observation 3 from": [30, 30],
        "observation 3 until": [30, 30], "last passes keyword": [30, 30],
    }  # fmt: skip
    never = made(dict.fromkeys(ENCODERS, SECOND), dict.fromkeys(ENCODERS, SECOND))
    assert np.isnan(Story(never, "one direction").events["observation 3 from"]).all()
    assert "passes γ at the keyword for good at step – (0 of 20 seeds) and – (0 of 20 seeds)." in STUDY.finding(never)


def test_readings_become_rarer() -> None:
    reading = Locality(every=2, words=5)
    due = [step for step in range(1235) if reading.due(step, 1234)]
    assert due == [*range(0, 81, 2), *range(100, 801, 20), 1000, 1200, 1234]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"lr": float("nan")}, "lr must be a number above 0"),
        ({"length": 2}, "length must be at least 3"),
        ({"evaluation": 10}, "evaluation at least twice the length"),
        ({"words": 1}, "length and words must be at least 2"),
        ({"hidden": 0}, "width and hidden must be at least 1"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ProbeLocality(**settings)


def test_a_small_run_ends_with_a_page(tmp_path: Path) -> None:
    sizes = {"seeds": 2, "steps": 12, "length": 5, "words": 6, "width": 8, "hidden": 8, "evaluation": 20}
    words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    main(["run", "probe-locality", *words, "--out", str(tmp_path / "run"), "--device", "cpu"])
    assert [claim["id"] for claim in json.loads((tmp_path / "run" / "claims.json").read_text())] == [
        "S-43",
        "S-44",
        "B-12",
    ]
    page = (tmp_path / "run" / "report.html").read_text()
    for title in ("Where the evidence for the keyword stands", "Watch the evidence leave the keyword"):
        assert title in page
    assert page.count('class="line signed"') == 8
    assert "labelled with 1, probability 0." in page
