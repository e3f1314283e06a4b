"""Small count tables, written out: what co-occurrence tells about a task before anything is trained.

Each is an `Ibm1` table after one pass, without the empty word: the count table C of Snell et al. (eq. 13), its rows
divided by their sums (Trans), and for one pair of sequences β = Trans(y_t|x_l) and the alignment α.

For a distribution that is drawn evenly, C is taken per sequence, in expectation and exactly: with L words in each
sequence, C_io = P(i and o' occur together) / L, where o' is the word that o copies.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float

from attndyn.errors import UserError
from attndyn.tasks import text
from attndyn.theory.ibm1 import Ibm1, ibm1, matrix, translation

Sentences = Sequence[tuple[str, str]]
"""Pairs of an input and an output, words separated by spaces; a label is an output of one word."""

SLIDES: Sentences = (
    ("dieser film ist großartig", "this movie is great"),
    ("dieser film ist schlecht", "this movie is bad"),
)
"""The two pairs of the slides' "dictionary" page."""
FIVE_PAIRS: Sentences = (
    *SLIDES,
    ("dieses buch ist großartig", "this book is great"),
    ("dieser mann ist schlecht", "this man is bad"),
    ("ein film ist lang", "a movie is long"),
)
"""Those two, and three of our own that tell “film” from its neighbours."""


def of_sentences(sentences: Sentences) -> Ibm1:
    """The count table of a few pairs: each co-occurrence adds 1/L (paper, §4.2)."""
    return ibm1(_pairs(sentences), iterations=1, null=False)


def co_occurrences(sentences: Sentences) -> Float[np.ndarray, "input output"]:
    """How often an input and an output word meet, as the slides count: each co-occurrence adds 1, not 1/L."""
    pairs = _pairs(sentences)
    return (matrix(pairs.source).T @ matrix(pairs.target)).toarray()


def of_subsets(k: int, n: int) -> Ibm1:
    """Copying k different words out of n: 1/n on the diagonal, (k − 1) / (n (n − 1)) beside it.

    With k = n these are permutations, and the table is flat.
    """
    if not 1 <= k <= n:
        raise UserError(f"cannot draw {k} different words out of {n}")
    beside = (k - 1) / (n * (n - 1)) if n > 1 else 0.0
    return _copying(np.full((n, n), beside) + (1 / n - beside) * np.eye(n))


def of_mixture(n: int) -> Ibm1:
    """Copying permutations of one of two disjoint sets of n words (A.3): flat within a set, 0 between the sets."""
    return _copying(np.kron(np.eye(2), np.full((n, n), 1 / (2 * n))))


def _copying(counts: Float[np.ndarray, "input output"]) -> Ibm1:
    """Words A, B, C … that are copied as A′, B′, C′ …; numbers where there are more of them than letters."""
    words = [chr(ord("A") + i) if len(counts) <= 26 else str(i + 1) for i in range(len(counts))]
    table = sp.csr_array(counts)
    return Ibm1(words, [f"{word}′" for word in words], table, translation(table), 1, False, [])


def _pairs(sentences: Sentences) -> text.Pairs:
    if not sentences:
        raise UserError("a count table needs at least one pair of sentences")
    sources, targets = zip(*((source.split(), target.split()) for source, target in sentences), strict=True)
    return text.pairs(sources, targets)
