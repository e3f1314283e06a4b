"""How good are translations?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class Bleu(NamedTuple):
    score: float
    """Between 0 and 100."""
    signature: str
    """How sacrebleu computed it; a score without it says little."""


def bleu(translations: Sequence[str], references: Sequence[str]) -> Bleu:
    """BLEU of a whole corpus with one reference for each sentence (Papineni et al. 2002; Post 2018)."""
    return scorer(references)(translations)


def scorer(references: Sequence[str]) -> Callable[[Sequence[str]], Bleu]:
    """For many translations of one text: what is counted in the references is counted once."""
    from sacrebleu.metrics import BLEU

    if not references:
        raise ValueError("there is no reference to compare with")
    metric = BLEU(references=[list(references)])
    metric.tokenizer = WordByWord(metric.tokenizer)

    def score(translations: Sequence[str]) -> Bleu:
        if len(translations) != len(references):
            raise ValueError(f"{len(translations)} translations for {len(references)} references")
        return Bleu(float(metric.corpus_score(list(translations), None).score), str(metric.get_signature()))

    return score


def counts(translations: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """[sentence, 10]: what BLEU adds up over sentences. Lengths of translation and reference, then for n-grams of 1 to
    4 words how many are right, then how many there are."""
    import numpy as np
    from sacrebleu.metrics import BLEU

    metric = BLEU(effective_order=True)  # of one sentence; the counts are the same without it
    metric.tokenizer = WordByWord(metric.tokenizer)
    found = [metric.sentence_score(one, [right]) for one, right in zip(translations, references, strict=True)]
    return np.array([[one.sys_len, one.ref_len, *one.counts, *one.totals] for one in found], dtype=np.float64)


def of_counts(total: np.ndarray) -> float:
    """BLEU of the sum of such counts over the sentences."""
    from sacrebleu.metrics import BLEU

    length, reference, *grams = (round(float(number)) for number in total)
    return float(BLEU.compute_bleu(grams[:4], grams[4:], length, reference, smooth_method="exp").score)


class WordByWord:
    """sacrebleu's tokeniser, which splits no line differently for what stands beyond a space: so words that come again
    and again are split once."""

    def __init__(self, tokenizer: Any) -> None:
        self.split, self.signature = cache(tokenizer), tokenizer.signature

    def __call__(self, line: str) -> str:
        return " ".join(self.split(word) for word in line.split())
