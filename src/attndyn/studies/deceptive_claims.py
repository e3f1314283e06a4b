"""What the rows of `deceptive-attention` say about the statements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attndyn.measures.verdicts import (
    DIFFERS,
    HOLDS,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    Interval,
    all_of,
    by_margin,
    by_sign,
    mean_interval,
    welch_interval,
)
from attndyn.report.parts import Table
from attndyn.studies.base import Judgement
from attndyn.studies.deceptive_names import (
    BY_ADVERSARY,
    BY_BASE,
    BY_UNIFORM,
    EPSILONS,
    SEEDS,
    UNIFORM,
    adversary,
    instance,
)
from attndyn.studies.deceptive_statements import CLOSE, COSTS_NOTHING, FREE, SAME_LOSS, VARIES
from attndyn.studies.exclusive import KEPT, TAGGING, Reach, judged, reach, recorded
from attndyn.studies.explained import AVERAGE, BILSTM, PUBLISHED, SUMMARY
from attndyn.studies.feature_importance import GRADIENT, LEFT_OUT, SCORES

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics
    from attndyn.studies.deceptive_attention import DeceptiveAttention

ACCURACY = "test accuracy"


@dataclass(frozen=True)
class Found:
    study: DeceptiveAttention
    metrics: Metrics

    def values(self, condition: str, metric: str) -> list[float]:
        """Of every seed."""
        return self.metrics.curves(condition, metric).last.tolist()

    def mean(self, condition: str, metric: str) -> float:
        values = self.values(condition, metric) if condition in self.metrics else []
        return sum(values) / len(values) if values else float("nan")

    def at(self, lam: float, metric: str, direction: str = "adversary-base") -> float:
        return self.mean(adversary(direction, lam), metric)

    def along(self, metric: str) -> np.ndarray:
        """Of the adversaries of KL(adversary ‖ base): [adversary, λ]."""
        names = [adversary("adversary-base", lam) for lam in self.study.lambdas]
        return np.array([self.values(name, metric) for name in names]).T

    def summary(self, name: str) -> float:
        return float(self.metrics.curves(SUMMARY, name).last[0])

    def interval(self, name: str) -> Interval:
        return Interval(self.summary(f"{name} low"), self.summary(f"{name} high"))

    def gap(self, condition: str, other: str, metric: str = ACCURACY) -> Interval | None:
        """The interval over runs of the first minus the second, where both have two runs."""
        first, second = (self.values(one, metric) if one in self.metrics else [] for one in (condition, other))
        return welch_interval(first, second) if min(len(first), len(second)) > 1 else None

    def best_deceiver(self) -> float:
        """The λ with the largest JSD among those that keep the accuracy; if none does, the one that keeps most."""
        lambdas, base = self.study.lambdas, self.mean(BILSTM, ACCURACY)
        kept = [lam for lam in lambdas if self.at(lam, ACCURACY) >= base - KEPT]
        return self.farthest(kept) if kept else max(lambdas, key=lambda lam: self.at(lam, ACCURACY))

    def farthest(self, lambdas: Sequence[float]) -> float:
        """The λ with the largest JSD."""
        return max(lambdas, key=lambda lam: self.at(lam, "JSD"))

    def table(self) -> Table:
        names = [BILSTM, UNIFORM, *(adversary(direction, lam) for direction, _ in self.study.directions
                                    for lam in self.study.lambdas)]  # fmt: skip
        names += [AVERAGE, BY_UNIFORM, BY_BASE, BY_ADVERSARY]
        columns = (*SCORES, "TVD", "JSD", "KL(it ‖ base)", "KL(base ‖ it)", GRADIENT, LEFT_OUT)
        rows: list[tuple[Any, ...]] = []
        for name in names:
            known = set(self.metrics.curves_of(name)) if name in self.metrics else set()
            if known & set(columns):
                rows.append((name, *(round(self.mean(name, one), 4) if one in known else None for one in columns)))
        return Table(
            name="models",
            title="Every model beside the base",
            caption="Means over seeds, on test texts. TVD, JSD, KL: an adversary's from its base, uniform attention's "
            "from the BiLSTM of the same number; W&P's program halves TVD. "
            "Each word for itself: its own attention, uniform attention, and the frozen attention of the base and of "
            f"the adversary of λ {self.study.guide:g}.",
            columns=("model", *columns),
            rows=tuple(rows),
        )


def judge(study: DeceptiveAttention, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
    found = Found(study, metrics)
    yield from _uniform(found)
    yield from _seeds(found)
    yield from _guided(found)
    yield from _adversaries(found)


def _uniform(found: Found) -> Iterator[tuple[str, Judgement]]:
    gap = found.gap(UNIFORM, BILSTM)
    if gap is None:
        return
    n = len(found.values(UNIFORM, ACCURACY)) + len(found.values(BILSTM, ACCURACY))
    measured = " and ".join(
        f"{found.mean(UNIFORM, name):.4f} against {found.mean(BILSTM, name):.4f} ({name.removeprefix('test ')})"
        for name in SCORES[:2]
    )
    corpus = found.study.corpus_name
    free = by_sign(Interval(gap.low + COSTS_NOTHING, gap.high + COSTS_NOTHING))
    if corpus in FREE:
        verdict = free
    elif corpus in PUBLISHED:
        verdict = HOLDS if gap.high < 0 else DIFFERS if free == HOLDS else INCONCLUSIVE
    else:
        verdict = NOT_COMPARABLE
    yield "W-01", Judgement(measured=measured, verdict=verdict, interval=gap, of="the difference", n=n)
    costs = by_margin(gap, COSTS_NOTHING)
    yield "O-02", Judgement(measured=measured, verdict=costs, interval=gap, of="the difference", n=n)
    losses = [found.metrics.curves(name, "loss").values.min(axis=1).tolist() for name in (UNIFORM, BILSTM)]
    loss = welch_interval(losses[0], losses[1])
    measured = f"{sum(losses[0]) / len(losses[0]):.4f} against {sum(losses[1]) / len(losses[1]):.4f}"
    same = by_margin(loss, SAME_LOSS)
    yield "B-09", Judgement(measured=measured, verdict=same, interval=loss, of="the difference", n=n)


def _seeds(found: Found) -> Iterator[tuple[str, Judgement]]:
    if SEEDS not in found.metrics:
        return
    n, apart, verdict, why = len(found.values(SEEDS, "JSD")), None, INCONCLUSIVE, "two seeds are one pair; "
    if n > 2:
        why, apart = "", found.interval("JSD of another seed")
        verdict = by_sign(Interval(apart.low - VARIES, apart.high - VARIES))
    yield "W-02", Judgement(
        measured=f"JSD {found.mean(SEEDS, 'JSD'):.3f} (median of texts {found.mean(SEEDS, 'JSD median'):.3f}), TVD "
        f"{found.mean(SEEDS, 'TVD'):.3f}", verdict=verdict, interval=apart, of="JSD", n=n,
        why=f"{why}Diabetes and Anemia are not public",
    )  # fmt: skip


def _guided(found: Found) -> Iterator[tuple[str, Judgement]]:
    gaps = [found.gap(BY_BASE, other) for other in (BY_UNIFORM, AVERAGE)]
    known = [gap for gap in gaps if gap is not None]
    if len(known) == 2:
        arms = (("base's", BY_BASE), ("uniform", BY_UNIFORM), ("its own", AVERAGE), ("adversary's", BY_ADVERSARY))
        yield "W-03", Judgement(
            measured="; ".join(f"{label} {found.mean(name, ACCURACY):.4f}" for label, name in arms),
            verdict=all_of([by_sign(gap) for gap in known]), interval=min(known),
            of="the smallest difference", n=found.study.guides,
        )  # fmt: skip


def _adversaries(found: Found) -> Iterator[tuple[str, Judgement]]:
    lambdas = found.study.lambdas
    yield "W-04", _alone(found)
    if len(lambdas) > 2 and found.study.adversaries > 1:
        from scipy.stats import spearmanr

        pairs = zip(found.along("JSD"), found.along("TVD"), strict=True)
        ranks = [float(spearmanr(across, up).statistic) for across, up in pairs]
        interval = mean_interval(ranks, -1.0, 1.0)
        curve = ", ".join(f"{lam:g}: {found.at(lam, 'JSD'):.2f}/{found.at(lam, 'TVD'):.3f}" for lam in lambdas)
        yield "W-05", Judgement(measured=f"ρ {sum(ranks) / len(ranks):.2f}; λ: JSD/TVD {curve}",
                                verdict=by_sign(interval), interval=interval, of="ρ", n=len(ranks))  # fmt: skip
    if SEEDS in found.metrics:
        yield "O-03", _elsewhere(found)
    yield "O-04", _against_influence(found)
    if SEEDS in found.metrics:
        own, study = reached(found), found.study
        yield "Y-07", judged(recorded()[TAGGING], {study.corpus_name: own}, len(own.jsd), not study.resized)


def _alone(found: Found) -> Judgement:
    """Adversaries of each text alone beside whole models whose answers are close to the base's."""
    study, close = found.study, dict[int, list[float]]()
    for name in (adversary(direction, lam) for direction, _ in study.directions for lam in study.lambdas):
        tvd, jsd = (found.metrics.curves(name, metric) for metric in ("TVD", "JSD"))
        for seed, moved, apart in zip(tvd.replicas.tolist(), tvd.last, jsd.last, strict=True):
            if moved <= CLOSE:
                close.setdefault(seed % study.followed, []).append(float(apart))
    alone = found.values(instance(EPSILONS[0]), "JSD")
    if not close:
        measured = f"JSD {np.mean(alone):.3f} against none"
        return Judgement(measured=measured, verdict=INCONCLUSIVE, n=0, why=f"no adversary has a TVD of at most {CLOSE}")
    most = {base: max(those) for base, those in sorted(close.items())}
    gaps = [alone[base] - value for base, value in most.items()]
    bound = math.log(2)  # of JSD
    interval = mean_interval(gaps, -bound, bound) if len(gaps) > 1 else None
    return Judgement(
        measured=f"JSD {np.mean([alone[base] for base in most]):.3f} against {np.mean(list(most.values())):.3f} beside "
        f"{len(most)} of {study.followed} bases",
        verdict=by_sign(interval) if interval else INCONCLUSIVE, interval=interval, of="the difference", n=len(gaps),
        why="" if interval else f"one base has adversaries with a TVD of at most {CLOSE}",
    )  # fmt: skip


