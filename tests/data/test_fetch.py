"""`attndyn data fetch` with a stand-in for `datasets`: the rows it gives become our files, all of them or none."""

import json
import lzma
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.cli import main
from attndyn.data import fetch as fetching
from attndyn.data.fetch import fetch, folded, with_held_out
from attndyn.errors import RunError, UserError
from attndyn.tasks import corpora
from attndyn.tasks.chunks import read_chunks
from attndyn.tasks.labelled import load_labelled
from attndyn.tasks.parallel import load_parallel


class Rows(list[dict[str, Any]]):
    """What `datasets` gives: rows that can be selected, and the names behind their integers."""

    def __init__(self, rows: Sequence[dict[str, Any]], **names: list[str]) -> None:
        super().__init__(rows)
        self.features = {
            column: types.SimpleNamespace(feature=types.SimpleNamespace(names=them)) for column, them in names.items()
        }

    def select(self, indices: list[int]) -> "Rows":
        return Rows([self[n] for n in indices])


Serve = Callable[..., list[tuple[str, str | None, str, str | None]]]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """`hub(train=rows, test=rows)` stands in for the Hub; the list that comes back fills with what was asked for."""

    def serve(error: Exception | None = None, **splits: Rows) -> list[tuple[str, str | None, str, str | None]]:
        asked = []

        def load_dataset(name: str, config: str | None, *, split: str, revision: str | None) -> Rows:
            asked.append((name, config, split, revision))
            if error is not None:
                raise error
            return splits[split]

        module = types.ModuleType("datasets")
        module.load_dataset = load_dataset  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "datasets", module)
        return asked

    return serve


def without_row_counts(name: str, **changes: Any) -> corpora.Corpus:
    corpus = corpora.find(name)
    assert corpus.hub is not None
    return replace(corpus, hub=replace(corpus.hub, rows=(), **changes))


REVIEWS = Rows([{"text": "Bad.<br /><br />Very\tbad\n", "label": 0}, {"text": "Good \x00 film\u2028!", "label": 1}] * 3)


def test_labelled_rows(tmp_path: Path, hub: Serve) -> None:
    asked = hub(train=REVIEWS, test=REVIEWS)
    found = fetch(without_row_counts("imdb"), tmp_path)
    assert asked == [("stanfordnlp/imdb", None, "train", None), ("stanfordnlp/imdb", None, "test", None)]
    text = lzma.decompress((tmp_path / "imdb" / "train.tsv.xz").read_bytes()).decode()
    assert text.splitlines()[:2] == ["neg\tBad. Very bad", "pos\tGood film !"]
    assert {name: known.rows for name, known in found.files.items()} == {"train.tsv.xz": 6, "test.tsv.xz": 6}
    assert load_labelled("imdb", data_dir=tmp_path).classes == ["neg", "pos"]
    manifest = json.loads((tmp_path / "imdb" / "fetched.json").read_text())
    assert manifest["hub"] == "stanfordnlp/imdb"


