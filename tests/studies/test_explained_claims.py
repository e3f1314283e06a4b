"""The judgements of feature-importance and deceptive-attention on metrics whose outcome is known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from attndyn.measures.verdicts import mean_interval, welch_interval
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies import explained
from attndyn.studies.base import Judgement
from attndyn.studies.deceptive_attention import DeceptiveAttention
from attndyn.studies.deceptive_claims import Found, reached
from attndyn.studies.deceptive_names import BY_ADVERSARY, BY_BASE, BY_UNIFORM, SEEDS, UNIFORM, adversary, instance
from attndyn.studies.explained import AVERAGE, BILSTM, PUBLISHED, SUMMARY
from attndyn.studies.feature_importance import BOTH, GRADIENT, LEFT_OUT, SCORES, FeatureImportance
from attndyn.tasks.bare import BareText
from attndyn.tasks.corpora import CORPORA

PLAIN = FeatureImportance()
LAMBDAS = (0.001, 0.01, 0.1)
DECEIT = DeceptiveAttention(lambdas=LAMBDAS, adversaries=3)


# --- feature-importance


def importance(
    taus: Mapping[str, tuple[float, float]] | None = None,
    gaps: Mapping[str, tuple[float, float]] | None = None,
    scores: Sequence[float] = (0.8, 0.78, 0.9),
    noise: Sequence[float] = (-1e-3, 0.0, 1e-3),
) -> Metrics:
    """As published on SST, unless another interval is given."""
    known = {GRADIENT: (0.33, 0.37), LEFT_OUT: (0.27, 0.31)} | dict(taus or {})
    apart = {f"{BOTH} minus {name}": (0.3, 0.4) for name in (GRADIENT, LEFT_OUT)}
    apart |= {f"A(α, Δ) by {name} minus chance": (0.3, 0.4) for name in ("gradient", "leaving out")}
    rows = [
        Row(SUMMARY, 0, 0, f"{name} {end}", value)
        for name, ends in (known | apart | dict(gaps or {})).items()
        for end, value in zip(("low", "high"), ends, strict=True)
    ]
    rows += [Row(SUMMARY, 0, 0, name, 0.4) for name in ("A(α, Δ) by gradient", "A(α, Δ) by leaving out", "chance")]
    for name in (GRADIENT, LEFT_OUT, BOTH):
        rows += [Row(BILSTM, 0, 0, name, 0.3), Row(BILSTM, 0, 0, f"{name} significant", 0.5)]
    for seed, more in enumerate(noise):
        rows += [Row(BILSTM, seed, 0, name, value + more) for name, value in zip(SCORES, scores, strict=True)]
    return Metrics(to_table(rows))


def judged(metrics: Metrics, study: FeatureImportance = PLAIN) -> dict[str, Judgement]:
    return dict(study.judge(metrics))


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> None:
    """SMS, which ships, in the place of SST."""
    monkeypatch.setitem(explained.PUBLISHED, "sms_spam", PUBLISHED["sst5"])


@pytest.mark.parametrize(("id", "name"), [("J-01", GRADIENT), ("J-02", LEFT_OUT)])
@pytest.mark.parametrize(
    ("ends", "verdict"), [((0.1, 0.5), "holds"), ((-0.2, -0.1), "differs"), ((0.61, 0.8), "differs"),
                          ((-0.1, 0.1), "inconclusive"), ((0.5, 0.7), "inconclusive")]
)  # fmt: skip
def test_modest_is_between_none_and_strong(id: str, name: str, ends: tuple[float, float], verdict: str) -> None:
    assert judged(importance({name: ends}))[id].verdict == verdict


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    ("ends", "verdict"), [((0.3, 0.4), "holds"), ((0.1, 0.2), "differs"), ((0.2, 0.3), "inconclusive")]
)
def test_where_there_is_a_published_value_it_counts(ends: tuple[float, float], verdict: str) -> None:
    assert judged(importance({GRADIENT: ends}))["J-01"].verdict == verdict


@pytest.mark.parametrize(
    ("ends", "verdict"), [((0.1, 0.2), "holds"), ((-0.2, -0.1), "differs"), ((-0.1, 0.1), "inconclusive")]
)
def test_both_gaps_decide(ends: tuple[float, float], verdict: str) -> None:
    found = judged(importance(gaps={f"{BOTH} minus {LEFT_OUT}": ends, "A(α, Δ) by leaving out minus chance": ends}))
    assert (found["J-03"].verdict, found["S-37"].verdict) == (verdict, verdict)
    assert found["J-03"].interval == ends


def test_few_texts_and_a_single_seed_decide_nothing() -> None:
    enough = {id: one.verdict for id, one in judged(importance()).items()}
    assert {"holds", "differs"} <= set(enough.values())
    few = judged(importance(), FeatureImportance(evaluation=9))
    assert {id: one.verdict for id, one in few.items()} == {
        id: "inconclusive" if verdict in ("holds", "differs") else verdict for id, verdict in enough.items()
    }
    assert few["J-03"].why == "fewer than 10 test texts read (9)"
    assert judged(importance(), FeatureImportance(evaluation=10))["J-03"].verdict == enough["J-03"] == "holds"
    one = judged(importance(), FeatureImportance(seeds=1))["J-03"]
    assert (one.verdict, one.why) == ("inconclusive", "one seed")


@pytest.mark.parametrize(
    ("ends", "verdict"), [((0.51, 0.6), "holds"), ((0.2, 0.3), "differs"), ((0.4, 0.6), "inconclusive")]
)
def test_strong_is_above_one_half(ends: tuple[float, float], verdict: str) -> None:
    assert judged(importance({LEFT_OUT: ends}))["O-01"].verdict == verdict


@pytest.mark.usefixtures("published")
def test_scores_are_compared_one_by_one() -> None:
    assert judged(importance())["J-04"].verdict == "holds"
    assert judged(importance(scores=(0.8, 0.78, 0.86)))["J-04"].verdict == "differs"  # the AUC alone
    apart = judged(importance(scores=(0.8, 0.78, 0.86)))["J-04"].interval
    assert apart == mean_interval([0.859 - 0.902, 0.86 - 0.902, 0.861 - 0.902])
    smaller = FeatureImportance(width=100)
    assert judged(importance(), smaller)["J-04"].verdict == "not comparable"


@pytest.mark.usefixtures("published")
def test_scores_that_seeds_scatter_are_not_decided() -> None:
    found = judged(importance(noise=(-0.05, 0.0, 0.05)))["J-04"]
    assert (found.verdict, found.n) == ("inconclusive", 3)
    one = judged(importance(noise=(0.0,)))["J-04"]
    assert (one.verdict, one.interval, one.why) == ("inconclusive", None, "one seed")


@pytest.mark.usefixtures("published")
def test_scores_on_other_texts_than_the_published_ones_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    data = PLAIN.task.data
    assert data.corpus is not None
    other = replace(data, corpus=replace(data.corpus, apart=True))
    monkeypatch.setattr(BareText, "data", property(lambda task: other))
    assert judged(importance(), FeatureImportance())["J-04"].verdict == "not comparable"
    assert CORPORA["ag_news_wb"].apart


@pytest.mark.parametrize("change", [{"width": 100}, {"shortest": 2}, {"below": 50}, {"epochs": 2}, {"hidden": 64}])
@pytest.mark.usefixtures("published")
def test_published_figures_belong_to_the_published_sizes_and_limits(change: dict[str, int]) -> None:
    (name,) = change
    study = FeatureImportance(**change)
    assert study.published == {}
    assert f"not the published {name}" in study.caveat
    assert FeatureImportance(shortest=6).published == PUBLISHED["sst5"]  # the authors' own limit


# --- deceptive-attention


def deceit(
    accuracy: Mapping[float, Sequence[float]] | None = None,
    jsd: Mapping[float, Sequence[float]] | None = None,
    tvd: Mapping[float, Sequence[float]] | None = None,
    tau: tuple[float, float] = (-0.2, -0.1),
    uniform: float = 0.8,
    loss: float = 0.4,
    guided: float = 0.9,
    seeds: float = 0.2,
    alone: Sequence[float] = (0.65, 0.66, 0.64),
) -> Metrics:
    """Eight bases of accuracy .80, and three adversaries for each λ that attend elsewhere and lose nothing."""
    scores = dict.fromkeys(LAMBDAS, (0.80, 0.802, 0.798)) | dict(accuracy or {})
    apart = {0.001: (0.3, 0.31, 0.32), 0.01: (0.5, 0.51, 0.52), 0.1: (0.6, 0.61, 0.62)} | dict(jsd or {})
    moved = {0.001: (0.05, 0.06, 0.07), 0.01: (0.08, 0.085, 0.09), 0.1: (0.15, 0.16, 0.17)} | dict(tvd or {})
    rows: list[Row] = []
    for n in range(8):
        noise = 1e-3 * (n % 3 - 1)
        for name, value, lost in ((BILSTM, 0.8, 0.4), (UNIFORM, uniform, loss)):
            rows += [Row(name, n, 9, score, value + noise) for score in SCORES]
            rows.append(Row(name, n, 9, "loss", lost + noise))
        rows += [Row(SEEDS, n, 0, name, seeds + noise) for name in ("JSD", "JSD median", "TVD")]
    for number, lam in enumerate(LAMBDAS):
        for direction, first in (("adversary-base", 3000), ("base-adversary", 3500)):
            name, seeds_of = adversary(direction, lam), DECEIT.following(first + 10 * number, 3)
            for n, seed in enumerate(seeds_of):
                values = {"test accuracy": scores[lam][n], "JSD": apart[lam][n], "TVD": moved[lam][n]}
                rows += [Row(name, seed, 9, metric, value) for metric, value in values.items()]
            rows.append(Row(SUMMARY, 0, 0, f"{name}: {LEFT_OUT}", tau[0] + 0.01))
            for end, value in zip(("low", "high"), tau, strict=True):
                rows.append(Row(SUMMARY, 0, 0, f"{name}: {LEFT_OUT} {end}", value))
    rows += [Row(SUMMARY, 0, 0, f"{BILSTM}: {LEFT_OUT}", 0.3)]
    rows += [Row(SUMMARY, 0, 0, f"JSD of another seed {end}", seeds + d) for end, d in (("low", -0.01), ("high", 0.01))]
    rows += [Row(instance(0.01), n, 0, "JSD", value) for n, value in enumerate(alone)]
    for name, value in ((BY_BASE, guided), (BY_UNIFORM, 0.8), (AVERAGE, 0.8), (BY_ADVERSARY, 0.5)):
        rows += [Row(name, n, 9, "test accuracy", value + 1e-3 * n) for n in range(3)]
    return Metrics(to_table(rows))


def decided(metrics: Metrics, study: DeceptiveAttention = DECEIT) -> dict[str, Judgement]:
    return dict(study.judge(metrics))


@pytest.mark.parametrize(
    ("uniform", "needed", "free", "same"),
    [
        (0.8, "differs", "holds", "holds"),
        (0.75, "holds", "differs", "differs"),
        (0.795, "holds", "holds", "holds"),  # below 0, and by less than a point
        (0.79, "holds", "inconclusive", "inconclusive"),
    ],
)
def test_uniform_attention(uniform: float, needed: str, free: str, same: str, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = deceit(uniform=uniform)
    assert decided(metrics)["W-01"].verdict == "not comparable"  # of SMS nothing is published
    assert decided(metrics)["O-02"].verdict == same
    monkeypatch.setitem(explained.PUBLISHED, "sms_spam", {})
    assert decided(metrics)["W-01"].verdict == needed
    monkeypatch.setattr("attndyn.studies.deceptive_claims.FREE", ("sms_spam",))
    assert decided(metrics)["W-01"].verdict == free


@pytest.mark.parametrize(("loss", "verdict"), [(0.41, "holds"), (0.5, "differs"), (0.43, "inconclusive")])
def test_the_loss_under_uniform_attention(loss: float, verdict: str) -> None:
    assert decided(deceit(loss=loss))["B-09"].verdict == verdict


@pytest.mark.parametrize(("seeds", "verdict"), [(0.2, "holds"), (0.005, "differs"), (0.02, "inconclusive")])
def test_seeds_vary_or_not(seeds: float, verdict: str) -> None:
    assert decided(deceit(seeds=seeds))["W-02"].verdict == verdict


def test_two_seeds_do_not_say_how_much_seeds_vary() -> None:
    rows = [row for one in deceit().table.to_pylist() if (row := Row(**one)).condition != SEEDS or row.replica < 2]
    found = decided(Metrics(to_table(rows)))["W-02"]
    assert (found.verdict, found.interval, found.n) == ("inconclusive", None, 2)
    assert found.why.startswith("two seeds are one pair")


@pytest.mark.parametrize(("guided", "verdict"), [(0.9, "holds"), (0.7, "differs"), (0.8, "inconclusive")])
def test_the_bases_attention_helps_or_not(guided: float, verdict: str) -> None:
    found = decided(deceit(guided=guided))["W-03"]
    assert found.verdict == verdict
    assert found.interval == welch_interval([guided + 1e-3 * n for n in range(3)], [0.8, 0.801, 0.802])


@pytest.mark.parametrize(
    ("alone", "verdict"),
    [((0.65, 0.66, 0.64), "holds"), ((0.4, 0.41, 0.42), "differs"), ((0.65, 0.5, 0.4), "inconclusive")],
)
def test_alone_is_compared_with_single_close_adversaries_base_by_base(alone: Sequence[float], verdict: str) -> None:
    found = decided(deceit(alone=alone))["W-04"]
    assert (found.verdict, found.n) == (verdict, 3)
    assert "against 0.510 beside 3 of 3 bases" in found.measured  # those of λ .1 are not close
    assert found.interval == mean_interval([a - b for a, b in zip(alone, (0.5, 0.51, 0.52), strict=True)])


def test_one_close_adversary_counts_although_the_mean_of_its_strength_is_not_close() -> None:
    """Two adversaries of λ .1 are close; the mean TVD of the three is not."""
    one = decided(deceit(tvd={0.1: (0.09, 0.3, 0.1)}))["W-04"]
    assert "against 0.577" in one.measured  # .6, .51 and .62
    far = {lam: (0.05 + lam / 10, 0.3 + lam, 0.3 + lam) for lam in LAMBDAS}
    lone = decided(deceit(tvd=far))["W-04"]
    assert (lone.verdict, lone.n, lone.interval) == ("inconclusive", 1, None)
    moved = dict.fromkeys(LAMBDAS[:2], (0.05, 0.09, 0.3)) | {0.1: (0.06, 0.3, 0.4)}
    two = decided(deceit(tvd={lam: (a + lam / 10, b + lam / 10, c + lam) for lam, (a, b, c) in moved.items()},
                         alone=(0.69, 0.3, 0.5)))["W-04"]  # fmt: skip
    assert two.n == 2
    assert two.interval is not None
    assert max(map(abs, two.interval)) <= 0.694  # no JSD is larger
    none = decided(deceit(tvd={lam: (0.3 + lam,) * 3 for lam in LAMBDAS}))["W-04"]
    assert (none.verdict, none.measured) == ("inconclusive", "JSD 0.650 against none")


@pytest.mark.parametrize(
    ("tvd", "verdict"),
    [
        ({}, "holds"),
        ({0.001: (0.3, 0.3, 0.3), 0.01: (0.2, 0.2, 0.2), 0.1: (0.1, 0.1, 0.1)}, "differs"),
        ({0.1: (0.01, 0.2, 0.075)}, "inconclusive"),
    ],
)
def test_divergence_is_paid_for_or_not(tvd: dict[float, Sequence[float]], verdict: str) -> None:
    assert decided(deceit(tvd=tvd))["W-05"].verdict == verdict


def test_what_is_shown_of_the_deceivers_is_the_farthest_strength_that_holds() -> None:
    lost, spread = (0.7, 0.71, 0.72), (0.795, 0.76, 0.83)
    found = decided(deceit({0.1: spread}))["O-03"]
    assert (found.verdict, found.measured.split(":")[0]) == ("holds", "λ 0.01")
    gaps = [value - base for value, base in zip((0.80, 0.802, 0.798), (0.799, 0.8, 0.801), strict=True)]
    assert found.interval == pytest.approx(mean_interval(gaps, tries=3))
    assert decided(deceit())["O-03"].measured.startswith("λ 0.1: JSD 0.610, TVD 0.160, accuracy 0.8000")
    none = decided(deceit(dict.fromkeys(LAMBDAS, lost)))["O-03"]
    assert (none.verdict, none.measured.split(":")[0]) == ("differs", "λ 0.1")
    assert none.interval is not None
    assert none.interval[1] < -0.02
    assert decided(deceit(dict.fromkeys(LAMBDAS, spread)))["O-03"].verdict == "inconclusive"
    near = decided(deceit(seeds=0.65))["O-03"]
    assert (near.verdict, near.interval) == ("differs", None)
    assert "no λ attends farther away" in near.why


def test_the_best_of_several_strengths_is_corrected_for() -> None:
    """At 95 % the interval of one λ lies above −.02, and with three to choose from it does not."""
    gaps = (0.0, -0.0095, 0.01)
    narrow, wide = (mean_interval(gaps, tries=tries).low for tries in (1, 3))
    gaps = tuple(value - 0.02 - (narrow + wide) / 2 for value in gaps)
    assert mean_interval(gaps).low > -0.02 > mean_interval(gaps, tries=3).low
    values = tuple(gap + base for gap, base in zip(gaps, (0.799, 0.8, 0.801), strict=True))
    assert decided(deceit(dict.fromkeys(LAMBDAS, values)))["O-03"].verdict == "inconclusive"


def test_an_adversary_is_compared_with_its_own_base() -> None:
    """Bases far apart, each of whose adversaries loses the same; and the other way round."""
    bases, lost = (0.7, 0.8, 0.9), (0.699, 0.798, 0.897)
    rows = [Row(**row) for row in deceit(dict.fromkeys(LAMBDAS, lost)).table.to_pylist()]

    def beside(bases: Sequence[float]) -> Judgement:
        changed = [row._replace(value=bases[row.replica]) if (row.condition, row.metric) == (BILSTM, "test accuracy")
                   and row.replica < 3 else row for row in rows]  # fmt: skip
        return decided(Metrics(to_table(changed)))["O-03"]

    assert beside(bases).verdict == "holds"
    assert beside(bases).measured.endswith("accuracy 0.7980 against 0.8000 of their bases")
    assert beside(bases[::-1]).verdict == "inconclusive"


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_adversaries_are_trained_once_whatever_they_guide(scale: str) -> None:
    """The run of the adversaries is that of the settings of before, and nothing in it depends on what they guide."""
    for changes in ({}, {"seeds": 5}):
        usual = DeceptiveAttention.at(scale, **changes)
        (_, alone) = usual.needs()
        assert alone == DeceptiveAttention.at(scale, **changes, guided=False)
        for more in ({"guides": 4}, {"guide": 0.1}, {"guides": 4, "guide": 0.001}):
            other = DeceptiveAttention.at(scale, **changes, **more)
            assert list(other.needs()) == list(usual.needs())
            assert list(other.deceivers()) == list(alone.conditions())[1:]
            assert other.reference(BY_BASE) == usual.reference(BY_BASE)
            # what follows another adversary is other work
            assert (other.reference(BY_ADVERSARY) == usual.reference(BY_ADVERSARY)) == ("guide" not in more)


def test_no_two_adversaries_have_the_same_seed() -> None:
    study = DeceptiveAttention()
    assert (study.adversaries, study.followed, study.guides, study.averages) == (8, 8, 8, 8)
    seeds = [seed for one in (study, replace(study, guided=False)) for condition in one.conditions()
             for seed in condition.seeds]  # fmt: skip
    assert len(set(seeds)) == len(seeds)
    assert all(condition.seeds[0] % 8 == 0 for condition in study.deceivers())


@pytest.mark.parametrize(
    ("tau", "verdict"), [((-0.2, -0.1), "holds"), ((0.1, 0.2), "differs"), ((-0.1, 0.1), "inconclusive")]
)
def test_against_influence(tau: tuple[float, float], verdict: str) -> None:
    found = decided(deceit(tau=tau))["O-04"]
    assert (found.verdict, found.measured) == (verdict, f"τ {tau[0] + 0.01:.3f} at λ 0.1, 0.300 before")
    assert decided(deceit(tau=tau, seeds=0.65))["O-04"].verdict == "inconclusive"
    alone = decided(deceit(tau=tau), replace(DECEIT, adversaries=1))["O-04"]
    assert (alone.verdict, alone.why) == ("inconclusive", "one adversary" if verdict != "inconclusive" else "")
    lost = deceit({0.001: (0.75,) * 3, 0.01: (0.76,) * 3, 0.1: (0.7,) * 3}, tau=tau)
    assert "at λ 0.01" in decided(lost)["O-04"].measured  # none keeps the accuracy: the one that keeps most


def test_classifiers_are_compared_with_the_recorded_tagger() -> None:
    jsd = {0.1: (0.66, 0.67, 0.68)}
    assert decided(deceit(jsd=jsd, seeds=0.1))["Y-07"].verdict == "holds"
    assert decided(deceit(jsd=jsd, seeds=0.65))["Y-07"].verdict == "differs"
    assert decided(deceit(jsd=jsd, seeds=0.35))["Y-07"].verdict == "inconclusive"
    smaller = replace(DECEIT, hidden=64)
    assert decided(deceit(jsd=jsd), smaller)["Y-07"].verdict == "not comparable"
    found = reached(Found(DECEIT, deceit({0.1: (0.7, 0.7, 0.8)}, jsd=jsd)))
    assert found.jsd == (0.5, 0.51, 0.68)
    assert found.tvd == (0.08, 0.085, 0.17)
