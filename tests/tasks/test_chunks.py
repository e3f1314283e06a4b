"""CoNLL-2000 columns: what is read, and how a wrong file is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.errors import UserError
from attndyn.tasks.chunks import read_chunks

token = st.tuples(
    st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=5),
    st.sampled_from(["NN", "DT", "."]),
    st.sampled_from(["O", "B-NP", "I-NP", "B-VP"]),
)


@given(
    sentences=st.lists(st.lists(token, min_size=1, max_size=4), min_size=1, max_size=4),
    end=st.sampled_from(["\n", "\r\n"]),
    blank=st.integers(1, 2),
    last=st.booleans(),
)
def test_what_is_written_is_read(
    sentences: list[list[tuple[str, str, str]]],
    end: str,
    blank: int,
    last: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "chunks.txt"
    text = (end * blank).join("".join(" ".join(token) + end for token in sentence) for sentence in sentences)
    path.write_bytes((text + end * last).encode())
    read = read_chunks(path)
    assert len(read) == len(sentences)
    for column, side in enumerate((read.words, read.pos, read.chunks)):
        assert [side.line(n) for n in range(len(sentences))] == [[token[column] for token in s] for s in sentences]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"a NN B-NP\nb NN\n", "line 2: expected `word POS chunk`, found 'b NN'"),
        (b"a NN B-NP extra\n", "line 1: expected `word POS chunk`"),
        (b"a NN NP\n", "line 1: 'NP' is no chunk tag"),
        (b"a NN B-\n", "line 1: 'B-' is no chunk tag"),
        (b"\n\n", "holds no sentences"),
        (b"a NN \xff\n", "line 1: not UTF-8"),
        (b"a NN \0\n", "line 1: holds a NUL byte"),
    ],
)
def test_a_wrong_file_is_refused(data: bytes, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(UserError) as caught:
        read_chunks(tmp_path / "f")
    assert complaint in str(caught.value)


def test_conll2000_is_as_documented(shared_data: Path) -> None:
    read = read_chunks(shared_data / "conll2000" / "test.txt.xz")
    assert (len(read), len(read.words.ids)) == (2012, 47377)
    assert len(read.chunks.ids) == 47377
