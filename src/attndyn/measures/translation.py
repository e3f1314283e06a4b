"""How good are translations?"""

from collections.abc import Sequence
from typing import NamedTuple


class Bleu(NamedTuple):
    score: float
    """Between 0 and 100."""
    signature: str
    """How sacrebleu computed it; a score without it says little."""


def bleu(translations: Sequence[str], references: Sequence[str]) -> Bleu:
    """BLEU of a whole corpus with one reference for each sentence (Papineni et al. 2002; Post 2018)."""
    from sacrebleu.metrics import BLEU

    if len(translations) != len(references) or not references:
        raise ValueError(f"{len(translations)} translations for {len(references)} references")
    metric = BLEU()
    score = metric.corpus_score(list(translations), [list(references)]).score
    return Bleu(float(score), str(metric.get_signature()))
