"""The judgements of tagger-adversary on metrics whose outcome is known; what is refused; and one tiny real run."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attndyn.cli import main
from attndyn.errors import UserError
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies.exclusive import classifiers
from attndyn.studies.tagger_adversary import TaggerAdversary
from attndyn.studies.tagger_claims import Judge
from attndyn.studies.tagger_compare import matched
from attndyn.studies.tagger_names import BASE, FORWARD, READ, RECOMPUTED, SCATTERED, SEEDS, UNIFORM, given
from attndyn.studies.tagger_page import recorded_points

LAMBDAS = (0.0, 0.2, 0.6, 1.0, 1.5, 2.0, 2.4, 2.8, 3.0)
STUDY = TaggerAdversary(corpus="made", vectors=None, frozen=False, unmasked=False, lambdas=LAMBDAS, batch=50, epochs=6)
PAPER = TaggerAdversary(lambdas=LAMBDAS)
F1 = "test F1 (kept)"
INTACT = {strength: 0.9 if strength < 0.5 else 0.89 for strength in LAMBDAS}
SUDDEN = INTACT | {3.0: 0.75}


def made(
    f1: Callable[[int, float], float],
    kl: Callable[[float], float] = lambda strength: 0.3 + 0.02 * strength,
    jsd: Callable[[float], float] = lambda strength: 0.2 + 0.1 * strength,
    uniform: float = 0.7,
    strongly_given: float = 0.9,
    sentences: int = 2000,
) -> Metrics:
    """Five seeds; whatever is not given is as published. A little noise, so that intervals have a width."""
    random = np.random.default_rng(0)
    rows: list[Row] = []

    def add(condition: str, metric: str, value: float, seed: int, step: int = STUDY.last) -> None:
        rows.append(Row(condition, seed, step, metric, value + 1e-4 * random.standard_normal()))

    for n in range(5):
        add(BASE, F1, 0.9, n)
        add(BASE, READ, sentences, n)
        for epoch, (valid, test) in enumerate(
            ((0.5, 0.5), (0.8, 0.85), (0.9, 0.8), (0.7, 0.7), (0.7, 0.7), (0.7, 0.7))
        ):
            add(BASE, "F1", valid, n, epoch)
            add(BASE, "test F1", test, n, epoch)
        for strength, name in STUDY.adversaries.items():
            lost = f1(n, strength)
            values = {F1: lost, "NLL": 0.1 * strength + 0.9 - lost, "KL an element": kl(strength), "TVD": 0.05,
                      "JSD matched": jsd(strength), "rank τ": 0.5 if lost > 0.85 else -0.2}  # fmt: skip
            for metric, value in values.items():
                add(name, metric, value, 1000 + n)
        add(UNIFORM, F1, uniform, 4000 + n)
        add(UNIFORM, "JSD matched", 0.35, 4000 + n)
        probes = {RECOMPUTED: 0.9, given(BASE): 0.9, given("λ 0.2"): 0.9, given("λ 3"): strongly_given, SCATTERED: 0.6}
        probes |= {f"{FORWARD}{name}": value for name, value in probes.items()} | {f"{FORWARD}{UNIFORM}": 0.1}
        for name, value in probes.items():
            add(name, F1, value, 3000 + n)
    for pair in range(10):
        for metric, value in {"JSD": 0.4, "JSD matched": 0.25, "JSD of means": 0.1, "TVD": 0.05, "rank τ": 0.4}.items():
            add(SEEDS, metric, value, pair)
    return Metrics(to_table(rows))


def rows_of(metrics: Metrics) -> list[Row]:
    return [Row(**row) for row in metrics.table.to_pylist()]


def verdicts(metrics: Metrics) -> dict[str, str]:
    return {claim.statement.id: claim.judgement.verdict for claim in STUDY.claims(metrics)}


def test_the_published_picture_holds() -> None:
    found = verdicts(made(lambda seed, strength: SUDDEN[strength]))
    assert found == {
        "Y-01": "not comparable", "Y-02": "holds", "Y-03": "holds", "Y-04": "holds", "Y-05": "holds", "Y-06": "holds",
        "Y-07": "not comparable", "Y-08": "not comparable", "Y-09": "holds", "Y-10": "holds",
    }  # fmt: skip


def test_other_pictures_do_not() -> None:
    intact = verdicts(made(lambda seed, strength: INTACT[strength], kl=lambda strength: 0.3 - 0.02 * strength))
    assert (intact["Y-03"], intact["Y-05"], intact["Y-06"], intact["Y-10"]) == (
        "differs", "differs", "differs", "inconclusive",
    )  # fmt: skip
    early = verdicts(made(lambda seed, strength: 0.9 - 0.1 * (strength > 0), jsd=lambda strength: 0.1))
    assert early["Y-02"] == "differs"
    slowly = verdicts(made(lambda seed, strength: 0.9 - 0.06 * strength))
    assert (slowly["Y-03"], slowly["Y-06"]) == ("holds", "differs")
    study = replace(STUDY, lambdas=(0.0, 0.2, 3.0))  # over so wide a gap all of it goes at once
    coarse = {
        claim.statement.id: claim.judgement
        for claim in study.claims(made(lambda seed, strength: 0.9 - 0.06 * strength))
    }
    assert [coarse[id].verdict for id in ("Y-03", "Y-06", "Y-10")] == ["holds", "inconclusive", "inconclusive"]
    assert "no λ between 0.2 and 3" in coarse["Y-06"].why
    elsewhere = verdicts(made(lambda seed, strength: SUDDEN[strength], kl=lambda strength: 0.7 + 0.01 * strength))
    assert elsewhere["Y-06"] == "differs"
    useless = verdicts(made(lambda seed, strength: SUDDEN[strength], uniform=0.95, strongly_given=0.8))
    assert (useless["Y-04"], useless["Y-09"]) == ("differs", "differs")


def test_seeds_that_hardly_do_not_break_leave_it_open() -> None:
    """Three of five lose almost enough, so that others may break."""
    hardly = made(lambda seed, strength: 0.9 - 0.049 * (strength == 3 and seed % 2 == 0))
    claim = next(claim for claim in STUDY.claims(hardly) if claim.statement.id == "Y-06")
    assert claim.judgement.verdict == "inconclusive"
    assert claim.judgement.measured.startswith("no seed breaks up to λ 3; their largest losses: 0.000 to 0.049")
    every = rows_of(made(lambda seed, strength: INTACT[strength]))
    alone = [row for row in every if row.replica % 1000 == 0 and row.condition != SEEDS]
    one = dict(Judge(replace(STUDY, seeds=1, probes=1), Metrics(to_table(alone))).all())
    assert one["Y-06"].verdict == "inconclusive"


def test_few_sentences_decide_nothing() -> None:
    found = verdicts(made(lambda seed, strength: SUDDEN[strength], sentences=9))
    assert set(found.values()) == {"inconclusive", "not comparable"}


def test_two_states_at_one_strength_are_told() -> None:
    mixed = made(lambda seed, strength: 0.75 if strength == 3 or (strength == 2 and seed < 2) else 0.9)
    claim = next(claim for claim in STUDY.claims(mixed) if claim.statement.id == "Y-06")
    assert "broken and unbroken seeds stand side by side at λ 2" in claim.judgement.measured
    assert "5 of 5 seeds break, at λ 2 to 3, where 100% of the loss comes at once" in claim.judgement.measured


def test_the_published_stopping_looks_at_the_test_sentences() -> None:
    judge = Judge(STUDY, made(lambda seed, strength: SUDDEN[strength]))
    assert judge.stopped("F1") == pytest.approx(0.8, abs=1e-3)
    assert judge.stopped("test F1") == pytest.approx(0.85, abs=1e-3)


@pytest.mark.parametrize(
    ("jsd", "verdict"),
    [
        (lambda strength: 0.25 + 0.01 * strength, "holds"),  # hardly beyond another seed
        (lambda strength: 0.25 + 0.4 * strength, "differs"),
        (lambda strength: 0.6 + 0.01 * strength, "inconclusive"),  # beyond another seed as classifiers are
    ],
)
def test_taggers_are_compared_with_the_recorded_classifiers(jsd: Callable[[float], float], verdict: str) -> None:
    found = Judge(PAPER, made(lambda seed, strength: SUDDEN[strength], jsd=jsd)).exclusive()
    assert found.verdict == verdict
    assert f"SST: JSD {np.mean(classifiers()['SST'].jsd):.3f}" in found.measured
    assert "IMDB" in found.measured
    assert found.n == 5


def test_what_broke_is_not_reached() -> None:
    """At λ 3 the taggers break, so that their attention does not count there."""
    found = Judge(PAPER, made(lambda seed, strength: SUDDEN[strength])).reached()
    assert found.jsd == pytest.approx([0.48] * 5, abs=1e-3)  # at λ 2.8
    assert found.seeds_jsd == pytest.approx(0.25, abs=1e-3)


def test_the_published_f1_belongs_to_the_published_sizes() -> None:
    assert not PAPER.resized
    assert not replace(PAPER, width=300, vectors="fast.txt").resized
    for change in ({"epochs": 3}, {"frozen": False}, {"width": 50}, {"vectors": None}, {"corpus": "own"}):
        assert replace(PAPER, **change).resized
    metrics = made(lambda seed, strength: SUDDEN[strength])
    assert Judge(PAPER, metrics).base().verdict == "holds"
    assert Judge(replace(PAPER, epochs=3), metrics).base().verdict == "not comparable"


def test_rankings_are_compared_seed_by_seed_around_the_break() -> None:
    """They fall slowly with λ; what counts is the step at the break."""
    slow = dict.fromkeys(LAMBDAS, 0.0) | {0.0: 0.5, 0.2: 0.2, 1.0: 0.1}
    rows = [
        row._replace(value=slow[float(row.condition.removeprefix("λ "))] + 1e-3 * (row.replica % 2))
        if row.metric == "rank τ" and row.condition.startswith("λ ") else row
        for row in rows_of(made(lambda seed, strength: SUDDEN[strength] if seed < 4 else INTACT[strength]))
    ]  # fmt: skip
    found = Judge(STUDY, Metrics(to_table(rows))).rankings()
    assert (found.verdict, found.n) == ("differs", 4)  # the same, up to less than .05
    assert found.measured == "4 seeds break: 0.00 before, 0.00 after"
    scattered = [
        row._replace(value=0.1 * (row.replica % 2)) if (row.condition, row.metric) == ("λ 3", "rank τ") else row
        for row in rows
    ]
    assert Judge(STUDY, Metrics(to_table(scattered))).rankings().verdict == "inconclusive"
    found = Judge(STUDY, made(lambda seed, strength: SUDDEN[strength])).rankings()
    assert (found.verdict, found.n) == ("holds", 5)
    one = Judge(STUDY, made(lambda seed, strength: SUDDEN[strength] if seed == 0 else INTACT[strength])).rankings()
    assert (one.verdict, one.n) == ("inconclusive", 1)


def test_how_useful_attention_is_comes_with_the_lowest_interval() -> None:
    found = Judge(STUDY, made(lambda seed, strength: SUDDEN[strength])).useful()
    assert found.interval == pytest.approx((0.2, 0.2), abs=1e-3)  # over uniform attention


def test_how_stable_attention_is_is_told_beside_uniform_attention() -> None:
    found = Judge(PAPER, made(lambda seed, strength: SUDDEN[strength])).stable()
    others = [f"{name} {classifiers()[name].seeds_jsd:.3f}" for name in ("SST", "AG News")]
    assert found.measured.startswith(f"JSD of two seeds: tagging 0.250; {'; '.join(others)}")
    assert "from uniform attention 0.350; two seeds head by head, as numbered, 0.400" in found.why
    small = Judge(STUDY, made(lambda seed, strength: SUDDEN[strength])).stable()
    assert (small.verdict, small.n) == ("not comparable", 5)


@pytest.mark.parametrize("probed", [(3.0, 0.2), (1.0,), (0.0, 2.0)])
def test_the_weak_and_the_strong_adversary_are_the_published_ones_whatever_is_probed(probed: tuple[float, ...]) -> None:
    judge = Judge(replace(STUDY, probed=probed), made(lambda seed, strength: SUDDEN[strength]))
    assert "at λ 0.2" in judge.keeps().measured
    assert judge.loses().measured.startswith("0.750 at λ 3")


@pytest.mark.parametrize(
    ("lambdas", "unjudged"),
    [
        ((0.0, 0.2), {"Y-03", "Y-06"}),
        ((0.0, 1.0, 2.0), {"Y-02", "Y-03", "Y-06"}),
        ((0.0, 3.0), {"Y-02"}),
        ((0.0,), {"Y-02", "Y-03", "Y-06"}),
    ],
)
def test_a_short_sweep_does_not_judge_what_it_does_not_reach(lambdas: tuple[float, ...], unjudged: set[str]) -> None:
    metrics = made(lambda seed, strength: SUDDEN[strength])
    study = replace(STUDY, lambdas=lambdas, probed=lambdas[-1:])
    found = {claim.statement.id: claim.judgement for claim in study.claims(extended(metrics, study))}
    assert {id for id, one in found.items() if one.verdict == "not judged at this scale"} == unjudged
    if "Y-03" in unjudged:
        assert found["Y-03"].why.startswith("no λ of at least 2.5 is among lambdas")


def extended(metrics: Metrics, study: TaggerAdversary) -> Metrics:
    """With probes of the attention of every adversary of the study."""
    probes = [Row(f"{prefix}{given(name)}", 3000 + n, 0, F1, 0.9 + 1e-4 * n)
              for prefix in ("", FORWARD) for name in study.adversaries.values() for n in range(5)]  # fmt: skip
    known = {row.condition for row in rows_of(metrics)}
    return Metrics(to_table([*rows_of(metrics), *(row for row in probes if row.condition not in known)]))


def test_a_single_strength_has_no_rank_correlation() -> None:
    study = replace(STUDY, lambdas=(0.0,), probed=(0.0,))
    metrics = extended(made(lambda seed, strength: SUDDEN[strength]), study)
    found = Judge(study, metrics).together()
    assert (found.verdict, found.interval, found.measured) == ("inconclusive", None, "one λ")
    assert "NaN" not in json.dumps([claim.as_json("demo") for claim in study.claims(metrics)])


def test_intervals_of_rank_correlations_end_at_one() -> None:
    found = Judge(STUDY, made(lambda seed, strength: SUDDEN[strength], kl=lambda strength: 0.3 + 3e-5 * strength))
    interval = found.together().interval
    assert interval is not None
    assert -1 <= interval[0] <= interval[1] <= 1


def test_the_finding_names_the_last_strength_before_any_break() -> None:
    recovers = made(lambda seed, strength: 0.75 if strength == 1 and seed == 0 else INTACT[strength])
    assert "up to λ 0.6 all stay within 0.05 of the F1 at λ 0" in Judge(STUDY, recovers).finding()
    intact = made(lambda seed, strength: INTACT[strength])
    assert "up to λ 3 all stay" in Judge(STUDY, intact).finding()


def test_the_plane_holds_the_recorded_classifiers_at_paper_scale() -> None:
    points = list(recorded_points())
    every = classifiers()
    assert len(points) == sum(len(one.jsd) for one in every.values()) + len(every)
    assert ("classifiers, another seed", "SST", every["SST"].seeds_jsd, every["SST"].seeds_tvd) in points


def test_heads_are_matched_to_those_of_the_base() -> None:
    cross = torch.full((1, 3, 3), 0.5, dtype=torch.float64)
    for own, base in ((0, 2), (1, 0), (2, 1)):
        cross[0, own, base] = 0.1
    assert matched(cross).tolist() == [[1, 2, 0]]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"lambdas": (0.0, -0.2), "probed": ()}, "λ must be a number of at least 0, not -0.2"),
        ({"probed": ()}, "probed must hold a λ"),
        ({"lambdas": (0.2, 3.0)}, "lambdas must hold 0"),
        ({"lambdas": (0.0, 1.0)}, "probed λ 0.2 is not among lambdas: 0, 1"),
        ({"lambdas": (0.0, 0.2, 0.2, 3.0)}, "every λ once"),
        ({"probes": 9}, "probes must be at most seeds"),
        ({"corpus": "made"}, "the made language has no word vectors"),
        ({"hidden": 30}, "multiple of twice the heads"),
        ({"rate": 0.0}, "rate must be a number above 0"),
        ({"epochs": 0}, "epochs must be at least 1"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        TaggerAdversary(**settings)


def test_a_strength_below_zero_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "tagger-adversary", "--lambdas", "0", "-1", "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "λ must be a number of at least 0, not -1" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_vectors_of_another_width_are_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("dog 3 0\ncat 0 1\n")
    for part in ("train", "test"):
        (tmp_path / f"{part}.txt").write_text("The DT B-NP\ndog NN I-NP\n\n" * 20)
    study = TaggerAdversary(corpus=str(tmp_path), vectors=str(tmp_path / "vectors"), batch=5)
    with pytest.raises(UserError, match="have 2 numbers, those of the model 100"):
        next(study.conditions())


def test_a_small_run_ends_with_a_page(tmp_path: Path) -> None:
    sizes = {"seeds": 2, "probes": 2, "epochs": 2, "batch": 350, "width": 8, "hidden": 8, "heads": 2, "evaluation": 20}
    words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    words += ["--unmasked", "--lambdas", "0", "3", "--probed", "3", "--device", "cpu"]
    main(["run", "tagger-adversary", *words, "--out", str(tmp_path / "run")])
    claims = json.loads((tmp_path / "run" / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [f"Y-{n:02d}" for n in range(1, 11)]
    page = (tmp_path / "run" / "report.html").read_text()
    for title in ("A safe point, or two states?", "Where each head looks", "Which words are looked at"):
        assert title in page
    assert '<label class="slider">λ' in page
    assert "outline the right position" not in page
    assert not (tmp_path / "run" / "weights").exists()
