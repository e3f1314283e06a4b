"""Parallel corpora: the shipped sentences, a folder of one's own, the corpora beside this checkout."""

import lzma
import runpy
from pathlib import Path

import pytest

from attndyn.errors import UserError
from attndyn.tasks.corpora import PACKAGED
from attndyn.tasks.parallel import load_parallel, parallel_files
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


def test_tokenised_text_is_left_as_it_is(shared_data: Path) -> None:
    parts = load_parallel("europarl_de_en", "de", "en", data_dir=shared_data)
    assert {split: len(pairs) for split, pairs in parts.items()} == {"train": 21079, "valid": 1000, "test": 1000}
    assert parts["train"].source.line(0) == ["An", "Ihrem", "Arbeitsprogramm", "ist", "nichts", "neu", "."]


def test_multi30k_has_its_test_part(shared_data: Path) -> None:
    files = parallel_files("multi30k", "en", "fr", data_dir=shared_data)
    assert [path.name for path in files["test"]] == ["test_2017_flickr.en.xz", "test_2017_flickr.fr.xz"]
