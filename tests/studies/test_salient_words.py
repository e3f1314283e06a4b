"""The tables of salient-words against slow definitions on a made corpus, and the study as a user runs it."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

import attndyn
from attndyn.errors import UserError
from attndyn.measures import agreement as padded
from attndyn.store.folder import Run
from attndyn.store.metrics import Metrics
from attndyn.studies.salient_names import BLOG, CODE, COLUMNS, FROZEN, KENDALL, STANDARD, SUMMARY, TEXT, TRAIN, UNIFORM
from attndyn.studies.salient_twin import Twin
from attndyn.studies.salient_words import SalientWords
from attndyn.tasks.corpus import LabelledText
from attndyn.tasks.ragged import examined
from attndyn.theory.logistic import logistic

SMALL = {
    "seeds": 2, "uniform": 2, "blog": 1, "proxies": 1, "steps": 24, "width": 8, "hidden": 8, "evaluation": 30,
    "every": 12, "early": (5,), "epochs": 2, "proxy_lr": 1e-2, "lr": 1e-2, "batch": 16,
}  # fmt: skip
STEPS = [0, 5, 12, 24]


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


def rows(finished: Run, study: SalientWords, condition: str, seed: int, step: int, name: str) -> list[np.ndarray]:
    """A scoring, one array for each validation text."""
    pairs = examined(study.task.data.train, study.task.data.valid, study.evaluation, "valid")
    return np.split(finished.array(condition, seed, step, name), pairs.source.offsets[1:-1])


def slow_agreement(u: list[np.ndarray], v: list[np.ndarray]) -> float:
    return float(np.mean([padded.agreement(a[None], b[None]).values[0].item() for a, b in zip(u, v, strict=True)]))


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


def test_the_columns_by_the_code(finished: Run, study: SalientWords) -> None:
    first, fourth = [], []
    for g, step in enumerate(golds(finished, study)):
        alpha = rows(finished, study, STANDARD, g, step, "alpha")
        for seed in study.seeds_of(UNIFORM):
            curve = [slow_agreement(alpha, rows(finished, study, UNIFORM, seed, s, "beta")) for s in STEPS]
            first.append(max(curve))
        fourth.append(max(slow_agreement(alpha, rows(finished, study, STANDARD, 1 - g, s, "beta")) for s in STEPS))
    assert value(finished, CODE, COLUMNS[0]) == pytest.approx(np.mean(first))
    assert value(finished, CODE, COLUMNS[3]) == pytest.approx(np.mean(fourth))


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
        found = metrics.curves(CODE, f"ξ of {COLUMNS[0]}")
        mine = found.values[g][found.steps.tolist().index(step)]
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


def test_training_examples_have_a_table_of_their_own(finished: Run) -> None:
    assert 0 <= value(finished, TRAIN, COLUMNS[2]) <= 1
    accuracy = Metrics(finished.metrics).curves(STANDARD, "train accuracy").values
    assert value(finished, TRAIN, "ξ*") in accuracy


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


def test_word_vectors_are_taken_and_their_width_too(corpus: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("dull 1 2 3\nfine -1 -2 -3\n")
    run = attndyn.run("salient-words", corpus=str(corpus), vectors=str(vectors), out=tmp_path / "run",
                      **(SMALL | {"steps": 6, "every": 2, "early": ()}))  # fmt: skip
    (claim,) = [claim for claim in run.claims if claim["id"] == "S-20"]
    assert "with vectors" in claim["measured"]
    assert {"random vectors", "given vectors, uniform attention"} <= set(run.info["conditions"])
