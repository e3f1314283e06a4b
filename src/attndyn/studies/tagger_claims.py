"""The statements of Yang's report, and how `tagger-adversary` judges them. All intervals are over seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from attndyn.measures import verdicts
from attndyn.measures.verdicts import Interval
from attndyn.studies.base import Judgement, Statement
from attndyn.studies.exclusive import KEPT, Y_07, Reach, classifiers, judged, of_seeds, reach, stable
from attndyn.studies.outcomes import span
from attndyn.studies.tagger_names import (
    BASE,
    FORWARD,
    READ,
    RECOMPUTED,
    SCATTERED,
    SEEDS,
    TRAINED,
    UNIFORM,
    UNMASKED,
    adversary,
    given,
)

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics
    from attndyn.studies.tagger_adversary import TaggerAdversary

F1 = "test F1 (kept)"
PUBLISHED = "conll2000"
BROKEN = 0.05
"""An adversary is broken if its F1 lies further below that of λ = 0 with the same seed."""
SAFE, AROUND = 0.33, 0.1
"""The published safe point, in KL an element, and how near to it is the same."""
SAME_RANKING = 0.05
"""Of τ: rankings that differ by less, before and after, are the same."""
WEAK, STRONG, LARGE = 0.2, 3.0, 2.5
"""λ of the published table; and of its text, from which on F1 is lost."""
FINE = 0.5
"""Between neighbouring λ, where a break is to be seen as sudden: over a wide gap everything goes at once."""
PATIENCE = 5
"""Epochs without a better F1 after which the author's program stops."""

STATEMENTS = (
    Statement(
        id="Y-01",
        source="§5, table 1",
        statement="a one-layer, four-head tagger on CoNLL-2000 reaches F1 .90",
        published=".90 (the epoch was chosen on the test sentences)",
        rule="mean test F1 of the base runs, the epoch chosen on validation sentences: holds if the interval lies "
        "within .90 ± .01, differs if outside; another corpus or other sizes are not comparable",
    ),
    Statement(
        id="Y-02",
        source="§5, table 1",
        statement="an adversary at λ = .2 keeps F1",
        published=".90, base .90",
        rule=f"F1 of the adversary of λ {WEAK} less that of its base: holds if the interval lies within ±{KEPT}, "
        "differs if outside; not judged without that λ",
    ),
    Statement(
        id="Y-03",
        source="§5, table 1",
        statement="an adversary at large λ loses F1",
        published=".75 (λ = 3 in the table, 2.5 in the text), base .90",
        rule=f"F1 of the base less that of its adversary of λ {STRONG:g}, or of the λ nearest to it that is at least "
        f"{LARGE}: holds if the interval lies above {BROKEN}, differs if below; not judged without such a λ",
    ),
    Statement(
        id="Y-04",
        source="§5, table 2",
        statement="a model given base or adversarial attention does equally well",
        published=".90 / .90 / .89 (the author's probe recomputed its attention)",
        rule="under really given attention, F1 with each adversary's attention less F1 with the base's: holds if all "
        f"intervals lie within ±{KEPT}, differs if one lies outside",
    ),
    Statement(
        id="Y-05",
        source="§5, fig. 1",
        statement="as λ grows, attention divergence and prediction loss grow together",
        published="direction (fig.)",
        rule="Kendall's τ of λ with KL an element, and of λ with NLL, for each seed along λ: holds if both intervals "
        "lie above 0, differs if one lies below",
    ),
    Statement(
        id="Y-06",
        source="§5, fig. 1",
        statement='tolerance up to a "safe point", then sudden loss',
        published="KL ≈ .33 an element (fig.; one run for each λ)",
        rule=f"a seed breaks at the first λ at which its F1 is more than {BROKEN} below that of its λ = 0; suddenly, "
        "if over half of all the F1 it loses goes at that λ (0 if it does not break). Holds if the interval of that "
        f"share lies above ½ and that of KL an element at the λ before within {SAFE} ± {AROUND}; differs if one lies "
        f"outside, or if no seed breaks and the interval of their largest loss lies below {BROKEN}; not judged without "
        f"a λ of at least {LARGE}, and undecided where the λ before a break is further than {FINE} away",
    ),
    Y_07,
    Statement(
        id="Y-08",
        source="§1",
        statement="self-attention in tagging is more stable over initialisations",
        published="question",
        rule="the JSD of two seeds' attention, of classifiers (from the seed before, every second one, as neighbours "
        "share a seed; recorded at paper scale by deceptive-attention) less of taggers (heads matched; over all pairs, "
        "with the jackknife over seeds, as pairs share them): holds if Welch's interval lies above 0 on every corpus, "
        "differs if below on one; other sizes are not comparable",
    ),
    Statement(
        id="Y-09",
        source="§1, §4.3",
        statement="attention carries information another model can use",
        published="question",
        rule="F1 under the base's attention less F1 under uniform attention, and less F1 under its weights on random "
        "words, with the same layer and with the feed-forward probe: holds if all four intervals lie above 0, differs "
        "if one lies below",
    ),
    Statement(
        id="Y-10",
        source="§5, §6",
        statement="rankings of attention weights differ before and after the safe point",
        published="proposed, not done",
        rule="Kendall's τ of the weights with those of the base, heads matched: of each seed that breaks, at the λ "
        f"before its break less at the λ of its break. Holds if 0 lies outside the interval over seeds, differs if 0 "
        f"lies in it and all of it within ±{SAME_RANKING}; else inconclusive, also if fewer than two seeds break, or "
        f"the λ before a break is further than {FINE} away",
    ),
)


