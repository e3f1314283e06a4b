"""The rules of initial-derivative on numbers that should turn them, and the command on small files."""

import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

import attndyn
from attndyn.cli import main
from attndyn.errors import UserError
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies import find
from attndyn.studies.initial_derivative import InitialDerivative
from attndyn.studies.proxy_starts import EVEN, LABELS, PYTORCH, SENTENCES, ZIPF

STUDY = InitialDerivative(seeds=4, widths=(64, 256, 1024))
SIZES = {EVEN: (20, 15), LABELS: (500, 2)}
SENTENCE_PAIRS = [
    ("ein hund rennt", "a dog runs"),
    ("ein mann schläft", "a man sleeps"),
    ("der hund schläft", "sleeps"),
]


def made(**changes: Callable[[float, float], float]) -> Metrics:
    """All as derived, with a wobble of a percent over seeds; `changes` by metric, from (width, value)."""
    rows = []
    for name, (inputs, outputs) in SIZES.items():
        sizes = {"count table difference": 1e-13, "pairs": 9.0, "input words": inputs, "output words": outputs}
        for width in STUDY.widths:
            law = 0.5 * ((inputs + outputs + 2) / width) ** 0.5
            values = {
                "logit slope": 2.0, "probability slope": 2 / outputs, "output slope": 1.0, "embedding slope": 1.0,
                "error": law, "parts apart": 2 * law,
            }  # fmt: skip
            for seed in range(STUDY.seeds):
                wobble = 1 + 0.01 * (seed - 1.5)
                rows += [Row(name, seed, width, metric, value * wobble) for metric, value in values.items()]
                rows += [Row(name, seed, width, "predicted error", law)]
                rows += [Row(name, seed, width, "predicted θ slope", 2 / outputs)]
        rows += [Row(name, 0, 0, metric, float(value)) for metric, value in sizes.items()]
    rows += [Row(SENTENCES, s, w, "drift", (1 + 0.1 * s) / w**0.5) for w in STUDY.widths for s in range(STUDY.seeds)]
    rows = [
        r._replace(value=changes[k](r.step, r.value)) if (k := r.metric.replace(" ", "_")) in changes else r
        for r in rows
    ]
    return Metrics(to_table([*rows, *STUDY.analyse(Metrics(to_table(rows)))]))


def verdicts(metrics: Metrics) -> dict[str, str]:
    return {claim.statement.id: claim.judgement.verdict for claim in STUDY.claims(metrics)}


def test_what_is_derived_is_judged_so() -> None:
    found = verdicts(made())
    assert found == {"S-28": "differs", "S-29": "holds", "S-30": "holds", "S-31": "holds", "O-06": "holds"}


@pytest.mark.parametrize(
    ("id", "changes", "verdict"),
    [
        ("S-28", {"probability_slope": lambda width, value: 2.0 + 0.01 * (value % 0.01)}, "holds"),
        ("S-29", {"error": lambda width, value: 0.3}, "differs"),
        ("S-29", {"error": lambda width, value: 1.5 * value}, "differs"),
        ("S-29", {"error": lambda width, value: value * (width / 256) ** -0.5}, "differs"),
        ("S-30", {"output_slope": lambda width, value: value + 0.2}, "differs"),
        ("S-30", {"embedding_slope": lambda width, value: value - 0.045}, "inconclusive"),
        ("S-30", {"parts_apart": lambda width, value: 1.0}, "differs"),
        ("S-31", {"count_table_difference": lambda width, value: 1e-3}, "differs"),
        ("O-06", {"drift": lambda width, value: 30 * value}, "differs"),
        ("O-06", {"drift": lambda width, value: 2.8 * value}, "inconclusive"),
    ],
)
def test_each_rule_can_turn(id: str, changes: dict[str, Callable[[float, float], float]], verdict: str) -> None:
    assert verdicts(made(**changes))[id] == verdict


def test_one_width_says_nothing_about_growth() -> None:
    study = InitialDerivative(seeds=4, widths=(1024,))
    claims = {claim.statement.id: claim.judgement.verdict for claim in study.claims(made())}
    assert claims["S-29"] == claims["S-30"] == "not judged at this scale"
    assert claims["S-28"] == "differs"