def test_the_command_says_what_it_got_and_check_agrees(
    tmp_path: Path, hub: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub(train=REVIEWS, test=REVIEWS)
    monkeypatch.setitem(corpora.CORPORA, "imdb", without_row_counts("imdb"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    main(["data", "fetch", "imdb"])
    out = capsys.readouterr().out
    assert f"in {tmp_path / 'cache' / 'attndyn' / 'imdb'}; licence: none stated" in out
    main(["data", "check", "imdb"])
    assert "2 files, whole" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["data", "fetch", "imdb"])
    assert stop.value.code == 2
    assert "is there already" in capsys.readouterr().err


def test_only_the_wanted_labels(tmp_path: Path, hub: Serve) -> None:
    rows = Rows([{"text": f"news {n}", "label": n % 4} for n in range(16)])
    hub(train=rows, test=rows)
    fetch(without_row_counts("ag_news_wb"), tmp_path)
    lines = lzma.decompress((tmp_path / "ag_news_wb" / "train.tsv.xz").read_bytes()).decode().splitlines()
    assert lines == [f"{'world' if n % 4 == 0 else 'business'}\tnews {n}" for n in range(16) if n % 2 == 0]


def test_a_draw_by_seed(tmp_path: Path, hub: Serve) -> None:
    rows = Rows([{"text": f"review {n}", "label": n % 5} for n in range(100)])
    hub(train=rows, test=rows)
    fetch(without_row_counts("yelp_reviews", draw=40), tmp_path)
    lines = lzma.decompress((tmp_path / "yelp_reviews" / "train.tsv.xz").read_bytes()).decode().splitlines()
    places = [int(line.split()[-1]) for line in lines]
    assert len(places) == 40
    assert places == sorted(set(places))
    assert places != list(range(40))
    assert all(line.startswith(f"{n % 5 + 1}\t") for n, line in zip(places, lines, strict=True))
    assert load_labelled("yelp_reviews", data_dir=tmp_path).classes == ["neg", "pos"]


def test_parallel_rows(tmp_path: Path, hub: Serve) -> None:
    rows = Rows([{"translation": {"de": f"Satz {n} .", "en": f"Sentence {n} ."}} for n in range(60)])
    asked = hub(train=rows)
    fetch(without_row_counts("europarl_de_en", held_out=5, draw=None), tmp_path)
    assert asked == [("Helsinki-NLP/europarl", "de-en", "train", None)]
    parts = load_parallel("europarl_de_en", "de", "en", data_dir=tmp_path)
    assert {split: len(pairs) for split, pairs in parts.items()} == {"train": 50, "valid": 5, "test": 5}
    for pairs in parts.values():
        for n in range(len(pairs)):
            source, target = pairs.source.line(n), pairs.target.line(n)
            assert (source[0], target[0], source[1]) == ("satz", "sentence", target[1]), "lower-cased, still in step"


def test_a_tenth_is_valid_and_numbers_are_no_text(tmp_path: Path, hub: Serve) -> None:
    texts = [{"it": f"Frase {n}.", "pt": f"Sentença {n}."} for n in range(50)]
    numbers = [{"it": "1979", "pt": "1979"}, {"it": "12 %", "pt": "12 %"}, {"it": "1 anno", "pt": "1"}]
    asked = hub(train=Rows([{"id": "0", "translation": pair} for pair in texts + numbers]))
    fetch(corpora.find("news_it_pt"), tmp_path)
    assert asked == [("Helsinki-NLP/news_commentary", "it-pt", "train", None)]
    parts = load_parallel("news_it_pt", "it", "pt", data_dir=tmp_path)
    assert {split: len(pairs) for split, pairs in parts.items()} == {"train": 46, "valid": 5}, "there is no test part"
    lines = [" ".join(pairs.source.line(n)) for pairs in parts.values() for n in range(len(pairs))]
    assert sorted(lines) == sorted([*(f"frase {n} ." for n in range(50)), "1 anno"])


@pytest.mark.parametrize(
    ("name", "languages", "epochs"),
    [
        ("news_en_nl", "en-nl", 40),
        ("news_en_pt", "en-pt", 30),
        ("news_it_pt", "it-pt", 40),
        ("iwslt14_de_en", "de-en", 30),
    ],
)
def test_the_corpora_of_the_translation_tables(name: str, languages: str, epochs: int) -> None:
    corpus = corpora.find(name)
    assert corpus.hub is not None
    assert (corpus.hub.config, corpus.published_epochs) == (languages, epochs)
    assert [column for _, column in corpus.hub.columns] == [f"translation.{side}" for side in languages.split("-")]


def test_iwslt_keeps_its_split(tmp_path: Path, hub: Serve) -> None:
    rows = Rows([{"translation": {"de": "guten tag &quot;", "en": "good day"}}] * 2)
    asked = hub(train=rows, validation=rows, test=rows)
    with pytest.raises(RunError, match=r"gave 2 records for train\.de, not 160,239"):
        fetch(corpora.find("iwslt14_de_en"), tmp_path)
    fetch(without_row_counts("iwslt14_de_en"), tmp_path)
    assert asked[-1] == ("bbaaaa/iwslt14-de-en-preprocess", "de-en", "test", "refs/convert/parquet")
    parts = load_parallel("iwslt14_de_en", "de", "en", data_dir=tmp_path)
    assert parts["valid"].source.line(0) == ["guten", "tag", "&quot;"], "tokenised already"


def test_pairs_stay_in_step_even_where_a_side_is_empty(tmp_path: Path, hub: Serve) -> None:
    rows = Rows([{"de": "eins", "en": ""}, {"de": "zwei", "en": "two"}])
    hub(train=rows, validation=rows, test=rows)
    fetch(without_row_counts("multi30k"), tmp_path)
    parts = load_parallel("multi30k", "de", "en", data_dir=tmp_path)
    assert parts["test"].target.line(1) == ["two"]
    assert parts["test"].source.line(1) == ["zwei"]


@given(
    pairs=st.lists(st.tuples(st.sampled_from("aAbBcdefgh"), st.sampled_from("xXyzuvw")), unique=True),
    size=st.integers(1, 4),
)
def test_held_out_pairs_share_no_side_with_the_others(pairs: list[tuple[str, str]], size: int) -> None:
    parts = with_held_out(pairs, size)
    assert set().union(*parts.values()) <= set(pairs)
    for name, others in (("test", ("train", "valid")), ("valid", ("train",))):
        for side in range(2):
            taken = {pair[side].lower() for pair in parts[name]}
            assert not any(pair[side].lower() in taken for other in others for pair in parts[other])


def test_chunking_rows(tmp_path: Path, hub: Serve) -> None:
    rows = Rows(
        [
            {"tokens": ["A", "man"], "pos_tags": [1, 0], "chunk_tags": [1, 2]},
            {"tokens": [], "pos_tags": [], "chunk_tags": []},
        ],
        pos_tags=["NN", "DT"],
        chunk_tags=["O", "B-NP", "I-NP"],
    )
    asked = hub(train=rows, test=rows)
    found = fetch(corpora.find("conll2000"), tmp_path)
    assert asked[0] == ("eriktks/conll2000", None, "train", "refs/convert/parquet")
    read = read_chunks(tmp_path / "conll2000" / "train.txt.xz")
    assert (read.words.line(0), read.pos.line(0), read.chunks.line(0)) == (["A", "man"], ["DT", "NN"], ["B-NP", "I-NP"])
    assert found.files["train.txt.xz"].rows == 1


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"needs the package datasets: pip install 'attndyn\[hub\]'"):
        fetch(corpora.find("imdb"), tmp_path)


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (REVIEWS, "the Hub gave 6 records for train.tsv, not 25,000; nothing was kept"),
        (Rows([{"review": "x", "label": 0}]), "no longer has the columns that were expected"),
        (Rows([{"text": None, "label": 0}]), "no longer has the columns that were expected"),
        (ConnectionError("no route to host\nmore"), "the Hub did not give stanfordnlp/imdb (train): no route to host"),
    ],
)
def test_a_failed_fetch_leaves_nothing(
    rows: Rows | Exception, complaint: str, tmp_path: Path, hub: Serve, listing: Callable[[Path], list[str]]
) -> None:
    hub(rows) if isinstance(rows, Exception) else hub(train=rows, test=rows)
    with pytest.raises(RunError) as caught:
        fetch(corpora.find("imdb"), tmp_path)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing", ["fsync", "rename", "replace"])
