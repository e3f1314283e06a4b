"""The statements of `attention-as-alignment`, how its runs decide them, and the tables of its page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from attndyn.measures.verdicts import DIFFERS, HOLDS, INCONCLUSIVE, Interval, by_factor, by_margin, by_sign, later_by
from attndyn.report.parts import Cell, Table, number
from attndyn.studies.alignment_names import (
    ALIGNMENT,
    ALPHA,
    BETA,
    CHANCE,
    COUNTS,
    DELTA,
    EARLY,
    IBM_PIECES,
    IBM_WORDS,
    INSIDE,
    LATE,
    PROXY_BETA,
    UNIFORM_BETA,
)  # fmt: skip
from attndyn.studies.base import Judgement, Statement
from attndyn.studies.translation_names import SUMMARY

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics
    from attndyn.studies.attention_as_alignment import AttentionAsAlignment

OWN = "none: a question the papers leave open"
LEAST = 0.05
"""By how much an AER has to fall below chance before there is a way to be halfway on."""
ALIKE = 0.05
"""Two dictionaries align equally well if their AER differs by less."""

OF_UNIFORM = ("A-01", "A-03", "A-05", "A-06")
"""What is over the runs under uniform attention."""
OF_STANDARD = ("A-01", "A-02", "A-03", "A-04", "A-06", "A-07")
"""What is over the standard runs."""


def _own(id: str, statement: str, rule: str) -> Statement:
    return Statement(id=id, source="this study", statement=statement, published=OWN, rule=rule)


STATEMENTS = (
    Statement(
        id="S-33",
        source="§4.2",
        statement="α_IBM grows with β_IBM within a sentence",
        published="exact",
        rule="holds if no two source words of a gold pair are ordered differently by α_IBM and β_IBM for any target "
        "word that the table knows, else differs",
    ),
    _own(
        "A-01",
        "the dictionary aligns before the attention does: β under uniform attention, then α",
        "a stage is the first checkpoint halfway from the AER of chance to the lowest of the run, if that is "
        f"{LEAST:g} below chance; holds if every run under uniform attention has its stage at an earlier checkpoint "
        "than every standard run has that of α, differs if every one has it at a later checkpoint than every standard "
        "run, else inconclusive. The way of a run that ends worse is shorter, so the first checkpoints at one and the "
        "same AER are given beside it: halfway from chance to the lowest (mean over runs) of the scoring that gets "
        "less far; they decide nothing",
    ),
    _own(
        "A-02",
        "also within one run β aligns before α does",
        "stages as in A-01; holds if the interval of the factor by which α's is later than β's, its mean over the "
        "standard runs, lies above 1, differs if below, else inconclusive",
    ),
    _own(
        "A-03",
        "in the end the attention aligns better than the dictionary that pulled it",
        "AER of β_uf where it is lowest minus AER of α at the end: holds if the interval lies above 0, differs if "
        "below, else inconclusive",
    ),
    _own(
        "A-04",
        "in the end the attention aligns better than IBM Model 1 on the same pairs",
        "AER of IBM Model 1, of pieces or of words, whichever is lower, minus that of α: as A-03",
    ),
    _own(
        "A-05",
        "the bag-of-words proxy aligns as well as the dictionary learned under uniform attention",
        "AER of β_px minus AER of β_uf where it is lowest: holds if the interval lies within "
        f"±{ALIKE:g}, differs if outside, else inconclusive",
    ),
    _own(
        "A-06",
        "the attention finds the links that the dictionary had",
        "share of the sure links that α has in the end, of those that β_uf had where its AER was lowest, minus that "
        "of the others: as A-03; not judged if β_uf had none of them, or all",
    ),
    _own(
        "A-07",
        "the attention lies on the translation itself, not a piece early or late",
        "AER with α read one target piece late or early, whichever is lower, minus that of α: as A-03",
    ),
)


class Judge:
    def __init__(self, study: AttentionAsAlignment, metrics: Metrics) -> None:
        self.study, self.metrics = study, metrics

    def value(self, name: str) -> float:
        return float(self.metrics.curves(SUMMARY, name).values[0, 0])

    def interval(self, name: str) -> Interval:
        return Interval(self.value(f"{name} low"), self.value(f"{name} high"))

    @property
    def counted(self) -> str:
        """IBM Model 1 of pieces or of words, whichever aligns better."""
        return min(IBM_PIECES, IBM_WORDS, key=lambda name: self.value(f"AER of {name}"))

    def stage(self, name: str) -> np.ndarray:
        """The step at which each run is halfway from chance to its lowest AER; NaN: there is no way to go."""
        return self.first_at(name, self.halfway(self.lowest(name)))

    def lowest(self, name: str) -> np.ndarray:
        """AER of each run."""
        return self.metrics.curves(ALIGNMENT, f"AER of {name}").values.min(axis=1)

    def halfway(self, lowest: np.ndarray) -> np.ndarray:
        """The AER halfway from chance to there; NaN: it is not far enough."""
        chance = self.value(f"AER of {CHANCE}")
        return np.where(chance - lowest >= LEAST, (chance + lowest) / 2, np.nan)

    def first_at(self, name: str, level: np.ndarray) -> np.ndarray:
        """The first step at which each run has that AER or less; NaN: never."""
        curves = self.metrics.curves(ALIGNMENT, f"AER of {name}")
        passed = curves.values <= level[:, None]
        return np.where(passed.any(axis=1), curves.steps[passed.argmax(axis=1)], np.nan)

    def common(self, *names: str) -> np.ndarray:
        """One AER for all: halfway from chance to the lowest of the scoring that gets less far."""
        return self.halfway(np.array([max(self.lowest(name).mean() for name in names)]))

    def all(self) -> Iterator[tuple[str, Judgement]]:
        """All but an identity is measured on gold pairs."""
        pairs = self.value("pairs")
        for id, judgement in self._all():
            if id in OF_UNIFORM:
                judgement = judgement.over(self.study.uniform, "run under uniform attention")
            if id in OF_STANDARD:
                judgement = judgement.over(self.study.seeds, "standard run")
            yield id, judgement if id == "S-33" else judgement.on(pairs, "gold pairs")

    def _all(self) -> Iterator[tuple[str, Judgement]]:
        compared, turned = (int(self.value(f"positions {name}")) for name in ("compared", "in another order"))
        yield "S-33", Judgement(
            measured=f"{turned} of {compared:,} in another order", n=compared,
            verdict=HOLDS if compared and not turned else DIFFERS if turned else INCONCLUSIVE,
        )  # fmt: skip
        yield "A-01", self.before(UNIFORM_BETA, matched=False)
        yield "A-02", self.before(BETA, matched=True)
        yield "A-03", self.apart(UNIFORM_BETA, f"lowest {UNIFORM_BETA}")
        yield "A-04", self.apart(self.counted)
        yield "A-05", self.apart(PROXY_BETA, second=UNIFORM_BETA, margin=ALIKE)
        if "found of known links" in self.metrics.curves_of(SUMMARY):
            interval = self.interval("found of known minus other links")
            yield "A-06", Judgement(
                measured=f"{100 * self.value('found of known links'):.0f} % against "
                f"{100 * self.value('found of other links'):.0f} %",
                interval=interval, of="the difference", n=self.study.seeds, verdict=by_sign(interval),
            )  # fmt: skip
        yield "A-07", self.apart(min(LATE, EARLY, key=lambda name: self.value(f"AER of {name}")))

    def before(self, name: str, matched: bool) -> Judgement:
        first, second = self.stage(name), self.stage(ALPHA)
        pairs = list(zip(first, second, strict=True)) if matched else [(a, b) for a in first for b in second]
        level = self.common(name, ALPHA)
        same = [steps(self.first_at(one, level)) for one in (name, ALPHA)]
        measured = f"{name} at {steps(first)}, α at {steps(second)}"
        if np.isfinite(level).all():
            measured += f"; both at an AER of {level[0]:.2f}: {name} at {same[0]}, α at {same[1]}"
        verdict, factor = INCONCLUSIVE, None
        if all(np.isfinite(a + b) for a, b in pairs):
            if matched:
                factor = later_by(first.tolist(), second.tolist())
                verdict = by_factor(factor)
            elif all(a < b for a, b in pairs):
                verdict = HOLDS
            elif all(a > b for a, b in pairs):
                verdict = DIFFERS
        return Judgement(measured=measured, n=len(pairs), verdict=verdict, interval=factor, of="the factor")

    def apart(self, name: str, shown: str = "", second: str = ALPHA, margin: float | None = None) -> Judgement:
        """The AER of one scoring minus that of another, whose runs the interval draws."""
        interval = self.interval(f"AER of {name} minus {second}")
        other = f"lowest {second}" if second == UNIFORM_BETA else second
        return Judgement(
            measured=f"{name} {self.value(f'AER of {shown or name}'):.3f} against {second} "
            f"{self.value(f'AER of {other}'):.3f}",
            interval=interval,
            of="the difference", n=self.study.uniform if second == UNIFORM_BETA else self.study.seeds,
            verdict=by_sign(interval) if margin is None else by_margin(interval, margin),
        )  # fmt: skip

    # --- parts of the page

    def ends(self) -> Table:
        def row(name: str, of: str, stage: str = "") -> tuple[Cell, ...]:
            low, high = self.interval(f"AER of {of}")
            numbers = [round(self.value(f"{what} of {of}"), 3) for what in ("precision", "recall")]
            return name, round(self.value(f"AER of {of}"), 3), f"{low:.3f} to {high:.3f}", *numbers, stage or None

        trained = [
            row(f"{name} at the end", name, steps(self.stage(name))) for name in (ALPHA, BETA, DELTA, UNIFORM_BETA)
        ]
        best = [row(f"{name} where it is lowest", f"lowest {name}") for name in (ALPHA, BETA, UNIFORM_BETA)]
        counted = [row(name, name) for name in (PROXY_BETA, COUNTS, IBM_PIECES, IBM_WORDS)]
        chance: tuple[Cell, ...] = ("random links", round(self.value(f"AER of {CHANCE}"), 3), None, None, None, None)
        return Table(
            name="ends",
            title="Who aligns best",
            caption="Alignment error rate (lower is better), precision and recall against the gold links, all runs "
            "together, with 95 % intervals over runs and pairs. Halfway: the step of each run at which its AER is "
            "halfway from that of random links to its lowest. The count table is IBM Model 1 after one pass, IBM 1 "
            "after five.",
            columns=("", "AER", "interval", "precision", "recall", "halfway"),
            rows=(*trained, *best, *counted, chance),
        )

    def variants(self) -> Table:
        rows = []
        for name in (ALPHA, LATE, EARLY, INSIDE):
            low, high = self.interval(f"AER of {name}")
            rows.append((name, round(self.value(f"AER of {name}"), 3), f"{low:.3f} to {high:.3f}"))
        return Table(
            name="variants",
            title="Other ways to read the attention",
            caption="At the end of training. α of the next piece: the links of a target piece are read where the piece "
            "behind it is predicted. Without <s> and </s>: every piece has a link, even if α has its peak on an end.",
            columns=("", "AER", "interval"),
            rows=tuple(rows),
        )

    def facts(self) -> Table:
        names = (
            "training pairs", "training pairs left out", "pairs", "gold pairs left out", "sure links", "possible links",
            "pieces of a source word", "pieces of a target word",
        )  # fmt: skip
        shown = {"pairs": "gold pairs", "possible links": "possible links that are not sure"}
        return Table(
            name="facts",
            title="The pairs",
            caption="A pair with more pieces than --longest on one side is left out.",
            columns=("what", "value"),
            rows=tuple((shown.get(name, name), number(self.value(name))) for name in names),
        )


def steps(found: np.ndarray) -> str:
    return ", ".join("never" if np.isnan(step) else f"{step:.0f}" for step in found)