def write(folder: Path, lines: list[str], name: str) -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_own_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTNDYN_DATA", raising=False)
    files = [
        write(tmp_path, [pair[side] for pair in SENTENCE_PAIRS * 9], f"t.{'de' if side == 0 else 'en'}")
        for side in (0, 1)
    ]
    words = ["--inputs", str(files[0]), "--outputs", str(files[1]), "--seeds", "2", "--widths", "16", "64"]
    main(["run", "initial-derivative", *words, "--out", str(tmp_path / "run")])
    assert "On t.de → t.en (6 and 5 words)" in capsys.readouterr().out
    run = attndyn.Run(tmp_path / "run")
    names = run.metrics["condition"].unique().to_pylist()
    assert names == [EVEN, ZIPF, LABELS, "t.de → t.en", f"t.de → t.en{PYTORCH}", SENTENCES]
    assert f"--inputs {files[0]} --outputs {files[1]}" in run.info["command"]
    assert {path.stem for path in (run.path / "figures").glob("*.svg")} == {
        "error", "commonest", "start", "kept", "sentences",
    }  # fmt: skip
    for path in files:  # the page needs the numbers only
        path.unlink()
    assert run.report().exists()
    slopes = Metrics(run.metrics).curves(f"t.de → t.en{PYTORCH}", "predicted logit slope")
    assert slopes.values[0].tolist() == pytest.approx([16 + 1 / 3, 64 + 1 / 3])


def test_labels_and_multi30k(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = write(tmp_path, ["pos\tso good", "neg\tso bad"] * 5, "reviews.tsv")
    study = InitialDerivative(seeds=2, widths=(16,), inputs=str(labels))
    assert "reviews.tsv" in {piece.condition for piece in study.pieces()}
    monkeypatch.setenv("ATTNDYN_DATA", str(tmp_path))
    assert not any("Multi30k" in piece.condition for piece in InitialDerivative().pieces())
    (tmp_path / "multi30k").mkdir()
    for side, language in enumerate(("de", "en")):
        text = "".join(f"{pair[side]}\n" for pair in SENTENCE_PAIRS)
        (tmp_path / "multi30k" / f"train.{language}.xz").write_bytes(lzma.compress(text.encode()))
    assert any("Multi30k" in piece.condition for piece in InitialDerivative().pieces())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--seeds", "1"], "seeds must be at least 2"),
        (["--widths", "0"], "widths must be different numbers of at least 1"),
        (["--widths", "64", "64"], "widths must be different"),
        (["--vocabulary", "1"], "vocabulary must be at least 2"),
        (["--outputs", "x.en"], "--outputs needs --inputs"),
        (["--inputs", "missing.de", "--outputs", "two.en"], "missing.de: no such file"),
        (["--inputs", "one.de", "--outputs", "two.en"], "one.de has 1 lines but two.en has 2"),
        (["--inputs", "one.de"], "one.de, line 1: expected label<TAB>text"),
        (["--inputs", "empty.de", "--outputs", "empty.de"], "hold no lines"),
        (["--inputs", "left.de", "--outputs", "right.de"], "no pair with words on both sides"),
        (["--inputs", "same.tsv"], "same.tsv: all outputs are equally frequent"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in {
        "one.de": ["ein"], "two.en": ["a", "b"], "empty.de": [], "left.de": ["ja", ""], "right.de": ["", "no"],
        "same.tsv": ["pos\tgood", "pos\tfine"],
    }.items():  # fmt: skip
        write(tmp_path, lines, name)
    with pytest.raises(SystemExit) as stop:
        main(["run", "initial-derivative", *words, "--out", "run"])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize("name", ["initial-derivative", "gated-toy"])
def test_recorded_claims_are_those_of_the_study(name: str) -> None:
    recorded = Path(__file__).resolve().parents[2] / "docs" / "results" / name / "claims.json"
    claims = json.loads(recorded.read_text(encoding="utf-8"))
    statements = [(s.id, s.statement, s.published, s.rule) for s in find(name).statements]
    assert [(c["id"], c["statement"], c["published"], c["rule"]) for c in claims] == statements
    assert {claim["scale"] for claim in claims} == {"paper"}


def test_settings_that_are_not_there_are_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'widths'"):
        InitialDerivative.at("demo", width=3)
