"""Labelled text: the rules of each corpus on small made files, a user's own files, and how wrong ones are refused."""

import gzip
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.errors import UserError
from attndyn.tasks.corpora import CORPORA
from attndyn.tasks.draws import shuffled
from attndyn.tasks.labelled import EVALUATED, Labelled, facts, load_labelled
from attndyn.tasks.text import Pairs
from attndyn.tasks.vocabulary import LONGEST


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        read()
    return str(caught.value)


def corpus(folder: Path, name: str, **splits: list[tuple[str, str]]) -> Path:
    """A data folder with a made corpus of a known name."""
    (folder / name).mkdir()
    for split, rows in splits.items():
        text = "".join(f"{label}\t{words}\n" for label, words in rows)
        (folder / name / f"{split}.tsv.xz").write_bytes(lzma.compress(text.encode()))
    return folder


def tsv(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{label}\t{words}\n" for label, words in rows))
    return path


def words_of(part: Pairs, n: int) -> list[str]:
    return part.source.line(n)[1:-1]


def labels_of(part: Pairs) -> list[str]:
    return [part.target.words[n] for n in part.target.ids]


NEWS = [("world", "War in 1914 5 12 u.n.")] * 3 + [("business", "Shares fall 3 % to 99")] * 3


def test_sst_is_two_classes_and_keeps_its_tokens(tmp_path: Path) -> None:
    rows = [(str(n), "it 's n't `` good '' ... -lrb- x -rrb-") for n in range(5)] * 3
    data = load_labelled("sst5", data_dir=corpus(tmp_path, "sst5", train=rows, test=rows))
    assert data.classes == ["neg", "pos"]
    assert labels_of(data.train) == ["neg", "neg", "pos", "pos"] * 3
    assert data.parts["train"].dropped == 3
    assert data.parts["test"].dropped == 3
    assert words_of(data.train, 0) == ["it", "'s", "n't", "``", "good", "''", "...", "-lrb-", "x", "-rrb-"]


def test_long_integers_are_unknown_in_ag_news_and_20_newsgroups_only(tmp_path: Path) -> None:
    news = load_labelled("ag_news_wb", data_dir=corpus(tmp_path, "ag_news_wb", train=NEWS, test=NEWS))
    assert words_of(news.train, 0) == ["war", "in", "<unk>", "5", "<unk>", "u", ".", "n", "."]
    rows = [("neg" if label == "world" else "pos", words) for label, words in NEWS]
    films = load_labelled("imdb", data_dir=corpus(tmp_path, "imdb", train=rows, test=rows))
    assert words_of(films.train, 0) == ["war", "in", "1914", "5", "12", "u", ".", "n", "."]


def test_an_underscore_ends_a_word_in_20_newsgroups_only(tmp_path: Path) -> None:
    rows = [("baseball", "the _great_ home_run 42")] * 3 + [("hockey", "the puck")] * 3
    sport = load_labelled("newsgroups_sport", data_dir=corpus(tmp_path, "newsgroups_sport", train=rows, test=rows))
    assert words_of(sport.train, 0) == ["the", "great", "home", "run", "<unk>"]
    rows = [("world" if label == "hockey" else "business", words) for label, words in rows]
    news = load_labelled("ag_news_wb", data_dir=corpus(tmp_path, "ag_news_wb", train=rows, test=rows))
    assert words_of(news.train, 0) == ["the", "_great_", "home_run", "<unk>"]


def test_amazon_reviews_have_fewer_than_400_words(tmp_path: Path) -> None:
    rows = [("neg", "x " * 399), ("neg", "x " * 400), ("pos", "x " * 12)] * 3
    data = load_labelled("amazon_reviews", data_dir=corpus(tmp_path, "amazon_reviews", train=rows, test=rows))
    assert sorted(set(data.train.source.lengths - 2)) == [12, 399]
    assert data.parts["train"].dropped == 3


def test_yelp_stars(tmp_path: Path) -> None:
    rows = [(str(star), "fine food") for star in range(1, 6)] * 3
    folder = corpus(tmp_path, "yelp_reviews", train=rows, test=rows)
    (folder / "yelp_reviews" / "fetched.json").write_text('{"files": {}}')
    data = load_labelled("yelp_reviews", data_dir=folder)
    assert labels_of(data.train) == ["neg", "neg", "pos", "pos"] * 3


def test_long_texts_are_cut_and_counted(tmp_path: Path) -> None:
    rows = [("neg", "x " * (LONGEST - 2)), ("pos", "y " * (LONGEST - 1))] * 3
    data = load_labelled("imdb", data_dir=corpus(tmp_path, "imdb", train=rows, test=rows))
    assert set(data.train.source.lengths) == {LONGEST}
    assert data.parts["train"].cut == 3
    assert data.parts["train"].median == LONGEST - 1.5, "the median is that of the whole texts"


def test_validation_is_drawn_from_the_test_part(tmp_path: Path) -> None:
    many = [("neg" if n % 2 else "pos", f"w{n} common") for n in range(EVALUATED + 50)]
    folder = corpus(tmp_path, "imdb", train=many, test=many)
    first, again, other = (load_labelled("imdb", data_dir=folder, seed=seed) for seed in (0, 0, 1))
    assert len(first.valid) == EVALUATED
    assert len(first.test) == EVALUATED + 50
    assert (first.valid.source.ids == again.valid.source.ids).all()
    chosen = [labels_of(data.valid) for data in (first, other)]
    assert chosen[0] != chosen[1]


def test_the_draw_is_part_of_every_result() -> None:
    assert "a seed is not negative: -1" in refusal(lambda: shuffled(10, -1))
    assert shuffled(10, 0).tolist() == [3, 2, 1, 8, 6, 0, 7, 4, 5, 9]


def test_own_valid(tmp_path: Path) -> None:
    rows = [("a", "x y"), ("b", "z")] * 3
    for split in ("train", "test"):
        tsv(tmp_path / f"{split}.tsv", rows)
    assert "has no valid.tsv" in refusal(lambda: load_labelled(tmp_path, own_valid=True))
    tsv(tmp_path / "valid.tsv", rows[:2])
    assert len(load_labelled(tmp_path, own_valid=True).valid) == 2
    assert len(load_labelled(tmp_path).valid) == 6


def test_texts_in_two_parts_are_counted(tmp_path: Path) -> None:
    train = [("a", "x y"), ("b", "z")] * 3
    tsv(tmp_path / "train.tsv", train)
    tsv(tmp_path / "valid.tsv", [("a", "Z"), ("b", "Z"), ("b", "z z")])
    tsv(tmp_path / "test.tsv", [("a", "x y"), ("b", "z"), ("b", "x y"), ("a", "y x")])
    in_test = "test texts that stand in the training part too: 2 of 4"
    assert load_labelled(tmp_path).caveat == in_test
    both = f"valid texts that stand in the training part too: 1 of 3; {in_test}"
    assert load_labelled(tmp_path, own_valid=True).caveat == both
    rows = [(label, f"{label} {n % 7}") for label in "ab" for n in range(40)]
    assert load_labelled(tsv(tmp_path / "f.tsv", rows)).caveat == "", "identical texts of a file stay on one side"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_a_folder_of_ones_own_with_any_number_of_classes(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    suffix = {bytes: "", gzip.compress: ".gz", lzma.compress: ".xz"}[pack]
    text = "".join(f"c{n % 5}\tthe Word{n % 5}, again\r\n" for n in range(20)).encode()
    for split in ("train", "test"):
        (tmp_path / f"{split}.tsv{suffix}").write_bytes(pack(b"\xef\xbb\xbf" + text))
    data = load_labelled(tmp_path)
    assert data.classes == [f"c{n}" for n in range(5)]
    assert words_of(data.train, 3) == ["the", "word3", ",", "again"]
    assert data.train.source.words is data.test.source.words
    assert set(data.files) == {str(tmp_path / f"{split}.tsv{suffix}") for split in ("train", "test")}


@given(
    sizes=st.lists(st.integers(4, 30), min_size=2, max_size=4),
    repeats=st.integers(1, 3),
    seed=st.integers(0, 5),
)
def test_a_single_file_is_split_by_class_and_text(
    sizes: list[int], repeats: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each class keeps about its share, identical texts stay together, nothing is lost."""
    rows = [(f"c{c}", f"class{c} text{n}") for c, size in enumerate(sizes) for n in range(size) for _ in range(repeats)]
    path = tsv(tmp_path_factory.getbasetemp() / "single.tsv", rows)
    data = load_labelled(path, seed=seed, rule="count")
    assert len(data.train) + len(data.test) == len(rows)
    for c, size in enumerate(sizes):
        test = labels_of(data.test).count(f"c{c}")
        assert max(1, round(0.2 * size * repeats)) <= test < max(1, round(0.2 * size * repeats)) + repeats
    again = load_labelled(path, seed=seed)
    assert (again.test.source.ids == data.test.source.ids).all()


def test_identical_texts_are_never_on_both_sides(tmp_path: Path) -> None:
    rows = [(label, f"{label} w{n % 7} w{n % 7} w{n % 7}") for label in "ab" for n in range(40)]
    data = load_labelled(tsv(tmp_path / "f.tsv", rows))
    sides = [{tuple(words_of(part, n)) for n in range(len(part))} for part in (data.train, data.test)]
    known = [{text for text in side if "<unk>" not in text} for side in sides]
    assert known[0]
    assert not known[0] & known[1]


def test_texts_that_are_all_the_same_cannot_be_split(tmp_path: Path) -> None:
    path = tsv(tmp_path / "f.tsv", [("a", f"text {n}") for n in range(9)] + [("b", "the same")] * 9)
    assert "the label 'b' has too few different texts to be split (1)" in refusal(lambda: load_labelled(path))


def test_bad_files_of_ones_own(tmp_path: Path) -> None:
    def own(train: list[tuple[str, str]], test: list[tuple[str, str]] | None = None) -> Callable[[], Labelled]:
        tsv(tmp_path / "train.tsv", train)
        tsv(tmp_path / "test.tsv", test or train)
        return lambda: load_labelled(tmp_path)

    good = [("ham", "a b"), ("spam", "c d")] * 3
    assert own(good)().classes == ["ham", "spam"]
    assert "every text has the label 'ham'" in refusal(own(good[::2]))
    assert "train.tsv, line 2: the text is empty" in refusal(own([("ham", "a"), ("spam", " "), *good]))
    typo = refusal(own([*good, ("spm", "e f")]))
    assert "train.tsv, line 7: the label 'spm' has 1 of the 3 examples that are needed; did you mean 'spam'?" in typo
    assert "(labels: ham 3, spam 3, spm 1)" in typo
    typo = refusal(own(good, [*good, ("hamm", "x")]))
    assert "test.tsv, line 7: the label 'hamm' is not in the training part; did you mean 'ham'?" in typo
    assert "(labels: ham 3, spam 3, hamm 1)" in typo
    (tmp_path / "train.tsv").write_text("no tab\n")
    assert "line 1: expected label<TAB>text" in refusal(lambda: load_labelled(tmp_path))
    (tmp_path / "train.tsv").write_bytes(b"ham\ta\nspam\t\xff\n")
    assert "train.tsv, line 2: not UTF-8" in refusal(lambda: load_labelled(tmp_path))
    (tmp_path / "train.tsv.gz").write_bytes(b"")
    assert "holds both train.tsv and train.tsv.gz" in refusal(lambda: load_labelled(tmp_path))
    (tmp_path / "train.tsv.gz").unlink()
    (tmp_path / "test.tsv").unlink()
    assert "holds no test.tsv" in refusal(lambda: load_labelled(tmp_path))
    assert "did you mean 'imdb'?" in refusal(lambda: load_labelled("imbd"))
    assert "europarl_de_en is a parallel corpus" in refusal(lambda: load_labelled("europarl_de_en"))


@given(start=st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(start: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.tsv"
    path.write_bytes(start + b"\n" + b"ham\ta b\nspam\tc\n" * 5)
    try:
        loaded = load_labelled(path)
    except UserError as error:
        refused = str(error)
    else:
        refused = None
        assert len(loaded.train) + len(loaded.test) >= 10
    assert refused is None or refused.startswith(str(path))


def test_a_label_that_the_corpus_does_not_have(tmp_path: Path) -> None:
    rows = [("0", "bad"), ("4", "good")] * 3
    folder = corpus(tmp_path, "sst5", train=[*rows, ("7", "x")], test=rows)
    assert "train.tsv.xz, line 7: '7' is no label of sst5" in refusal(lambda: load_labelled("sst5", data_dir=folder))


def test_a_damaged_corpus_is_refused(tmp_path: Path) -> None:
    folder = corpus(tmp_path, "imdb", train=[("neg", "a b c")] * 5000, test=[("pos", "d")])
    path = folder / "imdb" / "train.tsv.xz"
    path.write_bytes(path.read_bytes()[:-20])
    assert "train.tsv.xz: the compressed file is damaged" in refusal(lambda: load_labelled("imdb", data_dir=folder))
    path.unlink()
    assert "train.tsv.xz is missing; attndyn data check imdb" in refusal(lambda: load_labelled("imdb", data_dir=folder))


def test_words_with_a_vector_are_kept_however_rare(tmp_path: Path) -> None:
    rows = [("a", "common rare"), ("b", "common"), ("a", "common"), ("b", "odd 42"), ("a", "x"), ("b", "x")]
    for split in ("train", "test"):
        tsv(tmp_path / f"{split}.tsv", rows)
    (tmp_path / "v.txt").write_text("rare 1 2\nabsent 3 4\n42 5 6\n")
    data = load_labelled(tmp_path, rule="count or vector", vectors=tmp_path / "v.txt")
    assert data.vocabulary.words[4:] == ["common", "rare", "42"]
    assert data.sizes == {"count": 5, "count or vector": 7}
    assert data.coverage is not None
    assert data.coverage.words == 2 / 5
    assert data.coverage.tokens == 2 / 8
    assert "the corpus glove is not here" in refusal(lambda: load_labelled(tmp_path, rule="count or vector"))


def test_what_is_not_the_published_corpus_says_why(tmp_path: Path) -> None:
    sms = load_labelled("sms_spam")
    assert sms.unlike_published == "4,460 training texts, published 3,500"
    published = replace(CORPORA["sms_spam"], published_train=4460)
    assert replace(sms, corpus=published).unlike_published == ""
    assert replace(sms, corpus=None).unlike_published == "not a published corpus"
    for name in ("amazon_reviews", "newsgroups_sport", "yelp_sentences"):
        assert replace(sms, corpus=CORPORA[name]).unlike_published == CORPORA[name].caveat
    assert replace(sms, corpus=CORPORA["sst5"]).unlike_published == ""  # no other number is published


def test_the_shipped_messages_load_offline() -> None:
    data = load_labelled("sms_spam")
    assert (len(data.train), len(data.valid), len(data.test)) == (4460, 1114, 1114)
    assert data.classes == ["ham", "spam"]
    found = facts(data)
    assert found["classes"] == {"ham": 3862, "spam": 598}
    assert found["vocabulary"] == {"count": 2614}
    assert found["published"] == {"vocabulary": 4691, "train": 3500, "median": 13}
    assert found["parts"]["train"]["median"] == 15
    assert all(np.diff(part.source.offsets).min() > 2 for part in (data.train, data.valid, data.test))


@pytest.mark.parametrize(
    ("name", "sizes", "count", "vector"),
    [
        pytest.param("imdb", (24800, 4000, 8000), 41579, 43507, marks=pytest.mark.slow),
        ("sst5", (6920, 1821, 1821), 4821, 12361),
        ("ag_news_wb", (14644, 3800, 3800), 10220, 16086),
        ("newsgroups_sport", (1174, 775, 775), 5371, 9544),
        ("amazon_reviews", (18449, 4000, 5205), 19756, 26748),
        ("yelp_sentences", (90000, 4000, 20000), 7223, 8472),
        ("sms_spam", (4460, 1114, 1114), 2614, 5289),
    ],
)
def test_the_corpora_are_as_documented(
    name: str, sizes: tuple[int, ...], count: int, vector: int, shared_data: Path
) -> None:
    data = load_labelled(name, data_dir=shared_data, rule="count or vector")
    assert (len(data.train), len(data.valid), len(data.test)) == sizes
    assert data.sizes == {"count": count, "count or vector": vector}
    written = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    row = next(line for line in written.splitlines() if line.startswith(f"| {name} | {sizes[0]:,} /"))
    assert f"| {count:,} | {vector:,} | {CORPORA[name].published_vocabulary:,} |" in row
