"""Which corpus, or which text of one's own, a name means."""

import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from attndyn.errors import UserError
from attndyn.tasks.corpora import find
from attndyn.tasks.labelled import load_labelled
from attndyn.tasks.parallel import load_parallel
from attndyn.tasks.presence import obtain
from attndyn.tasks.tagged import TaggedText

LABELLED = "".join(f"{label}\t{label} word number {n}\n" for n in range(6) for label in ("a", "b"))
TAGGED = "The DT B-NP\nend NN I-NP\n. . O\n\n" * 20


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("sms", "imdb"):
        write(Path(name), train_tsv=LABELLED, test_tsv=LABELLED)
    write(Path("tatoeba-sample"), train_de=LABELLED, train_en=LABELLED)
    write(Path(), multi30k_de=LABELLED, multi30k_en=LABELLED)
    write(Path("conll2000"), train_txt=TAGGED, test_txt=TAGGED)


READ: dict[str, Callable[[str], int]] = {
    "sms": lambda name: len(load_labelled(name).train),
    "imdb": lambda name: len(load_labelled(name).train),
    "tatoeba-sample": lambda name: sum(map(len, load_parallel(name, "de", "en").values())),
    "multi30k": lambda name: sum(map(len, load_parallel(name, "de", "en").values())),
    "conll2000": lambda name: len(TaggedText(name).load().train),
}


@pytest.mark.parametrize(
    ("name", "said", "examples"),
    [
        (
            "sms",
            "a folder here and the name of a labelled corpus: say './sms' for your own text, 'sms_spam' for the",
            12,
        ),
        ("imdb", "'./imdb' for your own text; for the corpus, say also --data-dir and the folder that holds its", 12),
        ("tatoeba-sample", "'./tatoeba-sample' for your own text, 'tatoeba_de_en_small' for the corpus", 12),
        ("multi30k", "how files here begin and the name of a parallel corpus: say './multi30k' for your own text", 12),
        ("conll2000", "a folder here and the name of a chunking corpus: say './conll2000' for your own text", 18),
    ],
)
def test_a_name_with_two_meanings(name: str, said: str, examples: int) -> None:
    with pytest.raises(UserError) as caught:
        READ[name](name)
    assert said in str(caught.value)
    assert READ[name](f"./{name}") == examples


def test_the_other_name_is_the_corpus() -> None:
    assert len(load_labelled("sms_spam").train) == 4460
    Path("sms_spam").mkdir()
    with pytest.raises(UserError, match="for the corpus, say also --data-dir"):
        load_labelled("sms")


def test_the_folder_that_was_given_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "data" / "imdb"
    there.mkdir(parents=True)
    for part in ("train", "test"):
        text = "".join(f"{label}\t{label} word number {n}\n" for n in range(5) for label in ("pos", "neg"))
        (there / f"{part}.tsv.xz").write_bytes(lzma.compress(text.encode()))
    assert len(load_labelled("imdb", data_dir="data").train) == 10
    monkeypatch.chdir(tmp_path / "data")
    assert len(load_labelled("imdb", data_dir=".").train) == 10, "the folder here is the corpus"


def test_text_of_ones_own_under_the_name_of_another_kind() -> None:
    with pytest.raises(UserError, match=r"the name of a labelled corpus: say '\./sms' for your own text$"):
        load_parallel("sms", "de", "en")
    with pytest.raises(UserError, match="sms_spam is a labelled corpus; sentences with chunk tags are needed here"):
        TaggedText("sms_spam").load()


def test_a_corpus_in_other_files() -> None:
    with pytest.raises(UserError, match=r"imdb is there, but holds no test\.tsv\.xz and no train\.tsv\.xz$"):
        obtain(find("imdb"), ".")
    Path("multi30k").mkdir()
    with pytest.raises(UserError, match=r"but holds no file of the corpus, such as test_2017_flickr\.de\.xz$"):
        obtain(find("multi30k"), ".")
