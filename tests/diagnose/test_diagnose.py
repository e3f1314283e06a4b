"""The verb `diagnose` on tiny files and small tasks: what it says, what it leaves, how it refuses."""

import json
import lzma
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attndyn.diagnose import Data, diagnose
from attndyn.diagnose.findings import percent
from attndyn.errors import UserError
from tests.command import call

PARTNERS = {"hund": "dog", "katze": "cat", "maus": "mouse", "haus": "house", "baum": "tree", "und": "and"}


@pytest.fixture
def parallel(tmp_path: Path) -> tuple[Path, Path]:
    """Word for word, in order; `das` and `the` are in every line, so nobody can be told to be their partner."""
    draw = random.Random(0)
    lines = [draw.sample(sorted(PARTNERS), 3) for _ in range(120)]
    (tmp_path / "de").write_text("".join(f"das {' '.join(line)}\n" for line in lines) + "\n")
    (tmp_path / "en").write_text("".join(f"the {' '.join(PARTNERS[w] for w in line)}\n" for line in lines) + "none\n")
    return tmp_path / "de", tmp_path / "en"


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    draw = random.Random(0)
    rows = []
    for k in range(80):
        filler = " ".join(draw.sample([f"w{n}" for n in range(12)], 4))
        rows.append(f"spam\tfree {filler}\n" if k % 4 == 0 else f"ham\tsee {filler}\n")
    (tmp_path / "rows.tsv").write_text("".join(rows))
    return tmp_path / "rows.tsv"


def test_parallel_text(parallel: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--source", parallel[0], "--target", parallel[1], "--out", tmp_path / "out"]
    code, out, _ = call(capsys, "diagnose", *words)
    assert code == 0
    assert "a lot to hold on to: in these 120 pairs" in out.replace("\n", " ")
    assert "1 pairs in which one side has no words" in out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "dog ← hund" in page
    assert "attndyn diagnose --source" in page
    found = json.loads((tmp_path / "out" / "diagnosis.json").read_text())
    rows = {row["word"]: row for row in found["words"]}
    for german, english in PARTNERS.items():
        assert rows[english]["partner"] == german
        assert rows[english]["group"] == "a clear partner"
    assert rows["the"]["group"] == "no partner"
    assert rows["the"]["partner"] is None
    assert found["share"] == pytest.approx(0.75)
    assert found["forward"] == 1
    assert found["checks"]["stays"] == 1
    assert call(capsys, "diagnose", *words)[0] == 0, "a second run replaces the first"
    code, _, err = call(capsys, "report", tmp_path / "out")
    assert code == 2
    assert "holds a diagnosis" in err


def test_json_prints_everything_and_writes_nothing(
    parallel: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = call(capsys, "diagnose", "--source", parallel[0], "--target", parallel[1], "--json")
    assert code == 0
    assert json.loads(out)["kind"] == "parallel"
    assert not (tmp_path / "runs").exists()
    assert call(capsys, "diagnose", "--source", parallel[0], "--target", parallel[1])[0] == 0
    assert len(list((tmp_path / "runs" / "diagnose").glob("????????/report.html"))) == 1


def test_labelled_text(labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "diagnose", "--labelled", labelled, "--out", tmp_path / "out")
    assert code == 0
    assert "100 % of these 80 texts hold a word that by itself speaks for their label" in out.replace("\n", " ")
    found = json.loads((tmp_path / "out" / "diagnosis.json").read_text())
    assert {label["label"]: label["words"][0]["word"] for label in found["labels"]} == {"spam": "free", "ham": "see"}
    assert (found["one_word"], found["commonest"]) == (1, 0.75)
    assert {example["label"] for example in found["examples"]} == {"spam", "ham"}


@pytest.mark.parametrize("texts", [8, 15, 20, 30])
def test_words_are_listed_for_a_label_if_they_carry_a_text_of_it(texts: int, tmp_path: Path) -> None:
    rows = (f"neg\ttoo a{n} b{n % 3}\npos\tbest c{n} {'d e f g h' * (n % 2)}\n" for n in range(texts))
    (tmp_path / "rows.tsv").write_text("".join(rows))
    found = diagnose(Data(labelled=tmp_path / "rows.tsv"))
    for label in found["labels"]:
        assert bool(label["words"]) == (label["share"] > 0) == (not label["too_rare"]) == (texts > 15)
    assert ("too few texts to tell for neg, pos" in found["finding"]) == (texts <= 15)


def test_labelled_text_by_its_name_or_folder(tmp_path: Path, labelled: Path) -> None:
    for part in ("train", "test"):
        (tmp_path / "own").mkdir(exist_ok=True)
        (tmp_path / "own" / f"{part}.tsv").write_bytes(labelled.read_bytes())
    of_file, of_folder = (diagnose(Data(labelled=path)) for path in (labelled, str(tmp_path / "own")))
    assert of_file["labels"] == of_folder["labels"]
    assert diagnose(Data(labelled="sms"))["pairs"] == 4460
    (tmp_path / "sst5").mkdir()
    for part in ("train", "test"):
        lines = (f"{n % 5}\tword{n % 5} the film\n" for n in range(60))
        (tmp_path / "sst5" / f"{part}.tsv.xz").write_bytes(lzma.compress("".join(lines).encode()))
    data = Data(labelled="sst5", data_dir=tmp_path)
    assert [(label["label"], label["texts"]) for label in diagnose(data)["labels"]] == [("neg", 24), ("pos", 24)]
    assert data.command == f"attndyn diagnose --labelled sst5 --data-dir {tmp_path}"


@pytest.mark.parametrize(
    ("task", "share", "says"),
    [
        ("permutations", 0, "Attention has nothing to hold on to"),
        ("mixture", 0, "Attention has nothing to hold on to"),
        ("subsets", 1, "Attention has a lot to hold on to"),
        ("iid", 1, "Attention has a lot to hold on to"),
        ("permuted-copy", 1, "come in another order than the outputs"),
    ],
)
def test_tasks(task: str, share: float, says: str) -> None:
    words = 15 if task in ("subsets", "permuted-copy") else None
    found = diagnose(Data(task=task, length=10, words=words, pairs=500))
    assert found["share"] == share
    assert says in found["finding"]
    answers = dict(found["answers"])
    assert ("Which will be learned first?" in answers) == bool(share)
    if share:
        assert answers["Which will be learned first?"].startswith("All at about the same time")


def test_the_task_of_the_paper_is_the_default() -> None:
    assert Data(task="subsets").title == "copying 40 of 60 words"
    pairs, _ = Data(task="subsets", pairs=3).read()
    assert list(pairs.source.lengths) == [40] * 3
    assert np.array_equal(pairs.source.ids, pairs.target.ids), "without the end token"


def test_few_pairs_are_called_few(tmp_path: Path) -> None:
    (tmp_path / "de").write_text("ein hund\neine katze\nein haus\n")
    (tmp_path / "en").write_text("a dog\na cat\na house\n")
    found = diagnose(Data(source=tmp_path / "de", target=tmp_path / "en"))
    assert found["share"] == 0
    groups = {group["group"]: group["words"] for group in found["groups"]}
    assert groups["too rare to tell"] == 3
    assert found["finding"].endswith("50 % belong to words that are too rare here to tell.")
    assert "more pairs before you conclude" in dict(found["answers"])["What if the signal is absent?"]
    assert "too rare here to tell" in dict(found["answers"])["Which words have an identifiable partner?"]


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in flat(item)]
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, list | tuple) else [value]


