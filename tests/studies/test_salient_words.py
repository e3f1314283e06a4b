"""The tables of salient-words against slow definitions on a made corpus, and the study as a user runs it."""

import gc
import json
import random
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

import attndyn
from attndyn.errors import RunError, UserError
from attndyn.measures.estimates import interval
from attndyn.store.folder import Run
from attndyn.store.metrics import Metrics
from attndyn.studies.salient_names import (
    BLOG,
    CODE,
    COLUMNS,
    FROZEN,
    KENDALL,
    LAST,
    PROXY,
    STANDARD,
    SUMMARY,
    TEXT,
    TRAIN,
    UNIFORM,
    UNIFORM_OF,
    VECTORS,
)  # fmt: skip
from attndyn.studies.salient_twin import Twin
from attndyn.studies.salient_words import SalientWords
from attndyn.tasks.corpus import LabelledText
from attndyn.theory.logistic import logistic
from tests.studies.salient_slow import (
    SMALL,
    STEPS,
    agreeing,
    betas,
    influence,
    largest,
    logistic_of,
    pairs,
    proxy_votes,
    rows,
    slow_agreement,
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of 1 to 30 words; one of two says the label."""
    draw, path = random.Random(0), tmp_path_factory.mktemp("corpus") / "own.tsv"
    lines = []
    for n in range(240):
        words = [f"w{draw.randrange(12)}" for _ in range(draw.randrange(1, 30))]
        words.insert(draw.randrange(len(words) + 1), ("dull", "fine")[n % 2])
        lines.append(f"{('bad', 'good')[n % 2]}\t{' '.join(words)}\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / "all"
    return attndyn.run("salient-words", corpus=str(corpus), out=out, traces="all", **SMALL)


@pytest.fixture(scope="module")
def study(corpus: Path) -> SalientWords:
    return SalientWords(corpus=str(corpus), **SMALL)


def value(finished: Run, table: str, metric: str) -> float:
    return float(Metrics(finished.metrics).curves(table, metric).values[0, 0])


def test_every_statement_has_a_verdict_and_the_page_is_there(finished: Run, study: SalientWords) -> None:
    verdicts = {claim["id"]: claim["verdict"] for claim in finished.claims}
    assert set(verdicts) == {statement.id for statement in study.statements}
    assert verdicts["S-04"] == verdicts["S-55"] == "holds"
    for id in ("S-19", "S-20", "S-54"):  # another size, no vectors, another corpus
        assert verdicts[id] == "not judged at this scale"
    assert finished.info["finding"].startswith("On ")
    page = (finished.path / "report.html").read_text(encoding="utf-8")
    for word in ("linear scoring", "Kendall", "Other agreements", "frozen"):
        assert word in page


def golds(finished: Run, study: SalientWords) -> list[int]:
    accuracy = Metrics(finished.metrics).curves(STANDARD, "accuracy")
    assert accuracy.steps.tolist() == STEPS
    return [STEPS[int(row.argmax())] for row in accuracy.values]


@pytest.fixture(scope="module")
def first_and_fourth(finished: Run, study: SalientWords) -> tuple[np.ndarray, np.ndarray]:
    """A(α, β_uf) and A(α, β) by the code: [gold, seed, text]."""
    first, fourth = [], []
    for g, step in enumerate(golds(finished, study)):
        alpha = rows(finished, study, STANDARD, g, step, "alpha")
        first.append([largest(alpha, betas(finished, study, seed)) for seed in study.seeds_of(UNIFORM)])
        other = [rows(finished, study, STANDARD, 1 - g, s, "beta") for s in STEPS]
        fourth.append(np.full((2, len(alpha)), np.nan))  # the first place is the first run, whichever is gold
        fourth[g][1 - g] = largest(alpha, other)
    return np.array(first), np.array(fourth)


def test_the_columns_by_the_code(
    finished: Run, study: SalientWords, first_and_fourth: tuple[np.ndarray, np.ndarray]
) -> None:
    seeds = study.seeds_of(UNIFORM)
    first, fourth = first_and_fourth
    saliency, last = [], []
    for g, step in enumerate(golds(finished, study)):
        alpha, delta = (rows(finished, study, STANDARD, g, step, name) for name in ("alpha", "delta"))
        saliency += [largest(delta, betas(finished, study, seed)) for seed in seeds]
        last += [agreeing(alpha, betas(finished, study, seed)[-1]) for seed in seeds]
    proxies = [proxy_votes(finished, study, seed) for seed in study.seeds_of(PROXY)]
    proxy = [largest(votes, betas(finished, study, seed)) for votes in proxies for seed in seeds]
    for name, wanted in zip(COLUMNS, (first, proxy, saliency, fourth), strict=True):
        assert value(finished, CODE, name) == pytest.approx(np.nanmean(wanted)), name
    assert value(finished, CODE, COLUMNS[0] + LAST) == pytest.approx(np.mean(last))


def test_differences_are_over_gold_runs_and_seeds_as_well_as_texts(
    finished: Run, study: SalientWords, first_and_fourth: tuple[np.ndarray, np.ndarray]
) -> None:
    first, fourth = (each.astype(float) for each in first_and_fourth)
    apart = np.stack([fourth - first[:, [u]] for u in range(2)], axis=2)  # [gold, other, uniform, text]
    wanted = interval(apart)
    found = [value(finished, SUMMARY, f"A(α, β) minus A(α, β_uf) {end}") for end in ("low", "high")]
    assert found == pytest.approx(wanted)
    seeds = study.seeds_of(UNIFORM)
    assert len(seeds) == len(study.seeds_of(PROXY)) == 2
    logistic_votes = logistic_of(study)
    gap = [
        [np.array(largest(logistic_votes, betas(finished, study, seed)), dtype=float)
         - largest(proxy_votes(finished, study, proxy), betas(finished, study, seed)) for seed in seeds]
        for proxy in study.seeds_of(PROXY)
    ]  # fmt: skip
    found = [value(finished, SUMMARY, f"A(β_log, β_uf) minus A(β_px, β_uf) {end}") for end in ("low", "high")]
    assert found == pytest.approx(interval(np.array(gap)))


def test_influence_other_seeds_and_the_proxy_looked_up(finished: Run, study: SalientWords) -> None:
    steps = golds(finished, study)
    alphas = [rows(finished, study, STANDARD, g, step, "alpha") for g, step in enumerate(steps)]
    deltas = [rows(finished, study, STANDARD, g, step, "delta") for g, step in enumerate(steps)]
    wanted = np.mean([slow_agreement(a, d) for a, d in zip(alphas, deltas, strict=True)])
    assert value(finished, SUMMARY, "A(α, Δ)") == pytest.approx(wanted)
    pair = np.array([agreeing(alphas[0], alphas[1]), agreeing(alphas[1], alphas[0])], dtype=float)
    assert value(finished, SUMMARY, "A(α, α of another seed)") == pytest.approx(pair.mean())
    ends = [value(finished, SUMMARY, f"A(α, α of another seed) {end}") for end in ("low", "high")]
    assert ends == pytest.approx(interval(pair))
    looked_up = [
        slow_agreement(betas(finished, study, seed)[-1], proxy_votes(finished, study, proxy))
        for proxy in study.seeds_of(PROXY)
        for seed in study.seeds_of(UNIFORM)
    ]
    assert value(finished, TEXT, COLUMNS[1]) == pytest.approx(np.mean(looked_up))


def test_the_two_stages(finished: Run, study: SalientWords) -> None:
    metrics = Metrics(finished.metrics)
    for g, step in enumerate(golds(finished, study)):
        alpha = rows(finished, study, STANDARD, g, step, "alpha")
        for name, kind in (("A(α, β)", "beta"), ("A(α, α)", "alpha")):
            curve = [slow_agreement(alpha, rows(finished, study, STANDARD, 1 - g, s, kind)) for s in STEPS]
            assert metrics.curves(STANDARD, name).values[1 - g] == pytest.approx(curve)
            half = next(s for s, agreed in zip(STEPS, curve, strict=True) if agreed >= curve[-1] / 2)
            assert metrics.curves(STANDARD, f"half of {name} at").values[1 - g].tolist() == [half]


def test_what_belongs_to_a_gold_run_stands_at_its_seed_and_at_step_0(finished: Run, study: SalientWords) -> None:
    metrics = Metrics(finished.metrics)
    for table in (CODE, TEXT, TRAIN):
        assert COLUMNS[1] not in metrics.curves_of(f"{table}, by gold run")
        assert metrics.curves(f"{table}, by gold run", COLUMNS[0]).replicas.tolist() == [0, 1]
        for name in ("ξ*", *(f"ξ of {name}" for name in COLUMNS)):
            assert metrics.curves(table, name).steps.tolist() == [0]
    assert set(metrics.curves_of(f"{SUMMARY}, by gold run")) == {
        "A(α, α_fr)", "A(α, Δ)", "A(α, β_count)", "A(α, α of another seed)", "A(α, β of the same run)",
    }  # fmt: skip
    for name in ("attention entropy", "probe spread"):
        assert metrics.curves(STANDARD, f"{name}, gold").values.shape == (2, 1)


def test_random_orders_agree_by_chance(finished: Run, study: SalientWords) -> None:
    exact = np.mean([-(-5 * len(text) // 100) / len(text) for text in betas(finished, study, 1000)[0]])
    assert value(finished, SUMMARY, "chance") == value(finished, CODE, "chance") == pytest.approx(exact)
    low, high = (value(finished, SUMMARY, f"A(random order, α) {end}") for end in ("low", "high"))
    assert low < exact < high


def test_the_columns_by_the_text(finished: Run, study: SalientWords) -> None:
    own, saliency = [], []
    for g in study.seeds_of(STANDARD):
        alpha, delta = (rows(finished, study, STANDARD, g, STEPS[-1], name) for name in ("alpha", "delta"))
        own.append(slow_agreement(alpha, rows(finished, study, STANDARD, g, STEPS[-1], "beta")))
        for seed in study.seeds_of(UNIFORM):
            saliency.append(slow_agreement(delta, rows(finished, study, UNIFORM, seed, STEPS[-1], "beta")))
    assert value(finished, TEXT, COLUMNS[3]) == pytest.approx(np.mean(own))
    assert value(finished, TEXT, COLUMNS[2]) == pytest.approx(np.mean(saliency))


def test_the_gold_threshold_and_the_frozen_run(finished: Run, study: SalientWords) -> None:
    metrics = Metrics(finished.metrics)
    accuracy = metrics.curves(STANDARD, "accuracy").values
    for g, step in enumerate(golds(finished, study)):
        alpha = rows(finished, study, STANDARD, g, step, "alpha")
        threshold = np.mean([
            max(slow_agreement(alpha, rows(finished, study, UNIFORM, u, s, "beta")) for s in STEPS)
            for u in study.seeds_of(UNIFORM)
        ])  # fmt: skip
        curve = [slow_agreement(alpha, rows(finished, study, STANDARD, 1 - g, s, "alpha")) for s in STEPS]
        passed = [p for a, p in zip(curve, accuracy[1 - g], strict=True) if a > threshold]
        mine = metrics.curves(CODE, f"ξ of {COLUMNS[0]}").values[g, 0]
        assert np.isnan(mine) if not passed else mine == pytest.approx(passed[0])
    frozen = [
        max(slow_agreement(rows(finished, study, STANDARD, g, step, "alpha"),
                           rows(finished, study, FROZEN, study.seeds_of(FROZEN)[0], s, "alpha")) for s in STEPS)
        for g, step in enumerate(golds(finished, study))
    ]  # fmt: skip
    assert value(finished, SUMMARY, "A(α, α_fr)") == pytest.approx(np.mean(frozen))


def test_kendall_is_scipys(finished: Run, study: SalientWords) -> None:
    alpha = rows(finished, study, STANDARD, 0, golds(finished, study)[0], "alpha")
    best = []
    for seed in study.seeds_of(UNIFORM):
        curve = []
        for step in STEPS:
            beta = rows(finished, study, UNIFORM, seed, step, "beta")
            curve.append(np.nanmean([kendalltau(a, b).statistic for a, b in zip(alpha, beta, strict=True)]))
        best.append(max(curve))
    assert value(finished, KENDALL, COLUMNS[0]) == pytest.approx(np.mean(best))


def test_a_frozen_run_moves_its_attention_alone(finished: Run, study: SalientWords) -> None:
    seed = study.seeds_of(FROZEN)[0]
    start, end = (finished.array(FROZEN, seed, step, "beta") for step in (0, STEPS[-1]))
    np.testing.assert_array_equal(start, end)
    assert np.abs(finished.array(FROZEN, seed, 0, "alpha") - finished.array(FROZEN, seed, 24, "alpha")).max() > 1e-4


def test_no_two_conditions_share_a_seed(study: SalientWords) -> None:
    seeds = [seed for name in (STANDARD, UNIFORM, FROZEN, BLOG) for seed in study.seeds_of(name)]
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize("name", ["seeds", "uniform", "blog", "proxies"])
def test_as_many_runs_as_would_share_seeds_are_refused(name: str) -> None:
    SalientWords(**{name: 1000})
    with pytest.raises(UserError, match=f"{name} must be at most 1000, not 1001: no two runs share a seed"):
        SalientWords(**{name: 1001})


def test_only_the_shown_texts_stay(corpus: Path, finished: Run, tmp_path: Path) -> None:
    run = attndyn.run("salient-words", corpus=str(corpus), out=tmp_path / "shown", **SMALL)
    assert not (run.path / "weights").exists()
    trace = run.trace(STANDARD, 0, STEPS[-1])
    assert trace["alpha"].shape == trace["source"].shape == (16, trace["lengths"].max())
    assert trace["alpha"].dtype == np.float16
    np.testing.assert_allclose(trace["alpha"].sum(axis=1), 1, atol=5e-3)
    assert run.tokens(UNIFORM)[trace["source"][0, 0]] == "<bos>"
    assert [c["measured"] for c in run.claims] == [c["measured"] for c in finished.claims]
    size = sum(path.stat().st_size for path in (run.path / "traces").rglob("*.safetensors"))
    assert size < sum(path.stat().st_size for path in (finished.path / "traces").rglob("*.safetensors"))


def test_interrupted_it_ends_the_same(corpus: Path, finished: Run, tmp_path: Path) -> None:
    def stop(done: int, total: int, seconds: float, rows: object) -> None:
        if done * 2 > total:
            import signal

            signal.raise_signal(signal.SIGINT)

    settings = {"corpus": str(corpus), "out": tmp_path / "cut", "traces": "all", **SMALL}
    with pytest.raises(KeyboardInterrupt):
        attndyn.run("salient-words", progress=stop, **settings)
    again = attndyn.run("salient-words", **settings)
    assert (again.path / "metrics.parquet").read_bytes() == (finished.path / "metrics.parquet").read_bytes()
    assert json.loads((again.path / "claims.json").read_text()) == finished.claims


def test_the_twin_in_a_process_is_the_twin(corpus: Path) -> None:
    task = LabelledText(str(corpus))
    found, wanted = Twin(task).result(), logistic(task.data.train, task.data.valid)
    np.testing.assert_array_equal(found.beta, wanted.beta)
    assert found.chosen == wanted.chosen
    assert (found.words, found.labels, found.path) == (wanted.words, wanted.labels, wanted.path)


def test_a_study_that_is_run_again_has_a_new_twin_and_leaves_none_behind(corpus: Path) -> None:
    """As on a GPU: once to the end, and once only until something fails."""
    study = SalientWords(corpus=str(corpus), **SMALL)
    study.begin("cuda")
    first = study._twin
    assert study.twin("cuda") is study.twin("cuda")
    study.begin("cuda")
    second = study._twin
    assert second is not first
    processes, folders = [one.process for one in (first, second)], [one.path.parent for one in (first, second)]
    assert second.process.poll() is None
    del first, second, study
    gc.collect()
    assert all(process.poll() is not None for process in processes)
    assert not any(folder.exists() for folder in folders)


def test_a_twin_that_fails_says_why(tmp_path: Path) -> None:
    twin = Twin(LabelledText(str(tmp_path / "nowhere.tsv")))
    with pytest.raises(RunError, match=r"the logistic regression failed: .*nowhere\.tsv"):
        twin.result()


def test_training_examples_have_a_table_of_their_own(finished: Run, study: SalientWords) -> None:
    accuracy = Metrics(finished.metrics).curves(STANDARD, "train accuracy").values
    seeds, texts = study.seeds_of(UNIFORM), pairs(study, "train")
    first, saliency = [], []
    for g, at in enumerate(accuracy.argmax(axis=1)):
        alpha = rows(finished, study, STANDARD, g, STEPS[at], "alpha", "train")
        delta = influence(finished, study, g, texts)
        for seed in seeds:
            along = betas(finished, study, seed, "train")
            first.append(largest(alpha, along))
            saliency.append(largest(delta, along))
    assert value(finished, TRAIN, COLUMNS[0]) == pytest.approx(np.mean(first))
    assert value(finished, TRAIN, COLUMNS[2]) == pytest.approx(np.mean(saliency))
    stars = Metrics(finished.metrics).curves(TRAIN, "ξ*").values[:, 0]
    assert stars == pytest.approx(accuracy.max(axis=1))
    assert value(finished, TRAIN, "chance") == pytest.approx(np.mean(np.ceil(texts.source.lengths / 20)
                                                                     / texts.source.lengths))  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [({"corpus": "imbd"}, "did you mean 'imdb'"), ({"seeds": 0}, "seeds must be at least 1"),
     ({"seeds": 1}, "seeds must be at least 2, not 1: each standard run is compared"),
     ({"blog": -1}, "blog must be at least 0"), ({"lr": 0.0}, "a number above 0"), ({"corpus": "multi30k"}, "parallel"),
     ({"batch": 5000}, "fewer than a batch")],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_and_leaves_nothing(change, said: str, corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        attndyn.run("salient-words", out=tmp_path / "none", **(SMALL | {"corpus": str(corpus)} | change))
    assert not (tmp_path / "none").exists()


FEW = SMALL | {"steps": 6, "every": 2, "early": ()}


def test_word_vectors_are_taken_and_their_width_too(corpus: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("dull 1 2 3\nfine -1 -2 -3\n")
    run = attndyn.run("salient-words", corpus=str(corpus), vectors=str(vectors), out=tmp_path / "run", traces="all",
                      **FEW)  # fmt: skip
    (claim,) = [claim for claim in run.claims if claim["id"] == "S-20"]
    assert {"random vectors", "given vectors, uniform attention"} <= set(run.info["conditions"])
    study, metrics = SalientWords(corpus=str(corpus), vectors=str(vectors), **FEW), Metrics(run.metrics)
    for name, uniform in UNIFORM_OF.items():
        accuracy, agreed = metrics.curves(name, "accuracy"), []
        for seed, curve in zip(study.seeds_of(name), accuracy.values, strict=True):
            alpha = rows(run, study, name, seed, int(accuracy.steps[curve.argmax()]), "alpha")
            (other,) = study.seeds_of(uniform)
            agreed.append(largest(alpha, [rows(run, study, uniform, other, s, "beta") for s in (0, 2, 4, 6)]))
        assert value(run, SUMMARY, f"{COLUMNS[0]}, {name}") == pytest.approx(np.mean(agreed))
        assert f"{100 * np.mean(agreed):.2f} [" in claim["measured"]
    assert "A(α, β_uf), given vectors" in (run.path / "report.html").read_text(encoding="utf-8")


def test_vectors_that_choose_the_words_do_so_for_both_arms(corpus: Path, tmp_path: Path) -> None:
    rare = [f"{('bad', 'good')[n % 2]}\t{('dull', 'fine')[n % 2]} rare{n}\n" for n in range(60)]
    own, vectors = tmp_path / "own.tsv", tmp_path / "vectors.txt"
    own.write_text(corpus.read_text() + "".join(rare))
    vectors.write_text("".join(f"rare{n} 1 2 3\n" for n in range(60)))
    study = SalientWords(corpus=str(own), vectors=str(vectors), vocabulary="count or vector", **FEW)
    tasks = {condition.name: condition.task for condition in study.conditions()}
    words = [tasks[name].tokens for name in (STANDARD, PROXY, *VECTORS, *UNIFORM_OF.values())]
    assert all(each == words[0] for each in words)
    assert sum(word.startswith("rare") for word in words[0]) > 30
    assert [tasks[name].start for name in (STANDARD, *VECTORS)] == [False, False, True]
    assert study.vocabularies["count or vector"] == len(words[0]) > study.vocabularies["count"]


def test_vectors_of_no_word_are_refused_before_training(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("unheard 1 2 3\n")
    for vocabulary in ("count", "count or vector"):
        with pytest.raises(UserError, match="has no vector for any word of the vocabulary of"):
            attndyn.run("salient-words", corpus=str(corpus), vectors=str(tmp_path / "vectors.txt"),
                        vocabulary=vocabulary, out=tmp_path / "none", **FEW)  # fmt: skip
    assert not (tmp_path / "none").exists()
