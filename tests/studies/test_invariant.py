"""The judgements of the invariant on made curves, bad settings, and the command on a tiny budget."""

import json
from pathlib import Path

import numpy as np
import pytest

from attndyn.cli import main
from attndyn.errors import UserError
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies.invariant import LINEAR, NETWORK, TOPIC, TOY, TRANSLATOR, Invariant, reduced_name
from attndyn.theory.invariant import logit_at

STUDY = Invariant(seeds=3)
K = np.linspace(0.0, 10.0, 41)


def rows(name: str, kind: str, m: int) -> list[Row]:
    made = []
    for seed in range(3):
        k = (1 + 0.1 * seed) * K
        x = logit_at(0.8 * k, float(m)) if kind == "curve" else k
        if kind == "falling":
            x = -x
        for place, step in enumerate(range(0, 205, 5)):
            values = {"logit": x[place], "knowledge": k[place], "attention": 0.99 if x[-1] > 0 else 0.0}
            made += [Row(name, seed, step, of, float(value)) for of, value in values.items()]
    return made


def metrics(network: str = "curve", translator: str = "curve", off: float = 0.01, drift: float = 1e-9) -> Metrics:
    made = rows(NETWORK, network, 39) + rows(LINEAR, network, 39) + rows(TRANSLATOR, translator, 40)
    made += [Row(name, 0, 5000, "off", off) for name in TOPIC.values()]
    exact = (*TOY, *(reduced_name(*sizes) for sizes in STUDY.reduced_sizes))
    made += [Row(name, 0, 119, "drift", drift) for name in exact]
    return Metrics(to_table(made))


def verdicts(**changes) -> dict[str, str]:
    return {claim.statement.id: claim.judgement.verdict for claim in STUDY.claims(metrics(**changes))}


def test_all_on_the_curve() -> None:
    assert set(verdicts().values()) == {"holds"}
    assert STUDY.finding(metrics()).startswith(
        "The curve x + eˣ/m = y²/2 + c is followed by 3 of 3 runs of the classif"
    )


def test_a_straight_line_is_not_the_curve() -> None:
    found = verdicts(network="line", translator="line")
    assert (found["I-04"], found["I-05"]) == ("differs", "differs")
    assert found["L-11"] == "holds", "two of three: they grow together, and attention ends on the keyword"


def test_a_logit_that_falls_while_knowledge_grows_is_neither() -> None:
    found = verdicts(network="falling")
    assert (found["I-04"], found["L-11"]) == ("differs", "differs")


@pytest.mark.parametrize(
    ("change", "id"), [({"off": 0.06}, "I-01"), ({"drift": 2e-6}, "I-02"), ({"drift": 2e-6}, "I-03")]
)
def test_what_is_derived_has_to_hold(change: dict[str, float], id: str) -> None:
    assert verdicts(**change)[id] == "differs"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 0}, "seeds must be at least 1, not 0"),
        ({"epochs": 10}, "epochs must be at least 120"),
        ({"steps": 5}, "a network be read twice"),
        ({"lr": 0.0}, "lr must be a number above 0"),
        ({"lengths": (1,)}, "lengths must be at least 2"),
        ({"lengths": ()}, "lengths must be at least 2"),
        ({"length": 70}, "cannot draw 70 different words out of 60"),
        ({"sentences": 3}, "sentences must be at least"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Invariant(**settings)


def test_the_command_ends_with_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--seeds=2", "--keyword-length=4", "--width=8", "--keyword-hidden=8", "--keyword-steps=12", "--length=4",
        "--words=6", "--hidden=8", "--batch=4", "--steps=12", "--evaluation=4", "--epochs=120", "--sentences=100",
        "--topic-seeds=1", "--lengths", "4", "--widths", "16",
    ]  # fmt: skip
    main(["run", "invariant", *words, "--out", str(tmp_path)])
    assert "The curve x + eˣ/m = y²/2 + c is followed by" in capsys.readouterr().out
    claims = {claim["id"]: claim for claim in json.loads((tmp_path / "claims.json").read_text())}
    assert claims["I-02"]["verdict"] == claims["I-03"]["verdict"] == "holds"
    figures = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert figures == {"networks", "translator", "topic", "toy", "reduced"}
