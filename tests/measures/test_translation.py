"""BLEU by its definition on a line, and with sacrebleu's own word on how it was computed."""

import math

import pytest

from attndyn.measures.translation import bleu

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


def test_as_many_translations_as_references() -> None:
    with pytest.raises(ValueError, match="1 translations for 2 references"):
        bleu([REFERENCE], [REFERENCE, REFERENCE])
