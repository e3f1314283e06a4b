"""BLEU by its definition on a line, and with sacrebleu's own word on how it was computed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from attndyn.measures import estimates
from attndyn.measures.translation import WordByWord, bleu, counts, of_counts

REFERENCE = "the quick brown fox jumps over the lazy dog"


def test_a_perfect_translation_and_none() -> None:
    assert bleu([REFERENCE], [REFERENCE]).score == pytest.approx(100)
    assert bleu(["nothing"], [REFERENCE]).score == pytest.approx(0, abs=1e-6)


def test_the_definition() -> None:
    """One word of nine is wrong: 8/9 words, 6/8 pairs, 4/7 and 2/6 longer runs are right; the lengths are equal."""
    found = bleu([REFERENCE.replace("fox", "cat")], [REFERENCE])
    assert found.score == pytest.approx(100 * math.prod((8 / 9, 6 / 8, 4 / 7, 2 / 6)) ** 0.25, rel=1e-6)


def test_too_short_a_translation_is_penalised() -> None:
    found = bleu([" ".join(REFERENCE.split()[:6])], [REFERENCE])
    assert found.score == pytest.approx(100 * math.exp(1 - 9 / 6))


def test_the_signature_is_there() -> None:
    signature = bleu([REFERENCE], [REFERENCE]).signature
    assert "tok:13a" in signature
    assert "version:" in signature


WRONG = [REFERENCE.replace("fox", "cat"), "the dog", "over the lazy dog jumps", "nothing", "jumps over, the lazy dog!"]


@pytest.mark.parametrize("which", [[0, 1, 2, 3, 4], [0, 0, 4], [3], [1, 2]])
def test_the_counts_of_sentences_add_up(which: list[int]) -> None:
    total = counts(WRONG, [REFERENCE] * 5)[which].sum(axis=0)
    assert of_counts(total) == pytest.approx(bleu([WRONG[n] for n in which], [REFERENCE] * len(which)).score)


def test_a_resample_of_sentences_is_a_corpus_of_its_own() -> None:
    sums = estimates.resampled_sums(counts(WRONG, [REFERENCE] * 5))
    assert sums.shape == (estimates.RESAMPLES, 10)
    assert (sums[:, 1] == 9 * 5).all()  # five references in each
    assert len(np.unique(sums, axis=0)) > 10


def test_as_many_translations_as_references() -> None:
    with pytest.raises(ValueError, match="1 translations for 2 references"):
        bleu([REFERENCE], [REFERENCE, REFERENCE])


@given(st.text(st.sampled_from("ab 1.,-'\"&;quotamplg<>!?()/:\u00a0é"), max_size=40))
def test_words_are_split_as_in_their_line(line: str) -> None:
    whole = BLEU().tokenizer
    assert WordByWord(whole)(line).split() == whole(line).split()


def test_the_score_is_sacrebleus() -> None:
    lines = ["a man, 3.5 years old-ish, sits.", "the U.S. won 1,000-2", "no"]
    other = ["a man 3.5 years old, sits .", "the U.S. won 1,000 - 2", "no ."]
    assert bleu(lines, other).score == BLEU().corpus_score(lines, [other]).score
