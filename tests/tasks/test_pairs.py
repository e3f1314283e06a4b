import numpy as np
import pytest

from attndyn.tasks.pairs import UNKNOWN, frequent, labelled, translation
from attndyn.tasks.text import number


def test_frequent_words_keep_their_number_and_the_rest_share_one() -> None:
    text = number([["a", "b", "a", "c"], ["b", "d", "a"], []])
    cut = frequent(text, 3)
    assert cut.words == [UNKNOWN, "a", "b"]
    assert [cut.line(n) for n in range(3)] == [["a", "b", "a", UNKNOWN], ["b", UNKNOWN, "a"], []]
    assert frequent(text, 4) is text


@pytest.mark.parametrize(("skew", "ratio"), [(0.0, 1.0), (1.0, 10.0)])
def test_made_words_are_as_frequent_as_asked(skew: float, ratio: float) -> None:
    corpus = translation(20, 15, 5000, skew=skew)
    counts = corpus.source.counts
    assert counts[0] / counts[9] == pytest.approx(ratio, rel=0.15)
    assert (corpus.source.lengths == corpus.target.lengths).all()
    right = corpus.target.ids == corpus.source.ids * 15 // 20
    assert right.mean() == pytest.approx(0.8, abs=0.08)


def test_made_labels_follow_the_words() -> None:
    corpus = labelled(50, 4000)
    assert corpus.target.words == ["0", "1"]
    assert (corpus.target.lengths == 1).all()
    has = np.zeros((4000, 50))
    has[corpus.source.rows, corpus.source.ids] = 1
    told = abs((has.T @ corpus.target.ids) / has.sum(axis=0) - corpus.target.ids.mean())
    assert told.max() > 0.1


def test_made_corpora_are_the_same_each_time() -> None:
    one, two = translation(9, 7, 30, skew=1.0), translation(9, 7, 30, skew=1.0)
    assert (one.source.ids == two.source.ids).all()
    assert (one.target.ids == two.target.ids).all()
