"""One good head among bad ones: do several heads help because one of them starts well?

Source: Snell et al. §5.2, figure 2 right. A translator learns to copy permutations. Single heads are tried until there
are pools of good and of bad initialisations; models of eight heads are put together from them. New: the share that
learns against the number of heads, beside 1 − (1 − p)^K; what is left when all heads but one are cut off after
training; and how much of a head's luck is that of the weights it is put into.
`--variant text` follows the paper (LSTM, a map W^(k) for each head, contexts summed), with the rest as in the study
`copying`; `--variant authors` follows their program (GRU, a context map for each head too, contexts averaged, a head is
bad below .6, one pool of 30 random heads, one data seed for all combinations).
Cost: demo a minute and a half on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attndyn.errors import UserError
from attndyn.measures.head_readings import Heads
from attndyn.measures.readings import Answers
from attndyn.models.specs import MultiHead, Origins
from attndyn.report.parts import Curves, Part, Points, Table
from attndyn.studies.base import Judgement, Statement, Study
from attndyn.studies.copy_study import SMALL
from attndyn.studies.head_claims import STATEMENTS
from attndyn.tasks.synthetic import Permutations
from attndyn.training.condition import Adam, Condition

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics, Row
    from attndyn.studies.head_pools import Pools
    from attndyn.studies.outcomes import Results

TRIES = 3
"""Data seeds under which a head is tried; a head is good or bad if they agree."""
BASES, SHARES = "one head in other weights", "random heads"
SINGLE = tuple(f"one head, data {seed}" for seed in range(TRIES))
PROBES, RANDOM, MOST = 100_000, 200_000, 64
"""First heads of those that are tried with other bases and of those that are drawn at random, apart from the
candidates; and the most heads of a model."""
RANDOM_POOL = 30
"""Random heads in the authors' program."""


