"""Word translation: a translator learns a dictionary under any attention, and the dictionary then pulls the attention.

Source: Snell et al. §2.1 to §3.2, §5.1, A.1, A.4, A.5, A.7, A.8; tables 1 to 8. Standard runs, runs under uniform
attention and a run with a linear head train on the same pairs; α, β and Δ of every target and source position of the
validation pairs and of as many training pairs are read at each checkpoint, and translations made by beam search; then
they are compared (`translation_tables.py`). Beside them: the bag-of-words proxy and IBM Model 1.
Follows the authors' program in what the text leaves open or says otherwise (`models/translator.py`); German to English
on Multi30k, as their program loads it; the text says English to German (`--source-language en --target-language de`).
Batches hold pairs of about one length, where the authors draw them at random.
Cost: demo about 3 minutes on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attndyn.errors import UserError
from attndyn.measures.pair_readings import BestAttention, PairScores, Translate
from attndyn.measures.readings import Answers, Reading
from attndyn.models.rules import Uniform
from attndyn.models.specs import Proxy, Translator
from attndyn.report.parts import Curves, Maps, Panel, Part
from attndyn.studies.base import Judgement, Study
from attndyn.studies.translation_claims import Judge
from attndyn.studies.translation_names import LINEAR, PROXY, STANDARD, SUMMARY, UNIFORM
from attndyn.studies.translation_statements import STATEMENTS
from attndyn.tasks.pieces import PieceText
from attndyn.training.condition import Adam, Condition, Likelihood

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics, Row

SHOWN = 3
"""Pairs whose α, β and Δ are kept for the page."""
LOGGED = {"multi30k": "Multi30k"}
"""Corpora for which the authors' own numbers are known."""


