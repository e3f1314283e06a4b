"""What word-translation computes after training, against plain loops; and its judgements on numbers that are known."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

import attndyn
from attndyn.measures.estimates import interval, of_pairs
from attndyn.measures.translation import bleu
from attndyn.measures.verdicts import DIFFERS, HOLDS, INCONCLUSIVE, NOT_JUDGED
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies import find
from attndyn.studies.translation_claims import Judge
from attndyn.studies.translation_names import (
    COLUMNS,
    FALLEN,
    INFLATED,
    LINEAR_APART,
    LINK_CHANCE,
    RANKS,
    RISEN,
    SHAPED,
    TABLES,
)  # fmt: skip
from attndyn.studies.translation_page import Tables
from attndyn.studies.translation_part import Pairs
from attndyn.tasks.corpus import loaded
from attndyn.tasks.held import forget
from attndyn.theory.ibm1 import ibm1
from tests.studies.made import parallel

TINY = {
    "vocabulary": 60, "seeds": 3, "uniform": 2, "steps": 6, "batch": 8, "hidden": 8, "every": 3, "early": (1,),
    "evaluation": 9, "cut": 6, "beams": 2, "epochs": 1, "traces": "all", "lr": 0.05,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> attndyn.Run:
    folder = tmp_path_factory.mktemp("tables")
    settings = TINY | {"corpus": parallel(folder / "corpus")}
    return attndyn.run("word-translation", out=folder / "run", page=False, device="cpu", **settings)


@pytest.fixture
def metrics(run: attndyn.Run) -> Metrics:
    return Metrics(run.metrics)


@pytest.fixture(params=["valid", "train"])
def part(request: pytest.FixtureRequest, run: attndyn.Run, metrics: Metrics) -> Pairs:
    settings = {name: run.info["settings"][name] for name in (*TINY, "corpus")}
    settings["early"] = tuple(settings["early"])
    return Pairs(find("word-translation").at("demo", **settings), metrics, run, "cpu", request.param)


def value(metrics: Metrics, table: str, name: str) -> float:
    return float(metrics.curves(table, name).values[0, 0])


def test_no_link_goes_to_an_end_of_the_sentence() -> None:
    """Without that rule every </s> would be linked to <s>: both stand once in every pair."""
    study = find("word-translation").at("demo", evaluation=200)
    steps: Any = SimpleNamespace(curves=lambda condition, name: SimpleNamespace(steps=np.array([0])))
    part = Pairs(study, steps, None, "cpu", "valid")  # type: ignore[arg-type]
    assert (ibm1(part.examples.train, iterations=5).align(part.pairs) >= 0).all()
    linked = np.flatnonzero(part.links >= 0)
    partners = {part.pairs.source.line(int(part.sentence[row]))[part.links[row]] for row in linked}
    assert len(partners) > 100
    assert not partners & {"<s>", "</s>"}
    assert (part.links[part.pairs.target.offsets[1:] - 1] == -1).all()
    assert 0.9 < len(linked) / len(part.links) < 0.93
    assert part.marks().sum() == 2 * len(linked)


def test_the_links_of_all_parts_are_counted_once(
    run: attndyn.Run, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {name: run.info["settings"][name] for name in (*TINY, "corpus")}
    study = find("word-translation").at("demo", **settings | {"early": tuple(settings["early"])})
    counted = []
    monkeypatch.setattr(
        "attndyn.studies.translation_part.ibm1", lambda *of, **how: counted.append(of) or ibm1(*of, **how)
    )
    forget()
    for name in ("valid", "train", "valid"):
        part = Pairs(study, metrics, run, "cpu", name)
        found = ibm1(part.examples.train, iterations=5).align(part.pairs)
        np.testing.assert_array_equal(part.links[part.links >= 0], found[part.links >= 0])
    assert len(counted) == 1


def test_chance_is_that_of_the_part(part: Pairs, metrics: Metrics) -> None:
    lengths = [int(part.pairs.source.lengths[n]) for n in part.sentence]
    chance = np.mean([np.ceil(0.05 * length) / length for length in lengths])
    for measure in ("accuracy", "BLEU"):
        assert value(metrics, TABLES[part.name, measure], "chance") == pytest.approx(chance)
    if part.name == "valid":
        links = [1 / length for length, link in zip(lengths, part.links, strict=True) if link >= 0]
        assert value(metrics, "summary", LINK_CHANCE) == pytest.approx(np.mean(links))
        assert value(metrics, "summary", "linked positions") == pytest.approx(len(links) / len(lengths))


def test_lengths_count_no_ends(part: Pairs, metrics: Metrics) -> None:
    train = loaded(part.study.task).train
    for side, ends in (("source", ("<s>", "</s>")), ("target", ("</s>",))):
        text = getattr(train, side)
        lengths = [sum(piece not in ends for piece in text.line(n)) for n in range(len(train))]
        assert value(metrics, "summary", f"median {side} length") == np.median(lengths)


@pytest.mark.parametrize("measure", ["accuracy", "BLEU"])
def test_kendalls_tau_in_every_table(part: Pairs, metrics: Metrics, run: attndyn.Run, measure: str) -> None:
    """The gold checkpoint is the best by the measure on the part; of each run under uniform attention the checkpoint
    with the largest mean."""
    gold = part.performance(measure).argmax(axis=1)
    first = np.concatenate([[0], np.cumsum(part.rows.lengths.numpy())])
    for name, array in ((RANKS[0], "alpha"), (RANKS[2], "delta")):
        best = []
        for g, seed in enumerate(part.seeds):
            u = run.array("standard", seed, part.steps[gold[g]], part.prefix + array)
            for other in part.study.seeds_of("uniform attention"):
                means = []
                for step in part.steps:
                    v = run.array("uniform attention", other, step, f"{part.prefix}beta")
                    rows = [kendalltau(u[a:b], v[a:b]).statistic for a, b in pairwise(first)]
                    means.append(np.nanmean(rows))
                best.append(max(means))
        table = TABLES[part.name, measure]
        assert value(metrics, table, name) == pytest.approx(np.mean(best), abs=1e-6)
        assert value(metrics, table, f"{name} low") <= value(metrics, table, name)
        assert value(metrics, table, f"{name} undefined") == 0


def test_what_both_performances_choose_is_computed_once(part: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    from attndyn.studies.translation_tables import Columns

    columns, asked = Columns(part), []
    original = part.taus
    monkeypatch.setattr(part, "taus", lambda scorings, *more: asked.append(len(scorings)) or original(scorings, *more))
    list(columns._ranks())
    chosen = {(g, int(at)) for gold in columns.gold.values() for g, at in enumerate(gold)}
    assert asked == [1 + 2 * len(chosen)]


def test_differences_are_of_the_columns(metrics: Metrics) -> None:
    table = TABLES["valid", "accuracy"]
    apart = value(metrics, table, COLUMNS[3]) - value(metrics, table, COLUMNS[0])
    assert value(metrics, "summary", SHAPED) == pytest.approx(apart, abs=1e-6)
    assert value(metrics, "summary", INFLATED) >= 0


def test_the_difference_is_over_every_set_of_runs(part: Pairs, metrics: Metrics) -> None:
    """Pairs of standard runs, and runs under uniform attention."""
    from attndyn.studies.translation_tables import Columns

    if part.name == "train":
        return
    columns = Columns(part)
    under, shaped = (columns.column(name, "accuracy").astype(float) for name in (COLUMNS[0], COLUMNS[3]))
    assert under.shape[:2] == (3, 2)
    every = np.array([[[s - u for u in us] for s in ss] for ss, us in zip(shaped, under, strict=True)])
    assert every.shape[:3] == (3, 3, 2)
    low, high = (value(metrics, "summary", f"{SHAPED} {end}") for end in ("low", "high"))
    assert (low, high) == pytest.approx(tuple(interval(of_pairs(every), part.sentence, (-1.0, 1.0))), abs=1e-6)
    assert (low, high) != pytest.approx(
        tuple(interval(np.nanmean(shaped, axis=1) - under.mean(axis=1), part.sentence, (-1.0, 1.0))), abs=1e-6
    )


def test_the_linear_head_beside_the_others(part: Pairs, metrics: Metrics) -> None:
    if part.name == "train":
        return
    best = {
        condition: [
            max(bleu(part.translations(condition, seed, step), part.references).score for step in part.steps)
            for seed in part.study.seeds_of(condition)
        ]
        for condition in ("linear head", "standard")
    }
    apart = np.mean(best["linear head"]) - np.mean(best["standard"])
    assert value(metrics, "summary", LINEAR_APART) == pytest.approx(apart)
    low, high = (value(metrics, "summary", f"{LINEAR_APART} {end}") for end in ("low", "high"))
    assert low <= high


def test_the_page_has_all_seven_tables(part: Pairs, metrics: Metrics) -> None:
    tables = Tables(part.study, metrics)  # type: ignore[arg-type]
    agreement, ranks = tables.columns_table(), tables.ranks_table()
    assert [row[0] for row in agreement.rows] == [row[0] for row in ranks.rows] == list(TABLES.values())
    chances = {row[0]: row[1 + len(COLUMNS)] for row in agreement.rows}
    assert chances == {table: f"{100 * value(metrics, table, 'chance'):.1f}" for table in TABLES.values()}
    numbers = dict(tables.more().rows)
    assert (numbers["training pairs"], numbers["pairs"]) == ("100", "9")


# --- judgements


def test_nine_pairs_decide_nothing_but_what_holds_for_any(run: attndyn.Run) -> None:
    decided = {claim["id"] for claim in run.claims if claim["verdict"] in (HOLDS, DIFFERS)}
    assert {"S-19", "S-49"} <= decided <= {"S-03", "S-19", "S-49", "S-50"}
    assert any("fewer than 10 pairs read (9)" in claim["why"] for claim in run.claims)


def test_one_run_under_uniform_attention_stands_for_no_others(run: attndyn.Run) -> None:
    table = TABLES["valid", "accuracy"]
    known = {(table, f"{COLUMNS[0]} {end}"): 0.99 for end in ("low", "high")} | {("summary", "pairs"): 100.0}
    rows = [row for row in (Row(**row) for row in run.metrics.to_pylist()) if (row.condition, row.metric) not in known]
    made = Metrics(to_table([*rows, *(Row(of, 0, 0, name, value) for (of, name), value in known.items())]))
    settings = {name: value for name, value in TINY.items() if name != "uniform"}
    for uniform, verdict in ((2, HOLDS), (1, INCONCLUSIVE)):
        found = dict(Judge(find("word-translation").at("demo", uniform=uniform, **settings), made).all())
        assert found["S-08"].verdict == verdict
        assert ("one run under uniform attention" in found["S-08"].why) == (uniform == 1)
        assert found["S-49"].verdict == HOLDS


def judge(rows: list[Row], **settings: int) -> Judge:
    study = SimpleNamespace(seeds=2, linear=settings.get("linear", 1))
    return Judge(study, Metrics(to_table(rows)))  # type: ignore[arg-type]


def on_links(probe: list[list[float]], attention: list[list[float]], chance: float = 0.05) -> Judge:
    rows = [Row("summary", 0, 0, LINK_CHANCE, chance)]
    for metric, runs in (("probe on link", probe), ("attention on link", attention)):
        rows += [
            Row("standard", seed, 100 * n, metric, value)
            for seed, values in enumerate(runs)
            for n, value in enumerate(values)
        ]
    return judge(rows)


@pytest.mark.parametrize(
    ("probe", "attention", "verdict", "measured"),
    [
        ([[0.1, 0.5, 0.6]] * 3, [[0.1, 0.1, 0.6]] * 3, HOLDS, ", ".join(["100 and 200"] * 3)),
        ([[0.1, 0.1, 0.6]] * 3, [[0.1, 0.5, 0.6]] * 3, DIFFERS, ", ".join(["200 and 100"] * 3)),
        # one run, and two that do not differ, say nothing of others
        ([[0.1, 0.5, 0.6]], [[0.1, 0.1, 0.6]], INCONCLUSIVE, "100 and 200"),
        ([[0.1, 0.5, 0.6]] * 2, [[0.1, 0.1, 0.6]] * 2, INCONCLUSIVE, "100 and 200, 100 and 200"),
        # three at the same checkpoints and one where α comes first: more of the former would not make it differ
        ([[0.1, 0.1, 0.6]] * 4, [[0.1, 0.5, 0.6], *[[0.1, 0.1, 0.6]] * 3], INCONCLUSIVE,
         ", ".join(["200 and 100", *["200 and 200"] * 3])),
        # from 0 α would be halfway at step 0: .3 of .6
        ([[0.1, 0.5, 0.6]] * 3, [[0.3, 0.3, 0.6]] * 3, HOLDS, ", ".join(["100 and 200"] * 3)),
        # the last run never looks at its links
        ([*[[0.1, 0.5, 0.6]] * 3, [0.0, 0.0, 0.6]], [*[[0.1, 0.1, 0.6]] * 3, [0.0, 0.04, 0.03]], HOLDS,
         ", ".join(["100 and 200"] * 3) + "; 3 of 4 runs learn"),
        ([[0.0, 0.0, 0.6]], [[0.0, 0.04, 0.03]], NOT_JUDGED, "no run learns"),
    ],
)  # fmt: skip
def test_stages_are_those_of_runs_that_learn(
    probe: list[list[float]], attention: list[list[float]], verdict: str, measured: str
) -> None:
    found = on_links(probe, attention).stages()
    assert (found.verdict, found.measured.removeprefix("β and α at steps ")) == (verdict, measured)


def test_stages_of_two_checkpoints_do_not_tell_whether_they_overlap() -> None:
    assert on_links([[0.1, 0.5, 0.6, 0.9]], [[0.1, 0.4, 0.5, 0.6]]).overlap().verdict == HOLDS
    assert on_links([[0.1, 0.1, 0.9]], [[0.1, 0.1, 0.6]]).overlap().verdict == DIFFERS
    found = on_links([[0.1, 0.9]], [[0.1, 0.6]]).overlap()
    assert (found.verdict, found.why) == (INCONCLUSIVE, "2 checkpoints: none between the ends")


def test_what_was_never_learned_has_no_threshold() -> None:
    for start, verdict, why in (
        (0.1, HOLDS, ""),
        (0.5, INCONCLUSIVE, "2 of 2 gold runs are never better than at step 0"),
    ):
        rows = [Row("standard", seed, n, "accuracy", value) for seed in range(2)
                for n, value in enumerate([start, 0.3, 0.5])]  # fmt: skip
        table = TABLES["valid", "accuracy"]
        rows += [Row(table, seed, 0, name, 0.5) for seed in range(2) for name in ("ξ*", f"ξ of {COLUMNS[0]}")]
        found = judge(rows).not_trivial(COLUMNS[0])
        assert (found.verdict, found.why) == (verdict, why)


def test_no_link_at_all_is_not_judged() -> None:
    nothing = [[float("nan")] * 3]
    found = on_links(nothing, nothing, float("nan"))
    assert found.stages().verdict == found.overlap().verdict == NOT_JUDGED


@pytest.mark.parametrize(
    ("agreement", "verdict", "measured"),
    [
        ([[0.1, 0.2, 0.4, 0.3], *[[0.1, 0.2, 0.3, 0.4]] * 2], HOLDS, "τ 0.67 to 1.00"),
        ([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]], INCONCLUSIVE, "τ -1.00 to 1.00"),
        ([[0.1, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]], INCONCLUSIVE, "τ 1.00 to 1.00"),
        ([[0.4, 0.3, 0.2, 0.1]] * 2, INCONCLUSIVE, "τ -1.00 to -1.00"),
        ([[0.4, 0.3, 0.2, 0.1]] * 3, DIFFERS, "τ -1.00 to -1.00"),
        ([[0.1, 0.1, 0.1, 0.1], *[[0.1, 0.2, 0.3, 0.4]] * 3], HOLDS, "τ 1.00 to 1.00"),
        ([[0.1, 0.1, 0.1, 0.1]] * 2, INCONCLUSIVE, "a curve stays where it is in every run"),
    ],
)
def test_rising_together(agreement: list[list[float]], verdict: str, measured: str) -> None:
    rows = []
    for seed, values in enumerate(agreement):
        rows += [Row("standard", seed, n, "A(α, α)", value) for n, value in enumerate(values)]
        rows += [Row("standard", seed, n, "accuracy", 0.1 * n) for n in range(4)]
    found = judge(rows).together()
    assert (found.verdict, found.measured) == (verdict, measured)
    still = len(agreement) - found.n
    assert (f"in {still} of {len(agreement)} runs a curve stays" in found.why) == (0 < still < len(agreement))
    ends = judge([row for row in rows if row.step in (0, 3)]).together()
    assert ends.verdict == INCONCLUSIVE  # of two checkpoints τ is 1 or −1


@pytest.mark.parametrize(
    ("curve", "interval", "fallen", "verdict"),
    [
        ([0.1, 0.3, 0.28], (0.01, 0.03), (0.01, 0.03), HOLDS),
        ([0.1, 0.3, 0.28], (0.01, 0.03), (-0.01, 0.03), INCONCLUSIVE),  # above the end by chance
        ([0.1, 0.3, 0.28], (0.01, 0.03), (-0.03, -0.01), DIFFERS),
        ([0.1, 0.3, 0.28], (0.01, 0.08), (0.01, 0.08), INCONCLUSIVE),
        ([0.1, 0.3, 0.18], (0.01, 0.03), (0.10, 0.15), HOLDS),  # it falls by much, and the maximum adds little
        ([0.1, 0.3, 0.28], (0.06, 0.09), (0.01, 0.03), DIFFERS),
        ([0.1, 0.2, 0.3], (0.0, 0.0), (0.0, 0.0), DIFFERS),
        ([0.1, 0.3], (0.0, 0.0), (0.0, 0.0), INCONCLUSIVE),  # it cannot peak but at an end
    ],
)
def test_a_maximum_that_inflates(
    curve: list[float], interval: tuple[float, float], fallen: tuple[float, float], verdict: str
) -> None:
    rows = [Row("uniform attention", 0, 100 * n, COLUMNS[0], value) for n, value in enumerate(curve)]
    for name, ends in ((INFLATED, interval), (FALLEN, fallen), (RISEN, (0.1, 0.2))):
        rows += [Row("summary", 0, 0, name + end, number) for end, number in spread(max(curve) - curve[-1], ends)]
    found = judge(rows).rise_and_fall()
    assert found.verdict == verdict
    assert f"the maximum adds {100 * (max(curve) - curve[-1]):.1f}" in found.measured


@pytest.mark.parametrize(
    ("interval", "standard", "verdict"),
    [
        ((-1.5, 1.0), 30.0, HOLDS),
        ((-2.5, 1.0), 30.0, INCONCLUSIVE),
        ((-4.0, -2.1), 30.0, DIFFERS),
        ((2.5, 3.0), 30.0, INCONCLUSIVE),
        ((-1.5, 1.0), 9.0, NOT_JUDGED),
    ],
)
def test_a_head_that_is_as_good(interval: tuple[float, float], standard: float, verdict: str) -> None:
    rows = [Row("standard", 0, 0, "BLEU", standard), Row("linear head", 0, 0, "BLEU", standard)]
    rows += [Row("summary", 0, 0, LINEAR_APART + end, number) for end, number in spread(0, interval)]
    found = judge(rows).as_good()
    assert (found.verdict, found.interval) == (verdict, interval)
    assert "one run with a linear head" in found.why
    assert judge(rows, linear=2).as_good().why == ""


@pytest.mark.parametrize(("chance", "verdict"), [(0.05, HOLDS), (0.2, DIFFERS)])
def test_training_pairs_are_judged_by_their_own_chance(chance: float, verdict: str) -> None:
    rows = [Row("summary", 0, 0, "chance", 0.05)]
    for table in TABLES.values():
        rows.append(Row(table, 0, 0, "chance", chance if "training" in table else 0.05))
        rows.append(Row(table, 0, 0, f"ξ of {COLUMNS[0]}", 0.5))
        for name in COLUMNS[:3]:
            rows += [Row(table, 0, 0, name + end, number) for end, number in spread(0.3, (0.25, 0.35))]
        for name in RANKS:
            rows += [Row(table, 0, 0, name + end, number) for end, number in spread(0.1, (0.05, 0.15))]
    found = judge(rows).columns_hold(TABLES["train", "accuracy"], TABLES["train", "BLEU"])
    assert found.verdict == verdict
    assert f"Â {100 * chance:.1f}" in found.measured
    assert "τ 0.100 / 0.100 / 0.100" in found.measured


def test_a_rank_correlation_below_0_differs() -> None:
    table = TABLES["valid", "BLEU"]
    ends = dict.fromkeys(RANKS, (0.05, 0.15)) | {RANKS[2]: (-0.15, -0.05)}
    rows = [Row(table, 0, 0, name + end, number) for name in RANKS for end, number in spread(0, ends[name])]
    assert judge(rows).ranks(table).verdict == DIFFERS


def spread(middle: float, interval: tuple[float, float]) -> list[tuple[str, float]]:
    return [("", middle), (" low", interval[0]), (" high", interval[1])]
