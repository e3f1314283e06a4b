"""Pools, combinations and judgements of head-rescue on outcomes that are known; the command on a tiny budget."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attndyn.cli import main
from attndyn.errors import UserError
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies.head_claims import by_itself
from attndyn.studies.head_pools import Pools
from attndyn.studies.head_rescue import BASES, SINGLE, HeadRescue

STUDY = HeadRescue(bases=3, probes=4, pool=8, candidates=48, combinations=12, counts=(1, 2, 8))
STEPS = STUDY.steps
GOOD, MIXED, BAD = (1.0, 0.99, 0.96), (1.0, 0.5, 0.7), (0.5, 0.7, 0.94)
HEADS = (*[GOOD] * 12, *[MIXED] * 4, *[BAD] * 16)


def rows(condition: str, accuracies, pruned: float = 1.0) -> list[Row]:
    made = []
    for seed, accuracy in enumerate(accuracies):
        values = {"accuracy": accuracy, "one head left": pruned, "one head in place of all": 0.1,
                  "heads that look": 2.0, "head that looks": 0.0}  # fmt: skip
        made += [Row(condition, seed, STEPS, name, value) for name, value in values.items()]
        made.append(Row(condition, seed, 0, "accuracy", 0.0))
    return made


def bases(*counts: int) -> list[Row]:
    return rows(BASES, [1.0 if head < count else 0.5 for count in counts for head in range(4)])


def candidates(heads=HEADS) -> list[Row]:
    return [row for data, name in enumerate(SINGLE) for row in rows(name, [head[data] for head in heads])]


def models(
    bad: int = 0, good: int = 12, single: int = 6, two: int = 9, eight: int = 12, pruned: float = 1.0
) -> list[Row]:
    """How many of 12 models of each kind learn."""
    made = {STUDY.all_bad: bad, STUDY.one_good: good, STUDY.random(1): single, STUDY.random(2): two,
            STUDY.random(8): eight}  # fmt: skip
    return [row for name, n in made.items() for row in rows(name, [1.0] * n + [0.6] * (12 - n), pruned)]


def metrics(*parts: list[Row]) -> Metrics:
    return Metrics(to_table([row for part in parts for row in part]))


def verdicts(*parts: list[Row], study: HeadRescue = STUDY) -> dict[str, str]:
    return {claim.statement.id: claim.judgement.verdict for claim in study.claims(metrics(*parts))}


# Stages


def test_first_the_bases_then_candidates_then_models() -> None:
    (first,) = STUDY.conditions()
    assert first.name == BASES
    assert [(one.base, one.heads[0]) for one in first.origins[3:5]] == [(0, 100_003), (1, 100_000)]
    search = list(STUDY.then(metrics(bases(0, 2, 4))))
    assert [one.name for one in search] == list(SINGLE)
    assert all(one.seeds == tuple(range(24)) for one in search)
    assert {origin.base for one in search for origin in one.origins} == {1}, "half of the heads learn there"
    assert [one.origins[5].data for one in search] == [0, 1, 2]
    put_together = list(STUDY.then(metrics(bases(0, 2, 4), candidates())))
    assert [one.name for one in put_together] == [
        "8 bad heads", "1 good, 7 bad", "8 random heads", "1 random head", "2 random heads",
    ]  # fmt: skip
    assert not list(STUDY.then(metrics(bases(0, 2, 4), candidates(), models())))


def test_the_search_goes_on_until_the_pools_are_full_or_the_limit_is_reached() -> None:
    more = list(STUDY.then(metrics(bases(2, 2, 2), candidates([GOOD] * 20 + [BAD] * 4))))
    assert [one.seeds for one in more] == [tuple(range(24, 48))] * 3
    ended = list(STUDY.then(metrics(bases(2, 2, 2), candidates([GOOD] * 44 + [BAD] * 4))))
    assert [one.name for one in ended] == ["8 random heads", "1 random head", "2 random heads"]


def test_models_are_made_of_the_heads_they_should_be() -> None:
    bad, good, eight, one, two = STUDY.then(metrics(bases(0, 2, 4), candidates()))
    for origin in bad.origins:
        assert len(set(origin.heads)) == 8
        assert set(origin.heads) <= set(range(16, 32))
    for origin in good.origins:
        assert origin.heads[0] in range(12)
        assert set(origin.heads[1:]) <= set(range(16, 32))
    for several, fewer in zip(eight.origins, two.origins, strict=True):
        assert several.heads[:2] == fewer.heads
        assert several.data == fewer.data
    heads = [head for origin in eight.origins for head in origin.heads]
    assert len(set(heads)) == len(heads)
    assert not {origin.data for origin in (*bad.origins, *one.origins)} & {0, 1, 2}, "data that chose the heads"


def test_pools_and_combinations_repeat_themselves() -> None:
    one, other = (list(STUDY.then(metrics(bases(0, 2, 4), candidates()))) for _ in range(2))
    assert one == other
    origins = [origin.heads for origin in one[0].origins]
    assert len(set(origins)) > 1, "not every model is the same"


def test_the_authors_variant() -> None:
    study = replace(STUDY, variant="authors")
    assert study.pools(metrics(candidates())).bad == [], "none is below .6 under all three"
    low = [GOOD] * 8 + [(0.5, 0.5, 0.59)] * 8
    bad, good, eight, *_ = study.then(metrics(bases(0, 2, 4), candidates(low)))
    assert {origin.data for origin in bad.origins} == {0}
    assert len(bad.seeds) == 1, "eight bad heads and one data seed make one model, however often they are drawn"
    assert 1 < len(good.seeds) <= 12
    assert len({frozenset(origin.heads) for origin in good.origins}) == len(good.seeds)
    assert {head for origin in eight.origins for head in origin.heads} <= set(range(200_000, 200_030))
    assert all(len(set(origin.heads)) == 8 for origin in eight.origins)


def test_a_pool_is_what_all_data_seeds_agree_on() -> None:
    pools = Pools(np.array([GOOD, MIXED, BAD, (0.5, 0.3, 0.59)]), 0.95)
    assert (pools.good, pools.bad, pools.below(0.6)) == ([0], [2, 3], 1)
    assert pools.rate == pytest.approx(4 / 12)
    assert Pools.draw(range(30), 8, run=0, place=0) != Pools.draw(range(30), 8, run=0, place=1)
    assert sorted(Pools.draw([4, 5, 6], 8, run=1, place=0)) == [4, 5, 6]


# Judgements


def test_the_published_picture_holds() -> None:
    found = verdicts(bases(0, 2, 4), candidates(), models())
    assert found == {
        "S-38": "holds", "S-39": "holds", "S-40": "holds", "S-41": "holds", "S-42": "holds", "H-01": "holds",
        "H-02": "differs",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "id", "verdict"),
    [
        ({"bad": 1}, "S-38", "inconclusive"),
        ({"bad": 8}, "S-38", "differs"),
        ({"good": 11}, "S-39", "inconclusive"),
        ({"good": 4}, "S-39", "differs"),
        ({"eight": 6}, "S-40", "inconclusive"),
        ({"eight": 1, "single": 12}, "S-40", "differs"),
        ({"single": 12}, "S-40", "holds"),
        ({"pruned": 0.5}, "S-42", "differs"),
        ({"pruned": 1.0, "single": 11}, "S-42", "inconclusive"),
        ({"two": 1}, "H-01", "differs"),
    ],
)
def test_other_outcomes_are_judged_otherwise(changes: dict[str, float], id: str, verdict: str) -> None:
    assert verdicts(bases(0, 2, 4), candidates(), models(**changes))[id] == verdict


def test_without_a_good_head_nothing_shows_that_one_is_enough() -> None:
    few = models(single=0)
    kept = [row for row in few if row.condition not in (STUDY.one_good,)]
    found = verdicts(bases(0, 0, 0), candidates([BAD] * 48), kept)
    assert found["S-41"] == "differs"
    assert found["S-39"] == "not judged at this scale"
    judged = {claim.statement.id: claim.judgement for claim in STUDY.claims(metrics(candidates([BAD] * 48), kept))}
    assert judged["H-02"].verdict == "not judged at this scale", "no other weights were tried"
    assert "0 good and 48 bad heads among 48 candidates" in judged["S-39"].measured
    assert "a good one and 7 bad ones are needed: more --candidates, or another --base" in judged["S-39"].why


def test_a_head_that_is_good_anywhere_is_good_by_itself() -> None:
    always = np.tile([True, False, True, False], (3, 1))
    assert by_itself(always).verdict == "holds"
    assert by_itself(np.repeat([[True], [False], [False]], 8, axis=1)).verdict == "differs"
    assert by_itself(np.ones((3, 4), dtype=bool)).verdict == "inconclusive"


def test_the_finding_counts() -> None:
    assert STUDY.finding(metrics(bases(0, 2, 4), candidates(), models(bad=2))) == (
        "Of 32 single heads 12 are good and 16 bad (a run learns with probability 0.42). Of models with 8 heads 2 of "
        "12 with 8 bad heads, 12 of 12 with 1 good, 7 bad, 12 of 12 with 8 random heads learned to copy permutations "
        "of 40."
    )


def test_the_page_has_its_parts_whatever_became_of_the_runs() -> None:
    given = replace(STUDY, base=5)
    for study, made in ((STUDY, [bases(0, 2, 4), candidates(), models()]), (given, [candidates(), models(0, 0, 0)])):
        parts = {part.name: part for part in study.figures(metrics(*made))}
        assert {"rescue", "pools", "counts", "shares", "pruned"} <= set(parts)
        assert ("bases" in parts) == (study is STUDY)
    assert parts["pools"].rows == ((32, 12, 16, 4, 0, "0.417 of 96"),)


# Settings and the command


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"heads": 0}, "heads must be at least 1, not 0"),
        ({"pool": 0}, "pool must be at least 1, not 0"),
        ({"pool": 4}, "pool must be at least the 8 heads of a combination, not 4"),
        ({"counts": (1, 0)}, "a model has 1 to 64 heads, not 0"),
        ({"counts": (31,), "variant": "authors"}, "a model has 1 to 30 heads, not 31"),
        ({"counts": ()}, "counts must be numbers of heads"),
        ({"lr": 0.0}, "lr must be a number above 0"),
        ({"length": 0}, "length must be at least 1"),
        ({"variant": "authors", "reading": "text"}, "no reading by the paper's equations"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        HeadRescue(**settings)


TINY = [
    "--length=3", "--hidden=8", "--batch=4", "--steps=6", "--every=3", "--evaluation=4", "--heads=2", "--pool=2",
    "--candidates=6", "--combinations=2", "--counts", "1", "2", "--bases=2", "--probes=2",
]  # fmt: skip


@pytest.mark.parametrize("variant", ["text", "authors"])
def test_the_command_runs_all_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str], variant: str) -> None:
    main(["run", "head-rescue", *TINY, "--variant", variant, "--out", str(tmp_path)])
    assert "Of 6 single heads 0 are good" in capsys.readouterr().out
    claims = {claim["id"]: claim for claim in json.loads((tmp_path / "claims.json").read_text())}
    assert claims["S-39"]["verdict"] == "not judged at this scale"
    assert claims["S-41"]["verdict"] == "differs"
    assert "One good head among bad ones" in (tmp_path / "report.html").read_text()