@dataclass(frozen=True, kw_only=True)
class WordTranslation(Study):
    name: ClassVar[str] = "word-translation"
    title: ClassVar[str] = "Word translation: first the dictionary, then the attention"
    source: ClassVar[str] = "Snell et al., arXiv 2103.07601, sections 2, 3, 5.1, A.1, A.4, A.5, A.7, A.8; tables 1 to 8"
    statements = STATEMENTS
    demo: ClassVar[dict[str, Any]] = {
        "corpus": "tatoeba-sample", "vocabulary": 1000, "seeds": 2, "uniform": 1, "steps": 1000, "batch": 32,
        "lr": 3e-3, "hidden": 64, "dropout": 0.25, "every": 250, "early": (50, 100, 175), "evaluation": 60,
        "cut": 30, "epochs": 8,
    }  # fmt: skip

    corpus: str = "multi30k"
    """multi30k, tatoeba_de_en, tatoeba_es_en, tatoeba_nl_en, europarl_de_en, tatoeba-sample (ships with attndyn); or a
    folder with train.de and train.en, valid.de, …"""
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
    """Standard runs; each is gold in turn, the others are compared with it."""
    uniform: int = 2
    """Runs under uniform attention."""
    linear: int = 1
    """Runs with a linear head."""
    steps: int = 36_260
    """Training steps."""
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
    """Most validation pairs, and as many training pairs, that are read at a checkpoint."""
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
        self.at_least_one("seeds", "uniform", "steps", "batch", "every", "evaluation", "beams", "cut", "epochs")
        if self.seeds < 2:
            raise UserError("seeds must be at least 2: a standard run is compared with another one")
        if self.linear < 0:
            raise UserError(f"linear must be at least 0, not {self.linear}")
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
    def model(self) -> Translator:
        return Translator(hidden=self.hidden, dropout=self.dropout)

    def seeds_of(self, condition: str) -> list[int]:
        """No two runs of a study share a seed."""
        counts = {STANDARD: self.seeds, UNIFORM: self.uniform, LINEAR: self.linear, PROXY: 1}
        first = 1000 * list(counts).index(condition)
        return list(range(first, first + counts[condition]))

    def conditions(self) -> Iterator[Condition]:
        self.task.epoch(self.batch)  # a corpus that cannot be used is refused here
        yield self.condition(STANDARD)
        yield self.condition(UNIFORM, rule=Uniform())
        if self.linear:
            best = BestAttention(every=self.steps)
            readings = tuple(reading for reading in self.readings(influence=False) if reading.on == "valid")
            yield self.condition(LINEAR, model=replace(self.model, head="linear"), readings=(*readings, best))
        yield self.proxy()

    def readings(self, influence: bool = True) -> tuple[Reading, ...]:
        found: list[Reading] = []
        for on in ("valid", "train"):
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
            "steps": self.steps,
            "batch": self.batch,
            "optimiser": Adam(lr=self.lr),
            "evaluation": self.evaluation,
            "readings": self.readings() if "readings" not in changes else (),
        }
        return Condition(name=name, **(common | changes))

    def proxy(self) -> Condition:
        """The authors' recipe (width 256, batches of 64, summed loss, the best epoch), but for a smaller start."""
        steps = self.task.epoch(64)
        return Condition(
            name=PROXY,
            task=self.task,
            model=Proxy(width=self.hidden, spread=self.hidden**-0.5),
            seeds=tuple(self.seeds_of(PROXY)),
            steps=self.epochs * steps,
            batch=64,
            rule=Uniform(),
            objective=Likelihood(total=True),
            optimiser=Adam(lr=self.proxy_lr),
            evaluation=self.evaluation,
            readings=(Answers(every=steps),),
            best=("lowest loss",),
        )

    def from_traces(self, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
        from attndyn.studies.translation_tables import tables

        return tables(self, metrics, run, device)

    def shown(self, run: Run, metrics: Metrics) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]] | None:
        """α, β and Δ of a few pairs, of the first run of each kind."""
        from attndyn.studies.translation_tables import maps

        return None if self.traces == "all" else maps(self, run, metrics, SHOWN)

    # --- what was found

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        yield from Judge(self, metrics).all()

    @property
    def caveat(self) -> str:
        paper = type(self)()
        sizes = ("steps", "batch", "lr", "hidden", "dropout", "vocabulary")
        other = [name for name in sizes if getattr(self, name) != getattr(paper, name)]
        notes = [f"not the published {' and '.join(other)}: direction only"] if other else []
        if self.corpus not in LOGGED:
            notes.append("no logged row for this corpus: direction only")
        return "; ".join(notes)

    def finding(self, metrics: Metrics) -> str:
        judge = Judge(self, metrics)
        table = "validation, token accuracy"
        under, between = (100 * judge.value(table, name) for name in ("A(α, β_uf)", "A(α, β)"))
        chance, bleu = 100 * judge.value(SUMMARY, "chance"), metrics.curves(STANDARD, "BLEU").values.max(axis=1).mean()
        return (
            f"The source piece that gets most attention is among the 5 % that say most about the target piece under "
            f"uniform attention at {under:.1f} % of the positions, and among those that another run knows best at "
            f"{between:.1f} %; by chance {chance:.1f} %. BLEU {bleu:.1f}."
        )

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        judge = Judge(self, metrics)
        yield judge.columns_table()
        yield judge.dictionary()
        yield Curves(
            name="stages",
            title="First the dictionary, then the attention",
            caption="Of the links that IBM Model 1 makes in the validation pairs, the share where β and α have their "
            "peak on the same source piece.",
            metric=(("probe on link", "β, the probe"), ("attention on link", "α, the attention")),
            y_title="share of links",
            conditions=(STANDARD,),
        )
        yield Curves(
            name="uniform",
            title="What is known without attention",
            caption="Agreement of the gold attention with β of runs under uniform attention, along training (A.7).",
            metric="A(α, β_uf)",
            y_title="A(α, β_uf)",
            conditions=(UNIFORM,),
            reference=judge.value(SUMMARY, "chance"),
            reference_label="chance",
        )
        yield Curves(
            name="agreement",
            title="Agreement with the gold attention of another run",
            caption="How often the peak of the gold attention of the other runs is among the top 5 % of β and of α.",
            metric=(("A(α, β)", "β, the probe"), ("A(α, α)", "α, the attention")),
            y_title="agreement",
            conditions=(STANDARD,),
            reference=judge.value(SUMMARY, "chance"),
            reference_label="chance",
        )
        for metric in ("accuracy", "BLEU"):
            yield Curves(
                name=metric.lower(),
                title={"accuracy": "Token accuracy", "BLEU": "BLEU"}[metric] + " on the validation pairs",
                caption="With the target as input, </s> counted." if metric == "accuracy" else judge.signature(),
                metric=metric,
                y_title=metric,
                conditions=(STANDARD, UNIFORM, *([LINEAR] if self.linear else [])),
            )
        yield Maps(
            name="maps",
            title="Watch it learn to look",
            caption="Validation pairs: target pieces down, source pieces across; α, β and the positive part of Δ, each "
            "row of Δ divided by its sum.",
            panels=tuple(
                Panel(
                    title=f"{condition}, pair {n + 1}",
                    condition=condition,
                    replica=self.seeds_of(condition)[0],
                    example=n,
                )
                for n, condition in ((0, STANDARD), (1, STANDARD), (0, UNIFORM))
            ),
            kinds=(("alpha", "attention α"), ("beta", "probe β"), ("delta", "influence Δ")),
        )
        yield judge.more()
