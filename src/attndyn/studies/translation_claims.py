"""The judgements of `word-translation`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from attndyn.measures.verdicts import (
    DIFFERS,
    HOLDS,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    NOT_JUDGED,
    Interval,
    all_of,
    by_factor,
    by_sign,
    later_by,
    mean_interval,
)  # fmt: skip
from attndyn.studies.base import Judgement
from attndyn.studies.translation_names import (
    COLUMNS,
    FALLEN,
    INFLATED,
    LINEAR,
    LINEAR_APART,
    LINK_CHANCE,
    RANKS,
    RISEN,
    SHAPED,
    STANDARD,
    SUMMARY,
    TABLES,
    UNIFORM,
)  # fmt: skip
from attndyn.studies.translation_statements import CLOSE, FAR, LEARNED, LITTLE, PARAMETERS

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics
    from attndyn.studies.word_translation import WordTranslation

TOKEN, BLEU, TRAIN, TRAIN_BLEU = TABLES.values()
PROBE, ATTENTION = "probe on link", "attention on link"
WHATEVER_IS_READ = ("S-03", "S-19", "S-49", "S-50")
"""What is decided however few pairs are read: about the start, the model, an example, a solver."""

OF_UNIFORM = ("S-08", "S-09", "S-10", "S-11", "S-12", "S-13", "S-14", "S-15", "S-53", "B-14")
"""What is over the runs under uniform attention."""
OF_PAIRS = ("S-02", "B-14")
"""What compares the standard runs with each other."""


def all_or_none(found: list[bool]) -> str:
    if all(found):
        return HOLDS
    return INCONCLUSIVE if any(found) else DIFFERS


class Judge:
    def __init__(self, study: WordTranslation, metrics: Metrics) -> None:
        self.study, self.metrics = study, metrics

    def value(self, table: str, name: str) -> float:
        return float(self.metrics.curves(table, name).values[0, 0])

    def interval(self, table: str, name: str) -> Interval:
        return Interval(self.value(table, f"{name} low"), self.value(table, f"{name} high"))

    def each(self, table: str, name: str) -> np.ndarray:
        """One number for each gold run."""
        return np.nanmax(self.metrics.curves(table, name).values, axis=1)

    def all(self) -> Iterator[tuple[str, Judgement]]:
        valid = self.value(SUMMARY, "pairs")
        for id, judgement in self._all():
            pairs = min(valid, self.value(SUMMARY, "training pairs")) if id == "S-15" else valid
            if id in OF_UNIFORM:
                judgement = judgement.over(self.study.uniform, "run under uniform attention")
            if id in OF_PAIRS:
                judgement = judgement.among(self.study.seeds, "standard run")
            yield id, judgement if id in WHATEVER_IS_READ else judgement.on(pairs, "pairs")

    def _all(self) -> Iterator[tuple[str, Judgement]]:
        yield "S-01", self.stages()
        for id, name in (("S-02", COLUMNS[3]), ("S-08", COLUMNS[0]), ("S-09", COLUMNS[1]), ("S-10", COLUMNS[2])):
            yield id, self.far_above(TOKEN, name, n=self.study.uniform if id == "S-09" else self.study.seeds)
        start = self.metrics.curves(STANDARD, "attention entropy").values[:, 0]
        yield "S-03", Judgement(
            measured=f"entropy {start.mean():.4f} of 1 (lowest {start.min():.4f})", n=len(start),
            verdict=HOLDS if start.min() >= 0.95 else DIFFERS,
        )  # fmt: skip
        yield "S-06", self.chance()
        yield "S-07", self.together()
        yield "S-11", self.not_trivial(COLUMNS[0])
        yield "S-12", self.not_trivial(COLUMNS[1], COLUMNS[2])
        yield "S-13", self.ranks(TOKEN)
        yield "S-14", self.columns_hold(BLEU)
        yield "S-15", self.columns_hold(TRAIN, TRAIN_BLEU)
        yield "S-16", self.harsh()
        yield "S-17", Judgement(
            measured=f"{self.value(SUMMARY, 'training pairs'):,.0f} training pairs, median "
            f"{self.value(SUMMARY, 'median source length'):g} source and "
            f"{self.value(SUMMARY, 'median target length'):g} target pieces, without <s> and </s>",
            verdict=NOT_COMPARABLE,
        )  # fmt: skip
        yield "S-19", parameters()
        yield "S-32", self.far_above(SUMMARY, "A(β_IBM, β_px)", n=1, more=("A(β_uf, β_IBM)", "A(β_IBM, β_uf)"))
        yield "S-49", three_words()
        if self.study.linear:
            yield "S-50", self.solved()
            yield "S-51", self.favours()
            yield "S-52", self.as_good()
        yield "S-53", self.rise_and_fall()
        yield "S-58", Judgement(measured="seconds in run.json", verdict=NOT_COMPARABLE)
        yield "B-13", self.overlap()
        shaped = self.interval(SUMMARY, SHAPED)
        yield "B-14", Judgement(
            measured=f"{100 * self.value(TOKEN, COLUMNS[3]):.1f} against {100 * self.value(TOKEN, COLUMNS[0]):.1f}",
            interval=(100 * shaped.low, 100 * shaped.high),
            of="the difference", n=self.study.seeds, verdict=by_sign(shaped),
        )  # fmt: skip

    def far_above(self, table: str, name: str, n: int, more: tuple[str, ...] = ()) -> Judgement:
        """Against the chance level of the table's own part; `n` runs are drawn."""
        low, high = self.interval(table, name)
        chance = self.value(table, "chance")
        others = "".join(f"; {other} {100 * self.value(table, other):.1f}" for other in more)
        return Judgement(
            measured=f"{100 * self.value(table, name):.1f} against Â {100 * chance:.1f}{others}",
            interval=(100 * low, 100 * high), n=n,
            verdict=by_sign(Interval(low - FAR * chance, high - FAR * chance)),
        )  # fmt: skip

    def learned(self) -> np.ndarray:
        """Which standard runs learn: where both α and β come to find far more links than chance does."""
        largest = [self.metrics.curves(STANDARD, name).values.max(axis=1) for name in (PROBE, ATTENTION)]
        return np.minimum(*largest) >= FAR * self.value(SUMMARY, LINK_CHANCE)

    def reached(self, name: str, share: float) -> np.ndarray:
        """The first checkpoint at which each standard run that learns has made that share of the way from its value at
        step 0 to its largest."""
        curves = self.metrics.curves(STANDARD, name)
        values = curves.values[self.learned()]
        start, largest = values[:, :1], values.max(axis=1, keepdims=True)
        return curves.steps[(values >= start + share * (largest - start)).argmax(axis=1)]

    def stages(self) -> Judgement:
        beta, alpha = self.reached(PROBE, 0.5), self.reached(ATTENTION, 0.5)
        steps = ", ".join(f"{b} and {a}" for b, a in zip(beta, alpha, strict=True))
        factor = later_by(beta.astype(float).tolist(), alpha.astype(float).tolist())
        return self._of_runs_that_learn(f"β and α at steps {steps}", by_factor(factor), factor, "the factor")

    def overlap(self) -> Judgement:
        found = self.reached(ATTENTION, 0.25) < self.reached(PROBE, 0.75)
        judged = self._of_runs_that_learn(f"{found.sum()} of {len(found)} runs", all_or_none(found.tolist()))
        return judged.along(len(self.metrics.curves(STANDARD, PROBE).steps))

    def _of_runs_that_learn(
        self, measured: str, verdict: str, interval: Interval | None = None, of: str = ""
    ) -> Judgement:
        learned = self.learned()
        if not learned.any():
            return Judgement(measured="no run learns", n=len(learned), verdict=NOT_JUDGED)
        less = "" if learned.all() else f"; {learned.sum()} of {len(learned)} runs learn"
        return Judgement(measured=measured + less, n=int(learned.sum()), verdict=verdict, interval=interval, of=of)

    def chance(self) -> Judgement:
        low, high = self.interval(SUMMARY, "A(random order, α)")
        chance = self.value(SUMMARY, "chance")
        return Judgement(
            measured=f"{100 * self.value(SUMMARY, 'A(random order, α)'):.2f}; mean of ⌈.05 L⌉/L {100 * chance:.2f}",
            interval=(100 * low, 100 * high), verdict=HOLDS if low <= chance <= high else DIFFERS,
        )  # fmt: skip

    def together(self) -> Judgement:
        from attndyn.measures.agreement import kendall_tau

        agreement, accuracy = (self.metrics.curves(STANDARD, name).values for name in ("A(α, α)", "accuracy"))
        try:
            taus = kendall_tau(agreement, accuracy).values
        except ValueError:  # a curve that does not move has no order
            return Judgement(measured="a curve stays where it is in every run", n=len(accuracy), verdict=INCONCLUSIVE)
        moved = taus[~taus.isnan()]
        low, high, still = float(moved.min()), float(moved.max()), len(taus) - len(moved)
        why = f"in {still} of {len(taus)} runs a curve stays where it is" if still else ""
        told, interval = f"τ {low:.2f} to {high:.2f}", None
        if len(moved) > 1:
            interval = mean_interval(moved.tolist(), -1.0, 1.0)
        verdict = INCONCLUSIVE if interval is None else by_sign(interval)
        found = Judgement(measured=told, n=len(moved), verdict=verdict, interval=interval, of="the mean", why=why)
        return found.along(accuracy.shape[1])

    def xis(self, table: str, name: str) -> np.ndarray:
        """ξ of each gold run; NaN: never."""
        return self.metrics.curves(table, f"ξ of {name}").values[:, 0]

    def not_trivial(self, *names: str) -> Judgement:
        star = self.each(TOKEN, "ξ*")
        found = {name: self.xis(TOKEN, name) for name in names}
        fine = [
            bool(value >= 0.5 * best) for values in found.values() for value, best in zip(values, star, strict=True)
        ]
        start = self.metrics.curves(STANDARD, "accuracy").values[:, 0]
        unlearned = int((star <= start).sum())
        why = f"{unlearned} of {len(star)} gold runs are never better than at step 0" if unlearned else ""
        return Judgement(
            measured="; ".join(f"{name}: {percent(values)}" for name, values in found.items())
            + f"; ξ* {100 * star.min():.1f} to {100 * star.max():.1f}",
            n=len(star), verdict=all_or_none(fine),
        ).undecided(why)  # fmt: skip

    def ranks(self, table: str) -> Judgement:
        found = "; ".join(f"{name} {self.value(table, name):.3f}" for name in RANKS)
        verdict = all_of([by_sign(self.interval(table, name)) for name in RANKS])
        return Judgement(measured=found, n=self.study.seeds, verdict=verdict)

    def columns_hold(self, *tables: str) -> Judgement:
        """By the agreement and by Kendall's τ."""
        judged = [self.far_above(table, name, self.study.seeds) for table in tables for name in COLUMNS[:3]]
        judged += [self.ranks(table) for table in tables]
        found = [
            f"{table}: " + " / ".join(f"{100 * self.value(table, name):.1f}" for name in COLUMNS[:3])
            + f", Â {100 * self.value(table, 'chance'):.1f}"
            + f", ξ {percent(self.xis(table, COLUMNS[0]), 1 if 'BLEU' in table else 100)}"
            + f", τ {' / '.join(f'{self.value(table, name):.3f}' for name in RANKS)}"
            for table in tables
        ]  # fmt: skip
        verdict = all_of([one.verdict for one in judged])
        return Judgement(measured="; ".join(found), n=self.study.seeds, verdict=verdict)

    def harsh(self) -> Judgement:
        with np.errstate(invalid="ignore", divide="ignore"):  # where nothing is translated, ξ* is 0 by BLEU
            by_token, by_bleu = (self.xis(table, COLUMNS[0]) / self.each(table, "ξ*") for table in (TOKEN, BLEU))
        fine = [bool(b < t) for t, b in zip(by_token, by_bleu, strict=True) if np.isfinite(b + t)]
        verdict = all_or_none(fine) if len(fine) == len(by_token) else INCONCLUSIVE
        shares = (percent(values) for values in (by_token, by_bleu))
        return Judgement(
            measured="ξ/ξ* by token accuracy {}, by BLEU {}".format(*shares), n=len(by_token), verdict=verdict
        )

    def solved(self) -> Judgement:
        share = self.metrics.curves(LINEAR, "α_opt solved").last
        return Judgement(
            measured=f"{100 * share.min():.2f} % of the positions", n=len(share),
            verdict=HOLDS if share.min() >= 0.99 else DIFFERS,
        )  # fmt: skip

    def favours(self) -> Judgement:
        found, chance = (self.metrics.curves(LINEAR, name).last for name in ("A(α_opt, β)", "chance"))
        return Judgement(
            measured=f"{100 * found.mean():.1f} against Â {100 * chance.mean():.1f}", n=len(found),
            verdict=HOLDS if (found > FAR * chance).all() else DIFFERS, why=self.one_run("no interval"),
        )  # fmt: skip

    def as_good(self) -> Judgement:
        linear, hidden = (self.metrics.curves(name, "BLEU").values.max(axis=1).mean() for name in (LINEAR, STANDARD))
        low, high = self.interval(SUMMARY, LINEAR_APART)
        verdict = HOLDS if low > -CLOSE and high < CLOSE else DIFFERS if high < -CLOSE else INCONCLUSIVE
        return Judgement(
            measured=f"BLEU {linear:.1f} against {hidden:.1f}", interval=(low, high),
            of="the difference", n=self.study.linear,
            verdict=NOT_JUDGED if hidden < LEARNED else verdict,
            why=self.one_run("the interval is over pairs and standard runs"),
        )  # fmt: skip

    def one_run(self, then: str) -> str:
        return f"one run with a linear head: {then}" if self.study.linear == 1 else ""

    def rise_and_fall(self) -> Judgement:
        curves = self.metrics.curves(UNIFORM, COLUMNS[0])
        low, high = self.interval(SUMMARY, INFLATED)
        peak, last = curves.values.argmax(axis=1), len(curves.steps) - 1
        little = HOLDS if high < LITTLE else DIFFERS if low > LITTLE else INCONCLUSIVE
        moves = [by_sign(self.interval(SUMMARY, name)) for name in (RISEN, FALLEN)]
        verdict = DIFFERS if (peak == last).all() else all_of([*moves, little])
        found = ", ".join(
            f"{100 * row.max():.1f} at step {curves.steps[p]}" for row, p in zip(curves.values, peak, strict=True)
        )
        return Judgement(
            measured=f"largest {found}; at the end {100 * curves.last.mean():.1f}; by pairs that did not choose it, it "
            f"rises by {100 * self.value(SUMMARY, RISEN):.1f} and falls by {100 * self.value(SUMMARY, FALLEN):.1f}; "
            f"the maximum adds {100 * self.value(SUMMARY, INFLATED):.1f}",
            interval=(100 * low, 100 * high), of="what the maximum adds", n=len(peak), verdict=verdict,
        ).along(len(curves.steps))  # fmt: skip


