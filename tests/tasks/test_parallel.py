"""Parallel corpora: the shipped sentences, a folder of one's own, the corpora beside this checkout."""

import lzma
import runpy
from pathlib import Path

import pytest

from attndyn.errors import UserError
from attndyn.tasks.corpora import PACKAGED
from attndyn.tasks.parallel import held_out, load_parallel, parallel_files
from attndyn.tasks.text import read_lines

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "data" / "tatoeba_small.py"


def test_the_shipped_sentences_load_offline() -> None:
    parts = load_parallel("tatoeba_de_en_small", "de", "en")
    assert {split: len(pairs) for split, pairs in parts.items()} == {"train": 5000, "valid": 500, "test": 500}
    assert parts["train"].source.line(0) == ["der", "zug", "beschleunigte", "."]
    assert parts["train"].target.line(0) == ["the", "train", "gathered", "speed", "."]


def test_the_shipped_parts_share_no_sentence() -> None:
    files = parallel_files("tatoeba_de_en_small", "de", "en")
    for side in range(2):
        train, valid, test = ({line.lower() for line in read_lines(files[split][side])} for split in files)
        assert not train & (valid | test)


def test_the_script_draws_the_shipped_sentences_again(shared_data: Path, tmp_path: Path) -> None:
    runpy.run_path(str(SCRIPT))["main"](shared_data / "tatoeba_de_en", tmp_path)
    for path in tmp_path.iterdir():
        shipped = PACKAGED / "tatoeba_de_en_small" / path.name
        assert lzma.decompress(path.read_bytes()) == lzma.decompress(shipped.read_bytes())


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.xx").write_text("A B\n")
        (tmp_path / f"{split}.yy.xz").write_bytes(lzma.compress(b"c\n"))
    assert load_parallel(tmp_path, "xx", "yy", tokenised=True)["test"].source.line(0) == ["A", "B"]
    for wrong, complaint in (
        (lambda: load_parallel(tmp_path, "xx", "zz"), "holds no train part in 'zz'; there are: xx, yy"),
        (lambda: load_parallel(tmp_path, "xx", "xx"), "two languages are needed"),
        (lambda: load_parallel("imdb", "de", "en"), "imdb is a labelled corpus"),
        (lambda: load_parallel("europarl", "de", "en"), "did you mean 'europarl_de_en'?"),
        (lambda: load_parallel("multi30k", "de", "en"), "the corpus multi30k is not here"),
    ):
        with pytest.raises(UserError) as caught:
            wrong()
        assert complaint in str(caught.value)


def written(folder: Path, start: str, lines: int = 40, repeats: int = 1) -> None:
    folder.mkdir(exist_ok=True)
    for language in ("xx", "yy"):
        text = (f"{language} number {n // repeats}\n" for n in range(lines))
        (folder / f"{start}.{language}").write_text("".join(text))


@pytest.mark.parametrize(("start", "corpus"), [("train", "."), ("mine", "."), ("mine", "mine"), ("a.b", "a.b")])
def test_two_files_are_split(tmp_path: Path, start: str, corpus: str) -> None:
    """A folder with train.* alone, a folder with any two files, or the beginning of their names."""
    written(tmp_path, start)
    parts = load_parallel(tmp_path / corpus, "xx", "yy")
    assert {split: len(pairs) for split, pairs in parts.items()} == {"train": 36, "valid": 4}
    lines = {split: [pairs.source.line(n)[-1] for n in range(len(pairs))] for split, pairs in parts.items()}
    assert sorted(map(int, lines["train"] + lines["valid"])) == list(range(40))
    assert lines["train"] == sorted(lines["train"], key=int)  # both parts keep the order
    for pairs in parts.values():
        assert [pairs.target.line(n)[-1] for n in range(len(pairs))] == [
            pairs.source.line(n)[-1] for n in range(len(pairs))
        ]
    again = load_parallel(tmp_path / corpus, "xx", "yy")
    assert again["valid"].source.line(0) == parts["valid"].source.line(0)


def test_equal_source_lines_stay_on_one_side() -> None:
    sources = [f"line {n % 25}" for n in range(200)]
    drawn = held_out(sources, "made")
    assert 20 <= drawn.sum() <= 28
    assert not {line for line, is_drawn in zip(sources, drawn, strict=True) if is_drawn} & {
        line for line, is_drawn in zip(sources, drawn, strict=True) if not is_drawn
    }


