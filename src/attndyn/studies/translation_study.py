"""What the studies that train a translator share: their settings, and the runs that are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attndyn.errors import UserError
from attndyn.measures.pair_readings import PairScores, Translate
from attndyn.measures.readings import Answers, Reading
from attndyn.models.rules import Uniform
from attndyn.models.specs import Proxy, Translator
from attndyn.report.parts import Curves, Maps, Panel
from attndyn.studies.base import APART, Study
from attndyn.studies.translation_names import LINEAR, PROXY, STANDARD, UNIFORM
from attndyn.tasks.corpora import CORPORA, SHORT
from attndyn.tasks.corpus import loaded
from attndyn.tasks.pieces import PieceText
from attndyn.training.condition import Adam, Condition, Likelihood

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics
    from attndyn.studies.translation_part import Pairs

EPOCHS = 20
"""Of the authors on Multi30k."""
SHOWN = 3
"""Pairs whose α, β and Δ are kept for the page."""


@dataclass(frozen=True, kw_only=True)
class TranslationStudy(Study):
    parts: ClassVar[tuple[Literal["valid", "train"], ...]] = ("valid", "train")
    """Of the corpus, that are read at a checkpoint."""
    pairs_are: ClassVar[str] = "validation pairs"
    """What the pairs that are read are called on the page."""

    corpus: str = "multi30k"
    """A corpus by its name, a folder with train.de and train.en, valid.de, …; or two files, data/mine for data/mine.de
    and data/mine.en."""
    source_language: str = "de"
    """The ending of the source files."""
    target_language: str = "en"
    """The ending of the target files."""
    data_dir: str | None = None
    """Where corpora lie; also $ATTNDYN_DATA, then the user's cache."""
    vocabulary: int = 8000
    """Pieces of words, of both languages together."""
    piece_model: str = ""
    """A SentencePiece model of one's own; if empty, one is trained on the training pairs."""
    longest: int = 200
    """Pairs with more pieces on one side are left out."""
    seeds: int = 4
    """Standard runs: those that learn their attention."""
    uniform: int = 2
    """Runs under uniform attention."""
    steps: int | None = None
    """Training steps; if not given, as many as the authors' epochs take: 30 on IWSLT'14, 40 on News Commentary En-Nl
    and It-Pt and 30 on En-Pt, 20 elsewhere; on Tatoeba as many as on Multi30k."""
    batch: int = 16
    """Pairs in a training step."""
    lr: float = 1e-3
    """Adam's learning rate."""
    hidden: int = 256
    """Of the embedding and of each direction of each LSTM."""
    dropout: float = 0.5
    """Share of the units that are dropped between the two layers of an LSTM."""
    every: int = 2000
    """Steps between two checkpoints."""
    early: tuple[int, ...] = (50, 100, 500, 1000, 1500)
    """More checkpoints, at these steps."""
    evaluation: int = 2000
    """Most pairs of a part of the corpus that are read at a checkpoint."""
    beams: int = 5
    """Hypotheses of the beam search."""
    cut: int = 99
    """Pieces after which a translation is cut off."""
    epochs: int = 30
    """Of the proxy."""
    proxy_lr: float = 1e-3
    """The proxy's learning rate."""
    traces: Literal["shown", "all"] = "shown"
    """What is kept of α, β and Δ after the comparison: those of a few pairs, or all, and the weights."""

    def __post_init__(self) -> None:
        self.at_least_one("seeds", "uniform", "batch", "every", "evaluation", "beams", "cut", "epochs")
        self.seeds_apart("seeds", "uniform")
        if self.steps is not None:
            self.at_least_one("steps")
        for rate in (self.lr, self.proxy_lr):
            if not 0 < rate < float("inf"):
                raise UserError(f"a learning rate must be a number above 0, not {rate}")
        self.task, self.model  # noqa: B018 (impossible settings are refused here)

    @cached_property
    def task(self) -> PieceText:
        return PieceText(
            self.corpus, self.data_dir, self.source_language, self.target_language, self.vocabulary, self.longest,
            self.piece_model,
        )  # fmt: skip

    @property
    def length(self) -> int:
        """Training steps; the last batch of an epoch of the authors need not be full."""
        if self.steps is not None:
            return self.steps
        known = CORPORA.get(SHORT.get(self.corpus, self.corpus))
        if known and known.translator_steps:
            return known.translator_steps
        epochs = (known and known.published_epochs) or EPOCHS
        return epochs * -(-len(loaded(self.task).train) // self.batch)

    @property
    def model(self) -> Translator:
        return Translator(hidden=self.hidden, dropout=self.dropout)

    @property
    def counts(self) -> dict[str, int]:
        """How many runs there are of each kind."""
        return {STANDARD: self.seeds, UNIFORM: self.uniform, LINEAR: 0, PROXY: 1}

    def seeds_of(self, condition: str) -> list[int]:
        """No two runs of a study share a seed."""
        first = APART * list(self.counts).index(condition)
        return list(range(first, first + self.counts[condition]))

    def conditions(self) -> Iterator[Condition]:
        self.task.epoch(self.batch)  # a corpus that cannot be used is refused here
        yield self.condition(STANDARD)
        yield self.condition(UNIFORM, rule=Uniform())

    def readings(self, influence: bool = True) -> tuple[Reading, ...]:
        found: list[Reading] = []
        for on in self.parts:
            usual: dict[str, Any] = {"every": self.every, "at": self.early, "on": on}
            found += [
                Answers(**usual),
                PairScores(**usual, influence=influence),
                Translate(**usual, start=self.task.start, end=self.task.end, beams=self.beams, longest=self.cut),
            ]
        return tuple(found)

    def condition(self, name: str, **changes: Any) -> Condition:
        common: dict[str, Any] = {
            "task": self.task,
            "model": self.model,
            "seeds": tuple(self.seeds_of(name)),
            "steps": self.length,
            "batch": self.batch,
            "optimiser": Adam(lr=self.lr),
            "evaluation": self.evaluation,
            "readings": self.readings() if "readings" not in changes else (),
        }
        return Condition(name=name, **(common | changes))

    def proxy(self) -> Condition:
        """The authors' recipe: width 256, batches of 64 (or all pairs, if fewer), summed loss, the best epoch."""
        size = min(64, len(loaded(self.task).train))
        steps = self.task.epoch(size)
        return Condition(
            name=PROXY,
            task=self.task,
            model=Proxy(width=self.hidden),
            seeds=tuple(self.seeds_of(PROXY)),
            steps=self.epochs * steps,
            batch=size,
            rule=Uniform(),
            objective=Likelihood(total=True),
            optimiser=Adam(lr=self.proxy_lr),
            evaluation=self.evaluation,
            readings=(Answers(every=steps),),
            best=("lowest loss",),
        )

    def part(self, metrics: Metrics, run: Run, device: str = "cpu") -> Pairs:
        """The validation pairs with all that was read on them."""
        from attndyn.studies.translation_part import Pairs

        return Pairs(self, metrics, run, device, "valid")

    def shown(self, run: Run, metrics: Metrics) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]] | None:
        """α, β and Δ of a few pairs."""
        from attndyn.studies.translation_part import maps

        return None if self.traces == "all" else maps(self.part(metrics, run), SHOWN)

    # --- what the page shows

    def learning(self) -> Iterator[Curves]:
        """Accuracy and BLEU along training, of all kinds of runs."""
        captions = {"accuracy": "With the target as input, </s> counted.", "BLEU": self.signature()}
        for metric, title in (("accuracy", "Token accuracy"), ("BLEU", "BLEU")):
            yield Curves(
                name=metric.lower(),
                title=f"{title} on the {self.pairs_are}",
                caption=captions[metric],
                metric=metric,
                y_title=metric,
                conditions=tuple(name for name in (STANDARD, UNIFORM, LINEAR) if self.counts[name]),
            )

    def signature(self) -> str:
        from attndyn.measures.translation import bleu

        return f"Beam {self.beams}, no length normalisation. sacrebleu: {bleu(['a b c d'], ['a b c d']).signature}."

    def watched(self, outlined: str, *more: tuple[str, str]) -> Iterator[Maps]:
        """A few pairs along training."""
        if self.traces == "all":
            return
        yield Maps(
            name="maps",
            title="Watch it learn to look",
            caption=f"Some of the {self.pairs_are}: target pieces down, source pieces across. α, β and Δ of the first "
            "standard run, and β_uf, the probe of the first run under uniform attention. β is shown as the odds of the "
            "right piece and Δ by its positive part, each row divided by its sum.",
            panels=tuple(
                Panel(title=f"pair {n + 1}", condition=STANDARD, replica=self.seeds_of(STANDARD)[0], example=n)
                for n in range(SHOWN)
            ),
            kinds=(
                ("alpha", "attention α"), ("beta", "probe β"), ("delta", "influence Δ"),
                ("beta_uf", "uniform: probe β_uf"), *more,
            ),
            across=True,
            outlined=outlined,
        )  # fmt: skip