def _elsewhere(found: Found) -> Judgement:
    study, own = found.study, followed_accuracy(found)
    limit = max(found.values(SEEDS, "JSD"))
    away = [lam for lam in study.lambdas if found.at(lam, "JSD") > limit]
    gaps: dict[float, Interval] = {}
    if study.adversaries > 1:
        lost = zip(study.lambdas, (found.along(ACCURACY) - own[:, None]).T.tolist(), strict=True)
        gaps = {lam: mean_interval(values, tries=len(study.lambdas)) for lam, values in lost if lam in away}
    kept = {lam: by_sign(Interval(gap.low + KEPT, gap.high + KEPT)) for lam, gap in gaps.items()}
    holding = [lam for lam, verdict in kept.items() if verdict == HOLDS]
    lam = found.farthest(holding or away or study.lambdas)
    none = not away or set(kept.values()) == {DIFFERS}
    return Judgement(
        measured=f"λ {lam:g}: JSD {found.at(lam, 'JSD'):.3f}, TVD {found.at(lam, 'TVD'):.3f}, accuracy "
        f"{found.at(lam, ACCURACY):.4f} against {own.mean():.4f} of their bases",
        verdict=HOLDS if holding else DIFFERS if none else INCONCLUSIVE, interval=gaps.get(lam),
        of="the difference in accuracy", n=study.adversaries,
        why="" if away else f"no λ attends farther away than the farthest other seed (JSD {limit:.3f})",
    )  # fmt: skip


