"""Every reader of files that a user brings: any bytes are read, or refused in one sentence that names the file."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attndyn.audit.files import open_series
from attndyn.errors import UserError
from attndyn.store.folder import Run
from attndyn.store.metrics import Row, to_parquet
from attndyn.tasks import corpora, topics
from attndyn.tasks.chunks import read_chunks
from attndyn.tasks.gold import read_gold
from attndyn.tasks.labelled import load_labelled
from attndyn.tasks.pieces import own_model, read_sides
from attndyn.tasks.presence import Found
from attndyn.tasks.text import LINE_LIMIT, Pairs, Text, read_labelled, read_lines, read_parallel
from attndyn.tasks.vectors import read_vectors
from attndyn.watching.posthoc import read_examples, read_weights

LABELLED = b"ham\ta b c\nspam\td e\nham\tf g\nspam\th i j\n" * 4
TEXT: dict[str, tuple[bytes, Callable[[Path], Any]]] = {
    "lines": (b"one two\n\nthree\n", lambda path: list(read_lines(path))),
    "parallel text": (b"ein Haus\nzwei\ndrei\n", lambda path: read_parallel(path, beside(path, b"a house\nb\nc\n"))),
    "its other side": (b"a house\nb\nc\n", lambda path: read_parallel(beside(path, b"ein Haus\nzwei\ndrei\n"), path)),
    "sides of pieces": (b"ein Haus\nzwei\ndrei\n", lambda path: read_sides(path, beside(path, b"a house\nb\nc\n"))),
    "labelled text": (LABELLED, read_labelled),
    "labelled corpus": (LABELLED, load_labelled),
    "bags of words": (LABELLED, lambda path: topics.read(str(path))),
    "chunks": (b"He PRP B-NP\nran VBD B-VP\n\nNo DT B-NP\nend NN I-NP\n\n", read_chunks),
    "vectors": (b"the 0.1 -2 3e-1\nof 1 2 3\n", read_vectors),
    "gold links": (b"0-0 1?1\n\n2-1\n", read_gold),
}
"""A good file, and what reads it."""

WRONG_COLUMNS = {
    "parallel text": b"ein Haus\nzwei\n", "its other side": b"a\nb\nc\nd\n", "sides of pieces": b"ein\nzwei\n",
    "labelled text": b"ham\ta\nno label\n", "labelled corpus": b"ham\ta\nno label\n", "bags of words": b"ham\ta\n\tb\n",
    "chunks": b"He PRP B-NP\nran VBD\n", "vectors": b"the 1 2\nof 1 2 3\n", "gold links": b"0-0\n1:2\n",
}  # fmt: skip
EMPTY_IS_FINE = ("lines", "gold links")


def saved(tensors: dict[str, torch.Tensor], how: str) -> bytes:
    import io

    from safetensors.torch import save

    if how == "safetensors":
        return save(tensors)
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    return buffer.getvalue()


WEIGHTS = {"layer.weight": torch.arange(6.0).view(2, 3), "layer.bias": torch.zeros(2)}
INFO = json.dumps({"study": "copying", "replicas": [{"condition": "a", "replica": 0, "chunk": 0}], "tokens": {"a": []}})


@cache
def sentencepiece_model() -> bytes:
    import io

    import sentencepiece

    written = io.BytesIO()
    lines = [f"the {colour} {thing}" for colour in ("red", "green") for thing in ("house", "tree", "dog")]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written, vocab_size=19, minloglevel=2
    )
    return written.getvalue()


def part_of_a_run(name: str, read: Callable[[Run], Any]) -> Callable[[Path], Any]:
    """The bytes under test stand for one file of a run folder, whose other files are good."""

    def reading(path: Path) -> Any:
        folder = path.parent
        (folder / "run.json").write_text(INFO)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(path.read_bytes())
        return read(Run(folder))

    return reading


OTHER: dict[str, tuple[bytes, Callable[[Path], Any]]] = {
    "run.json": (INFO.encode(), part_of_a_run("run.json", lambda run: run.info["study"])),
    "claims.json": (b'[{"id": "S-01"}]\n', part_of_a_run("claims.json", lambda run: run.claims)),
    "metrics": (to_parquet([Row("a", 0, 0, "loss", 1.0)]), part_of_a_run("metrics.parquet", lambda run: run.metrics)),
    "trace": (
        saved({"0.alpha": torch.ones(2, 2)}, "safetensors"),
        part_of_a_run("traces/chunk-000/step-000000.safetensors", lambda run: run.trace("a", 0, 0)),
    ),
    "safetensors": (saved(WEIGHTS, "safetensors"), lambda path: read_weights(renamed(path, "w-1.safetensors"))),
    "torch file": (saved(WEIGHTS, "torch"), lambda path: read_weights(renamed(path, "w-1.pt"))),
    "audited files": (
        saved(WEIGHTS, "safetensors"),
        lambda path: open_series([renamed(path, "w-1.safetensors"), renamed(path, "w-2.safetensors")]),
    ),
    "index of shards": (
        b'{"weight_map": {"layer.weight": "shard-1.safetensors", "layer.bias": "shard-1.safetensors"}}',
        lambda path: open_series([sharded(path, 1), sharded(path, 2)]),
    ),
    "examples": (b'{"input": [[1, 2]], "targets": [0]}', lambda path: read_examples(renamed(path, "e.json"))),
    "manifest": (
        b'{"files": {"train.tsv.xz": {"sha256": "00", "rows": 1}}}',
        lambda path: Found(corpora.find("imdb"), renamed(path, "fetched.json").parent, "cache").files,
    ),
    "pieces": (b"", lambda path: own_model(path, 19)),
}  # fmt: skip
READERS = TEXT | OTHER


def beside(path: Path, content: bytes) -> Path:
    other = path.with_name("other")
    other.write_bytes(content)
    return other


def renamed(path: Path, name: str) -> Path:
    other = path.with_name(name)
    other.write_bytes(path.read_bytes())
    return other


def sharded(path: Path, step: int) -> Path:
    folder = path.with_name(f"step-{step}")
    folder.mkdir(exist_ok=True)
    (folder / "shard-1.safetensors").write_bytes(saved(WEIGHTS, "safetensors"))
    (folder / "model.safetensors.index.json").write_bytes(path.read_bytes())
    return folder


def plain(value: Any) -> Any:
    """What was read, as something that can be compared."""
    if isinstance(value, Text):
        return [value.line(n) for n in range(len(value))]
    if isinstance(value, Pairs):
        return plain(value.source), plain(value.target)
    if hasattr(value, "toarray"):
        return value.toarray().tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "__dict__") and not isinstance(value, Path | type):
        return {name: plain(one) for name, one in vars(value).items() if name not in ("transposed", "name", "files")}
    return value


def read_bytes(reader: str, data: bytes, folder: Path) -> Any:
    path = folder / "file.tsv"
    path.write_bytes(data)
    return READERS[reader][1](path)


def refusal(reader: str, data: bytes, folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_bytes(reader, data, folder)
    return str(caught.value)


NASTY = [b"", b"\n", b"\r", b"\r\n", b"\t", b" ", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc3", "\u2028".encode(), b"\x1a",
         b"nan", b"-1", b"1e999", b"{", b"]", b'"', b"null", b"9" * 30, b"\x1f\x8b", b"\xfd7zXZ\0"]  # fmt: skip


@st.composite
def damages(draw: st.DrawFn) -> list[tuple[float, int, bytes]]:
    """Where (as a share of the file), how many bytes are cut out, and what comes in their place."""
    place = st.floats(0, 1)
    put = st.one_of(st.sampled_from(NASTY), st.binary(max_size=12))
    return draw(st.lists(st.tuples(place, st.integers(0, 40), put), max_size=3))


def damaged(data: bytes, where: list[tuple[float, int, bytes]]) -> bytes:
    for share, cut, put in where:
        start = int(share * len(data))
        data = data[:start] + put + data[start + cut :]
    return data


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=150)
@given(where=damages())
@example(where=[])
@example(where=[(0.0, 10**9, b"")])
@example(where=[(0.5, 10**9, b"")])
@example(where=[(0.0, 0, b"\xef\xbb\xbf")])
@example(where=[(0.0, 10**9, b"null")])
def test_any_bytes_are_read_or_refused(
    reader: str, where: list[tuple[float, int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    good = sentencepiece_model() if reader == "pieces" else READERS[reader][0]
    said = None
    try:
        read_bytes(reader, damaged(good, where), folder)
    except UserError as error:
        said = str(error)
    if said is not None:
        assert where, f"the good file is refused: {said}"
        assert str(folder) in said
        assert "\n" not in said


@pytest.mark.parametrize("reader", TEXT)
@pytest.mark.parametrize("change", ["CRLF", "byte-order mark", "no final newline", "both"])
def test_the_same_text_in_another_dress(reader: str, change: str, tmp_path: Path) -> None:
    good = TEXT[reader][0]
    other = {
        "CRLF": good.replace(b"\n", b"\r\n"),
        "byte-order mark": b"\xef\xbb\xbf" + good,
        "no final newline": good.removesuffix(b"\n"),
        "both": b"\xef\xbb\xbf" + good.replace(b"\n", b"\r\n"),
    }[change]
    assert other != good
    assert repr(plain(read_bytes(reader, other, tmp_path))) == repr(plain(read_bytes(reader, good, tmp_path)))


@pytest.mark.parametrize("reader", TEXT)
def test_what_is_wrong_is_named_with_its_file_and_line(reader: str, tmp_path: Path) -> None:
    file, good = str(tmp_path / "file.tsv"), TEXT[reader][0]
    first = good.index(b"\n") + 1
    bad = {
        "line 2: not UTF-8 (byte 0xff": good[:first] + b"\xff" + good[first:],
        "line 2: holds a NUL byte": good[:first] + b"\0" + good[first:],
        f"line 2: longer than {LINE_LIMIT:,} bytes": good[:first] + b"x" * 10_000_000 + good[first:],
    }
    for complaint, data in bad.items():
        said = refusal(reader, data, tmp_path)
        assert said.startswith(f"{file}, {complaint}"), said
    if reader in EMPTY_IS_FINE:
        assert read_bytes(reader, b"", tmp_path) == []
    else:
        assert file in refusal(reader, b"", tmp_path)
    if reader in WRONG_COLUMNS:
        said = refusal(reader, WRONG_COLUMNS[reader], tmp_path)
        assert file in said
        assert "line 2" in said or "line n of one must belong to line n of the other" in said


@pytest.mark.parametrize("reader", ["parallel text", "its other side", "sides of pieces"])
@given(lines=st.integers(0, 7))
def test_files_of_unequal_length_are_refused_with_both_lengths(
    reader: str, lines: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("sides")
    if lines == 3:
        read_bytes(reader, b"word\n" * 3, folder)
    else:
        said = refusal(reader, b"word\n" * lines, folder)
        assert f"{folder / 'file.tsv'} has {lines}" in said
        assert f"{folder / 'other'} has 3" in said
