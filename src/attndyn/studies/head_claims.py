"""What is claimed about several heads, and how it is judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attndyn.studies.base import Judgement, Statement

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.metrics import Metrics
    from attndyn.studies.head_pools import Pools
    from attndyn.studies.head_rescue import HeadRescue
    from attndyn.studies.outcomes import Results

PUBLISHED = 50
"""Combinations of each kind in the authors' program."""

STATEMENTS = (
    Statement(
        id="S-38",
        source="§5.2, fig. 2 right",
        statement="eight bad head initialisations: training fails",
        published="fails (text; figure not recovered)",
        rule="holds if no run learns (accuracy of at least .95 at the last step), of six or more; differs if Fisher's "
        "exact test against 0 of 50, the text's word for the authors' 50 combinations, has p < .05, or if the interval "
        "of the learning share lies above .05",
    ),
    Statement(
        id="S-39",
        source="§5.2, fig. 2 right",
        statement="one good among eight: training converges",
        published="converges (text; figure not recovered)",
        rule="holds if every run learns, of six or more; differs if Fisher's exact test against 50 of 50, as above, "
        "has p < .05, or if the interval of the failing share lies above .05",
    ),
    Statement(
        id="S-40",
        source="§5.2, fig. 2 right",
        statement="eight random heads: training converges with high probability",
        published="direction; derived: 1 − (1 − p)^8 if one good head suffices",
        rule="holds if the interval of the share that learns lies above ½ and more runs learn than with one random "
        "head (Fisher, one-sided p < .05, or all of both); differs if it lies below ½, or fewer do",
    ),
    Statement(
        id="S-41",
        source="§5.2",
        statement="the gain is not expressiveness: one head is enough for the task",
        published="text",
        rule="holds if a model with one head learns under each of the three data seeds, else differs",
    ),
    Statement(
        id="S-42",
        source="§1 (after Voita et al.; Michel et al.)",
        statement="few heads can be had by training many and cutting off the rest, though not by training few",
        published="direction",
        rule="runs with random heads whose best head alone, without training on, has an accuracy of at least .95, "
        "against runs with one random head that learn: holds if more do (Fisher, one-sided p < .05), differs if fewer",
    ),
    Statement(
        id="H-01",
        source="this study",
        statement="a model learns if and only if one of its heads would alone: with K random heads a share of "
        "1 − (1 − p)^K",
        published="derived",
        rule="p and its interval from the single heads: holds if 1 − (1 − p)^K lies in the interval of the measured "
        "share at each K above 1; differs if at one of them the two intervals do not meet",
    ),
    Statement(
        id="H-02",
        source="this study",
        statement="a head is good or bad by itself, whatever the other weights are",
        published="implied",
        rule="the same heads with several seeds of all other weights: differs if the shares of learning heads vary "
        "more between the seeds than chance allows (permutation test, p < .05); holds if each head has one outcome "
        "with all seeds and not all heads have the same",
    ),
)


