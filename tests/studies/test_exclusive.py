"""What adversaries reach that keep their score, and the recorded side of the comparison."""

import csv
import json
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from attndyn.errors import UserError
from attndyn.measures.divergence import jsd
from attndyn.measures.estimates import interval
from attndyn.measures.flat import Texts
from attndyn.measures.verdicts import welch_interval
from attndyn.studies import counterfactual_tables, deceptive_tables
from attndyn.studies.exclusive import (
    COLUMNS,
    TABLE,
    TAGGING,
    Reach,
    classifiers,
    judged,
    left_out,
    of_neighbours,
    of_seeds,
    reach,
    recorded,
    stable,
)
from attndyn.studies.explained_read import Reading
from attndyn.studies.strengths import as_step, check_apart

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT, RESULTS = DOCS / "data" / "exclusive.py", DOCS / "results"


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
    assert found == Reach((0.5, 0.65, 0.0), (0.25, 0.325, 0.0), (0.1, 0.3), (0.2, 0.2))
    assert found.room == pytest.approx([0.3, 0.45, -0.2])


def at(room: float, spread: float = 0.01) -> Reach:
    return Reach((0.2 + room - spread, 0.2 + room, 0.2 + room + spread), (0.1,) * 3, (0.2,), (0.1,))


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
    lone = Reach((0.6,), (0.1,), (0.2,), (0.1,))
    assert judged(at(0.1), {"one": lone}, 1, comparable=True).verdict == "inconclusive"


def test_the_tagger_on_record_is_compared_with_the_table_of_now() -> None:
    check_comparison("tagger-adversary")


@pytest.mark.parametrize("corpus", ["sst", "ag", "imdb"])
def test_classifiers_on_record_are_compared_with_the_table_of_now(
    corpus: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNDYN_DATA", str(shared_data))
    check_comparison(f"deceptive-attention-{corpus}")


def check_comparison(name: str) -> None:
    """Who is recorded again has to judge the others again (docs/data/exclusive.py does)."""
    folder = RESULTS / name
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    for claim, now in zip(claims, runpy.run_path(str(SCRIPT))["judged_again"](folder), strict=True):
        for key in ("id", "measured", "verdict", "why"):
            assert claim[key] == now[key]
        assert claim["interval"] == (now["interval"] and pytest.approx(now["interval"], abs=1e-3))


def seeds_at(*jsd: float) -> Reach:
    return Reach((0.6,) * 3, (0.1,) * 3, jsd, (0.1,))


TAGGERS = seeds_at(0.19, 0.2, 0.2, 0.2, 0.21)


@pytest.mark.parametrize(
    ("two", "verdict"), [(0.4, "holds"), (0.1, "differs"), (0.2, "inconclusive"), (0.215, "inconclusive")]
)
def test_a_tagger_is_more_stable_if_it_is_on_every_corpus(two: float, verdict: str) -> None:
    noise = (0.01, -0.01, 0.0, 0.0, 0.01, 0.01, -0.01, 0.0)
    classification = {
        "one": seeds_at(*(0.3 + more for more in noise)),
        "two": seeds_at(*(two + more for more in noise)),
    }
    found = stable(TAGGERS, classification, 5, comparable=True, why="uniform")
    assert (found.verdict, found.n) == (verdict, 5)
    assert found.why == ("seeds do not decide on two; uniform" if verdict == "inconclusive" else "uniform")
    assert found.interval is not None
    others = classification["two" if two < 0.3 else "one"].others_jsd[1::2]  # no two of which share a seed
    assert found.interval == welch_interval(others, left_out(TAGGERS.others_jsd).tolist())
    assert stable(TAGGERS, classification, 5, comparable=False).verdict == "not comparable"


def test_how_stable_classifiers_are_is_not_known_from_a_mean() -> None:
    found = stable(TAGGERS, {"one": seeds_at(0.4), "two": seeds_at(*(0.4, 0.41) * 4)}, 5, comparable=True)
    assert (found.verdict, found.interval) == ("inconclusive", None)
    assert found.why.startswith("single pairs of seeds are not recorded on one")
    few = stable(seeds_at(0.2, 0.2), {"two": seeds_at(*(0.4, 0.41) * 4)}, 2, comparable=True)
    assert few.why.startswith("too few seeds")


def test_every_seed_counts_once_although_it_is_in_many_pairs() -> None:
    """Pairs (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3) of seeds that each add a value of their own: the values of
    the jackknife are the two of every pair."""
    own = np.array([0.1, 0.2, 0.4, 0.5])
    pairs = [own[a] + own[b] for a, b in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))]
    means = of_seeds(pairs, 4)
    assert means[0] == pytest.approx(np.mean(pairs[:3]))
    assert left_out(means) == pytest.approx(2 * own)