@dataclass(frozen=True, kw_only=True)
class HeadRescue(Study):
    name: ClassVar[str] = "head-rescue"
    title: ClassVar[str] = "One good head among bad ones: several heads learn what one may fail to"
    source: ClassVar[str] = "Snell et al., arXiv 2103.07601, section 5.2 and figure 2 right"
    statements: ClassVar[tuple[Statement, ...]] = STATEMENTS
    demo: ClassVar[dict[str, Any]] = {name: value for name, value in SMALL.items() if name != "words"} | {
        "bases": 3, "probes": 4, "pool": 4, "candidates": 24, "combinations": 6, "heads": 4, "counts": (1, 2, 4, 8),
    }  # fmt: skip
    sizes: ClassVar[tuple[str, ...]] = ("length", "hidden", "batch", "steps", "lr", "heads", "reading")

    variant: Literal["text", "authors"] = "text"
    """Heads as in the paper's equations, or as in the authors' program."""
    heads: int = 8
    """Heads of a combination."""
    combinations: int = 50
    """Models of each kind: all bad, one good, random; each number of heads."""
    pool: int = 20
    """Good and bad heads that are looked for."""
    candidates: int = 400
    """Most heads that are tried for the pools."""
    bad_below: float | None = None
    """Accuracy below which, under all data seeds, a head is bad; if not given, .95, and .6 in the authors' program."""
    counts: tuple[int, ...] = (1, 2, 3, 4, 8, 16)
    """Numbers of random heads whose share of learning is compared."""
    base: int | None = None
    """Seed of the weights that all heads share; if not given, the one of `bases` under which the share of single heads
    that learn is nearest to one half, for where all or none do, there is nothing to rescue."""
    bases: int = 10
    """Seeds of these weights that are tried, 0, 1, 2, …"""
    probes: int = 6
    """Heads that are tried with each of them."""
    steps: int = 200
    """Training steps."""
    length: int = 40
    """Words in a sequence, and in all."""
    hidden: int = 256
    """Width of the recurrent networks and of the embeddings."""
    batch: int = 128
    """Sequences in a training step."""
    lr: float = 1e-3
    """Adam's learning rate."""
    every: int = 10
    """Steps between two readings of the accuracy."""
    evaluation: int = 50
    """Fixed evaluation sequences."""
    reading: Literal["code", "text"] = "code"
    """What is not about heads: as in the authors' program for one head, or as in the paper's equations."""

    def __post_init__(self) -> None:
        self.at_least_one("heads", "combinations", "pool", "candidates", "bases", "probes", "steps", "every")
        if not 0 < self.lr < float("inf"):
            raise UserError(f"lr must be a number above 0, not {self.lr}")
        if self.pool < self.heads:
            raise UserError(f"pool must be at least the {self.heads} heads of a combination, not {self.pool}")
        if self.bad_below is not None and not 0 < self.bad_below <= 0.95:
            raise UserError(f"bad-below must be above 0 and at most .95, where a head is good, not {self.bad_below}")
        most = RANDOM_POOL if self.variant == "authors" else MOST
        for count in (*self.counts, self.heads):
            if not 1 <= count <= most:
                raise UserError(f"a model has 1 to {most} heads, not {count}")
        if not self.counts or len(set(self.counts)) < len(self.counts):
            raise UserError(f"counts must be numbers of heads, each of them once, not {self.counts}")
        for _ in self.conditions():  # impossible sizes are refused before anything runs
            pass

    @property
    def all_bad(self) -> str:
        return f"{self.heads} bad heads"

    @property
    def one_good(self) -> str:
        return f"1 good, {self.heads - 1} bad"

    def random(self, count: int) -> str:
        return f"{count} random heads" if count > 1 else "1 random head"

    @property
    def bad_line(self) -> float:
        from attndyn.studies.outcomes import BAD, LEARNED

        if self.bad_below is not None:
            return self.bad_below
        return BAD if self.variant == "authors" else LEARNED

    # --- what is trained, stage by stage

    def conditions(self) -> Iterator[Condition]:
        if self.base is not None:
            yield from self.search(self.base, 0)
            return
        places = [(base, PROBES + head) for base in range(self.bases) for head in range(self.probes)]
        yield self.condition(BASES, 1, range(len(places)), [Origins(base, (head,), 0) for base, head in places])

    def then(self, metrics: Metrics) -> Iterator[Condition]:
        if self.random(self.heads) in metrics:
            return
        base = self.base_of(metrics)
        tried = len(metrics.curves(SINGLE[0], "accuracy").replicas) if SINGLE[0] in metrics else 0
        pools = self.pools(metrics) if tried else None
        if pools is None or (tried < self.candidates and min(len(pools.good), len(pools.bad)) < self.pool):
            yield from self.search(base, tried)
        else:
            yield from self.put_together(base, pools)

    def search(self, base: int, tried: int) -> Iterator[Condition]:
        """More candidates, each under every data seed."""
        some = range(tried, min(tried + 3 * self.pool, self.candidates))
        for data, name in enumerate(SINGLE):
            yield self.condition(name, 1, some, [Origins(base, (head,), data) for head in some])

    def put_together(self, base: int, pools: Pools) -> Iterator[Condition]:
        """Models from the pools, as far as they are large enough, and from random heads."""
        runs = range(self.combinations)
        bad = [pools.draw(pools.bad, self.heads, run, place=0) for run in runs]
        rescued = [
            (*pools.draw(pools.good, 1, run, place=1), *pools.draw(pools.bad, self.heads - 1, run, place=2))
            for run in runs
        ]
        made = {(self.heads, self.all_bad): bad, (self.heads, self.one_good): rescued}
        for count in dict.fromkeys([self.heads, *self.counts]):
            made[count, self.random(count)] = [self.random_heads(run, count) for run in runs]
        for (count, name), chosen in made.items():
            if len(chosen[0]) == count:  # else the pool is too small
                origins = [Origins(base, own, self.data(run)) for run, own in enumerate(chosen)]
                # the order of heads changes nothing: a model that was drawn twice is trained once
                different = {(frozenset(one.heads), one.data): run for run, one in reversed(list(enumerate(origins)))}
                kept = sorted(different.values())
                yield self.condition(name, count, kept, [origins[run] for run in kept])

    def random_heads(self, run: int, count: int) -> tuple[int, ...]:
        """A model with more heads has those of a model with fewer, and others."""
        from attndyn.studies.head_pools import Pools

        if self.variant == "authors":
            return Pools.draw(range(RANDOM, RANDOM + RANDOM_POOL), RANDOM_POOL, run, place=3)[:count]
        return tuple(range(RANDOM + MOST * run, RANDOM + MOST * run + count))

    def data(self, run: int) -> int:
        """The data seed of a combination: none that chose the heads, but in the authors' program the first of those."""
        return 0 if self.variant == "authors" else TRIES + run

    def condition(self, name: str, heads: int, seeds: Sequence[int], origins: Sequence[Origins]) -> Condition:
        return Condition(
            name=name,
            task=Permutations(self.length),
            model=MultiHead(hidden=self.hidden, reading=self.reading, heads=heads, variant=self.variant),
            seeds=tuple(seeds),
            origins=tuple(origins),
            steps=self.steps,
            batch=self.batch,
            optimiser=Adam(lr=self.lr),
            evaluation=self.evaluation,
            readings=(Answers(every=self.every), Heads(every=self.steps)),
        )

    # --- what became of it

    def base_of(self, metrics: Metrics) -> int:
        """The seed of the weights that all heads share."""
        if self.base is not None:
            return self.base
        return int(abs(self.by_base(metrics).mean(axis=1) - 0.5).argmin())

    def by_base(self, metrics: Metrics) -> Any:
        """Whether a single head learned: [base, head]."""
        return self.results(metrics, BASES).learned.reshape(self.bases, self.probes)

    def pools(self, metrics: Metrics) -> Pools:
        import numpy as np

        from attndyn.studies.head_pools import Pools

        return Pools(np.stack([self.results(metrics, name).accuracy for name in SINGLE], axis=1), self.bad_line)

    def results(self, metrics: Metrics, condition: str) -> Results:
        from attndyn.studies.outcomes import Results

        return Results(metrics, condition, self.steps)

    def trained_counts(self, metrics: Metrics) -> dict[int, Results]:
        every = sorted({self.heads, *self.counts})
        return {count: self.results(metrics, self.random(count)) for count in every}

    def analyse(self, metrics: Metrics) -> Iterator[Row]:
        from attndyn.store.metrics import Row

        for name in metrics.conditions:
            yield from self.results(metrics, name).rows()
        rate, counts = self.pools(metrics).rate, self.trained_counts(metrics)
        for count in range(1, max(counts) + 1):
            yield Row(SHARES, 0, count, "predicted share", 1 - (1 - rate) ** count)
        for count, runs in counts.items():
            yield Row(SHARES, 0, count, "share", runs.count / runs.n)

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        from attndyn.studies.head_claims import judge

        yield from judge(self, metrics)

    def finding(self, metrics: Metrics) -> str:
        pools = self.pools(metrics)
        learned = ", ".join(
            f"{runs.count} of {runs.n} with {name}"
            for name in (self.all_bad, self.one_good, self.random(self.heads))
            if name in metrics and (runs := self.results(metrics, name))
        )
        return (
            f"Of {pools.tried} single heads {len(pools.good)} are good and {len(pools.bad)} bad (a run learns with "
            f"probability {pools.rate:.2f}). Of models with {self.heads} heads {learned} learned to copy permutations "
            f"of {self.length}."
        )

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        three = tuple(name for name in (self.all_bad, self.one_good, self.random(self.heads)) if name in metrics)
        yield Curves(
            name="rescue",
            title="All bad, one good, random",
            caption=f"Accuracy of models with {self.heads} heads on permutations of {self.length}; thick: the median.",
            metric="accuracy",
            y_title="accuracy",
            conditions=three,
            y_domain=(0.0, 1.0),
            reference=0.95,
            reference_label="learned",
        )
        yield self._pools_table(metrics)
        yield Points(
            name="counts",
            title="How many heads it takes",
            caption=f"Share of {self.combinations} models that learn, with heads drawn at random in the same other "
            "weights. Dashed: 1 − (1 − p)^K, if one head that would learn alone were all that matters, with p from the "
            "candidates.",
            metric="share",
            predicted="predicted share",
            x_title="heads K",
            y_title="share that learns",
            conditions=(SHARES,),
        )
        yield self._counts_table(metrics)
        yield self._pruned_table(metrics)
        if BASES in metrics:
            yield self._bases_table(metrics)

    def _pools_table(self, metrics: Metrics) -> Table:
        pools = self.pools(metrics)
        return Table(
            name="pools",
            title="Single heads",
            caption=f"Good: accuracy of at least .95 at step {self.steps} under all {TRIES} data seeds; bad: below "
            f"{self.bad_line:g} under all. All in the weights of base {self.base_of(metrics)}.",
            columns=("candidates", "good", "bad", "neither", "below .6 under all", "runs that learn"),
            rows=((pools.tried, len(pools.good), len(pools.bad), pools.tried - len(pools.good) - len(pools.bad),
                   pools.below(0.6), f"{pools.rate:.3f} of {pools.tried * TRIES}"),),
        )  # fmt: skip

    def _counts_table(self, metrics: Metrics) -> Table:
        from attndyn.measures.verdicts import share_interval

        rate = self.pools(metrics).rate
        rows = []
        for count, runs in self.trained_counts(metrics).items():
            low, high = share_interval(runs.count, runs.n)
            predicted = float(f"{1 - (1 - rate) ** count:.3f}")
            rows.append((count, f"{runs.count} of {runs.n}", f"{low:.2f} to {high:.2f}", predicted))
        return Table(
            name="shares",
            title="The same in numbers",
            caption="95 % intervals by Clopper and Pearson.",
            columns=("heads", "learn", "interval", "1 − (1 − p)^K"),
            rows=tuple(rows),
        )

    def _pruned_table(self, metrics: Metrics) -> Table:
        names = [self.all_bad, self.one_good, *map(self.random, sorted({self.heads, *self.counts} - {1}))]
        return Table(
            name="pruned",
            title="After training: one head for all",
            caption="Runs that learned. Pruned: all heads but the best are cut off and its context is taken as it is, "
            "or as often as there were heads; still right means an accuracy of at least .95, without training on. A "
            "head looks if its largest weight is on the right word at more than half of the positions.",
            columns=("heads", "learned", "of them still right", "median accuracy then", "heads that look (median)",
                     "the first head looks most"),
            rows=tuple(row for name in names if name in metrics and (row := self._pruned_row(metrics, name))),
        )  # fmt: skip

    def _pruned_row(self, metrics: Metrics, name: str) -> tuple[str | int | float, ...] | None:
        import numpy as np

        learned = self.results(metrics, name).learned
        if not learned.any():
            return None
        pruned = self.pruned(metrics, name)[learned]
        look, first = (metrics.curves(name, of).last[learned] for of in ("heads that look", "head that looks"))
        return (name, int(learned.sum()), f"{int((pruned >= 0.95).sum())} of {len(pruned)}",
                float(np.median(pruned).round(3)), float(np.median(look)),
                f"{int((first == 0).sum())} of {len(first)}")  # fmt: skip

    def pruned(self, metrics: Metrics, name: str) -> Any:
        """Accuracy of each run with its best head alone."""
        import numpy as np

        left, in_place = (metrics.curves(name, f"one head {what}").last for what in ("left", "in place of all"))
        return np.maximum(left, in_place)

    def _bases_table(self, metrics: Metrics) -> Table:
        learned = self.by_base(metrics)
        chosen = self.base_of(metrics)
        rows = [(f"{base}{' (chosen)' if base == chosen else ''}", f"{int(row.sum())} of {len(row)}")
                for base, row in enumerate(learned)]  # fmt: skip
        return Table(
            name="bases",
            title="The same heads in other weights",
            caption=f"Single heads that learn, the same {self.probes} heads with each seed of all other weights (data "
            "seed 0).",
            columns=("other weights", "heads that learn"),
            rows=tuple(rows),
        )
