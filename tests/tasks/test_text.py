"""Reading text: what any file may hold, and how a wrong one is refused."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.errors import UserError
from attndyn.tasks import text
from attndyn.tasks.text import (
    Tokeniser,
    cut_and_number,
    number,
    pairs,
    read_labelled,
    read_lines,
    read_parallel,
    tokenise,
)

PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
lines_of_text = st.lists(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=30))


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        read()
    return str(caught.value)


@pytest.mark.parametrize("suffix", PACKERS)
@given(lines=lines_of_text, end=st.sampled_from(["\n", "\r\n"]), mark=st.booleans())
def test_what_is_written_is_read(
    suffix: str, lines: list[str], end: str, mark: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [line.rstrip("\r").lstrip("\ufeff") for line in lines]
    path = tmp_path_factory.getbasetemp() / f"lines{suffix}"
    path.write_bytes(PACKERS[suffix]((b"\xef\xbb\xbf" * mark) + "".join(line + end for line in lines).encode()))
    expected = lines or ([""] if mark else [])
    assert list(read_lines(path)) == expected


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_pipe_is_read_like_a_file(suffix: str, tmp_path: Path) -> None:
    import os
    import threading

    os.mkfifo(tmp_path / "pipe")
    data = PACKERS[suffix](b"eins zwei\ndrei\n")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(data))
    writer.start()
    assert list(read_lines(tmp_path / "pipe")) == ["eins zwei", "drei"]
    writer.join()


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"one\ntwo")
    assert list(read_lines(tmp_path / "f")) == ["one", "two"]


@given(st.lists(st.lists(st.text(min_size=1, max_size=3), max_size=5), max_size=6))
def test_numbering_loses_nothing(lines: list[list[str]]) -> None:
    numbered = number(lines)
    assert [numbered.line(n) for n in range(len(numbered))] == lines
    assert len(set(numbered.words)) == len(numbered.words)
    assert numbered.counts.sum() == sum(map(len, lines))
    assert list(numbered.lengths) == list(map(len, lines))
    order = np.arange(len(lines))[::-1]
    backwards = numbered.take(order)
    assert [backwards.line(n) for n in range(len(lines))] == lines[::-1]
    assert list(numbered.rows) == [n for n, line in enumerate(lines) for _ in line]


SPACES = " \t\u00a0\u2003\x1c\x85"


@given(st.lists(st.text(st.characters() | st.sampled_from("aΑΣ'’-_\u0301\u094d" + SPACES), max_size=12), max_size=6))
@pytest.mark.parametrize("cut", [tokenise, str.split, lambda line: tokenise(line.replace("_", " "))])
def test_cutting_what_stands_between_spaces_once_is_cutting_every_line(cut: Tokeniser, lines: list[str]) -> None:
    with patch("attndyn.tasks.text.BLOCK", 3):
        fast, slow = cut_and_number(lines, cut), number(map(cut, lines))
    assert fast.words == slow.words
    assert fast.ids.tolist() == slow.ids.tolist()
    assert fast.ids.dtype == slow.ids.dtype
    assert fast.offsets.tolist() == slow.offsets.tolist()
    assert fast.offsets.dtype == slow.offsets.dtype


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Two dogs, one Ball.", ["two", "dogs", ",", "one", "ball", "."]),
        ("Don't re-use O’Neil's 3.5 'x'", ["don't", "re-use", "o’neil's", "3", ".", "5", "'", "x", "'"]),
        ("ÄPFEL\tund  Bäume\u00a0!", ["äpfel", "und", "bäume", "!"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("cafe\u0301 …", ["cafe\u0301", "…"]),
        ("", []),
    ],
)
def test_the_tokeniser(line: str, words: list[str]) -> None:
    assert tokenise(line) == words


@given(st.text(max_size=60))
def test_tokens_hold_all_that_is_not_white_space(line: str) -> None:
    assert "".join(tokenise(line)) == "".join(line.lower().split())


def test_parallel_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("Das Haus\n\nA_B  c\n")
    (tmp_path / "b").write_text("the house\nnothing\nx\n")
    both = read_parallel(tmp_path / "a", tmp_path / "b")
    assert both.source.line(0) == ["das", "haus"]
    assert list(both.source.lengths) == [2, 0, 2]
    raw = read_parallel(tmp_path / "a", tmp_path / "b", tokenised=True)
    assert raw.source.line(2) == ["A_B", "c"]


def test_labelled_text(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("spam\tBuy now\tor never\nham\t\n")
    both = read_labelled(tmp_path / "f")
    assert both.source.line(0) == ["buy", "now", "or", "never"]
    assert both.target.words == ["spam", "ham"]
    assert both.source.lengths[1] == 0


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    def file(name: str, data: bytes) -> Path:
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    good = file("good", b"a b\nc\n")
    assert "long has 3 lines but" in refusal(lambda: read_parallel(file("long", b"a\nb\nc\n"), good))
    assert "good has 2" in refusal(lambda: read_parallel(tmp_path / "long", good))
    bad = file("bad", b"fine\nna\xefve\n")
    assert refusal(lambda: list(read_lines(bad))) == f"{bad}, line 2: not UTF-8 (byte 0xef at column 3)"
    assert "line 1: holds a NUL byte" in refusal(lambda: list(read_lines(file("nul", "utf-16".encode("utf-16-le")))))
    assert "no such file" in refusal(lambda: list(read_lines(tmp_path / "missing")))
    assert "is a directory" in refusal(lambda: list(read_lines(tmp_path)))
    assert "hold no lines" in refusal(lambda: read_parallel(file("e", b""), tmp_path / "e"))
    assert "only empty lines" in refusal(lambda: read_parallel(file("blank", b"\n\n"), good))
    assert "label<TAB>text, found 'a b'" in refusal(lambda: read_labelled(good))
    assert "line 2: expected label" in refusal(lambda: read_labelled(file("l", b"x\ta\n\tb\n")))
    assert "holds no lines" in refusal(lambda: read_labelled(tmp_path / "e"))
    assert "but no words" in refusal(lambda: read_labelled(file("w", b"x\t\ny\t\n")))
    cut = lzma.compress(b"line\n" * 5000)
    assert "damaged or cut short" in refusal(lambda: list(read_lines(file("cut.xz", cut[: len(cut) // 2]))))
    broken = bytearray(gzip.compress(bytes(range(1, 10)) * 500))
    broken[20] ^= 255
    assert "damaged or cut short" in refusal(lambda: list(read_lines(file("cut.gz", bytes(broken)))))
    assert "2 sources but 1 targets" in refusal(lambda: pairs([["a"], ["b"]], [["c"]]))


def test_a_gigantic_line_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    with gzip.open(path, "wb", compresslevel=1) as out:
        for _ in range(64):
            out.write(b"a" * 1_000_000)
    import tracemalloc

    tracemalloc.start()
    assert f"line 1: longer than {text.LINE_LIMIT:,} bytes" in refusal(lambda: list(read_lines(path)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000
    longest = tmp_path / "longest"
    longest.write_bytes(b"x" * text.LINE_LIMIT + b"\r\nnext")
    assert [len(line) for line in read_lines(longest)] == [text.LINE_LIMIT, 4]
