"""The published count tables, number by number, and the exact tables of distributions against counting all of them."""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from attndyn.errors import UserError
from attndyn.theory import tables

SLIDES = [("Dieser Film ist großartig", "This movie is great"), ("Dieser Film ist schlecht", "This movie is bad")]


def test_the_slides_tables() -> None:
    """One pair: all 1. Two pairs: 2 for what both share, 1 beside it, 0 where "great" meets "schlecht"."""
    assert (tables.co_occurrences(SLIDES[:1]) == np.ones((4, 4))).all()
    printed = [
        [2, 2, 2, 1, 1],
        [2, 2, 2, 1, 1],
        [2, 2, 2, 1, 1],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 0, 1],
    ]
    assert tables.co_occurrences(SLIDES).tolist() == printed
    table = tables.of_sentences(SLIDES)
    assert table.source_words == ["Dieser", "Film", "ist", "großartig", "schlecht"]
    assert table.target_words == ["This", "movie", "is", "great", "bad"]
    assert (4 * table.counts.toarray()).tolist() == printed, "the paper adds 1/L, here ¼"


def counted(sequences: list[tuple[int, ...]], words: int) -> list[list[Fraction]]:
    """Equation 13 over every sequence of a distribution, divided by their number."""
    total = [[Fraction(0)] * words for _ in range(words)]
    for sequence in sequences:
        for i in sequence:
            for o in sequence:
                total[i][o] += Fraction(1, len(sequence) * len(sequences))
    return total


def near(measured: np.ndarray, expected: list[list[Fraction]]) -> bool:
    return bool(np.allclose(measured, np.array(expected, dtype=float), rtol=1e-12, atol=1e-15))


@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 3), (4, 4), (1, 4), (3, 5), (2, 6), (5, 6)])
def test_subsets_are_what_counting_gives(k: int, n: int) -> None:
    every = [order for chosen in combinations(range(n), k) for order in permutations(chosen)]
    assert near(tables.of_subsets(k, n).counts.toarray(), counted(every, n))


def test_the_mixture_is_what_counting_gives() -> None:
    every = [*permutations(range(4)), *permutations(range(4, 8))]
    assert near(tables.of_mixture(4).counts.toarray(), counted(every, 8))


def test_permutations_tell_nothing() -> None:
    """Figure 3: every word translates to every word alike, and the alignment is uniform."""
    table = tables.of_subsets(4, 4)
    for values in (table.counts.toarray(), table.beta(list("CADB"), [f"{letter}′" for letter in "CADB"])):
        np.testing.assert_allclose(values, 0.25)
    np.testing.assert_allclose(table.alpha(list("CADB"), ["A′"]), 0.25)


def test_a_mixture_tells_the_set_only() -> None:
    """Figure 6: β is .25 at every position; words of the other set are ruled out."""
    table = tables.of_mixture(4)
    outputs = ["A′", "B′", "C′", "D′"]
    np.testing.assert_allclose(table.beta(list("BACD"), outputs), 0.25)
    np.testing.assert_allclose(table.alpha(list("BACD"), outputs), 0.25)
    assert (table.beta(list("EFGH"), outputs) == 0).all()


def test_three_of_five_tells_the_word() -> None:
    """The blog's comparison: β ⅓ against ⅙, the alignment ½ against ¼."""
    table = tables.of_subsets(3, 5)
    right = np.eye(3, dtype=bool)
    beta, alpha = (measure(list("BED"), ["B′", "E′", "D′"]) for measure in (table.beta, table.alpha))
    np.testing.assert_allclose(beta, np.where(right, 1 / 3, 1 / 6))
    np.testing.assert_allclose(alpha, np.where(right, 1 / 2, 1 / 4))


def test_forty_of_sixty_tells_it_less_clearly() -> None:
    """β: 1/k against (k − 1) / (k (n − 1)); the alignment 1 / (1 + (k − 1)² / (n − 1)) against 1/40 by chance."""
    table = tables.of_subsets(40, 60)
    words = [str(word) for word in range(1, 41)]
    beta, alpha = (measure(words, ["7′"])[0] for measure in (table.beta, table.alpha))
    assert (beta[6], beta[0]) == (pytest.approx(1 / 40), pytest.approx(39 / 59 / 40))
    assert alpha[6] == pytest.approx(1 / (1 + 39**2 / 59))
    assert alpha[6] == pytest.approx(0.0373, abs=5e-5)


def test_in_classification_the_counts_are_word_polarity() -> None:
    table = tables.of_sentences([("this movie is great", "positive"), ("this movie is bad", "negative")])
    review = ["this", "movie", "is", "great"]
    assert table.beta(review, ["positive"]).tolist() == [[0.5, 0.5, 0.5, 1]]
    np.testing.assert_allclose(table.alpha(review, ["positive"]), [[0.2, 0.2, 0.2, 0.4]])


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(UserError, match="6 different words out of 5"):
        tables.of_subsets(6, 5)
    with pytest.raises(UserError, match="at least one pair"):
        tables.of_sentences([])