def test_a_full_disk_leaves_nothing(failing: str, tmp_path: Path, hub: Serve, full_disk: Callable[[str], None]) -> None:
    hub(train=REVIEWS, test=REVIEWS)
    full_disk(failing)
    with pytest.raises(OSError, match="No space left"):
        fetch(without_row_counts("imdb"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_the_hub_says_names_no_file(tmp_path: Path, hub: Serve, listing: Callable[[Path], list[str]]) -> None:
    """Names of files are ours: rows that look like paths, tabs or line breaks stay text."""
    bad = Rows([{"text": "../../etc/passwd\npos\tforged", "label": 0}, {"text": "/tmp/x", "label": "../1"}] * 3)
    inside = tmp_path / "inside"
    inside.mkdir()
    hub(train=bad, test=bad)
    fetch(without_row_counts("imdb"), inside)
    assert listing(tmp_path) == [f"inside/imdb/{name}" for name in ("fetched.json", "test.tsv.xz", "train.tsv.xz")]
    text = lzma.decompress((inside / "imdb" / "train.tsv.xz").read_bytes()).decode()
    assert text == "neg\t../../etc/passwd pos forged\n" * 3


def test_an_empty_answer_is_refused(tmp_path: Path, hub: Serve) -> None:
    hub(train=Rows([]), test=Rows([]))
    with pytest.raises(RunError, match=r"gave no records for train\.tsv"):
        fetch(without_row_counts("imdb"), tmp_path)
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=40))
def test_a_folded_text_is_one_line(text: str) -> None:
    line = folded(text)
    assert line == " ".join(line.split())
    assert len(line.splitlines()) <= 1


def test_every_corpus_of_the_hub_has_a_converter() -> None:
    assert {corpus.kind for corpus in corpora.CORPORA.values() if corpus.hub} == set(fetching.CONVERTERS)
