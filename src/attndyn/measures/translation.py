"""How good are translations?"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple


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


class WordByWord:
    """sacrebleu's tokeniser, which splits no line differently for what stands beyond a space: so words that come again
    and again are split once."""

    def __init__(self, tokenizer: Any) -> None:
        self.split, self.signature = cache(tokenizer), tokenizer.signature

    def __call__(self, line: str) -> str:
        return " ".join(self.split(word) for word in line.split())