def test_a_validation_part_of_ones_own_is_not_drawn(tmp_path: Path) -> None:
    written(tmp_path, "train")
    written(tmp_path, "valid", lines=3)
    assert len(load_parallel(tmp_path, "xx", "yy")["train"]) == 40


def test_a_known_corpus_without_test_part_in_a_language(tmp_path: Path) -> None:
    for name in ("train.cs", "train.de", "valid.cs", "valid.de", "test_2017_flickr.de"):
        (tmp_path / "multi30k").mkdir(exist_ok=True)
        (tmp_path / "multi30k" / f"{name}.xz").write_bytes(lzma.compress(b"a b\n"))
    assert list(load_parallel("multi30k", "cs", "de", data_dir=tmp_path)) == ["train", "valid"]
    (tmp_path / "multi30k" / "valid.cs.xz").unlink()
    with pytest.raises(UserError, match="holds no valid part in 'cs'; there are: de"):
        load_parallel("multi30k", "cs", "de", data_dir=tmp_path)


def test_two_files_that_cannot_be_used(tmp_path: Path) -> None:
    written(tmp_path / "same", "mine", lines=40, repeats=40)
    written(tmp_path / "half", "mine")
    (tmp_path / "half" / "mine.yy").unlink()
    written(tmp_path / "short", "mine")
    (tmp_path / "short" / "mine.yy").write_text("one line\n")
    written(tmp_path / "several", "one")
    written(tmp_path / "several", "two")
    written(tmp_path / "forgotten", "valid")
    written(tmp_path / "lopsided", "train")
    (tmp_path / "lopsided" / "valid.xx").write_text("a line\n")
    for corpus, complaint in (
        ("same", "40 pairs with 1 different source lines are too few to be split"),
        ("half/mine", "mine.yy: no such file, neither plain nor packed"),
        ("half/mine.xx", "is one file of a pair; the beginning that both names share is needed"),
        ("short/mine", "mine.xx has 40 lines but"),
        ("several", "holds one.xx and two.xx, and no train.xx: name two files by the beginning that they share"),
        ("forgotten", "holds no train part in 'xx'"),
        ("lopsided", "holds no valid part in 'yy'; there are: xx"),
        ("nowhere/mine", "nor the beginning of two files (mine.xx and mine.yy)"),
    ):
        with pytest.raises(UserError) as caught:
            load_parallel(tmp_path / corpus, "xx", "yy")
        assert complaint in str(caught.value)


CHOOSE = "there are: xx, yy; --source-language and --target-language choose two of them"


@pytest.mark.parametrize(
    ("start", "corpus", "complaint"),
    [("mine", "mine", "mine.de: no such file, neither plain nor packed (.xz, .gz)"),
     ("mine", ".", "holds no train part in 'de'"), ("train", ".", "holds no train part in 'de'")],
)  # fmt: skip
def test_text_in_other_languages(tmp_path: Path, start: str, corpus: str, complaint: str) -> None:
    written(tmp_path, start)
    with pytest.raises(UserError) as caught:
        load_parallel(tmp_path / corpus, "de", "en")
    assert str(caught.value).endswith(f"{complaint}; {CHOOSE}")


def test_files_of_many_kinds_are_no_languages(tmp_path: Path) -> None:
    for name in ("notes.md", "data.tsv", "program.py"):
        (tmp_path / name).write_text("a line\n")
    with pytest.raises(UserError, match=r"in 'de'; there are: no files of two languages$"):
        load_parallel(tmp_path, "de", "en")


def test_a_language_is_no_pattern(tmp_path: Path) -> None:
    written(tmp_path, "mine")
    with pytest.raises(UserError, match="holds no train part in '\\*'"):
        load_parallel(tmp_path, "*", "yy")


def test_tokenised_text_is_left_as_it_is(shared_data: Path) -> None:
    parts = load_parallel("europarl_de_en", "de", "en", data_dir=shared_data)
    assert {split: len(pairs) for split, pairs in parts.items()} == {"train": 21079, "valid": 1000, "test": 1000}
    assert parts["train"].source.line(0) == ["An", "Ihrem", "Arbeitsprogramm", "ist", "nichts", "neu", "."]


def test_multi30k_has_its_test_part(shared_data: Path) -> None:
    files = parallel_files("multi30k", "en", "fr", data_dir=shared_data)
    assert [path.name for path in files["test"]] == ["test_2017_flickr.en.xz", "test_2017_flickr.fr.xz"]
