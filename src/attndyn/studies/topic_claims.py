"""The statements of the study `topic-words`, and how its runs decide them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attndyn.studies.base import Judgement, Statement

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.metrics import Metrics
    from attndyn.studies.topic_words import TopicWords

TOLERANCE = 0.005
CLOSE, FAR = 0.1, 0.25
"""Median relative errors on real text up to which the theory is followed, and from which it is not."""

STATEMENTS = (
    Statement(
        id="L-01",
        source="abstract, §1",
        statement="a topic word's score and embedding norm are tied by a closed form all along training",
        published="derived: s + eˢ/m changes by ½|q|² times the change of |ν|²",
        rule="FC: holds if at every reading, for every topic word and seed, the predicted norm differs from the "
        "measured one by less than .5 % of the final one; else differs",
    ),
    Statement(
        id="L-02",
        source="§1",
        statement="the same closed form whatever the classifier (fixed linear, trained linear, two layers)",
        published="direction",
        rule="holds if TC and TL pass the rule of L-01 too, and under all three classifiers the residual of the "
        "general form goes with the step size to a power whose interval lies within 1 ± .1; differs if one fails",
    ),
    Statement(
        id="L-03",
        source="§1",
        statement="mutual promotion: score and norm grow together and speed each other up",
        published="direction",
        rule="holds if under FC, between readings, score and norm of a topic word move the same way at least 99 % of "
        "the time in every seed, and, where the full model (σ = .1) has halved its loss, its norms lie above those of "
        "KF and its scores above those of EF (intervals over seeds of the difference above 0), for FC and TC; differs "
        "if one is the other way round",
    ),
    Statement(
        id="L-04",
        source="§1, §3",
        statement="so the topic word stands out quickly and training is faster than with keys or embeddings frozen",
        published="direction",
        rule="σ = .1: share of seeds in which the full model halves its training loss before KF and before EF do "
        "(never is later); holds if its interval lies above ½ for FC and for TC, differs if below for one",
    ),
    Statement(
        id="L-05",
        source="abstract, §1",
        statement="with a fixed linear classifier attention must converge to the topic word",
        published="direction; derived: 1 − a ≈ 2/(|q|²|ν|²), slow",
        rule="holds if under FC the mean attention on the topic word rises between all readings of every seed, and "
        "with a query of sd 3 ends with 1 − a below .1 and (1 − a)/law within 1 ± .1 in every seed; else differs",
    ),
    Statement(
        id="L-06",
        source="§1",
        statement="classifiers of low capacity give attention the stronger signal",
        published="direction",
        rule="mean score of the topic words at the end: holds if over seeds the intervals of FC − TC and of TC − TL "
        "lie above 0, differs if one lies below",
    ),
    Statement(
        id="L-07",
        source="§1",
        statement="early in training the effect can be mutual suppression",
        published="direction",
        rule="TC, σ = .1: a topic word is suppressed if at one reading its score is .01 and its norm 1 % below the "
        "start; holds if any word of any seed is, differs if none is",
    ),
    Statement(
        id="L-08",
        source="§1",
        statement="real text (SST-2, SST-5) follows the theory where a word indicates the label",
        published="direction",
        rule="the 100 words with the highest scores at the end, with m the mean number of words beside them: median of "
        "|predicted − measured|/measured norm, mean over seeds; holds if below .1 for every text and for FC and TC, "
        "differs if above .25 for one",
    ),
    Statement(
        id="L-09",
        source="§1",
        statement="where topic and other words are not cleanly separated, words compete (frequent ones first, purer "
        "ones later)",
        published="direction (order from the authors' code)",
        rule="FC on the first text, sentences that hold one of the followed words: from epoch 100 to the end the "
        "strongest word of a sentence becomes rarer (logarithm of the mean frequency) and purer; holds if the "
        "intervals over seeds of both changes lie on that side of 0, differs if one lies on the other",
    ),
    Statement(
        id="L-10",
        source="§3",
        statement="|Θ| ≫ |T| makes a topic word far more frequent than any other",
        published="derived: 1/8 against m/|Θ| = .004 of the sentences",
        rule="training sentences: holds if in every seed every topic word is in more of them than any other word, and "
        "in more than ten times as many as another word on average; else differs",
    ),
)


def judge(study: TopicWords, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
    import numpy as np

    from attndyn.measures import verdicts
    from attndyn.studies import topic_words as names

    def last(condition: str, metric: str) -> np.ndarray:
        return metrics.curves(condition, metric).last

    def decided(holds: bool, measured: str, **more: Any) -> Judgement:
        return Judgement(measured=measured, verdict=verdicts.HOLDS if holds else verdicts.DIFFERS, **more)

    worst = {kind: float(metrics.curves(kind, "simple residual").values.max()) for kind in names.KINDS}
    drift = max(float(last(kind, "score sum drift").max()) for kind in names.KINDS)
    general = float(metrics.curves("FC", "general residual").values.max())
    yield (
        "L-01",
        decided(
            worst["FC"] < TOLERANCE,
            f"worst {worst['FC']:.2%} of the final norm",
            n=study.seeds * study.task.topic_words,
            why=f"the general form, without assumptions, is off by {general:.2%}; Σ s drifts by at most {drift:.0e}",
        ),
    )

    exponents = {kind: last(kind + names.STEP_SIZES, "exponent") for kind in names.KINDS}
    intervals = {kind: verdicts.mean_interval((values - 1).tolist()) for kind, values in exponents.items()}
    within = [verdicts.HOLDS if worst[kind] < TOLERANCE else verdicts.DIFFERS for kind in ("TC", "TL")]
    yield (
        "L-02",
        Judgement(
            measured=f"worst {worst['TC']:.2%} (TC), {worst['TL']:.2%} (TL); exponents "
            + ", ".join(f"{values.mean():.3f} ({kind})" for kind, values in exponents.items()),
            n=study.seeds,
            verdict=verdicts.all_of([*within, *(verdicts.by_margin(found, 0.1) for found in intervals.values())]),
        ),
    )

    together = last("FC", "moves together")
    found = [verdicts.HOLDS if together.min() >= 0.99 else verdicts.DIFFERS]
    ahead = []
    for kind in ("FC", "TC"):
        for metric, frozen in (("topic norm", "-KF"), ("topic score", "-EF")):
            gaps = _ahead(metrics, kind, metric, frozen)
            ahead.append(f"{gaps.mean():.2f} ({metric.removeprefix('topic ')}, {kind} − {kind}{frozen})")
            found.append(verdicts.by_sign(verdicts.mean_interval(gaps.tolist())))
    yield (
        "L-03",
        Judgement(
            measured=f"together {together.min():.1%} of the time or more; ahead by {', '.join(ahead)}",
            n=study.seeds,
            verdict=verdicts.all_of(found),
        ),
    )

    shares, times = [], []
    for kind in ("FC", "TC"):
        full, keys, embeddings = (
            last(kind + ending, "epochs to half the loss") for ending in (names.FULL, *names.FROZEN)
        )
        shares.append(verdicts.share_interval(int((full < np.minimum(keys, embeddings)).sum()), len(full)))
        medians = (np.median(some) for some in (full, keys, embeddings))
        times.append(f"{kind} {', '.join(f'{value:.0f}' if value < np.inf else 'never' for value in medians)}")
    yield (
        "L-04",
        Judgement(
            measured=f"median epochs to half the loss with nothing, keys, embeddings frozen: {'; '.join(times)}",
            interval=shares[0],
            of="the share of seeds, FC",
            n=study.seeds,
            verdict=verdicts.all_of([verdicts.by_majority(share) for share in shares]),
        ),
    )

    rises = bool((np.diff(metrics.curves("FC", "attention").values, axis=1) > 0).all())
    large = list(names.QUERIES)[-1]
    lacks, ratio = 1 - last(large, "attention"), last(large, "unattended over law")
    arrives = bool((lacks < 0.1).all() and (np.abs(ratio - 1) < 0.1).all())
    yield (
        "L-05",
        decided(
            rises and arrives,
            f"1 − a falls to {1 - last('FC', 'attention').mean():.2f}, {'always' if rises else 'not always'}; with a "
            f"query of sd 3 to {lacks.mean():.3f}, {ratio.mean():.2f} times the law",
            n=study.seeds,
            why=f"at the authors' query the law is still {last('FC', 'unattended over law').mean():.1f} times too "
            "small: it is one for large norms",
        ),
    )

    ends: dict[str, np.ndarray] = {kind: last(kind, "topic score") for kind in names.KINDS}
    steps = [verdicts.mean_interval((ends[a] - ends[b]).tolist()) for a, b in (("FC", "TC"), ("TC", "TL"))]
    yield (
        "L-06",
        Judgement(
            measured="final scores " + ", ".join(f"{values.mean():.2f} ({kind})" for kind, values in ends.items()),
            n=study.seeds,
            verdict=verdicts.all_of([verdicts.by_sign(step) for step in steps]),
        ),
    )

    total = study.seeds * study.task.topic_words
    sunk = {
        name: round(float(last(name, "suppressed").mean()) * total) for name in ("TC" + names.FULL, "FC" + names.FULL)
    }
    count = sunk["TC" + names.FULL]
    yield (
        "L-07",
        decided(
            count > 0,
            f"{count} of {total} topic words are suppressed at first",
            interval=verdicts.share_interval(count, total),
            of="the share",
            n=total,
            why=f"under FC {sunk['FC' + names.FULL]} of {total}",
        ),
    )
    if study.texts:
        yield from _on_text(study, metrics)

    topic, least = last(names.FREQUENCIES, "topic share"), last(names.FREQUENCIES, "least topic share")
    other, most = last(names.FREQUENCIES, "other share"), last(names.FREQUENCIES, "largest other share")
    yield (
        "L-10",
        decided(
            bool((least > np.maximum(most, 10 * other)).all()),
            f"a topic word is in {topic.mean():.4f} of the sentences, another in {other.mean():.4f}",
            n=study.seeds,
            why=f"the rarest topic word is {float((least / most).min()):.1f} times as frequent as the commonest other",
        ),
    )


def _ahead(metrics: Metrics, kind: str, metric: str, frozen: str) -> np.ndarray:
    """By how much the full model leads one with something frozen, where it has halved its loss; of each seed."""
    import numpy as np

    from attndyn.studies.topic_words import FULL

    full, other = (metrics.curves(kind + ending, metric) for ending in (FULL, frozen))
    at = metrics.curves(kind + FULL, "epochs to half the loss").last
    columns = [int(np.searchsorted(full.steps, min(epoch, full.steps[-1]))) for epoch in at]
    return np.array([full.values[row, column] - other.values[row, column] for row, column in enumerate(columns)])


def _on_text(study: TopicWords, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
    from attndyn.measures import verdicts
    from attndyn.studies import topic_words as names

    texts = [names.title(name) for name in study.texts]
    stand_in = "" if study.texts == type(study)().texts else "other text stands in for SST; "
    models = [f"{name}, {kind}" for name in texts for kind in names.WIDTHS]
    errors = {name: float(metrics.curves(name, "median error").last.mean()) for name in models}
    verdict = verdicts.INCONCLUSIVE
    if max(errors.values()) < CLOSE:
        verdict = verdicts.HOLDS
    elif max(errors.values()) > FAR:
        verdict = verdicts.DIFFERS
    padded, mended = (
        float(metrics.curves(texts[0] + names.PADDED, metric).last.mean())
        for metric in ("median error", "median error, m of the model")
    )
    yield (
        "L-08",
        Judgement(
            measured="median errors " + "; ".join(f"{value:.1%} ({name})" for name, value in errors.items()),
            verdict=verdict,
            n=study.text_seeds,
            why=f"{stand_in}with the padding attended to, as the authors had it, {padded:.1%}, and {mended:.1%} with "
            "the m that the model sees",
        ),
    )
    first = f"{texts[0]}, FC"
    try:
        rarer, purer = (metrics.curves(first, f"change of {what}").last for what in ("frequency", "purity"))
    except KeyError:  # none of the followed words is in the text
        return
    sides = [verdicts.mean_interval((-rarer).tolist()), verdicts.mean_interval(purer.tolist())]
    overtaken = metrics.curves(first, "overtaken").last.mean()
    yield (
        "L-09",
        Judgement(
            measured=f"ln of the frequency changes by {rarer.mean():.2f}, purity by {purer.mean():+.2f}",
            interval=sides[1],
            of="the change of purity",
            n=study.text_seeds,
            verdict=verdicts.all_of([verdicts.by_sign(side) for side in sides]),
            why=f"{stand_in}in {overtaken:.0%} of all training sentences another word "
            "leads at the end than after 100 epochs",
        ),
    )
