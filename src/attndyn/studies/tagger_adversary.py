"""Is attention the only path? A tagger trained to answer as another one does while attending elsewhere.

Source: Yang, *Is Attention Points Out the Only "Path"?*, sections 4 to 6, tables 1 and 2, figure 1. A one-layer
transformer tags chunks (the base); adversaries of many λ keep its answers and leave its attention; probes are trained
under really given attention, where the author's program recomputed it (their `froze` flag never reached the layer).
Differs from the program: the checkpoint is chosen on validation sentences (there: on the test sentences), padding is
masked (`--unmasked` trains the other variant beside), word vectors are GloVe's 100 numbers and no character n-grams,
and sentences of a batch are of about one length.
Cost: demo 40 s to a minute on two cores; paper is for a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.errors import UserError
from attndyn.measures.readings import Answers, Chunks, Objective, Reading
from attndyn.models.rules import Given, Scattered, Uniform
from attndyn.models.specs import ContextTagger, Tagger
from attndyn.report.parts import Part
from attndyn.studies.base import Judgement, Study
from attndyn.studies.strengths import as_step, check_apart
from attndyn.studies.tagger_claims import STATEMENTS, Judge
from attndyn.studies.tagger_names import (
    BASE,
    BEST,
    FORWARD,
    LOWEST,
    RECOMPUTED,
    RUNS,
    SCATTERED,
    SWEEP,
    TRAINED,
    UNIFORM,
    UNIT,
    UNMASKED,
    adversary,
    given,
)
from attndyn.tasks.grammar import MadeChunks
from attndyn.tasks.tagged import TaggedText
from attndyn.tasks.tagging import Tagging
from attndyn.training.condition import Adam, Condition, Reference
from attndyn.training.objectives import AttendElsewhere

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics, Row

MADE = "made"
SHOWN = 6
"""Test sentences whose attention the page shows."""
FIRST = {BASE: 0, "adversary": 1000, RECOMPUTED: 2000, "probe": 3000, UNIFORM: 4000, TRAINED: 5000, UNMASKED: 6000}
"""First seeds: an adversary that began with the weights of its base would begin with its attention."""


@dataclass(frozen=True, kw_only=True)
class TaggerAdversary(Study):
    name: ClassVar[str] = "tagger-adversary"
    title: ClassVar[str] = "Can a tagger attend elsewhere and give the same tags?"
    source: ClassVar[str] = 'Yang, "Is Attention Points Out the Only Path?", sections 4 to 6, tables 1 and 2, figure 1'
    headline: ClassVar[str] = "F1"
    statements = STATEMENTS
    demo: ClassVar[dict[str, Any]] = {
        "corpus": MADE, "vectors": None, "frozen": False, "unmasked": False, "seeds": 3, "probes": 3, "epochs": 8,
        "warmup": 100, "batch": 32, "width": 32, "hidden": 32, "dropout": 0.0, "lambdas": (0.0, 0.05, 0.2, 3.0),
        "evaluation": 150,
    }  # fmt: skip
    sizes: ClassVar[tuple[str, ...]] = ("corpus", "width", "hidden", "heads", "batch", "epochs", "frozen")

    corpus: str = "conll2000"
    """conll2000; made, a small language that needs no data; or a folder with train.txt and test.txt in the columns of
    CoNLL-2000."""
    data_dir: str | None = None
    """Where corpora lie; also $ATTNDYN_DATA, then the user's cache."""
    vectors: str | None = "glove"
    """Word vectors from which the words start: glove, the corpus, or a file in its format. Without: at random."""
    frozen: bool = True
    """Whether the word vectors stay as they are; taggers whose vectors are trained then stand beside."""
    unmasked: bool = True
    """Also train taggers that see padding, as in the author's program."""
    seeds: int = 5
    """Base runs; each has an adversary of its own for each λ."""
    probes: int = 5
    """Runs of each probe, at most as many as seeds."""
    lambdas: tuple[float, ...] = (
        0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6, 2.8, 3.0, 3.1,
    )  # fmt: skip
    """λ of the adversaries; 0 must be among them."""
    probed: tuple[float, ...] = (0.2, 3.0)
    """λ of the adversaries whose attention is given to probes."""
    epochs: int = 30
    """Of every training; the best one on the validation sentences is kept."""
    batch: int = 100
    """Sentences in a training step."""
    width: int = 100
    """Of the word vectors."""
    hidden: int = 128
    """Of the layer."""
    heads: int = 4
    """Of the attention."""
    dropout: float = 0.2
    """Share of units that are dropped."""
    rate: float = 2.0
    """Learning rate, times hidden^-.5 min(n warmup^-1.5, n^-.5) at update n."""
    warmup: int = 500
    """Updates in which the learning rate rises."""
    evaluation: int = 5000
    """Most validation and test sentences that are read."""

    def __post_init__(self) -> None:
        self.at_least_one("seeds", "probes", "epochs", "batch", "warmup", "evaluation")
        if not 0 < self.rate < float("inf"):
            raise UserError(f"rate must be a number above 0, not {self.rate}")
        if self.probes > self.seeds:
            raise UserError(f"probes must be at most seeds ({self.seeds}), not {self.probes}: each has its own base")
        for strength in self.lambdas:
            AttendElsewhere(strength)
        check_apart(self.lambdas, UNIT)
        if 0.0 not in self.lambdas:
            raise UserError("lambdas must hold 0: the other adversaries are compared with that one")
        if not self.probed:
            raise UserError("probed must hold a λ: the attention of that adversary is given to probes")
        for strength in self.probed:
            if strength not in self.lambdas:
                raise UserError(
                    f"probed λ {strength:g} is not among lambdas: {', '.join(f'{v:g}' for v in self.lambdas)}"
                )
        if self.corpus == MADE and self.vectors is not None:
            raise UserError("the made language has no word vectors: use --vectors None")
        Tagger(width=self.width, hidden=self.hidden, heads=self.heads, dropout=self.dropout)

    @cached_property
    def task(self) -> Tagging:
        if self.corpus == MADE:
            return MadeChunks()
        return TaggedText(self.corpus, self.data_dir, vectors=self.vectors)

    @property
    def model(self) -> Tagger:
        return Tagger(width=self.width, hidden=self.hidden, heads=self.heads, dropout=self.dropout)

    @property
    def last(self) -> int:
        return self.epochs * self.task.epoch(self.batch)

    @property
    def adversaries(self) -> dict[float, str]:
        """By λ, the name of the condition."""
        return {strength: adversary(strength) for strength in sorted(self.lambdas)}

    @staticmethod
    def as_step(strength: float) -> int:
        return as_step(strength, UNIT)

    @property
    def resized(self) -> bool:
        """Whether these are not the sizes that a published value belongs to. Given word vectors may have the author's
        300 numbers instead of ours."""
        paper = type(self)()
        other = [name for name in self.sizes if name != "width" and getattr(self, name) != getattr(paper, name)]
        return bool(other) or self.vectors is None or self.width not in (paper.width, 300)

    # --- what is trained

    def condition(self, name: str, seeds: int, first: int, **changes: Any) -> Condition:
        every = self.task.epoch(self.batch)
        tags = self.task.tags
        readings: tuple[Reading, ...] = (
            Answers(every=every), Chunks(every=every, tags=tags), Chunks(every=every, tags=tags, on="test"),
        )  # fmt: skip
        common: dict[str, Any] = {
            "task": self.task, "model": self.model, "steps": self.last, "batch": self.batch,
            "evaluation": self.evaluation, "readings": readings, "best": (BEST,),
            "optimiser": Adam(
                lr=self.rate * self.hidden**-0.5, betas=(0.9, 0.98), warmup=self.warmup,
                frozen=("embedding.weight",) if self.frozen else (),
            ),
        }  # fmt: skip
        return Condition(name=name, seeds=tuple(range(first, first + seeds)), **(common | changes))

    def conditions(self) -> Iterator[Condition]:
        if isinstance(self.task, TaggedText):
            self.task.check_width(self.width)
        base = self.condition(BASE, self.seeds, FIRST[BASE])
        yield base
        yield self.condition(RECOMPUTED, self.probes, FIRST[RECOMPUTED])
        yield self.condition(UNIFORM, self.seeds, FIRST[UNIFORM], rule=Uniform())
        if self.frozen:
            yield self.condition(TRAINED, self.seeds, FIRST[TRAINED], optimiser=replace(base.optimiser, frozen=()))
        if self.unmasked:
            yield self.condition(UNMASKED, self.seeds, FIRST[UNMASKED], task=replace(self.task, padding="seen"))
        every = self.task.epoch(self.batch)
        sweep = {
            strength: self.condition(
                name,
                self.seeds,
                FIRST["adversary"],
                of=Reference(condition=base, seeds=base.seeds, best=BEST),
                objective=AttendElsewhere(strength),
                readings=(Objective(every=every), Chunks(every=every, tags=self.task.tags)),
                best=(LOWEST,),
            )
            for strength, name in self.adversaries.items()
        }
        yield from sweep.values()
        yield from self._probes(base, [sweep[strength] for strength in self.probed])

    def _probes(self, base: Condition, adversaries: list[Condition]) -> Iterator[Condition]:
        """Under given attention: the same layer, and one without any other way to look at other words."""
        forward = ContextTagger(width=self.width, hidden=self.hidden, heads=self.heads, dropout=self.dropout)
        for prefix, model in (("", self.model), (FORWARD, forward)):
            common: dict[str, Any] = {"seeds": self.probes, "first": FIRST["probe"], "model": model}
            for other in (base, *adversaries):
                of = Reference(condition=other, seeds=other.seeds[: self.probes], best=other.best[0])
                yield self.condition(f"{prefix}{given(other.name)}", rule=Given(), of=of, **common)
            of = Reference(condition=base, seeds=base.seeds[: self.probes], best=BEST)
            yield self.condition(f"{prefix}{SCATTERED}", rule=Scattered(), of=of, **common)
            if prefix:
                yield self.condition(f"{prefix}{UNIFORM}", rule=Uniform(), **common)

    # --- what was found

    def from_traces(self, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
        from attndyn.studies.tagger_compare import compared

        yield from compared(self, run, device)

    def analyse(self, metrics: Metrics) -> Iterator[Row]:
        """The adversaries as points: by λ, and each run for itself."""
        from attndyn.store.metrics import Row

        for place, (strength, name) in enumerate(self.adversaries.items()):
            yield from (
                Row(family, seed, step, metric, value)
                for metric in (
                    "test F1 (kept)",
                    "NLL",
                    "KL",
                    "KL an element",
                    "JSD",
                    "JSD matched",
                    "TVD",
                    "rank τ",
                    "λ",
                )
                for seed, value in self._ends(metrics, name, metric, strength)
                for family, step in ((SWEEP, self.as_step(strength)), (RUNS, place * self.seeds + seed))
            )

    def _ends(self, metrics: Metrics, name: str, metric: str, strength: float) -> list[tuple[int, float]]:
        if metric == "λ":
            return [(FIRST["adversary"] + n, strength) for n in range(self.seeds)]
        curves = metrics.curves(name, metric)
        return list(zip(curves.replicas.tolist(), curves.last.tolist(), strict=True))

    @property
    def sentences(self) -> int:
        """Test sentences that are read."""
        from attndyn.tasks.corpus import loaded

        test = loaded(self.task).test
        assert test is not None
        return min(self.evaluation, len(test))

    @cached_property
    def lines(self) -> list[int]:
        """Test sentences of middling length, for the page."""
        import numpy as np

        from attndyn.tasks.corpus import loaded

        test = loaded(self.task).test
        assert test is not None
        lengths = test.source.lengths
        fitting = np.flatnonzero((lengths >= 8) & (lengths <= 18))
        return (fitting if len(fitting) else np.arange(len(test)))[:SHOWN].tolist()

    def shown(self, run: Run, metrics: Metrics) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]]:
        from attndyn.studies.tagger_compare import shown_traces

        yield from shown_traces(self, run, "cpu", self.lines)

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        yield from Judge(self, metrics).all()

    def finding(self, metrics: Metrics) -> str:
        return Judge(self, metrics).finding()

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        from attndyn.studies.tagger_page import parts

        yield from parts(self, metrics)
