"""Word vectors: what is read, and how a wrong file is refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.errors import UserError
from attndyn.tasks.text import number
from attndyn.tasks.vectors import read_vectors

spelling = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=5)


@given(
    table=st.dictionaries(spelling, st.lists(st.floats(-9, 9, width=16), min_size=3, max_size=3), min_size=1),
    end=st.sampled_from(["\n", "\r\n", " \n"]),
    header=st.booleans(),
)
def test_what_is_written_is_read(
    table: dict[str, list[float]], end: str, header: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "vectors.txt"
    lines = [f"{len(table)} 3"] * header + [f"{word} {' '.join(map(str, row))}" for word, row in table.items()]
    path.write_bytes("".join(line + end for line in lines).encode())
    read = read_vectors(path)
    assert read.words == list(table)
    assert read.values.tolist() == list(table.values())
    some = read_vectors(path, set(list(table)[::2]))
    assert some.words == list(table)[::2]
    assert some.values.shape[1] == 3


def test_the_matrix_of_a_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("a 1 2\nb 3 4\na 9 9\n")
    vectors = read_vectors(tmp_path / "v")
    matrix, has = vectors.matrix(["<pad>", "b", "z", "a"])
    assert matrix.tolist() == [[0, 0], [3, 4], [0, 0], [1, 2]]
    assert matrix.dtype == np.float32
    assert has.tolist() == [False, True, False, True]
    assert vectors.coverage(number([["a", "a", "z"], ["a"]])) == (0.5, 0.75)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a 1 2\nb 3\n", "line 2: a word and 2 numbers, as above, are expected, found 1 after 'b'"),
        ("a 1 2\nb c 3 4\n", "line 2: a word and 2 numbers, as above, are expected, found 3 after 'b'"),
        ("a 1 2\n\n", "line 2: a word and 2"),
        ("word\n", "line 1: a word and numbers are expected, found 0 after 'word'"),
        ("a 1 x\n", "line 1: the vector of 'a' holds what is not a number"),
        ("a 1 2\nb nan 2\n", "line 2: the vector of 'b' holds what is not a number"),
        ("a 1  2\n", "line 1: the vector of 'a' holds what is not a number"),
        ("", "holds no vectors"),
    ],
)
def test_a_wrong_file_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "v"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_vectors(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)


def test_glove_is_as_documented(shared_data: Path) -> None:
    read = read_vectors(shared_data / "glove" / "glove_6B_100d_subset.txt.xz", {"the", "film", "a"})
    assert read.words == ["the", "film"]
    assert read.values.shape == (2, 100)
