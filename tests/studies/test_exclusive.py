"""What adversaries reach that keep their score, and the recorded side of the comparison."""

import csv
import runpy
from pathlib import Path

import numpy as np
import pytest

from attndyn.errors import UserError
from attndyn.studies.exclusive import COLUMNS, TABLE, TAGGING, Reach, classifiers, judged, reach, recorded
from attndyn.studies.strengths import as_step, check_apart

SCRIPT = Path(__file__).parents[2] / "docs" / "data" / "exclusive.py"


def test_the_recorded_side_is_that_of_the_recorded_runs() -> None:
    with TABLE.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS
    assert [tuple(row) for row in rows] == runpy.run_path(str(SCRIPT))["rows"]()
    assert list(classifiers()) == ["SST", "AG News", "20 Newsgroups", "IMDB"]
    assert len(recorded()[TAGGING].jsd) == 5


def test_the_furthest_adversary_counts_that_keeps_its_score() -> None:
    jsd = np.array([[0.1, 0.5, 0.3, 0.6], [0.2, 0.4, 0.6, 0.65], [0.2, 0.4, 0.6, 0.65]])
    scores = np.array([[0.9, 0.88, 0.9, 0.7], [0.9, 0.9, 0.9, 0.9], [0.8, 0.8, 0.8, 0.8]])
    found = reach(jsd, jsd / 2, scores, np.array([0.895, 0.9, 0.9]), ([0.1, 0.3], [0.2, 0.2]))
    assert found == Reach((0.5, 0.65, 0.0), (0.25, 0.325, 0.0), 0.2, 0.2)
    assert found.room == pytest.approx([0.3, 0.45, -0.2])


def at(room: float, spread: float = 0.01) -> Reach:
    return Reach((0.2 + room - spread, 0.2 + room, 0.2 + room + spread), (0.1,) * 3, 0.2, 0.1)


@pytest.mark.parametrize(
    ("rooms", "verdict"),
    [
        ((0.3, 0.4), "holds"),
        ((0.0, 0.05), "differs"),
        ((0.3, 0.1), "inconclusive"),
        ((0.3, 0.0), "inconclusive"),  # one corpus says this, one that
    ],
)
def test_all_corpora_decide_together(rooms: tuple[float, float], verdict: str) -> None:
    found = judged(at(0.1), {"one": at(rooms[0]), "two": at(rooms[1])}, 3, comparable=True)
    assert found.verdict == verdict
    assert ("seeds do not decide on two" in found.why) == (rooms[1] == 0.1)


def test_other_sizes_and_single_seeds_decide_nothing() -> None:
    assert judged(at(0.1), {"one": at(0.4)}, 3, comparable=False).verdict == "not comparable"
    lone = Reach((0.6,), (0.1,), 0.2, 0.1)
    assert judged(at(0.1), {"one": lone}, 1, comparable=True).verdict == "inconclusive"


def test_what_is_recorded_does_not_decide() -> None:
    """On two corpora seeds do not tell classifiers from the tagger."""
    found = judged(recorded()[TAGGING], classifiers(), 5, comparable=True)
    assert found.verdict == "inconclusive"
    assert "seeds do not decide on 20 Newsgroups, IMDB" in found.why


@pytest.mark.parametrize("lambdas", [(), (0.1, 0.1), (0.1, 0.100001)])
def test_strengths_are_told_apart(lambdas: tuple[float, ...]) -> None:
    with pytest.raises(UserError, match="every λ once, and no two closer than 1e-05"):
        check_apart(lambdas, 1e-5)
    check_apart((0.0, 0.001, 0.00101), 1e-5)
    assert as_step(0.003, 1e-5) == 300
