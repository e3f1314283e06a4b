"""`attndyn data`: which corpora are here, whether they are whole, and what is said when they are not."""

import gzip
import json
import lzma
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from attndyn.errors import UserError
from attndyn.tasks.corpora import CORPORA, PACKAGED, checksums
from attndyn.tasks.presence import locate, obtain
from tests.command import call


@pytest.fixture
def sms(tmp_path: Path) -> Path:
    """A data folder with a copy of the shipped messages."""
    shutil.copytree(PACKAGED / "sms_spam", tmp_path / "data" / "sms_spam")
    return tmp_path / "data"


def test_the_registry_is_complete() -> None:
    assert set(checksums()) <= set(CORPORA)
    for corpus in CORPORA.values():
        assert corpus.files or corpus.hub, f"{corpus.name} has no file and no source"
        assert corpus.licence
        assert corpus.attribution
        assert corpus.hub is None or re.fullmatch(r"[\w-]+/[\w-]+", corpus.hub.name)
    assert {corpus.name for corpus in CORPORA.values() if corpus.ships} == {"sms_spam", "tatoeba_de_en_small"}
    attribution = (PACKAGED / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for name in ("sms_spam", "tatoeba_de_en_small"):
        assert f"## {name}" in attribution


def test_every_file_that_ships_is_package_data() -> None:
    settings = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["attndyn.tasks"]
    packed = {path for pattern in patterns for path in PACKAGED.parent.glob(pattern) if path.is_file()}
    assert packed == {path for path in PACKAGED.rglob("*") if path.is_file()}
    assert sum(path.stat().st_size for path in packed) < 500_000


def test_the_checksums_are_those_of_the_collection(shared_data: Path) -> None:
    written = dict(
        reversed(line.split())
        for line in re.findall(r"^[0-9a-f]{64}  \S+", (shared_data / "README.md").read_text(), re.M)
    )
    ours = {f"{name}/{file}": known.sha256 for name, files in checksums().items() for file, known in files.items()}
    assert {path: sha for path, sha in ours.items() if not path.startswith("tatoeba_de_en_small/")} == {
        path: sha for path, sha in written.items() if not path.startswith("iwslt14_de_en/")
    }


@pytest.mark.slow
def test_the_collection_is_whole(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "data", "check", "--data-dir", shared_data, "--json")
    assert (code, err) == (0, "")
    checked = json.loads(out)
    assert all(entry["problems"] == [] for entry in checked)
    assert sum(len(entry["files"]) for entry in checked) == 71
    rows = {entry["name"]: {file: known["rows"] for file, known in entry["files"].items()} for entry in checked}
    assert rows["imdb"] == {"train.tsv.xz": 24_800, "test.tsv.xz": 8_000}
    assert rows["conll2000"] == {"train.txt.xz": 8_936, "test.txt.xz": 2_012}


def test_list_says_where_each_corpus_is(sms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "data", "list", "--json", "--data-dir", sms)
    assert code == 0
    listed = {entry["name"]: entry for entry in json.loads(out)}
    assert set(listed) == set(CORPORA)
    assert (listed["sms_spam"]["place"], listed["sms_spam"]["whole"]) == ("--data-dir", True)
    assert listed["tatoeba_de_en_small"]["place"] == "package"
    assert (listed["imdb"]["place"], listed["imdb"]["whole"], listed["imdb"]["hub"]) == (None, None, "stanfordnlp/imdb")
    code, out, _ = call(capsys, "data", "list", "--data-dir", sms)
    assert f"whole, in {sms / 'sms_spam'}" in out
    assert "not here; attndyn data fetch imdb" in out
    assert "single sentences, not reviews" in out
    code, out, _ = call(capsys, "list", "--json")
    assert json.loads(out)["corpora"]["sms_spam"] == str(PACKAGED / "sms_spam")
    code, out, _ = call(capsys, "list")
    assert re.search(r"^  sms_spam +here;", out, re.M)
    assert re.search(r"^  imdb +not here;", out, re.M)


def test_the_order_of_the_places(sms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = CORPORA["sms_spam"]
    here = locate(corpus)
    assert here is not None
    assert (here.place, here.folder) == ("package", PACKAGED / "sms_spam")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(sms, tmp_path / "cache" / "attndyn")
    assert obtain(corpus).place == "cache"
    monkeypatch.setenv("ATTNDYN_DATA", str(sms))
    assert obtain(corpus).place == "$ATTNDYN_DATA"
    (tmp_path / "empty").mkdir()
    assert obtain(corpus, tmp_path / "empty").place == "$ATTNDYN_DATA"
    assert obtain(corpus, sms).place == "--data-dir"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ATTNDYN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"\$ATTNDYN_DATA .*nowhere: there is no such folder"):
        locate(corpus)


def test_a_missing_corpus_says_how_to_get_it_and_where_was_looked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(capsys, "data", "check", "imdb", "--data-dir", tmp_path)
    assert code == 2
    assert "attndyn data fetch imdb" in err
    assert str(tmp_path / "imdb") in err
    assert str(PACKAGED / "imdb") in err
    code, _, err = call(capsys, "data", "check", "glove")
    assert code == 2
    assert "put glove_6B_100d_subset.txt.xz into " in err
    assert f"{Path('glove')} yourself" in err


@pytest.mark.parametrize("planted", ["bit", "cut", "missing", "other"])
def test_check_finds_planted_damage(planted: str, sms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = sms / "sms_spam" / "test.tsv.xz"
    data = bytearray(path.read_bytes())
    if planted == "missing":
        path.unlink()
    elif planted == "other":
        path.write_bytes(lzma.compress(lzma.decompress(bytes(data)) + b"ham\tone more\n"))
    else:
        data[1000] ^= 1
        path.write_bytes(bytes(data) if planted == "bit" else bytes(data[:-1]))
    code, out, err = call(capsys, "data", "check", "sms_spam", "--data-dir", sms)
    assert code == 1
    assert str(path) in err
    assert "1 of 2 files wrong" in out
    assert len(err.splitlines()) == 1
    code, out, err = call(capsys, "data", "check", "sms_spam", "--data-dir", sms, "--json")
    assert code == 1
    assert [problem["file"] for problem in json.loads(out)[0]["problems"]] == [str(path)]
    code, out, _ = call(capsys, "data", "list", "--data-dir", sms)
    assert code == 0
    assert "damaged: attndyn data check sms_spam" in out


def test_check_counts_the_records(sms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bytes are those of a manifest, the number of records is not."""
    from attndyn.tasks.presence import digest

    folder = sms / "sms_spam"
    known = {path.name: {"sha256": digest(path), "rows": 7} for path in folder.glob("test*")}
    (folder / "fetched.json").write_text(json.dumps({"files": known}))
    code, _, err = call(capsys, "data", "check", "sms_spam", "--data-dir", sms)
    assert code == 1
    assert "test.tsv.xz has 1,114 records, not 7" in err


@pytest.mark.parametrize("text", ["{", '{"files": {"../../x": {"sha256": "0", "rows": 1}}}', '{"files": [1]}', "[]"])
def test_a_damaged_manifest_is_refused(text: str, sms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (sms / "sms_spam" / "fetched.json").write_text(text)
    code, _, err = call(capsys, "data", "check", "sms_spam", "--data-dir", sms)
    assert code == 2
    assert f"{sms / 'sms_spam' / 'fetched.json'} is damaged" in err


def test_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "data", "facts")
    assert code == 0
    assert "| sms_spam | 4,460 / 1,114 / 1,114 | 3,500 | 0 | 0 | 15 | 13 | 2,614 | – | 4,691 |" in out
    (tmp_path / "mine.tsv").write_text("".join(f"{'xy'[n % 2]}\tword{n} again\n" for n in range(20)))
    code, out, _ = call(capsys, "data", "facts", tmp_path / "mine.tsv", "--json")
    assert code == 0
    found = json.loads(out)[0]
    assert found["classes"].keys() == {"x", "y"}
    assert found["published"] == {"vocabulary": None, "train": None, "median": None}


def test_facts_of_parallel_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = call(capsys, "data", "facts", "tatoeba-sample", "sms")
    assert code == 0
    assert "| tatoeba_de_en_small | de | 5,000 / 500 / 500 | 7 |" in out
    assert "| sms_spam |" in out
    lines = [f"word{n % 4} number {n}" for n in range(12)]
    for split, some in (("train", lines), ("valid", [*lines[:2], "yet another line"])):
        for language in ("xx", "yy"):
            (tmp_path / f"{split}.{language}").write_text("\n".join(some) + "\n")
    (tmp_path / "train.zz.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (tmp_path / "valid.zz").write_text("word0 number 0\nanother\nlast\n")
    (tmp_path / "train.gold").write_text("0-0\n" * 12)
    (entry,) = facts_of(capsys, tmp_path)
    assert list(entry["languages"]) == ["xx", "yy", "zz"]
    assert entry["languages"]["zz"] == {
        "parts": {"train": 12, "valid": 3}, "median": 3, "longest": 3, "words": 17, "vocabulary": 9,
    }  # fmt: skip
    assert entry["caveat"] == "validation pairs that stand in the training part too: 1 of 3"
    monkeypatch.chdir(tmp_path)
    (entry,) = facts_of(capsys, "train")
    assert entry["caveat"] == "no validation part: a tenth of the pairs is drawn for it"
    (tmp_path / "train.yy").write_text("one line\n")
    code, _, err = call(capsys, "data", "facts", tmp_path)
    assert code == 2
    assert "train.xx has 12 lines but" in err
    for language in ("xx", "yy"):
        (tmp_path / f"multi30k.{language}").write_text("a line\n")
    code, _, err = call(capsys, "data", "facts", "multi30k")
    assert code == 2
    assert "say './multi30k' for your own text" in err


def facts_of(capsys: pytest.CaptureFixture[str], *names: object) -> list[dict[str, Any]]:
    code, out, _ = call(capsys, "data", "facts", *names, "--json")
    assert code == 0
    return json.loads(out)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["data"], "data needs one of: list, check, facts, fetch"),
        (["data", "lst"], "did you mean 'list'?"),
        (["data", "check", "imbd"], "there is no corpus 'imbd'; did you mean 'imdb'?"),
        (["data", "facts", str(Path(__file__).parent)], "holds no train.tsv"),
        (["data", "facts", "glove"], "glove is a vectors corpus; labelled or parallel text is needed here"),
        (["data", "facts", "smsspam"], "did you mean 'sms_spam'?"),
        (["data", "facts", "tatoeba_samp"], "did you mean 'tatoeba-sample'?"),
        (["data", "list", "imdb"], "data list takes no 'imdb'"),
        (["data", "list", "--jsn"], "did you mean '--json'?"),
        (["data", "list", "--data-dir"], "--data-dir needs a folder"),
        (["data", "list", "--data-dir=/does/not/exist"], "/does/not/exist: there is no such folder"),
        (["data", "fetch"], "data fetch needs the name of one corpus"),
        (["data", "fetch", "imbd"], "did you mean 'imdb'?"),
        (["data", "fetch", "imdb", "--json"], "data fetch has no --json"),
        (["data", "fetch", "sms_spam"], "sms_spam ships with attndyn"),
        (["data", "fetch", "glove"], "glove: it cannot be fetched"),
    ],
)
def test_mistakes_get_one_sentence(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, *words)
    assert code == 2
    assert complaint in err
    assert len(err.splitlines()) == 1


def test_data_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "data", "--help")
    assert (code, err) == (0, "")
    assert out.startswith("usage: attndyn data")


def test_a_corpus_that_stands_in_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether it is here or not, and also once it is fetched."""
    _, out, _ = call(capsys, "data", "list", "--data-dir", tmp_path)
    notes = [line for line in out.splitlines() if "stands in for IWSLT'14" in line]
    assert len(notes) == 3
    assert all("not comparable" in note for note in notes)
    for code in ("de", "es", "nl"):
        hub = CORPORA[f"tatoeba_{code}_en"].hub
        assert hub is not None
        assert "not comparable" in hub.caveat