def test_a_seed_is_left_out_with_both_its_neighbours() -> None:
    """Pair n is of seed n and the one before; of two examples."""
    pairs = np.array([[0.1, 0.5], [0.4, 0.2], [0.3, 0.9], [0.2, 0.2], [0.6, 0.1]])
    for seed, found in enumerate(of_neighbours(pairs)):
        without = np.delete(pairs, [seed, (seed + 1) % 5], axis=0).mean(axis=0)
        assert found == pytest.approx(5 * pairs.mean(axis=0) - 4 * without)


def test_seeds_are_compared_with_their_neighbours_seed_by_seed() -> None:
    """In the rows of both studies; three seeds, of which without one a single pair is left. Two have no interval."""
    random = torch.Generator().manual_seed(0)
    texts, wide = Texts(torch.full((6,), 4)), torch.rand(3, 6, 4, generator=random).softmax(dim=-1)
    alpha, answers = wide.flatten(1), torch.rand(3, 6, generator=random)
    found = Reading(texts, alpha, alpha, alpha, answers, np.arange(6) % 2)
    pairs = torch.stack([jsd(wide[n], wide[n - 1]) for n in range(3)]).numpy()
    moved = np.stack([abs(answers[n] - answers[n - 1]).numpy() for n in range(3)])
    apart, change = (np.stack([3 * each.mean(axis=0) - 2 * each[n - 1] for n in range(3)]) for each in (pairs, moved))
    adversaries = np.full((3, 6), 0.6) + 0.01 * np.arange(3)[:, None]
    for rows, wanted in (
        (deceptive_tables._beside_seeds(found, (0, 1, 2)), {"JSD of another seed": apart}),
        (
            counterfactual_tables._beside_seeds(found, adversaries, 0.01),
            {
                "JSD of the adversary minus that of another seed": adversaries - apart,
                "|Δy| of another seed minus the adversary's": change - 0.01,
            },
        ),
    ):
        values = {row.metric: row.value for row in rows}
        for name, each in wanted.items():
            within = (0.0, np.log(2)) if name == "JSD of another seed" else (-1.0, 1.0)
            ends = tuple(interval(each, within=within))
            assert tuple(values[f"{name} {end}"] for end in ("low", "high")) == pytest.approx(ends, abs=1e-5)
    two = Reading(texts, alpha[:2], alpha[:2], alpha[:2], answers[:2], found.labels)
    for rows in (
        deceptive_tables._beside_seeds(two, (0, 1)),
        counterfactual_tables._beside_seeds(two, adversaries[:2], 0.01),
    ):
        assert not [row.metric for row in rows if row.metric.endswith((" low", " high"))]


def test_intervals_over_neighbours_hold_what_they_should() -> None:
    """Every seed adds its own to both its pairs, of which the mean is 0."""
    random, held = np.random.default_rng(0), {"pairs as they are": 0, "left out": 0}
    for _ in range(200):
        seeds = random.normal(size=(8, 1))
        pairs = seeds + np.roll(seeds, 1, axis=0) + 0.2 * random.normal(size=(8, 20))
        for name, values in (("pairs as they are", pairs), ("left out", of_neighbours(pairs))):
            low, high = interval(values)
            held[name] += low <= 0 <= high
    assert held["pairs as they are"] < 170 < 182 < held["left out"]


@pytest.mark.parametrize("lambdas", [(), (0.1, 0.1), (0.1, 0.100001)])
def test_strengths_are_told_apart(lambdas: tuple[float, ...]) -> None:
    with pytest.raises(UserError, match="every λ once, and no two closer than 1e-05"):
        check_apart(lambdas, 1e-5)
    check_apart((0.0, 0.001, 0.00101), 1e-5)
    assert as_step(0.003, 1e-5) == 300
