"""The tables on the page of `word-translation`."""

from __future__ import annotations

import numpy as np

from attndyn.report.parts import Cell, Table, number
from attndyn.studies.translation_claims import Judge, percent
from attndyn.studies.translation_names import (
    COLUMNS,
    DICTIONARY,
    LINEAR,
    LINK_CHANCE,
    RANKS,
    STANDARD,
    SUMMARY,
    TABLES,
    UNIFORM,
)  # fmt: skip


class Tables(Judge):
    """Reads the tables of a run, for the page."""

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
            rows.append((table, *cells, f"{100 * self.value(table, 'chance'):.1f}", *xis,
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

    def ranks_table(self) -> Table:
        def cell(table: str, name: str) -> str:
            value, low, high = (self.value(table, name + ending) for ending in ("", " low", " high"))
            return f"{value:.3f} ({low:.3f} to {high:.3f})"

        return Table(
            name="ranks",
            title="The same with Kendall's τ",
            caption="In place of the agreement, with 95 % intervals over runs and pairs; on at most 1,000 target "
            "positions of a part. Without any relation τ is 0.",
            columns=("table", *RANKS),
            rows=tuple((table, *(cell(table, name) for name in RANKS)) for table in TABLES.values()),
        )

    def dictionary(self) -> Table:
        """The first words of the dictionary, along training."""
        entries = []
        names = self.metrics.table.filter(self.metrics.table["condition"].to_numpy() == DICTIONARY)[
            "metric"
        ].to_pylist()
        for name in dict.fromkeys(name for name in names if name.startswith("β_uf")):
            curves, occurrences = (self.metrics.curves(DICTIONARY, one) for one in (name, "links"))
            entries.append((name.removeprefix("β_uf: "), int(occurrences.values[curves.replicas[0], 0]), curves))
        steps = entries[0][2].steps if entries else np.array([], dtype=int)
        shown = [n for n in range(len(steps)) if n < 6 or n % 4 == 0 or n == len(steps) - 1]
        return Table(
            name="dictionary",
            title="The first words of the dictionary",
            caption="The words that IBM Model 1 links most often in the pairs that were read: at how many % of the "
            "links β of a run under uniform attention is largest at the linked source word, along training."
            + ("" if entries else " Here no link is between pieces that are whole words of three letters or more."),
            columns=("source → target", "links", *(f"step {steps[n]}" for n in shown)),
            rows=tuple(
                (pair, count, *(f"{100 * curves.values[0, n]:.0f}" for n in shown)) for pair, count, curves in entries
            ),
        )

    def more(self) -> Table:
        names = (
            "positions", "pairs", "training pairs", "training pairs left out", "validation pairs left out",
            "median source length", "median target length", "linked positions", LINK_CHANCE, "A(β_IBM, β_uf)",
            "A(β_uf, β_IBM)", "A(β_IBM, β_px)",
        )  # fmt: skip
        rows: list[tuple[Cell, ...]] = [(name, number(self.value(SUMMARY, name))) for name in names]
        for name in (STANDARD, UNIFORM, *([LINEAR] if self.study.linear else [])):
            loss = self.metrics.curves(name, "loss").values.min(axis=1).mean()
            rows.append((f"lowest perplexity, {name}", f"{np.exp(loss):.2f}"))
        if self.study.linear:
            for name in ("A(α_opt, β)", "A(α_opt, α)", "loss above α_opt"):
                rows.append((f"{name}, linear head", f"{self.metrics.curves(LINEAR, name).last.mean():.3f}"))
        return Table(
            name="more",
            title="More numbers",
            caption="Agreements as shares. Lengths without <s> and </s>. A position is linked if IBM Model 1 links it "
            "to a source piece other than <s> and </s>.",
            columns=("what", "value"),
            rows=tuple(rows),
        )
