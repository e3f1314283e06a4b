"""Alignment scores against a double loop over all positions; links of pieces as links of words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.measures.alignment import links, score, tally, word_links
from attndyn.tasks.gold import Gold
from attndyn.tasks.pieces import ragged
from attndyn.tasks.text import Pairs, pairs

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


@given(st.data())
def test_words_are_linked_if_any_of_their_pieces_are(data: st.DataObject) -> None:
    """Against the definition: for every two words, is there a piece of one whose chosen partner is a piece of the
    other?"""
    sizes = st.lists(st.integers(1, 3), min_size=1, max_size=4)
    lines = [[data.draw(sizes), data.draw(sizes)] for _ in range(data.draw(st.integers(1, 3)))]
    of_word = [[[-1, *(n for n, size in enumerate(side) for _ in range(size)), -1] for side in line] for line in lines]
    targets = [line[1][1:] for line in of_word]
    text = pairs([list(map(str, line[0])) for line in of_word], [list(map(str, line)) for line in targets])
    words = Pairs(*(ragged(side, []) for side in ([line[0] for line in of_word], targets)))
    chosen = [[data.draw(st.integers(-1, len(line[0]) - 1)) for _ in target]
              for line, target in zip(of_word, targets, strict=True)]  # fmt: skip
    wanted = []
    for (source, _), target, partners in zip(of_word, targets, chosen, strict=True):
        wanted.append({
            (i, j)
            for i in range(max(source) + 1)
            for j in range(max(target) + 1)
            if any(target[t] == j and l >= 0 and source[l] == i for t, l in enumerate(partners))
        })  # fmt: skip
    assert word_links(text, np.array([l for line in chosen for l in line]), words) == wanted


def test_a_tally_is_what_a_score_is_made_of() -> None:
    gold = [Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})), Gold(frozenset({(2, 2)}), frozenset({(2, 2)}))]
    assert tally([frozenset({(0, 0), (1, 1), (0, 1)}), frozenset()], gold).tolist() == [[3, 1, 1, 2], [0, 1, 0, 0]]
