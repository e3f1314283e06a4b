"""When can attention be learned at all? How much more a word must co-occur with its copy than with its rivals.

New: the papers show the two ends, permutations (no signal) and 40 of 60 (signal). Here the lift of the right word over
its rivals (`theory/learnability.py`) goes from one end to the other, along k of n and in other families, with the
model, loss and evaluation of the study `copying`. The published statements about count tables and about the
bag-of-words proxy on these tasks are judged too (Snell et al. §3.3, §4.3, A.3; slides). The proxy starts small, as in
their theorem, and once as in their program.
Cost: demo under 2 minutes on two cores; paper 2.5 minutes on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.errors import UserError
from attndyn.measures.readings import Answers, Attention, Flatness, Lexical, Reading, RightWord
from attndyn.models.rules import Uniform
from attndyn.models.specs import Proxy
from attndyn.report.parts import Curves, Part, Points, Table
from attndyn.studies.base import Judgement, Piece, Statement
from attndyn.studies.copy_study import SMALL, CopyStudy
from attndyn.studies.learnability_claims import STATEMENTS
from attndyn.tasks.synthetic import CopyTask, Iid, PermutationMixture, Permutations, Subsets, Zipf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attndyn.store.metrics import Metrics, Row
    from attndyn.studies.outcomes import Outcomes
    from attndyn.training.condition import Condition

SUBSETS, IID, ZIPF, MIXTURE, BATCH = "k of n", "i.i.d. words", "Zipf words", "mixture", "batch size"
WHERE = ("accuracy", "attention mass", "attention mass −1", "attention mass +1", "attention mass end",
         "attention on word", "probe on word", "attention entropy")  # fmt: skip
DRAWN = 5_000
"""Sequences in which the lift is counted, beside its prediction."""


@dataclass(frozen=True)
class Place:
    """One condition as a point of its family; `number` tells the points of a family apart."""

    family: str
    number: int
    condition: str
    task: CopyTask
    batch: int


@dataclass(frozen=True, kw_only=True)
class Learnability(CopyStudy):
    name: ClassVar[str] = "learnability"
    title: ClassVar[str] = "How much co-occurrence does attention need?"
    source: ClassVar[str] = "new; claims of Snell et al., arXiv 2103.07601, sections 3.3, 4.3, A.3, and of the slides"
    demo: ClassVar[dict[str, Any]] = SMALL | {
        "seeds": 4, "extra": (0, 1, 2, 6, 12), "alphabets": (4, 12), "exponents": (1.0,), "weak": 1,
        "batches": (16,), "proxies": 2,
    }  # fmt: skip
    statements: ClassVar[tuple[Statement, ...]] = STATEMENTS

    seeds: int = 40
    """Independent training runs for each condition: seeds 0, 1, 2, …"""
    extra: tuple[int, ...] = (0, 1, 2, 3, 4, 6, 10, 20, 40)
    """k of n: how many words more than fit into a sequence; 0 are permutations."""
    alphabets: tuple[int, ...] = (10, 20, 40, 80)
    """i.i.d. words: how many different ones."""
    exponents: tuple[float, ...] = (0.5, 1.0)
    """Zipf words, `words` of them: how fast their frequency falls with their rank."""
    weak: int = 2
    """How many words more than fit the task has that is trained with other batch sizes."""
    batches: tuple[int, ...] = (32, 512)
    """Those batch sizes."""
    longer: int = 3
    """How many times longer permutations train, to see what runs without signal do."""
    proxies: int = 5
    """Seeds of each bag-of-words proxy."""

    def __post_init__(self) -> None:
        if 0 not in self.extra or self.weak not in self.extra or len(set(self.extra)) < len(self.extra):
            raise UserError(f"extra must hold 0 and weak ({self.weak}), and each number once, not {self.extra}")
        if min(self.extra) < 0 or min(self.longer, self.proxies) < 1 or self.length < 2:
            raise UserError("extra must not be below 0, longer and proxies not below 1, length not below 2")
        super().__post_init__()

    @cached_property
    def places(self) -> tuple[Place, ...]:
        k, m = self.length, self.words

        def subsets(more: int, family: str = SUBSETS, batch: int = self.batch) -> Place:
            other = "" if batch == self.batch else f", batch {batch}"
            return Place(family, k + more if family == SUBSETS else batch, f"{k} of {k + more}{other}",
                         Subsets(k, of=k + more), batch)  # fmt: skip

        return (
            *(subsets(more) for more in self.extra),
            *(Place(IID, m, f"{k} i.i.d. of {m}", Iid(k, m), self.batch) for m in self.alphabets),
            *(Place(ZIPF, round(100 * e), f"{k} Zipf of {m}, exponent {e:g}", Zipf(k, m, e), self.batch)
              for e in self.exponents),
            Place(MIXTURE, 2 * k, f"mixture of 2 × {k}", PermutationMixture(k), self.batch),
            *(subsets(self.weak, BATCH, batch) for batch in self.batches if batch != self.batch),
            subsets(self.weak, BATCH),
        )  # fmt: skip

    @property
    def permutations(self) -> str:
        return f"{self.length} of {self.length}"

    def proxy_names(self, start: str) -> dict[str, CopyTask]:
        k = self.length
        tasks = {
            "permutations": Permutations(k),
            "mixture": PermutationMixture(k),
            "control": Subsets(k, of=self.words),
        }
        return {f"proxy, {start} start: {name}": task for name, task in tasks.items()}

    def conditions(self) -> Iterator[Condition]:
        readings: tuple[Reading, ...] = (Answers(every=self.every), RightWord(every=self.every))
        done: set[str] = set()
        for place in self.places:
            if place.condition not in done:
                done.add(place.condition)
                steps, more = self.steps, tuple[Attention, ...]()
                if place.condition == self.permutations:
                    steps, more = self.steps * self.longer, (Attention(every=self.every),)
                yield self.condition(
                    place.condition, place.task, steps=steps, batch=place.batch, readings=(*readings, *more)
                )
        every = 5 * self.steps // 10
        for start, spec in (
            ("small", Proxy(width=self.hidden, bias=False, spread=self.hidden**-0.5)),
            ("program's", Proxy(width=self.hidden)),
        ):
            for name, task in self.proxy_names(start).items():
                yield self.condition(
                    name, task, model=spec, rule=Uniform(), seeds=tuple(range(self.proxies)), steps=5 * self.steps,
                    readings=(Answers(every=every), Lexical(every=every), Flatness(every=every)),
                )  # fmt: skip

    def pieces(self) -> Iterator[Piece]:
        for place in self.places:
            yield Piece(condition=place.family, measure=partial(lifts, place))

    def outcomes(self, metrics: Metrics) -> dict[str, Outcomes]:
        from attndyn.studies.outcomes import Outcomes

        names = dict.fromkeys(place.condition for place in self.places)
        return {name: Outcomes(metrics, name, self.steps, "on word") for name in names}

    def analyse(self, metrics: Metrics) -> Iterator[Row]:
        """What became of each seed, as points of the families, beside the curve fitted to k of n."""
        from attndyn.store.metrics import Row
        from attndyn.studies.learnability_claims import fit

        runs = self.outcomes(metrics)
        for some in runs.values():
            yield from some.rows()
        curve = fit(self, metrics, runs)
        for place in self.places:
            some, lift = runs[place.condition], self.lift(metrics, place)
            values = {
                "share that learns": some.learned.astype(float),
                "step of β": some.probe_at,
                "step of α": some.attention_at,
                "fitted step of β": some.probe_at * 0 + (curve(lift) if curve else float("nan")),
            }
            for metric, column in values.items():
                for seed, value in zip(some.seeds.tolist(), column.tolist(), strict=True):
                    if value == value:
                        yield Row(place.family, seed, place.number, metric, value)

    def lift(self, metrics: Metrics, place: Place) -> float:
        curves = metrics.curves(place.family, "lift")
        return float(curves.values[0, curves.steps.tolist().index(place.number)])

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        from attndyn.studies.learnability_claims import judge

        yield from judge(self, metrics, self.outcomes(metrics))

    def finding(self, metrics: Metrics) -> str:
        runs = self.outcomes(metrics)
        none, least = runs[self.permutations], runs[f"{self.length} of {self.length + sorted(self.extra)[1]}"]
        found = (
            f"{none.count} of {none.n} seeds learn to copy without any signal, {least.count} of {least.n} with a lift "
            f"of {(self.length - 1 + sorted(self.extra)[1]) / (self.length - 1):.3f}"
        )
        steps = [
            "–" if (value := some.median_at(some.probe_at)) is None else f"{value:.0f}"
            for more in sorted(self.extra)[1:]
            if (some := runs[f"{self.length} of {self.length + more}"])
        ]
        return f"{found}; from there to {self.length + max(self.extra)} words β is right at steps {', '.join(steps)}."

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        runs = self.outcomes(metrics)
        families = (SUBSETS, IID, ZIPF, MIXTURE)
        yield Points(
            name="learned",
            title="Who learns",
            caption=f"Share of seeds with an accuracy of at least .95 at step {self.steps}, against the lift of the "
            "right word over its rivals in the count table. 1: co-occurrence tells nothing.",
            metric="share that learns", x="lift", x_title="lift", y_title="share of seeds", conditions=families,
        )  # fmt: skip
        for letter, of in (("β", "the dictionary"), ("α", "the attention")):
            yield Points(
                name="beta" if letter == "β" else "alpha",
                title=f"When {of} is there",
                caption=f"Step at which the peak of {letter} is on the right word at more than half of the target "
                "positions, for the seeds that reach it."
                + (" Dashed: the line fitted to k of n." if letter == "β" else ""),
                metric=f"step of {letter}", x="lift", x_title="lift", y_title="training step", conditions=families,
                predicted="fitted step of β" if letter == "β" else "", log="y",
            )  # fmt: skip
        yield Points(
            name="batch",
            title=f"Signal against noise: {self.length} of {self.length + self.weak}",
            caption="Step at which β is right, against the number of sequences in a training step.",
            metric="step of β", x_title="batch size", y_title="training step", conditions=(BATCH,), log="xy",
        )  # fmt: skip
        yield Table(
            name="places",
            title="Every condition",
            caption=f"Lift as predicted and as counted in {DRAWN:,} drawn sequences; medians over seeds that learn.",
            columns=("condition", "lift", "counted", "learn", "of", "β at", "α at", "learned at"),
            rows=tuple(
                self._row(metrics, place, runs[place.condition]) for place in self.places if place.family != BATCH
            ),
        )
        measured = ("loss", "probe spread", "probe right")
        yield Table(
            name="proxies",
            title="The bag-of-words proxy",
            caption="After five times as many steps. Loss of the best answer that knows the set of words: ln(L + 1) "
            f"= {_best(self.length):.3f}. Spread: standard deviation of β_px over its mean, between the words of an "
            "input.",
            columns=("proxy", "loss", "spread of β", "β right"),
            rows=tuple(
                (name, *(float(metrics.curves(name, of).last.mean().round(3)) for of in measured))
                for start in ("small", "program's")
                for name in self.proxy_names(start)
            ),
        )  # fmt: skip
        yield self._without_signal(metrics)
        yield Curves(
            name="accuracy",
            title="Accuracy of every seed",
            caption="Token accuracy on the fixed evaluation sequences.",
            metric="accuracy", y_title="accuracy", y_domain=(0.0, 1.0), reference=0.95, reference_label="learned",
            conditions=tuple(dict.fromkeys(p.condition for p in self.places if p.family == SUBSETS)),
        )  # fmt: skip

    def _without_signal(self, metrics: Metrics) -> Table:
        """Where the attention of the permutations sits in the end, of runs that learned in time and of the rest."""
        runs = self.outcomes(metrics)[self.permutations]
        ends = [metrics.curves(self.permutations, name).last for name in WHERE]
        rows: list[tuple[str | float | int | None, ...]] = [
            (name, int(chosen.sum()), *(float(values[chosen].mean().round(3)) for values in ends))
            for name, chosen in ((f"learned by step {self.steps}", runs.learned), ("failed", ~runs.learned))
            if chosen.any()
        ]
        return Table(
            name="without-signal",
            title=f"Without signal: permutations after {self.steps * self.longer} steps",
            caption=f"Means over runs. Uniform attention would give the right word {1 / (self.length + 1):.3f}.",
            columns=("runs", "n", *WHERE),
            rows=tuple(rows),
        )

    def _row(self, metrics: Metrics, place: Place, runs: Outcomes) -> tuple[str | float | int | None, ...]:
        curves = metrics.curves(place.family, "counted lift")
        counted = float(curves.values[0, curves.steps.tolist().index(place.number)])
        medians = (runs.median_at(steps) for steps in (runs.probe_at, runs.attention_at, runs.learned_at))
        return (place.condition, round(self.lift(metrics, place), 3), round(counted, 3), runs.count, runs.n, *medians)


def lifts(place: Place) -> Iterable[tuple[int, str, float]]:
    from attndyn.tasks.text import drawn
    from attndyn.theory.learnability import counted_lift, predicted_lift

    yield place.number, "lift", predicted_lift(place.task)
    yield place.number, "counted lift", counted_lift(drawn(place.task, DRAWN))


def _best(length: int) -> float:
    import math

    return math.log(length + 1)