def percent(values: np.ndarray, scale: int = 100) -> str:
    return ", ".join("never" if not np.isfinite(value) else f"{scale * value:.1f}" for value in values)


def parameters() -> Judgement:
    from attndyn.models.specs import Translator

    sizes = {name: p.numel() for name, p in Translator().build(8000, [0]).named_parameters()}
    embedding = sizes.pop("embedding.weight")
    found = sum(sizes.values()), embedding
    return Judgement(measured=f"{found[0]:,} + {found[1]:,}", verdict=HOLDS if found == PARAMETERS else DIFFERS)


def three_words() -> Judgement:
    """The example of A.1: γ = (0, 0, 0), (0, −10, 5), (0, 5, −10), the first output is right."""
    import torch

    from attndyn.probes.optimal import optimal_attention

    votes = torch.tensor([[0.0, 0, 0], [0, -10, 5], [0, 5, -10]], dtype=torch.float64)
    best = optimal_attention(votes, torch.zeros(1, 3, dtype=torch.float64), torch.tensor([0]), tolerance=1e-9)
    beta = votes.softmax(dim=-1)[:, 0]
    alpha, p = best.alpha[0].tolist(), float((-best.loss[0]).exp())
    wanted = [0, 0.5, 0.5, 1 / 3, 0.0067, 0.0067, 0.859]
    near = bool(np.allclose([*alpha, *beta.tolist(), p], wanted, atol=1e-3))
    listed = ["; ".join(f"{value:.4f}" for value in values) for values in (alpha, beta.tolist())]
    return Judgement(
        measured=f"α ({listed[0]}), β ({listed[1]}), p {p:.3f}",
        verdict=HOLDS if near else DIFFERS,
    )
