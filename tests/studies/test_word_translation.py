"""word-translation by its real command, on a made corpus of a hundred pairs, and what it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attndyn
from attndyn.cli import main
from attndyn.errors import UserError
from attndyn.studies import find
from attndyn.studies.translation_statements import STATEMENTS
from tests.studies.made import parallel

TINY = {
    "vocabulary": 60, "seeds": 2, "uniform": 1, "steps": 4, "batch": 8, "hidden": 8, "every": 4, "early": (1,),
    "evaluation": 6, "cut": 6, "beams": 2, "epochs": 1,
}  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    return parallel(tmp_path / "corpus")


def test_the_real_command(corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    words = ["run", "word-translation", "--corpus", corpus, "--out", str(out), "--device", "cpu"]
    for name, value in TINY.items():
        words += [f"--{name}", *map(str, value if isinstance(value, tuple) else [value])]
    main(words)
    assert "BLEU" in capsys.readouterr().out
    run = attndyn.Run(out)
    assert [claim["id"] for claim in run.claims] == [statement.id for statement in STATEMENTS]
    verdicts = {claim["id"]: claim["verdict"] for claim in run.claims}
    assert verdicts["S-19"] == verdicts["S-49"] == "holds"
    assert verdicts["S-52"] == "not judged at this scale"
    assert all("direction only" in claim["why"] for claim in run.claims)
    table = run.metrics.to_pylist()
    seen = {(row["condition"], row["metric"]) for row in table}
    for table_name in ("validation, token accuracy", "validation, BLEU", "training pairs, BLEU"):
        assert {(table_name, "A(α, β_uf)"), (table_name, "ξ of A(Δ, β_uf)"), (table_name, "ξ*")} <= seen
    shares = [row["value"] for row in table if row["metric"] in ("A(α, β)", "accuracy", "probe on link")]
    assert 0 <= min(shares) <= max(shares) <= 1
    trace = run.trace("standard", 0, step=4)
    examples, _, queries, keys = trace["alpha"].shape
    assert trace["beta"].shape == trace["delta"].shape == (examples, queries, keys)
    rows = trace["target"] >= 0
    np.testing.assert_allclose(trace["alpha"][:, 0].sum(axis=-1)[rows], 1, atol=5e-3)
    page = (out / "report.html").read_text()
    assert "The first words of the dictionary" in page
    assert "sacrebleu: nrefs:1" in page
    assert not (out / "weights").exists()


def test_text_without_spaces_has_a_page_without_a_dictionary(tmp_path: Path) -> None:
    """As Chinese or Japanese text: no piece is a whole word."""
    parallel(tmp_path / "corpus")
    for path in (tmp_path / "corpus").iterdir():
        path.write_text(path.read_text().replace(" ", ""))
    settings = TINY | {"vocabulary": 40, "evaluation": 12, "corpus": str(tmp_path / "corpus"), "device": "cpu"}
    run = attndyn.run("word-translation", out=tmp_path / "run", **settings)
    assert len(run.claims) == len(STATEMENTS)
    assert "no link is between pieces that are whole words" in (run.path / "report.html").read_text()


def test_two_files_of_ones_own(corpus: str, tmp_path: Path) -> None:
    """The verdicts say that the validation part was drawn."""
    for language in ("de", "en"):
        (tmp_path / f"mine.{language}").write_text((Path(corpus) / f"train.{language}").read_text())
    settings = {**TINY, "corpus": str(tmp_path / "mine"), "linear": 0, "vocabulary": 50}
    run = attndyn.run("word-translation", out=tmp_path / "run", page=False, device="cpu", **settings)
    note = "no validation part: 10 of the pairs drawn for it, 90 left to train on"
    assert all(note in claim["why"] for claim in run.claims if claim["id"] not in ("S-50", "S-51", "S-52"))


@pytest.mark.parametrize(("pairs", "batch"), [(54, 54), (64, 64), (90, 64)])
def test_the_proxy_takes_no_more_pairs_than_there_are(pairs: int, batch: int, corpus: str, tmp_path: Path) -> None:
    for language in ("de", "en"):
        train = Path(corpus) / f"train.{language}"
        train.write_text("".join(train.read_text().splitlines(keepends=True)[:pairs]))
    proxy = find("word-translation").at("demo", **TINY | {"corpus": corpus, "epochs": 2, "vocabulary": 50}).proxy()
    assert (proxy.batch, proxy.steps, proxy.readings[0].every) == (batch, 2, 1)
    if pairs == 54:
        settings = {**TINY, "corpus": corpus, "linear": 0, "vocabulary": 50}
        run = attndyn.run("word-translation", out=tmp_path / "run", page=False, device="cpu", **settings)
        assert run.info["status"] == "finished"


def test_an_interrupted_run_ends_as_an_uninterrupted_one(
    corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attndyn.runner import Runner

    settings = {**TINY, "corpus": corpus, "linear": 0}
    whole = attndyn.run("word-translation", out=tmp_path / "whole", page=False, device="cpu", **settings)
    monkeypatch.setattr("attndyn.runner.SAVE_SECONDS", 0.0)
    original, calls = Runner._save, []

    def stop(self: Runner, *given: object) -> None:
        original(self, *given)
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "_save", stop)
    with pytest.raises(KeyboardInterrupt):
        attndyn.run("word-translation", out=tmp_path / "part", page=False, device="cpu", **settings)
    assert json.loads((tmp_path / "part" / "run.json").read_text())["status"] == "running"
    monkeypatch.setattr(Runner, "_save", original)
    again = attndyn.run("word-translation", out=tmp_path / "part", page=False, device="cpu", **settings)
    for name in ("metrics.parquet", "claims.json"):
        assert (again.path / name).read_bytes() == (whole.path / name).read_bytes()


def test_no_torch_before_it_is_needed() -> None:
    """Settings are refused, and help is printed, in a process that has not waited for torch."""
    program = (
        "import sys\n"
        "from attndyn.studies import find\n"
        "study = find('word-translation').at('demo', vocabulary=60)\n"
        "assert study.task.pieces == 60\n"
        "assert study.model.hidden == 64\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 1}, "seeds must be at least 2"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"linear": -1}, "linear must be at least 0"),
        ({"seeds": 1001}, "seeds must be at most 1000, not 1001: no two runs share a seed"),
        ({"uniform": 1001}, "uniform must be at most 1000"),
        ({"linear": 1001}, "linear must be at most 1000"),
        ({"lr": 0.0}, "learning rate"),
        ({"dropout": 1.0}, "dropout lies between 0 and 1"),
        ({"vocabulary": 3}, "a vocabulary must have at least 5 pieces"),
    ],
)
def test_impossible_settings(settings: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        find("word-translation").at("demo", **settings)


def test_a_stand_in_is_trained_as_long_as_what_it_stands_for() -> None:
    study = find("word-translation")
    assert study(corpus="tatoeba_nl_en", source_language="nl").length == 20 * -(-29_000 // 16)
    assert study(corpus="tatoeba_nl_en", source_language="nl", steps=7).length == 7


def test_a_corpus_that_is_not_there() -> None:
    study = find("word-translation").at("demo", corpus="multi31k")
    with pytest.raises(UserError, match="did you mean 'multi30k'"):
        list(study.conditions())