def _against_influence(found: Found) -> Judgement:
    lam = found.best_deceiver()
    near = SEEDS in found.metrics and found.at(lam, "JSD") <= max(found.values(SEEDS, "JSD"))
    before, after = (f"{one}: {LEFT_OUT}" for one in (BILSTM, adversary("adversary-base", lam)))
    interval = found.interval(after)
    return Judgement(
        measured=f"τ {found.summary(after):.3f} at λ {lam:g}, {found.summary(before):.3f} before", interval=interval,
        of="τ",
        verdict=INCONCLUSIVE if near else by_sign(Interval(-interval.high, -interval.low)), n=found.study.adversaries,
        why="no adversary attends farther away than another seed and keeps the accuracy" if near else "",
    ).over(found.study.adversaries, "adversary")  # fmt: skip


def followed_accuracy(found: Found) -> np.ndarray:
    """Of the base that each adversary of a λ follows."""
    study, bases = found.study, found.values(BILSTM, ACCURACY)
    return np.array([bases[n % study.followed] for n in range(study.adversaries)])


def reached(found: Found) -> Reach:
    """How far each adversary's base can be left at the same accuracy (KL(adversary ‖ base))."""
    jsd, tvd, accuracy = (found.along(name) for name in ("JSD", "TVD", ACCURACY))
    others = tuple(found.values(SEEDS, name) for name in ("JSD", "TVD"))
    return reach(jsd, tvd, accuracy, followed_accuracy(found), others)
