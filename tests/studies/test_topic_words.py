"""topic-words on a small budget, and each of its rules on numbers that should turn it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import attndyn
from attndyn.cli import main
from attndyn.errors import RunError, UserError
from attndyn.models.topic import Topic
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies import topic_runs, topic_texts
from attndyn.studies.topic_runs import Path as Course
from attndyn.studies.topic_words import (
    DICTIONARIES,
    FREQUENCIES,
    FULL,
    KINDS,
    OTHER_END,
    PADDED,
    QUERIES,
    STEP_SIZES,
    TOPIC_END,
    TopicWords,
)  # fmt: skip
from attndyn.tasks.topics import Bags
from attndyn.tasks.topics import TopicWords as Task

STUDY = TopicWords(seeds=6, texts=("sst2", "sst5"), text_seeds=3)
LARGE = list(QUERIES)[-1]
Change = Callable[[int, float], float]


def made(changes: dict[tuple[str, str], Change] | None = None) -> Metrics:
    """All as published, with a wobble over seeds; `changes` by (condition, metric), from (step, value)."""
    rows: list[Row] = []

    def add(condition: str, metric: str, values: dict[int, float], seeds: int = STUDY.seeds) -> None:
        for seed in range(seeds):
            rows.extend(Row(condition, seed, step, metric, value * (1 + 0.01 * seed)) for step, value in values.items())

    for place, kind in enumerate(KINDS):
        add(kind, "simple residual", {0: 0.0, 5000: 0.003})
        add(kind, "general residual", {0: 0.0, 5000: 0.0003})
        add(kind, "score sum drift", {5000: 1e-14})
        add(kind, "topic score", {0: 0.0, 5000: 3.0 - place})
        add(kind + STEP_SIZES, "exponent", {4: 1.0}, 3)
    for kind in ("FC", "TC"):
        for ending, time, norm, score in ((FULL, 100.0, 1.0, 1.0), ("-KF", 900.0, 0.5, 0.0), ("-EF", np.inf, 0.3, 0.2)):
            add(kind + ending, "epochs to half the loss", {6000: time})
            add(kind + ending, "topic norm", {0: 0.3, 50: norm / 2, 150: norm, 6000: 2.0})
            add(kind + ending, "topic score", {0: 0.0, 50: score / 2, 150: score, 6000: 2.0})
        add(kind + FULL, "suppressed", {6000: 0.0 if kind == "FC" else 0.25})
    add("FC", "moves together", {5000: 1.0})
    for name, end in (("FC", 0.6), (LARGE, 0.93)):
        add(name, "attention", {0: 0.05, 50: 0.2, 5000: end})
        add(name, "unattended over law", {5000: 1.9 if name == "FC" else 1.03})
    for metric, value in (
        ("topic share", 0.125), ("least topic share", 0.11), ("other share", 0.004), ("largest other share", 0.008),
    ):  # fmt: skip
        add(FREQUENCIES, metric, {0: value})
    for name in ("SST-2, FC", "SST-2, TC", "SST-5, FC", "SST-5, TC", "SST-2" + PADDED):
        add(name, "median error", {0: 0.05}, 3)
    add("SST-2" + PADDED, "median error, m of the model", {0: 0.04}, 3)
    for metric, value in (("change of frequency", -1.0), ("change of purity", 0.3), ("overtaken", 0.5)):
        add("SST-2, FC", metric, {0: value}, 3)
    for key, change in (changes or {}).items():
        assert any((row.condition, row.metric) == key for row in rows), key
        rows = [
            row._replace(value=change(row.step, row.value)) if (row.condition, row.metric) == key else row
            for row in rows
        ]
    return Metrics(to_table(rows))


def verdicts(metrics: Metrics) -> dict[str, str]:
    return {claim.statement.id: claim.judgement.verdict for claim in STUDY.claims(metrics)}


def test_what_is_published_is_judged_so() -> None:
    assert verdicts(made()) == {f"L-{n:02d}": "holds" for n in range(1, 11)}


@pytest.mark.parametrize(
    ("id", "condition", "metric", "change", "verdict"),
    [
        ("L-01", "FC", "simple residual", lambda step, value: 2 * value, "differs"),
        ("L-02", "TL", "simple residual", lambda step, value: 2 * value, "differs"),
        ("L-02", "TC" + STEP_SIZES, "exponent", lambda step, value: value + 0.5, "differs"),
        ("L-02", "TC" + STEP_SIZES, "exponent", lambda step, value: 1 + 10 * (value - 1), "inconclusive"),
        ("L-03", "FC", "moves together", lambda step, value: 0.9, "differs"),
        ("L-03", "TC-KF", "topic norm", lambda step, value: 3 * value, "differs"),
        ("L-03", "FC-EF", "topic score", lambda step, value: 9 * value, "differs"),
        ("L-04", "FC-KF", "epochs to half the loss", lambda step, value: 50.0, "differs"),
        ("L-04", "TC-EF", "epochs to half the loss", lambda step, value: 50.0, "differs"),
        ("L-05", "FC", "attention", lambda step, value: 0.1 if step == 50 else value - 0.6, "differs"),
        ("L-05", LARGE, "attention", lambda step, value: value - 0.2, "differs"),
        ("L-05", LARGE, "unattended over law", lambda step, value: 1.2, "differs"),
        ("L-06", "TC", "topic score", lambda step, value: 0.5 * value, "inconclusive"),
        ("L-06", "TC", "topic score", lambda step, value: 2 * value, "differs"),
        ("L-07", "TC" + FULL, "suppressed", lambda step, value: 0.0, "differs"),
        ("L-08", "SST-5, TC", "median error", lambda step, value: 0.2, "inconclusive"),
        ("L-08", "SST-5, TC", "median error", lambda step, value: 0.3, "differs"),
        ("L-09", "SST-2, FC", "change of frequency", lambda step, value: -value, "differs"),
        ("L-09", "SST-2, FC", "change of purity", lambda step, value: value - 0.304, "inconclusive"),
        ("L-10", FREQUENCIES, "largest other share", lambda step, value: 0.12, "differs"),
        ("L-10", FREQUENCIES, "other share", lambda step, value: 0.012, "differs"),
    ],
)
def test_each_rule_can_turn(id: str, condition: str, metric: str, change: Change, verdict: str) -> None:
    assert verdicts(made({(condition, metric): change}))[id] == verdict


# --- the real thing, small


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> attndyn.Run:
    folder = tmp_path_factory.mktemp("topic")
    text = folder / "reviews.tsv"
    random = np.random.default_rng(0)
    lines = []
    for n in range(300):
        label, some = n % 2, random.integers(0, 40, 8)
        lines.append(f"{'good' if label else 'bad'}\t{'great' if label else 'dull'} {' '.join(f'w{i}' for i in some)}")
    text.write_text("\n".join(lines), encoding="utf-8")
    study = TopicWords(
        seeds=2, epochs=150, ablation_epochs=100, sentences=300, dictionary=200, others=5, dictionaries=(20, 200),
        rates=(0.8, 0.4), texts=(str(text),), text_seeds=2, text_epochs=300, patience=200, followed=("great", "none"),
        rate=1.0,
    )  # fmt: skip
    return attndyn.run(study, out=folder / "run")


def test_a_small_run_has_every_figure_and_claim(run: attndyn.Run) -> None:
    assert {claim["id"] for claim in run.claims} == {f"L-{n:02d}" for n in range(1, 11)}
    assert all(claim["verdict"] != "not judged at this scale" for claim in run.claims)
    drawn = {path.stem for path in (run.path / "figures").glob("*.svg")}
    assert drawn >= {
        "identity", "scatter", "promotion", "ablation", "suppression", "law", "steps", "dictionaries", "text",
        "competition-frequency", "competition-purity",
    }  # fmt: skip
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "One word overtakes another" in page
    assert "great" in page


def test_what_the_small_run_measured(run: attndyn.Run) -> None:
    metrics = Metrics(run.metrics)
    for kind in KINDS:
        assert metrics.curves(kind, "score sum drift").values.max() < 1e-10
        assert metrics.curves(kind + STEP_SIZES, "exponent").values == pytest.approx(1, abs=0.15)
    assert metrics.curves("FC", "accuracy").last.min() > 0.9
    residuals = metrics.curves(DICTIONARIES, "simple residual")
    assert residuals.steps.tolist() == [20, 200]
    assert (residuals.values[:, 0] > residuals.values[:, 1]).all()
    assert len(metrics.curves(TOPIC_END, "final norm").steps) == 8
    assert len(metrics.curves(OTHER_END, "final norm").steps) == 20
    attention = metrics.curves("FC", "attention").values
    assert attention[:, 0] == pytest.approx(1 / 6, rel=1e-3)
    assert (attention[:, -1] > attention[:, 0]).all()


def test_the_words_of_the_sentence_are_shown_in_order() -> None:
    names = ["loss", f"{topic_texts.SENTENCE}01 b c", f"{topic_texts.SENTENCE}00 a"]
    assert [word for _, word in topic_texts.sentence(names)] == ["a", "b c"]


def bags() -> Bags:
    from scipy.sparse import csr_matrix

    counts = csr_matrix(np.array([[1.0, 2, 0, 0], [1, 0, 1, 0], [0, 1, 3, 1]]))
    return Bags(counts, np.array([0, 1, 1]), ["a", "b", "c", "d"], ["neg", "pos"])


def test_the_strongest_word_of_a_sentence() -> None:
    assert topic_texts.top_words(bags(), np.array([0.0, 1.0, 2.0, 3.0])).tolist() == [1, 2, 3]
    assert topic_texts.top_words(bags(), np.array([5.0, 1.0, 1.0, 1.0])).tolist() == [0, 0, 1]


def test_the_competition_is_that_of_the_definition() -> None:
    scores = np.array([[0.0, 0, 0, 0], [2, 1, 0, 0], [0, 1, 0, 2]])
    blank = np.zeros(3)
    course = Course(np.array([0, 100, 200]), scores, scores, scores, blank, blank, blank, blank, blank, scores[:, :0])
    found = {(step, name): value for step, name, value in topic_texts.competition(course, bags(), ("b", "x"))}
    # sentences with b: the first and the third; they are led by a, b and then by b, d
    share, purity = np.array([2, 2, 2, 1]) / 3, np.array([0, 0, 1, 1])
    assert found[100, "frequency b"] == pytest.approx(share[[0, 1]].mean())
    assert found[200, "purity b"] == pytest.approx(purity[[1, 3]].mean())
    assert found[0, "change of purity"] == pytest.approx(0.5)
    assert found[0, "change of frequency"] == pytest.approx(np.log(share[[1, 3]].mean() / share[[0, 1]].mean()))
    assert found[0, "overtaken"] == pytest.approx(2 / 3)  # the second stays with a: c only draws level
    assert not any("x" in name for _, name in found)


def test_patience_ends_training() -> None:
    parts = Task(sentences=300, dictionary=50, others=2).draw(0)
    wrong = Bags(parts.valid.counts, (parts.valid.labels + 1) % 4, parts.valid.words, parts.valid.classes)
    model = Topic("FC").build(len(parts.train.words), 4, 0)
    course = topic_runs.follow(model, replace(parts, valid=wrong), 0.5, range(0, 501, 10), patience=50)
    assert course.valid_loss.argmin() == 0
    assert course.epochs[-1] == 50


def test_a_loss_that_is_not_finite_ends_the_run() -> None:
    parts = Task(sentences=100, dictionary=5, others=2).draw(0)
    model = Topic("FC").build(len(parts.train.words), 4, 0)
    model.weights["embeddings"][0] = np.inf
    with pytest.raises(RunError, match="the loss is not finite at epoch 0"), np.errstate(invalid="ignore"):
        topic_runs.follow(model, parts, 0.1, [0])


# --- bad input


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"each": 0}, "a topic without a topic word"),
        ({"dictionary": 0}, "the dictionary of other words is empty"),
        ({"dictionaries": (5, 0)}, "the dictionary of other words is empty"),
        ({"seeds": 1}, "seeds must be at least 2"),
        ({"text_seeds": 1}, "text-seeds must be at least 2"),
        ({"rates": (0.1,)}, "two or more different numbers"),
        ({"rate": 0.0}, "rate must be above 0"),
        ({"ablation_epochs": 9}, "ablation-epochs must be at least 100"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, int], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        TopicWords(**settings)


def test_the_command_refuses_bad_input_before_it_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    for words, sentence in (
        (["--each", "0"], "a topic without a topic word"),
        (["--dictionary", "0"], "the dictionary of other words is empty"),
        (["--texts", str(tmp_path / "none.tsv")], "neither a labelled corpus nor a file"),
        (["--texts", "multi30k"], "labelled text is needed"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["run", "topic-words", *words, "--out", str(out)])
        told = capsys.readouterr().err
        assert sentence in told
        assert "Traceback" not in told
        assert not (out / "run.json").exists()


def test_recorded_claims_have_every_statement() -> None:
    path = Path(__file__).parents[2] / "docs" / "results" / "topic-words" / "claims.json"
    recorded = json.loads(path.read_text(encoding="utf-8"))
    assert {claim["id"]: claim["rule"] for claim in recorded} == {
        statement.id: statement.rule for statement in TopicWords.statements
    }
