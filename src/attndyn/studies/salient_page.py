"""The tables on the page of `salient-words`."""

from __future__ import annotations

from collections.abc import Iterator

from attndyn.report.parts import Cell, Table
from attndyn.studies.salient_claims import Judge, never
from attndyn.studies.salient_names import CODE, COLUMNS, KENDALL, STANDARD, SUMMARY, TEXT, TRAIN, VECTORS
from attndyn.studies.salient_statements import HEADS, PUBLISHED_PARAMETERS, published


class Tables(Judge):
    """Reads the tables of a run, for the page."""

    def _row(self, table: str) -> list[Cell]:
        """The ten columns of table 1, in %."""
        agreements = [self.range_of(table, name) for name in COLUMNS]
        thresholds = [self._mean(table, metric) for metric in (*(f"ξ of {name}" for name in COLUMNS), "ξ*")]
        return [*agreements, _cell(100 * self.value(table, "chance")), *thresholds]

    def range_of(self, table: str, name: str) -> str:
        value, spread = self.value(table, name), self.between(table, name)
        return f"{100 * value:.2f} ({100 * spread.low:.2f}–{100 * spread.high:.2f})"

    def _mean(self, table: str, metric: str) -> Cell:
        """Over the runs that have a value, and how many have none."""
        return never(self.each(table, metric))

    def table_one(self) -> Table:
        rows: list[tuple[Cell, ...]] = []
        for table in (CODE, TEXT, TRAIN):
            rows.append((table, *self._row(table)))
            known = published(self.corpus, table)
            if known is not None:
                rows.append((f"published: {table}", *(_cell(value) for value in known)))
        return Table(
            name="agreement-columns",
            title="Do attention, votes and influence agree?",
            caption="In %: how often the peak of the first is among the top 5 % of the second; means over gold runs "
            "and seeds, with 95 % intervals over these and texts. ξ: the accuracy at which the attention of another "
            "run agrees with the gold attention as well as that; ξ*: the accuracy of the gold run. How the code and "
            "the text are read: docs/salient-words.md.",
            columns=("", *HEADS),
            rows=tuple(rows),
        )

    def more_tables(self) -> Iterator[Table]:
        seeds = self.study.seeds_of(STANDARD)
        runs = [
            (f"gold run {chr(65 + g)}", _cell(100 * self.each(f"{CODE}, by gold run", COLUMNS[0])[g]),
             _cell(100 * self.each(CODE, f"ξ of {COLUMNS[0]}")[g]), _cell(100 * self.each(CODE, "ξ*")[g]),
             *(self.each(STANDARD, f"half of {name} at")[g] for name in ("A(α, β)", "A(α, α)")))
            for g in range(len(seeds))
        ]  # fmt: skip
        yield Table(
            name="gold-runs",
            title="Each standard run as gold",
            caption="The first column of table 1 with each run as gold in turn; and the steps at which A(α_gold, β) "
            "and A(α_gold, α) of that run, against the gold of the others, reach half of their final value.",
            columns=("", COLUMNS[0], f"ξ of {COLUMNS[0]}", "ξ*", "half of β at", "half of α at"),
            rows=tuple(runs),
        )
        yield Table(
            name="kendall",
            title="The same with Kendall's τ",
            caption=f"Mean τ over {self.value(KENDALL, 'texts'):.0f} texts, the first standard run as gold; ξ: the "
            "accuracy of the second where its α agrees with the gold α as well as that. A text in which τ is undefined "
            "in a run (one of the two is constant) is left out there, and counted once. τ is the largest over "
            "checkpoints; for its interval each half of the texts is taken at the checkpoint that the other chooses.",
            columns=("", "τ", "low", "high", "ξ, %", "undefined"),
            rows=tuple(
                (name.replace("A(", "τ("),
                 *(round(self.value(KENDALL, name + end), 4) for end in ("", " low", " high")),
                 _cell(100 * self.value(KENDALL, f"ξ of {name}")), int(self.value(KENDALL, f"{name} undefined")))
                for name in COLUMNS
            ),
        )  # fmt: skip
        others = [
            "A(α, α of another seed)", "A(α, β of the same run)", "A(α, α_fr)", "A(β_log, β_uf)", "A(β_uf, β_log)",
            "A(β_count, β_uf)", "A(α, β_count)", "A(α, Δ)", "A(α, Δ_loo)", "A(Δ, Δ_loo)", "A(Δ_loo, β_uf)",
            *(f"{COLUMNS[0]}, {name}" for name in VECTORS), "A(random order, α)",
        ]  # fmt: skip
        known = set(self.metrics.curves_of(SUMMARY))
        yield Table(
            name="other-measures",
            title="Other agreements",
            caption="In %, with 95 % intervals over seeds and texts. α_fr: attention trained while all else stays at "
            "random (table 9). β_log: logistic regression (table 10); β_count: polarity by counting words; Δ_loo: "
            f"influence by leaving a word out, in {self.value(SUMMARY, 'texts with words left out'):.0f} texts.",
            columns=("", "%", "low", "high"),
            rows=tuple(
                (name, *(_cell(100 * self.value(SUMMARY, name + end)) for end in ("", " low", " high")))
                for name in others
                if name in known
            ),
        )
        yield self._corpus()

    def _corpus(self) -> Table:
        data = self.study.task.data
        spec, sizes = data.corpus, self.study.vocabularies
        words = spec.published_vocabulary if spec else None
        return Table(
            name="corpus",
            title="The corpus",
            caption="Table 8 and A.8, beside what is published. Words: <bos>, <eos>, <unk> and padding included. The "
            "paper's text has the first rule, the authors' program the second; the second is known where there are "
            f"vectors. Here: {self.study.vocabulary}.",
            columns=("", "measured", "published"),
            rows=(
                ("training texts", len(data.train), spec.published_train if spec else None),
                ("test texts", data.parts["test"].examples, None),
                ("of which are read", int(self.value(SUMMARY, "evaluation examples")), None),
                ("median length", self.value(SUMMARY, "median length"), spec.published_median if spec else None),
                ("words seen three times", sizes["count"], words),
                ("words seen three times or with a vector", sizes.get("count or vector"), words),
                ("parameters without embeddings", int(self.value(SUMMARY, "parameters")), PUBLISHED_PARAMETERS),
                ("texts cut", int(self.value(SUMMARY, "texts cut")), None),
            ),
        )


def _cell(value: float | None) -> Cell:
    if value is None:
        return None
    return "never" if value != value else round(value, 2)
