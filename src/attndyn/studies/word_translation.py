"""Word translation: a translator learns a dictionary under any attention, and the dictionary then pulls the attention.

Source: Snell et al. §2.1 to §3.2, §5.1, A.1, A.4, A.5, A.7, A.8; tables 1 to 8. Standard runs, runs under uniform
attention and a run with a linear head train on the same pairs; α, β and Δ of every target and source position of the
validation pairs and of as many training pairs are read at each checkpoint, and translations made by beam search; then
they are compared (`translation_tables.py`). Beside them: the bag-of-words proxy and IBM Model 1.
Follows the authors' program in what the text leaves open or says otherwise (`models/translator.py`); German to English
on Multi30k, as their program loads it; the text says English to German (`--source-language en --target-language de`).
Batches hold pairs of about one length, where the authors draw them at random.
Cost: demo 2 minutes on two cores; paper 3 to 7 on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from attndyn.errors import UserError
from attndyn.measures.pair_readings import BestAttention
from attndyn.report.parts import Curves, Part
from attndyn.studies.base import Judgement
from attndyn.studies.translation_claims import Judge
from attndyn.studies.translation_names import LINEAR, LINK_CHANCE, STANDARD, SUMMARY, UNIFORM
from attndyn.studies.translation_page import Tables
from attndyn.studies.translation_statements import STATEMENTS
from attndyn.studies.translation_study import TranslationStudy
from attndyn.tasks.corpora import CORPORA, SHORT, STAND_IN
from attndyn.tasks.corpus import loaded
from attndyn.training.condition import Condition

if TYPE_CHECKING:
    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics, Row
    from attndyn.tasks.pieces import PieceExamples

LOGGED = {"multi30k": "Multi30k"}
"""Corpora for which the authors' own numbers are known."""


@dataclass(frozen=True, kw_only=True)
class WordTranslation(TranslationStudy):
    name: ClassVar[str] = "word-translation"
    title: ClassVar[str] = "Word translation: first the dictionary, then the attention?"
    source: ClassVar[str] = "Snell et al., arXiv 2103.07601, sections 2, 3, 5.1, A.1, A.4, A.5, A.7, A.8; tables 1 to 8"
    statements = STATEMENTS
    demo: ClassVar[dict[str, Any]] = {
        "corpus": "tatoeba-sample", "vocabulary": 1000, "seeds": 2, "uniform": 1, "steps": 1000, "batch": 32,
        "lr": 3e-3, "hidden": 64, "dropout": 0.25, "every": 250, "early": (50, 100, 175), "evaluation": 60,
        "cut": 30, "epochs": 8,
    }  # fmt: skip

    corpus: str = "multi30k"
    """multi30k, iwslt14_de_en, news_en_nl, news_en_pt, news_it_pt, tatoeba_de_en, tatoeba_es_en, tatoeba_nl_en,
    europarl_de_en, tatoeba-sample (ships with attndyn); or a folder with train.de and train.en, valid.de, …; or two
    files, data/mine for data/mine.de and data/mine.en. Without a validation part a tenth of the pairs is drawn for
    it."""
    linear: int = 1
    """Runs with a linear head."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seeds_apart("linear")
        if self.seeds < 2:
            raise UserError("seeds must be at least 2: a standard run is compared with another one")
        if self.linear < 0:
            raise UserError(f"linear must be at least 0, not {self.linear}")

    @property
    def counts(self) -> dict[str, int]:
        return super().counts | {LINEAR: self.linear}

    def conditions(self) -> Iterator[Condition]:
        yield from super().conditions()
        if self.linear:
            best = BestAttention(every=self.length)
            readings = tuple(reading for reading in self.readings(influence=False) if reading.on == "valid")
            yield self.condition(LINEAR, model=replace(self.model, head="linear"), readings=(*readings, best))
        yield self.proxy()

    def from_traces(self, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
        from attndyn.studies.translation_tables import tables

        return tables(self, metrics, run, device)

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
            known = CORPORA.get(SHORT.get(self.corpus, self.corpus))
            stands_in = known is not None and known.caveat.startswith(STAND_IN)
            notes.append(STAND_IN if stands_in else "no logged row for this corpus: direction only")
        notes += filter(None, [cast("PieceExamples", loaded(self.task)).note])
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
        judge = Tables(self, metrics)
        yield judge.columns_table()
        yield judge.ranks_table()
        yield judge.dictionary()
        yield Curves(
            name="stages",
            title="First the dictionary, then the attention?",
            caption="Of the links that IBM Model 1 makes in the validation pairs, those to <s> and </s> left out, the "
            "share where β and α have their peak on the same source piece.",
            metric=(("probe on link", "β, the probe"), ("attention on link", "α, the attention")),
            y_title="share of links",
            conditions=(STANDARD,),
            reference=judge.value(SUMMARY, LINK_CHANCE),
            reference_label="chance",
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
        yield from self.learning()
        yield from self.watched("outline the links of IBM Model 1")
        yield judge.more()
