"""The judgements of `word-translation`, and the tables of its page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from attndyn.measures.verdicts import DIFFERS, HOLDS, INCONCLUSIVE, NOT_COMPARABLE, NOT_JUDGED
from attndyn.report.parts import Cell, Table
from attndyn.studies.base import Judgement
from attndyn.studies.translation_names import COLUMNS, DICTIONARY, LINEAR, RANKS, STANDARD, SUMMARY, TABLES, UNIFORM
from attndyn.studies.translation_statements import FAR, LEARNED, PARAMETERS

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics
    from attndyn.studies.word_translation import WordTranslation

TOKEN, BLEU, TRAIN, TRAIN_BLEU = TABLES.values()


def all_or_none(found: list[bool]) -> str:
    if all(found):
        return HOLDS
    return INCONCLUSIVE if any(found) else DIFFERS


class Judge:
    def __init__(self, study: WordTranslation, metrics: Metrics) -> None:
        self.study, self.metrics = study, metrics

    def value(self, table: str, name: str) -> float:
        return float(self.metrics.curves(table, name).values[0, 0])

    def each(self, table: str, name: str) -> np.ndarray:
        """One number for each gold run."""
        return np.nanmax(self.metrics.curves(table, name).values, axis=1)

    def all(self) -> Iterator[tuple[str, Judgement]]:
        yield "S-01", self.stages()
        for id, name in (("S-02", COLUMNS[3]), ("S-08", COLUMNS[0]), ("S-09", COLUMNS[1]), ("S-10", COLUMNS[2])):
            yield id, self.far_above(TOKEN, name)
        start = self.metrics.curves(STANDARD, "attention entropy").values[:, 0]
        yield "S-03", Judgement(
            measured=f"entropy {start.mean():.4f} of 1 (lowest {start.min():.4f})", n=len(start),
            verdict=HOLDS if start.min() >= 0.95 else DIFFERS,
        )  # fmt: skip
        yield "S-06", self.chance()
        yield "S-07", self.together()
        yield "S-11", self.not_trivial(COLUMNS[0])
        yield "S-12", self.not_trivial(COLUMNS[1], COLUMNS[2])
        yield "S-13", self.ranks()
        yield "S-14", self.columns_hold(BLEU)
        yield "S-15", self.columns_hold(TRAIN, TRAIN_BLEU)
        yield "S-16", self.harsh()
        yield "S-17", Judgement(
            measured=f"{self.value(SUMMARY, 'training pairs'):,.0f} training pairs, median "
            f"{self.value(SUMMARY, 'median source length'):.0f} source and "
            f"{self.value(SUMMARY, 'median target length'):.0f} target pieces",
            verdict=NOT_COMPARABLE,
        )  # fmt: skip
        yield "S-19", parameters()
        yield "S-32", self.far_above(SUMMARY, "A(β_IBM, β_px)", more=("A(β_uf, β_IBM)", "A(β_IBM, β_uf)"))
        yield "S-49", three_words()
        if self.study.linear:
            yield "S-50", self.solved()
            yield "S-51", self.favours()
            yield "S-52", self.as_good()
        yield "S-53", self.rise_and_fall()
        yield "S-58", Judgement(measured="seconds in run.json", verdict=NOT_COMPARABLE)
        yield "B-13", self.overlap()
        low, high = (self.value(SUMMARY, f"A(α, β) minus A(α, β_uf) {end}") for end in ("low", "high"))
        yield "B-14", Judgement(
            measured=f"{100 * self.value(TOKEN, COLUMNS[3]):.1f} against {100 * self.value(TOKEN, COLUMNS[0]):.1f}",
            interval=(100 * low, 100 * high), n=self.study.seeds,
            verdict=HOLDS if low > 0 else DIFFERS if high < 0 else INCONCLUSIVE,
        )  # fmt: skip

    def far_above(self, table: str, name: str, more: tuple[str, ...] = ()) -> Judgement:
        low, high = (self.value(table, f"{name} {end}") for end in ("low", "high"))
        chance = FAR * self.value(SUMMARY, "chance")
        others = "".join(f"; {other} {100 * self.value(table, other):.1f}" for other in more)
        return Judgement(
            measured=f"{100 * self.value(table, name):.1f} against Â {100 * chance / FAR:.1f}{others}",
            interval=(100 * low, 100 * high), n=self.study.seeds,
            verdict=HOLDS if low > chance else DIFFERS if high < chance else INCONCLUSIVE,
        )  # fmt: skip

    def reached(self, name: str, share: float) -> np.ndarray:
        """The first checkpoint at which each standard run has made that share of the way to its largest value."""
        curves = self.metrics.curves(STANDARD, name)
        passed = curves.values >= share * curves.values.max(axis=1, keepdims=True)
        return curves.steps[passed.argmax(axis=1)]

    def stages(self) -> Judgement:
        beta, alpha = self.reached("probe on link", 0.5), self.reached("attention on link", 0.5)
        steps = ", ".join(f"{b} and {a}" for b, a in zip(beta, alpha, strict=True))
        verdict = HOLDS if (beta < alpha).all() else DIFFERS if (beta > alpha).any() else INCONCLUSIVE
        return Judgement(measured=f"β and α at steps {steps}", n=len(beta), verdict=verdict)

    def overlap(self) -> Judgement:
        found = self.reached("attention on link", 0.25) < self.reached("probe on link", 0.75)
        return Judgement(
            measured=f"{found.sum()} of {len(found)} runs", n=len(found), verdict=all_or_none(found.tolist())
        )

    def chance(self) -> Judgement:
        low, high = (self.value(SUMMARY, f"A(random order, α) {end}") for end in ("low", "high"))
        chance = self.value(SUMMARY, "chance")
        return Judgement(
            measured=f"{100 * self.value(SUMMARY, 'A(random order, α)'):.2f}; mean of ⌈.05 L⌉/L {100 * chance:.2f}",
            interval=(100 * low, 100 * high), verdict=HOLDS if low <= chance <= high else DIFFERS,
        )  # fmt: skip

    def together(self) -> Judgement:
        from scipy.stats import kendalltau

        agreement, accuracy = (self.metrics.curves(STANDARD, name).values for name in ("A(α, α)", "accuracy"))
        taus = [float(kendalltau(a, p).statistic) for a, p in zip(agreement, accuracy, strict=True)]
        verdict = HOLDS if min(taus) > 0.5 else DIFFERS if min(taus) < 0 else INCONCLUSIVE
        return Judgement(measured=f"τ {min(taus):.2f} to {max(taus):.2f}", n=len(taus), verdict=verdict)

    def xis(self, table: str, name: str) -> np.ndarray:
        """ξ of each gold run; NaN: never."""
        return self.metrics.curves(table, f"ξ of {name}").values[:, 0]

    def not_trivial(self, *names: str) -> Judgement:
        star = self.each(TOKEN, "ξ*")
        found = {name: self.xis(TOKEN, name) for name in names}
        fine = [
            bool(value >= 0.5 * best) for values in found.values() for value, best in zip(values, star, strict=True)
        ]
        return Judgement(
            measured="; ".join(f"{name}: {percent(values)}" for name, values in found.items())
            + f"; ξ* {100 * star.min():.1f} to {100 * star.max():.1f}",
            n=len(star), verdict=all_or_none(fine),
        )  # fmt: skip

    def ranks(self) -> Judgement:
        ends = [[self.value(SUMMARY, f"{name} {end}") for end in ("low", "high")] for name in RANKS]
        verdict = INCONCLUSIVE
        if all(low > 0 for low, _ in ends):
            verdict = HOLDS
        elif any(high < 0 for _, high in ends):
            verdict = DIFFERS
        found = "; ".join(f"{name} {self.value(SUMMARY, name):.3f}" for name in RANKS)
        return Judgement(measured=found, n=self.study.seeds, verdict=verdict)

    def columns_hold(self, *tables: str) -> Judgement:
        judged = [self.far_above(table, name) for table in tables for name in COLUMNS[:3]]
        verdicts = {one.verdict for one in judged}
        verdict = HOLDS if verdicts == {HOLDS} else DIFFERS if DIFFERS in verdicts else INCONCLUSIVE
        found = [
            f"{table}: " + " / ".join(f"{100 * self.value(table, name):.1f}" for name in COLUMNS[:3])
            + f", ξ {percent(self.xis(table, COLUMNS[0]), 1 if 'BLEU' in table else 100)}"
            for table in tables
        ]  # fmt: skip
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
            verdict=HOLDS if (found > FAR * chance).all() else DIFFERS,
        )  # fmt: skip

    def as_good(self) -> Judgement:
        linear, hidden = (self.metrics.curves(name, "BLEU").values.max(axis=1).mean() for name in (LINEAR, STANDARD))
        apart = linear - hidden
        verdict = HOLDS if abs(apart) <= 2 else DIFFERS if apart < 0 else INCONCLUSIVE
        if hidden < LEARNED:
            verdict = NOT_JUDGED
        return Judgement(measured=f"BLEU {linear:.1f} against {hidden:.1f}", n=self.study.linear, verdict=verdict)

    def rise_and_fall(self) -> Judgement:
        curves = self.metrics.curves(UNIFORM, COLUMNS[0])
        peak, last = curves.values.argmax(axis=1), len(curves.steps) - 1
        verdict = INCONCLUSIVE
        if ((peak > 0) & (peak < last)).all():
            verdict = HOLDS
        elif (peak == last).all():
            verdict = DIFFERS
        found = ", ".join(
            f"{100 * row.max():.1f} at step {curves.steps[p]}" for row, p in zip(curves.values, peak, strict=True)
        )
        return Judgement(
            measured=f"largest {found}; at the end {100 * curves.last.mean():.1f}", n=len(peak), verdict=verdict
        )

    # --- parts of the page

    def columns_table(self) -> Table:
        rows: list[tuple[Cell, ...]] = []
        for (_, measure), table in TABLES.items():
            scale = 100 if measure == "accuracy" else 1
            cells = [
                f"{100 * self.value(table, name):.1f} ({100 * self.value(table, f'{name} low'):.1f} to "
                f"{100 * self.value(table, f'{name} high'):.1f})"
                for name in COLUMNS
            ]
            xis = [percent(self.xis(table, name), scale) for name in COLUMNS[:3]]
            rows.append((table, *cells, f"{100 * self.value(SUMMARY, 'chance'):.1f}", *xis,
                         percent(self.each(table, "ξ*"), scale)))  # fmt: skip
        return Table(
            name="columns",
            title="How much agrees with what",
            caption="In %, with 95 % intervals over runs and pairs. α and Δ are those of the gold checkpoint; β_uf is "
            "the probe under uniform attention; ξ is the performance of other runs where their attention first agrees "
            "with the gold attention more than that. One number for each gold run.",
            columns=("table", *COLUMNS, "Â", *(f"ξ of {name}" for name in COLUMNS[:3]), "ξ*"),
            rows=tuple(rows),
        )

    def dictionary(self) -> Table:
        """The first words of the dictionary, along training."""
        entries = []
        names = self.metrics.table.filter(self.metrics.table["condition"].to_numpy() == DICTIONARY)[
            "metric"
        ].to_pylist()
        occurrences = self.metrics.curves(DICTIONARY, "links").values[:, 0]
        for name in dict.fromkeys(name for name in names if name.startswith("β_uf")):
            curves = self.metrics.curves(DICTIONARY, name)
            entries.append((name.removeprefix("β_uf: "), int(occurrences[curves.replicas[0]]), curves))
        steps = entries[0][2].steps if entries else np.array([], dtype=int)
        shown = [n for n in range(len(steps)) if n < 6 or n % 4 == 0 or n == len(steps) - 1]
        return Table(
            name="dictionary",
            title="The first words of the dictionary",
            caption="The words that IBM Model 1 links most often in the pairs that were read: at how many % of the "
            "links β of a run under uniform attention is largest at the linked source word, along training.",
            columns=("source → target", "links", *(f"step {steps[n]}" for n in shown)),
            rows=tuple(
                (pair, count, *(f"{100 * curves.values[0, n]:.0f}" for n in shown)) for pair, count, curves in entries
            ),
        )

    def more(self) -> Table:
        names = (
            "positions", "pairs", "training pairs", "training pairs left out", "validation pairs left out",
            "median source length", "median target length", "linked positions", "A(β_IBM, β_uf)", "A(β_uf, β_IBM)",
            "A(β_IBM, β_px)", *RANKS,
        )  # fmt: skip
        rows: list[tuple[Cell, ...]] = [(name, f"{self.value(SUMMARY, name):,.4g}") for name in names]
        for name in (STANDARD, UNIFORM, *([LINEAR] if self.study.linear else [])):
            loss = self.metrics.curves(name, "loss").values.min(axis=1).mean()
            rows.append((f"lowest perplexity, {name}", f"{np.exp(loss):.2f}"))
        if self.study.linear:
            for name in ("A(α_opt, β)", "A(α_opt, α)", "loss above α_opt"):
                rows.append((f"{name}, linear head", f"{self.metrics.curves(LINEAR, name).last.mean():.3f}"))
        return Table(
            name="more",
            title="More numbers",
            caption="Agreements as shares.",
            columns=("what", "value"),
            rows=tuple(rows),
        )


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
