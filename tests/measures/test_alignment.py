"""Alignment scores against a double loop over all positions, and the reader of gold links."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.errors import UserError
from attndyn.measures.alignment import links, score
from attndyn.tasks.gold import Gold, read_gold
from attndyn.tasks.text import pairs

SIZE = 4
link_sets = st.frozensets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=8)


@given(st.lists(st.tuples(link_sets, link_sets, link_sets), min_size=1, max_size=4))
def test_the_scores_are_those_of_a_double_loop(lines: list[tuple[frozenset, frozenset, frozenset]]) -> None:
    found = [line[0] for line in lines]
    gold = [Gold(sure, sure | possible) for _, sure, possible in lines]
    a = s = a_and_s = a_and_p = 0
    for some, right in zip(found, gold, strict=True):
        for i in range(SIZE):
            for j in range(SIZE):
                a += (i, j) in some
                s += (i, j) in right.sure
                a_and_s += (i, j) in some and (i, j) in right.sure
                a_and_p += (i, j) in some and (i, j) in right.possible
    if not a or not s:
        with pytest.raises(ValueError, match="undefined"):
            score(found, gold)
        return
    result = score(found, gold)
    assert result.precision == pytest.approx(a_and_p / a)
    assert result.recall == pytest.approx(a_and_s / s)
    assert result.aer == pytest.approx(1 - (a_and_s + a_and_p) / (a + s))


def test_the_sure_links_alone_make_no_error() -> None:
    gold = [Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))]
    assert score([gold[0].sure], gold).aer == 0
    assert score([gold[0].possible], gold).aer == 0
    with pytest.raises(ValueError, match="2 alignments"):
        score([gold[0].sure] * 2, gold)


def test_links_of_both_directions_meet() -> None:
    text = pairs([["a", "b"], ["c"]], [["A", "B", "C"], ["D"]])
    forward = links(text, np.array([1, -1, 0, 0]))
    assert forward == [{(1, 0), (0, 2)}, {(0, 0)}]
    backward = links(text.swapped(), np.array([2, 1, -1]), swapped=True)
    assert backward == [{(0, 2), (1, 1)}, set()]
    assert [a & b for a, b in zip(forward, backward, strict=True)] == [{(0, 2)}, set()]


def test_gold_is_read_and_checked(tmp_path: Path) -> None:
    text = pairs([["a", "b"], ["c"]], [["A", "B"], ["C"]])
    path = tmp_path / "gold"
    path.write_text("0-0 1?1\n\n")
    assert read_gold(path, text) == [
        Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})),
        Gold(frozenset(), frozenset()),
    ]
    for bad, sentence in {
        "0-0\n0:0\n": r"gold, line 2: '0:0' is not a link",
        "0-0\n0-1\n": r"gold, line 2: '0-1' points past the end of a sentence of 1 words",
        "0-0\n": r"gold has 1 lines, but the text has 2",
        "0-0\n0-0\n0-0\n": r"gold has 3 lines, but the text has 2",
        "²-0\n\n": "not a link",
    }.items():
        path.write_text(bad)
        with pytest.raises(UserError, match=sentence):
            read_gold(path, text)