class Judge:
    def __init__(self, study: TaggerAdversary, metrics: Metrics) -> None:
        self.study, self.metrics = study, metrics

    def end(self, condition: str, metric: str = F1) -> np.ndarray:
        """A value for each seed."""
        return self.metrics.curves(condition, metric).last

    @cached_property
    def strengths(self) -> list[float]:
        return list(self.study.adversaries)

    @property
    def large(self) -> list[float]:
        """λ at which F1 should be lost; a sweep that ends before shows nothing of what comes there."""
        return [strength for strength in self.strengths if strength >= LARGE]

    def along(self, metric: str) -> np.ndarray:
        """[seed, λ]"""
        return np.stack([self.end(name, metric) for name in self.study.adversaries.values()], axis=1)

    @cached_property
    def broken(self) -> np.ndarray:
        """[seed, λ]"""
        f1 = self.along(F1)
        return np.asarray(f1[:, :1] - f1 > BROKEN)

    @cached_property
    def breaks(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each seed the place of the first λ at which it is broken (−1: none), and the share of all the F1 it loses
        that goes between the λ before and that one (0: it does not break)."""
        first, shares = [], []
        for f1, those in zip(self.along(F1), self.broken, strict=True):
            at = int(those.argmax()) if those.any() else -1
            first.append(at)
            shares.append((f1[at - 1] - f1[at]) / (f1[0] - f1[at:].min()) if at > 0 else 0.0)
        return np.array(first), np.array(shares)

    @property
    def coarse(self) -> str:
        """Where too little is known of how a seed breaks; empty: nowhere."""
        ends = [(self.strengths[at - 1], self.strengths[at]) for at in self.breaks[0] if at > 0]
        wide = [ends for ends in dict.fromkeys(ends) if ends[1] - ends[0] > FINE + 1e-9]
        return f"no λ between {' and between '.join(f'{low:g} and {high:g}' for low, high in wide)}" if wide else ""

    def all(self) -> Iterator[tuple[str, Judgement]]:
        judges = (self.base, self.keeps, self.loses, self.probes, self.together, self.safe_point, self.exclusive,
                  self.stable, self.useful, self.rankings)  # fmt: skip
        known = READ in self.metrics.curves_of(BASE)  # runs of earlier versions do not say it
        sentences = float(self.end(BASE, READ).min()) if known else float("inf")
        for statement, judge in zip(STATEMENTS, judges, strict=True):
            yield statement.id, judge().on(sentences, "test sentences")

    def differing(self, values: np.ndarray, margin: float) -> tuple[Interval | None, str]:
        """The interval of differences, and whether they are within the margin."""
        if len(values) < 2:
            return None, verdicts.INCONCLUSIVE
        interval = verdicts.mean_interval(values.tolist())
        return interval, verdicts.by_margin(interval, margin)

    def base(self) -> Judgement:
        f1 = self.end(BASE)
        others = [f"{name} {self.end(name).mean():.3f}" for name in (TRAINED, UNMASKED) if name in self.metrics]
        on_test = self.stopped("test F1")
        why = [f"{', '.join(others)}" if others else "", f"stopped on the test sentences, as published: {on_test:.3f}"]
        if self.study.corpus == PUBLISHED:
            why.append(f"word vectors of {self.study.width} numbers, where the author had 300 and character n-grams")
        interval, verdict = self.differing(f1 - 0.9, 0.01)
        if self.study.resized:
            verdict = verdicts.NOT_COMPARABLE
        return Judgement(
            measured=f"{f1.mean():.3f}",
            verdict=verdict,
            interval=None if interval is None else (interval.low + 0.9, interval.high + 0.9),
            n=len(f1),
            why="; ".join(filter(None, why)),
        )

    def stopped(self, metric: str) -> float:
        """Mean test F1 of the base where the author's rule stops: no better value of the metric in five epochs."""
        chosen, test = (self.metrics.curves(BASE, name).values for name in (metric, "test F1"))
        ends = []
        for curve, found in zip(chosen, test, strict=True):
            best = 0
            for epoch, value in enumerate(curve):
                if value > curve[best]:
                    best = epoch
                elif epoch - best >= PATIENCE:
                    break
            ends.append(found[best])
        return float(np.mean(ends))

    def keeps(self) -> Judgement:
        if WEAK not in self.strengths:
            return untrained(f"λ {WEAK}")
        name = adversary(WEAK)
        lost = self.end(name) - self.end(BASE)
        interval, verdict = self.differing(lost, KEPT)
        return Judgement(
            measured=f"{self.end(name).mean():.3f} at {name}, base {self.end(BASE).mean():.3f}",
            verdict=verdict, interval=interval, of="the difference", n=len(lost),
        )  # fmt: skip

    def loses(self) -> Judgement:
        if not self.large:
            return untrained(f"λ of at least {LARGE}")
        strongest = min(self.large, key=lambda strength: abs(strength - STRONG))
        lost = self.end(BASE) - self.end(adversary(strongest))
        named = [one for one in dict.fromkeys((LARGE, strongest)) if one in self.strengths]
        measured = ", ".join(f"{self.end(adversary(one)).mean():.3f} at {adversary(one)}" for one in named)
        if len(lost) < 2:
            return Judgement(measured=measured, verdict=verdicts.INCONCLUSIVE, n=len(lost))
        interval = verdicts.mean_interval(lost.tolist())
        verdict = verdicts.by_sign(Interval(interval.low - BROKEN, interval.high - BROKEN))
        return Judgement(measured=f"{measured}, base {self.end(BASE).mean():.3f}", verdict=verdict, interval=interval,
                         of="the loss",
                         n=len(lost))  # fmt: skip

    def probes(self) -> Judgement:
        own, found, measured = self.end(given(BASE)), [], [f"{self.end(given(BASE)).mean():.3f} {given(BASE)}"]
        interval = None
        for strength in self.study.probed:
            name = given(adversary(strength))
            interval, verdict = self.differing(self.end(name) - own, KEPT)
            found.append(verdict)
            measured.append(f"{self.end(name).mean():.3f} {name}")
        return Judgement(
            measured=", ".join(measured), verdict=verdicts.all_of(found), n=len(own), interval=interval,
            of="the last difference",
            why=f"recomputed, as in the author's program: {self.end(RECOMPUTED).mean():.3f}",
        )  # fmt: skip

    def together(self) -> Judgement:
        from scipy.stats import kendalltau

        if len(self.strengths) < 2:
            return Judgement(measured="one λ", verdict=verdicts.INCONCLUSIVE, n=self.study.seeds)
        intervals, measured = [], []
        for metric in ("KL an element", "NLL"):
            curves = self.along(metric)
            taus = [float(kendalltau(self.strengths, curve).statistic) for curve in curves]
            intervals += [verdicts.mean_interval(taus, -1.0, 1.0)] if len(taus) > 1 else []
            measured.append(f"τ of λ with {metric} {np.mean(taus):.2f} ({curves[:, 0].mean():.3f} at λ 0, "
                            f"{curves[:, -1].mean():.3f} at {adversary(self.strengths[-1])})")  # fmt: skip
        verdict = verdicts.all_of([verdicts.by_sign(one) for one in intervals])
        return Judgement(measured="; ".join(measured), verdict=verdict, interval=min(intervals, default=None),
                         of="the lower τ", n=self.study.seeds)  # fmt: skip

    def safe_point(self) -> Judgement:
        if not self.large:
            return untrained(f"λ of at least {LARGE}")
        seeds, (first, shares) = self.study.seeds, self.breaks
        kl = self.along("KL an element")
        start = f"KL an element is {kl[:, 0].mean():.3f} at λ 0 already: a fresh start changes attention"
        rows = np.flatnonzero(first > 0)
        if not len(rows):
            return self.unbroken(start)
        mixed = [
            f"{one:g}" for one, those in zip(self.strengths, self.broken.T, strict=True) if 0 < those.sum() < seeds
        ]
        two = f"broken and unbroken seeds stand side by side at λ {', '.join(mixed)}" if mixed else "no λ has both"
        before = kl[rows, first[rows] - 1]
        at = np.array(self.strengths)[first[rows]]
        interval, near = self.differing(before - SAFE, AROUND)
        sudden = verdicts.INCONCLUSIVE
        if seeds > 1:
            low, high = verdicts.mean_interval(shares.tolist())
            sudden = verdicts.by_sign(Interval(low - 0.5, high - 0.5))
        return Judgement(
            measured=f"{len(rows)} of {seeds} seeds break, at λ {span(at, 'g')}, where {shares.mean():.0%} of "
            f"the loss comes at once; KL an element before {before.mean():.3f}; {two}",
            verdict=verdicts.all_of([sudden, near]),
            interval=None if interval is None else (interval.low + SAFE, interval.high + SAFE),
            of="KL before",
            n=seeds,
            why=start,
        ).undecided(self.coarse)

    def unbroken(self, why: str) -> Judgement:
        """No seed breaks: whether others would, say the largest losses of these."""
        f1 = self.along(F1)
        lost, interval = f1[:, 0] - f1.min(axis=1), None
        if len(lost) > 1:
            interval = verdicts.mean_interval(lost.tolist())
        none = interval is not None and interval.high < BROKEN
        return Judgement(
            measured=f"no seed breaks up to λ {self.strengths[-1]:g}; their largest losses: {span(lost, '.3f')}",
            verdict=verdicts.DIFFERS if none else verdicts.INCONCLUSIVE, interval=interval, of="the loss",
            n=len(lost), why=why,
        )  # fmt: skip

    def exclusive(self) -> Judgement:
        if SEEDS not in self.metrics:
            return Judgement(measured="one seed", verdict=verdicts.INCONCLUSIVE)
        return judged(self.reached(), classifiers(), self.study.seeds, not self.study.resized)

    def reached(self) -> Reach:
        """How far each seed's base can be left at the F1 of λ = 0."""
        jsd, tvd, f1 = (self.along(name) for name in ("JSD matched", "TVD", F1))
        others = (of_seeds(self.end(SEEDS, name).tolist(), self.study.seeds) for name in ("JSD matched", "TVD"))
        return reach(jsd, tvd, f1, f1[:, 0], tuple(others))

    def stable(self) -> Judgement:
        if SEEDS not in self.metrics:
            return Judgement(measured="one seed", verdict=verdicts.INCONCLUSIVE)
        head, mean = self.end(SEEDS, "JSD"), self.end(SEEDS, "JSD of means")
        why = (f"from uniform attention {self.end(UNIFORM, 'JSD matched').mean():.3f}; two seeds head by head, as "
               f"numbered, {head.mean():.3f}; of the means over heads {mean.mean():.3f}")  # fmt: skip
        return stable(self.reached(), classifiers(), self.study.seeds, not self.study.resized, why)

    def useful(self) -> Judgement:
        intervals, measured = list[Interval](), []
        for prefix in ("", FORWARD):
            own = self.end(f"{prefix}{given(BASE)}")
            parts = [f"{prefix}{given(BASE)} {own.mean():.3f}"]
            for other in (f"{prefix}{UNIFORM}", f"{prefix}{SCATTERED}"):
                values = self.end(other)
                gain = own - values[: len(own)]
                intervals += [verdicts.mean_interval(gain.tolist())] if len(gain) > 1 else []
                parts.append(f"{other.removeprefix(prefix)} {values.mean():.3f}")
            measured.append(", ".join(parts))
        verdict = verdicts.all_of([verdicts.by_sign(one) for one in intervals])
        return Judgement(measured="; ".join(measured), verdict=verdict, interval=min(intervals, default=None),
                         of="the smallest gain", n=self.study.probes)  # fmt: skip

    def rankings(self) -> Judgement:
        tau, first = self.along("rank τ"), self.breaks[0]
        rows = np.flatnonzero(first > 0)
        before, after = tau[rows, first[rows] - 1], tau[rows, first[rows]]
        measured = f"{len(rows)} seeds break: {mean_of(before)} before, {mean_of(after)} after"
        if len(rows) < 2:
            return Judgement(measured=measured, verdict=verdicts.INCONCLUSIVE, n=len(rows))
        interval = verdicts.mean_interval((before - after).tolist())
        apart = interval.low > 0 or interval.high < 0
        same = verdicts.by_margin(interval, SAME_RANKING) == verdicts.HOLDS
        verdict = verdicts.HOLDS if apart else verdicts.DIFFERS if same else verdicts.INCONCLUSIVE
        why = f"λ 0: {mean_of(self.along('rank τ')[:, 0])}"
        if SEEDS in self.metrics:
            why += f", two seeds: {mean_of(self.end(SEEDS, 'rank τ'))}"
        found = Judgement(
            measured=measured, verdict=verdict, interval=interval, of="the difference", n=len(rows), why=why
        )
        return found.undecided(self.coarse)

    def finding(self) -> str:
        f1, last = self.end(BASE).mean(), self.strengths[-1]
        broken = int(self.broken[:, -1].sum())
        seeds = ""
        if SEEDS in self.metrics:
            seeds = f", where two seeds of the base differ by {self.end(SEEDS, 'JSD matched').mean():.2f}"
        breaks = np.append(self.broken.any(axis=0), True)  # at λ 0 none is broken
        furthest = adversary(self.strengths[int(breaks.argmax()) - 1])
        return (
            f"The base reaches F1 {f1:.3f}. Adversaries up to {furthest} all stay within {BROKEN} of the F1 at λ 0, at "
            f"a divergence of attention (JSD, heads matched) of {self.end(furthest, 'JSD matched').mean():.2f}{seeds}; "
            f"at λ {last:g}, {broken} of {self.study.seeds} are broken. Given the base's attention, another tagger "
            f"reaches {self.end(given(BASE)).mean():.3f}; under uniform attention {self.end(UNIFORM).mean():.3f}."
        )


def untrained(needed: str) -> Judgement:
    return Judgement(measured="–", verdict=verdicts.NOT_JUDGED, why=f"no {needed} is among lambdas")


def mean_of(values: Sequence[float] | np.ndarray) -> str:
    return f"{np.mean(values):.2f}" if len(values) else "–"
