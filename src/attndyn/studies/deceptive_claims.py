"""What the rows of `deceptive-attention` say about the statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attndyn.measures.verdicts import (
    DIFFERS,
    HOLDS,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    Interval,
    all_of,
    by_margin,
    by_sign,
    difference_interval,
    mean_interval,
)
from attndyn.report.parts import Table
from attndyn.studies.base import Judgement
from attndyn.studies.deceptive_names import (
    BY_ADVERSARY,
    BY_BASE,
    BY_UNIFORM,
    INSTANCE,
    SEEDS,
    UNIFORM,
    adversary,
)
from attndyn.studies.deceptive_statements import CLOSE, COSTS_NOTHING, FREE, KEPT, SAME_LOSS, VARIES
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
        """Of every seed; those of `SEEDS` stand at steps of their own."""
        found = self.metrics.curves(condition, metric)
        return list(found.values[0] if condition in (SEEDS, INSTANCE) else found.last)

    def mean(self, condition: str, metric: str) -> float:
        values = self.values(condition, metric) if condition in self.metrics else []
        return sum(values) / len(values) if values else float("nan")

    def at(self, lam: float, metric: str, direction: str = "adversary-base") -> float:
        return self.mean(adversary(direction, lam), metric)

    def interval(self, name: str) -> Interval:
        low, high = (float(self.metrics.curves(SUMMARY, f"{name} {end}").last[0]) for end in ("low", "high"))
        return Interval(low, high)

    def gap(self, condition: str, other: str, metric: str = ACCURACY) -> Interval | None:
        """The interval over runs of the first minus the second, where both have two runs."""
        first, second = (self.values(one, metric) if one in self.metrics else [] for one in (condition, other))
        return difference_interval(first, second) if min(len(first), len(second)) > 1 else None

    def best_deceiver(self) -> float:
        """The λ with the largest JSD among those that keep the accuracy; if none does, the one that keeps most."""
        lambdas, base = self.study.lambdas, self.mean(BILSTM, ACCURACY)
        kept = [lam for lam in lambdas if self.at(lam, ACCURACY) >= base - KEPT]
        return max(kept, key=lambda lam: self.at(lam, "JSD")) if kept else max(lambdas, key=lambda lam:
                                                                               self.at(lam, ACCURACY))  # fmt: skip

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
    yield "W-01", Judgement(measured=measured, verdict=verdict, interval=gap, n=n)
    yield "O-02", Judgement(measured=measured, verdict=by_margin(gap, COSTS_NOTHING), interval=gap, n=n)
    losses = [found.metrics.curves(name, "loss").values.min(axis=1).tolist() for name in (UNIFORM, BILSTM)]
    loss = difference_interval(losses[0], losses[1])
    measured = f"{sum(losses[0]) / len(losses[0]):.4f} against {sum(losses[1]) / len(losses[1]):.4f}"
    yield "B-09", Judgement(measured=measured, verdict=by_margin(loss, SAME_LOSS), interval=loss, n=n)


def _seeds(found: Found) -> Iterator[tuple[str, Judgement]]:
    if SEEDS not in found.metrics:
        return
    apart = found.interval("JSD of another seed")
    yield "W-02", Judgement(
        measured=f"JSD {found.mean(SEEDS, 'JSD'):.3f} (median of texts {found.mean(SEEDS, 'JSD median'):.3f}), TVD "
        f"{found.mean(SEEDS, 'TVD'):.3f}", verdict=by_sign(Interval(apart.low - VARIES, apart.high - VARIES)),
        interval=apart, n=len(found.values(SEEDS, "JSD")), why="Diabetes and Anemia are not public",
    )  # fmt: skip


def _guided(found: Found) -> Iterator[tuple[str, Judgement]]:
    gaps = [found.gap(BY_BASE, other) for other in (BY_UNIFORM, AVERAGE)]
    known = [gap for gap in gaps if gap is not None]
    if len(known) == 2:
        arms = (("base's", BY_BASE), ("uniform", BY_UNIFORM), ("its own", AVERAGE), ("adversary's", BY_ADVERSARY))
        yield "W-03", Judgement(
            measured="; ".join(f"{label} {found.mean(name, ACCURACY):.4f}" for label, name in arms),
            verdict=all_of([by_sign(gap) for gap in known]), interval=min(known), n=found.study.guides,
        )  # fmt: skip


def _adversaries(found: Found) -> Iterator[tuple[str, Judgement]]:
    lambdas = found.study.lambdas
    close = [lam for lam in lambdas if found.at(lam, "TVD") <= CLOSE]
    alone = found.values(INSTANCE, "JSD")[0]
    most = max((found.at(lam, "JSD") for lam in close), default=None)
    yield "W-04", Judgement(
        measured=f"JSD {alone:.3f} against " + (f"{most:.3f}" if most is not None else "none"),
        verdict=INCONCLUSIVE if most is None else HOLDS if alone > most else DIFFERS,
        why=f"no adversary has a TVD of at most {CLOSE}" if most is None else "",
    )  # fmt: skip
    if len(lambdas) > 2 and found.study.adversaries > 1:
        from scipy.stats import spearmanr

        across, up = (
            zip(*(found.values(adversary("adversary-base", lam), name) for lam in lambdas), strict=True)
            for name in ("JSD", "TVD")
        )
        ranks = [float(spearmanr(a, b).statistic) for a, b in zip(across, up, strict=True)]
        interval = mean_interval(ranks, -1.0, 1.0)
        curve = ", ".join(f"{lam:g}: {found.at(lam, 'JSD'):.2f}/{found.at(lam, 'TVD'):.3f}" for lam in lambdas)
        yield "W-05", Judgement(measured=f"ρ {sum(ranks) / len(ranks):.2f}; λ: JSD/TVD {curve}",
                                verdict=by_sign(interval), interval=interval, n=len(ranks))  # fmt: skip
    yield from _deceit(found)


def _deceit(found: Found) -> Iterator[tuple[str, Judgement]]:
    lam = found.best_deceiver()
    accuracy, base = found.at(lam, ACCURACY), found.mean(BILSTM, ACCURACY)
    measured = (
        f"λ {lam:g}: JSD {found.at(lam, 'JSD'):.3f}, TVD {found.at(lam, 'TVD'):.3f}, accuracy {accuracy:.4f} against "
        f"{base:.4f}"
    )
    if SEEDS in found.metrics:
        elsewhere = [one for one in found.study.lambdas if found.at(one, "JSD") > max(found.values(SEEDS, "JSD"))]
        gaps = [gap for one in elsewhere if (gap := found.gap(adversary("adversary-base", one), BILSTM)) is not None]
        kept = [by_sign(Interval(gap.low + KEPT, gap.high + KEPT)) for gap in gaps]
        verdict = HOLDS if HOLDS in kept else DIFFERS if not elsewhere or set(kept) == {DIFFERS} else INCONCLUSIVE
        yield "O-03", Judgement(measured=measured, verdict=verdict, n=found.study.adversaries)
    near = SEEDS in found.metrics and found.at(lam, "JSD") <= max(found.values(SEEDS, "JSD"))
    name = adversary("adversary-base", lam)
    before, after = (found.interval(f"{one}: {LEFT_OUT}") for one in (BILSTM, name))
    yield "O-04", Judgement(
        measured=f"τ {sum(after) / 2:.3f} at λ {lam:g}, {sum(before) / 2:.3f} before", interval=after,
        verdict=INCONCLUSIVE if near else by_sign(Interval(-after.high, -after.low)), n=found.study.adversaries,
        why="no adversary attends farther away than another seed and keeps the accuracy" if near else "",
    )  # fmt: skip
    widest = max(found.study.lambdas, key=lambda one: found.at(one, "JSD"))
    yield "Y-07", Judgement(
        measured=f"classification: answers move by {found.at(widest, 'TVD'):.3f} at JSD {found.at(widest, 'JSD'):.3f}, "
        f"accuracy {found.at(widest, ACCURACY):.4f}", verdict=NOT_COMPARABLE,
        why="half of a comparison; the other half is tagger-adversary's",
    )  # fmt: skip
