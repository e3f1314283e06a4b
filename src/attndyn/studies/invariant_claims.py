"""What is claimed about the common invariant, and when a run follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attndyn.studies.base import Judgement, Statement

if TYPE_CHECKING:
    from attndyn.theory.invariant import Fit

CLOSE = 0.1
"""A run follows the curve if it is off by less than this share of the range of its logit (root mean square)."""

STATEMENTS = (
    Statement(
        id="L-11",
        source="Lu et al. §3, footnote",
        statement="attending directly to embeddings is a convenience; most results hold without it",
        published="direction",
        rule="three results in the LSTM classifier, run by run: logit and knowledge of the keyword grow together (rank "
        "correlation of at least .9 along the run), attention ends on it (mean α of at least .9), and they follow the "
        "closed form (as I-04). Holds if two of the three hold in every run, differs if at most one does in every run",
    ),
    Statement(
        id="I-01",
        source="this study",
        statement="topic words of Lu et al. stay on the curve, whatever the classifier",
        published="derived",
        rule="largest distance of |q||ν| from the curve of any topic word, as a share of its end: holds if at most .05 "
        "in every run, else differs",
    ),
    Statement(
        id="I-02",
        source="this study",
        statement="the toy with a softmax gate stays on the curve with m = 1",
        published="derived, exact",
        rule="x + eˣ/m − y²/2 along integrated trajectories: holds if it changes by at most 1e-6, else differs",
    ),
    Statement(
        id="I-03",
        source="this study",
        statement="Zucchet et al.'s reduced model stays on the curve with m = T − 1",
        published="derived, exact",
        rule="as I-02, at every length T and width d",
    ),
    Statement(
        id="I-04",
        source="this study",
        statement="an LSTM classifier stays on the curve while it learns to attend to a keyword",
        published="question",
        rule="with one number to choose, the unit of knowledge: a run follows if its logit is off by less than a tenth "
        "of its range (root mean square) and by less than under each of three rivals with one number (x linear in k, "
        "in k², x = ln (1 + b k²)). Holds if every run follows, differs if none does",
    ),
    Statement(
        id="I-05",
        source="this study",
        statement="the copying translator stays on it while it learns to attend to the word it copies",
        published="question",
        rule="as I-04",
    ),
)


def follows(fit: Fit) -> bool:
    return fit.error < CLOSE and fit.error < fit.best_rival


def followed(fits: list[Fit]) -> Judgement:
    import numpy as np

    from attndyn.measures import verdicts
    from attndyn.studies.outcomes import span

    count = sum(map(follows, fits))
    verdict = {len(fits): verdicts.HOLDS, 0: verdicts.DIFFERS}.get(count, verdicts.INCONCLUSIVE)
    off, rivals = np.array([fit.error for fit in fits]), np.array([fit.best_rival for fit in fits])
    return Judgement(
        measured=f"{count} of {len(fits)} runs follow; off by {span(off)} of the range, the best rival by "
        f"{span(rivals)}",
        n=len(fits),
        verdict=verdict,
    )