@pytest.mark.parametrize(
    ("source", "target"), [("a b\nb a\n", "x\nx y\n"), ("a\nb\na\n", "x\ny\nx\n"), ("a a\nb\n", "x x x\ny\n")]
)
def test_there_is_never_a_nan(source: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "s").write_text(source)
    (tmp_path / "t").write_text(target)
    numbers = [
        leaf for leaf in flat(diagnose(Data(source=tmp_path / "s", target=tmp_path / "t"))) if isinstance(leaf, float)
    ]
    assert np.isfinite(numbers).all()


def test_mistakes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def file(name: str, text: str | bytes) -> Path:
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return tmp_path / name

    good = file("good", "a b\nb c\n")
    cases: list[tuple[list[object], str]] = [
        ([], "one of the three"),
        (["--task", "subsets", "--labelled", good], "one of the three"),
        (["--source", good], "needs both files"),
        (["--task", "subset"], "did you mean 'subsets'"),
        (["--task", "subsets", "--words", "30"], "cannot draw 40 different words out of 30"),
        (["--task", "permutations", "--words", "30"], "permutations has no --words"),
        (["--task", "permutations", "--length", "0"], "at least 1"),
        (["--task", "iid", "--pairs", "1"], "at least 2"),
        (["--source", good, "--target", good, "--length", "9"], "--length is for --task only"),
        (["--task", "iid", "--data-dir", tmp_path], "--data-dir is for --labelled only"),
        (["--labelled", tmp_path / "none"], "is neither a corpus, nor a file, nor a folder"),
        (["--task", "iid", "--tokenised"], "--tokenised is for text only"),
        (["--sorce", good], "did you mean '--source'"),
        (["--source", good, "--target", file("long", "x\ny\nz\n")], "long has 3"),
        (["--source", good, "--target", file("bad", b"x\n\xff\n")], "bad, line 2: not UTF-8"),
        (["--source", good, "--target", file("one", "x\nx x\n")], "the only output word is 'x'"),
        (["--source", file("same", "a\na\n"), "--target", good], "the only input word is 'a'"),
        (["--source", file("half", "a\n\n"), "--target", good], "1 pairs with words on both sides"),
        (["--source", good, "--target", tmp_path / "missing"], "missing: no such file"),
        (["--labelled", file("once", "x\ta b\ny\tb\nx\tc\n")], "line 2: the label 'y' occurs once"),
        (["--labelled", file("all", "x\ta b\nx\tb\n")], "every line has the label 'x'"),
        (["--labelled", file("tabless", "x a\n")], "line 1: expected label<TAB>text"),
        (["--task", "iid", "--out", good], "good is a file"),
        (["--task", "iid", "--out", tmp_path], "is not a run folder"),
    ]
    for words, sentence in cases:
        code, out, error = call(capsys, "diagnose", *words)
        assert (code, out) == (2, ""), words
        assert sentence in error
        assert error.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


def test_shares_are_never_rounded_to_all_or_nothing() -> None:
    assert [percent(share) for share in (0.0, 0.0004, 0.0123, 0.5, 0.9996, 1.0)] == [
        "0 %", "under 0.1 %", "1.23 %", "50 %", "over 99.9 %", "100 %",
    ]  # fmt: skip


def test_a_diagnosis_names_its_task_or_files() -> None:
    with pytest.raises(UserError, match="there is no task"):
        Data(task="copy")
    data = Data(source=Path("data/train.de"), target=Path("my text.en"), tokenised=True)
    assert data.command == "attndyn diagnose --source data/train.de --target 'my text.en' --tokenised"