def judge(study: HeadRescue, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
    from attndyn.measures import verdicts
    from attndyn.studies import outcomes
    from attndyn.studies.head_rescue import BASES

    pools, counts = study.pools(metrics), study.trained_counts(metrics)
    several = counts[study.heads]
    for id, name, kind in (("S-38", study.all_bad, "bad"), ("S-39", study.one_good, "good")):
        if name not in metrics:
            yield id, too_few(study, pools, kind)
        elif kind == "bad":
            yield id, outcomes.never_learned(study.results(metrics, name), published=(0, PUBLISHED))
        else:
            yield id, outcomes.always_learned(study.results(metrics, name), published=(PUBLISHED, PUBLISHED))

    one = counts.get(1)
    if one is not None:
        yield "S-40", likelier(several, one)
        right = int((study.pruned(metrics, several.condition) >= outcomes.LEARNED).sum())
        tests = {
            verdicts.HOLDS: verdicts.fisher(right, several.n, one.count, one.n, alternative="greater"),
            verdicts.DIFFERS: verdicts.fisher(right, several.n, one.count, one.n, alternative="less"),
        }
        verdict, p = min(tests.items(), key=lambda test: test[1])
        yield (
            "S-42",
            Judgement(
                measured=f"{right} of {several.n} trained with {study.heads} heads and cut down to one, {one.count} of "
                f"{one.n} trained with one",
                n=several.n + one.n,
                verdict=verdict if p < verdicts.LEVEL else verdicts.INCONCLUSIVE,
                why=f"one-sided p = {p:.2g}; {several.count} of {several.n} learned before the cut",
            ),
        )
    yield (
        "S-41",
        Judgement(
            measured=f"{len(pools.good)} of {pools.tried} single heads learn under all data seeds",
            n=pools.tried,
            verdict=verdicts.HOLDS if pools.good else verdicts.DIFFERS,
        ),
    )
    yield "H-01", as_foretold(pools, counts)
    if BASES in metrics:
        yield "H-02", by_itself(study.by_base(metrics))


def too_few(study: HeadRescue, pools: Pools, kind: str) -> Judgement:
    from attndyn.measures import verdicts

    found = f"{len(pools.good)} good and {len(pools.bad)} bad heads among {pools.tried} candidates"
    need = f"{study.heads} bad ones" if kind == "bad" else f"a good one and {study.heads - 1} bad ones"
    return Judgement(
        measured=found,
        n=pools.tried,
        verdict=verdicts.NOT_JUDGED,
        why=f"{need} are needed: more --candidates, or another --base, may find them",
    )


def likelier(several: Results, one: Results) -> Judgement:
    """Most models with several heads learn, and more than with one."""
    from attndyn.measures import verdicts
    from attndyn.studies import outcomes

    most = outcomes.share(several.count, several.n, f"with {several.condition} learn")
    if several.failed == one.failed == 0:
        return outcomes.both(most, Judgement(measured="with one head all do too", verdict=verdicts.HOLDS))
    return outcomes.both(most, outcomes.easier(several, one))


def as_foretold(pools: Pools, counts: dict[int, Results]) -> Judgement:
    from attndyn.measures import verdicts

    runs = pools.accuracy.size
    single = verdicts.share_interval(round(pools.rate * runs), runs)
    found, told = [], []
    for count, measured in counts.items():
        if count == 1:
            continue
        low, high = verdicts.share_interval(measured.count, measured.n)
        least, wanted, most = (1 - (1 - p) ** count for p in (single.low, pools.rate, single.high))
        verdict = verdicts.HOLDS if low <= wanted <= high else verdicts.INCONCLUSIVE
        if most < low or least > high:
            verdict = verdicts.DIFFERS
        found.append(verdict)
        told.append(f"K = {count}: {measured.count / measured.n:.2f} against {wanted:.2f}")
    return Judgement(
        measured="; ".join(told),
        n=sum(measured.n for measured in counts.values()),
        verdict=verdicts.all_of(found) if found else verdicts.NOT_JUDGED,
        why=f"p = {pools.rate:.3f} ({single.low:.2f} to {single.high:.2f}) of {runs} runs with one head",
    )


def by_itself(learned: np.ndarray) -> Judgement:
    """`learned` is [base, head]."""
    import numpy as np

    from attndyn.measures import verdicts

    shares = learned.mean(axis=1)
    random = np.random.Generator(np.random.PCG64(0))
    flat = np.tile(learned.ravel(), (10_000, 1))
    shuffled = random.permuted(flat, axis=1).reshape(-1, *learned.shape).mean(axis=2).var(axis=1)
    p = float((shuffled >= shares.var() - 1e-12).mean())
    verdict = verdicts.INCONCLUSIVE
    if p < verdicts.LEVEL:
        verdict = verdicts.DIFFERS
    elif (learned == learned[0]).all() and 0 < learned.mean() < 1:
        verdict = verdicts.HOLDS
    each = ", ".join(str(int(count)) for count in learned.sum(axis=1))
    return Judgement(
        measured=f"of {learned.shape[1]} heads learn {each}, by the seed of the other weights",
        n=learned.size,
        verdict=verdict,
        why=f"p = {p:.2g} that the seeds do not matter",
    )
