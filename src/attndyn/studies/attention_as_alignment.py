"""Attention as alignment: against gold word links, does the dictionary align before the attention does?

A question of our own to Snell et al.'s two stages: they measure agreement between scorings, here each scoring is a word
alignment and people's links say how good it is. A translator with learned attention and one under uniform attention
train on the same pairs; at each checkpoint the peaks of α, β and Δ are turned into word links (`alignment_tables.py`
says how) and scored by the alignment error rate, beside the bag-of-words proxy and IBM Model 1.
Model, training and proxy are those of `word-translation`.
Paper scale: Europarl German-English, 128 pairs with gold links, 20 epochs. Demo scale: English sentences that ship and
their own cipher with local reordering (`tasks/cipher.py`), whose links are exact.
Cost: demo a minute and a half on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from attndyn.errors import UserError
from attndyn.report.parts import Curves, Part
from attndyn.studies.alignment_claims import STATEMENTS, Judge
from attndyn.studies.alignment_claims import steps as listed
from attndyn.studies.alignment_names import ALIGNMENT, ALPHA, CHANCE, IBM_PIECES, UNIFORM_BETA
from attndyn.studies.base import Judgement
from attndyn.studies.translation_study import TranslationStudy
from attndyn.tasks.aligned import CIPHER, AlignedText
from attndyn.tasks.corpus import loaded
from attndyn.training.condition import Condition

if TYPE_CHECKING:
    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics, Row
    from attndyn.studies.translation_part import Pairs
    from attndyn.tasks.aligned import AlignedExamples


@dataclass(frozen=True, kw_only=True)
class AttentionAsAlignment(TranslationStudy):
    name: ClassVar[str] = "attention-as-alignment"
    title: ClassVar[str] = "Attention as alignment: who finds the gold links, and when"
    source: ClassVar[str] = "Snell et al., arXiv 2103.07601, section 4.2; alignment error rate: Och and Ney 2003"
    statements = STATEMENTS
    parts: ClassVar[tuple[Literal["valid", "train"], ...]] = ("valid",)
    pairs_are: ClassVar[str] = "gold pairs"
    demo: ClassVar[dict[str, Any]] = {
        "corpus": "tatoeba-cipher", "source_language": "en", "target_language": "cipher", "vocabulary": 1200,
        "seeds": 3, "uniform": 4, "steps": 800, "batch": 24, "lr": 3e-3, "hidden": 48, "dropout": 0.1, "every": 100,
        "early": (50, 150, 250, 350, 450), "evaluation": 50, "beams": 1, "cut": 30, "epochs": 15,
    }  # fmt: skip

    corpus: str = "europarl_de_en"
    """europarl_de_en, tatoeba-cipher (made of what ships with attndyn); or any parallel corpus of word-translation, a
    folder or two files, with --gold. Words are what stands between white space."""
    gold: str = ""
    """Gold links of one's own: data/test for data/test.de, data/test.en and data/test.gold, whose lines hold i-j (sure)
    and i?j (possible), the position in the source first, from 0."""
    uniform: int = 4
    """Runs under uniform attention."""
    every: int = 1000
    """Steps between two checkpoints."""
    early: tuple[int, ...] = (100, 250, 500, 750, 1250, 1500, 1750)
    """More checkpoints, at these steps."""

    @cached_property
    def task(self) -> AlignedText:
        return AlignedText(
            self.corpus, self.data_dir, self.source_language, self.target_language, self.vocabulary, self.longest,
            self.piece_model, self.gold,
        )  # fmt: skip

    def conditions(self) -> Iterator[Condition]:
        from attndyn.tasks.ragged import examined_lines

        yield from super().conditions()
        examples = cast("AlignedExamples", loaded(self.task))
        read = examined_lines(examples.train, examples.valid, self.evaluation, "valid")
        if not any(examples.gold[line].sure for line in read):
            raise UserError(f"none of the {len(read)} gold pairs that are read has a sure link")
        yield self.proxy()

    def part(self, metrics: Metrics, run: Run, device: str = "cpu") -> Pairs:
        from attndyn.studies.alignment_tables import LinkedPairs

        return LinkedPairs(self, metrics, run, device, "valid")

    def from_traces(self, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
        from attndyn.studies.alignment_tables import LinkedPairs, Tables
        from attndyn.studies.translation_part import bleu_rows

        part = LinkedPairs(self, metrics, run, device, "valid")
        yield from bleu_rows(part)
        yield from Tables(part).rows()

    # --- what was found

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        yield from Judge(self, metrics).all()

    @property
    def caveat(self) -> str:
        if self.corpus == CIPHER:
            return "made text, in which every word has one translation"
        return cast("AlignedExamples", loaded(self.task)).note

    def finding(self, metrics: Metrics) -> str:
        judge = Judge(self, metrics)
        end, dictionary, counted, chance = (
            judge.value(f"AER of {name}") for name in (ALPHA, f"lowest {UNIFORM_BETA}", judge.counted, CHANCE)
        )
        return (
            f"Against gold links the attention ends at an alignment error rate of {end:.2f}; the dictionary learned "
            f"under uniform attention reaches {dictionary:.2f}, {judge.counted} {counted:.2f}, random links "
            f"{chance:.2f}. "
            f"Halfway: the dictionary at steps {listed(judge.stage(UNIFORM_BETA))}, the attention at steps "
            f"{listed(judge.stage(ALPHA))}."
        )

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        judge = Judge(self, metrics)
        yield Curves(
            name="aer",
            title="Alignment error rate along training",
            caption="Lower is better. α and β of the standard runs, β_uf of the runs under uniform attention, Δ of the "
            "standard runs. A thin line is a run.",
            metric=tuple(
                (f"AER of {name}", f"{name}, {what}")
                for name, what in (
                    ("α", "attention"), ("β", "probe"), ("β_uf", "uniform attention"), ("Δ", "influence"),
                )
            ),
            y_title="alignment error rate",
            conditions=(ALIGNMENT,),
            reference=judge.value(f"AER of {IBM_PIECES}"),
            reference_label="IBM Model 1",
        )  # fmt: skip
        yield judge.ends()
        yield from self.watched("outline the gold links (dashed: possible ones)", ("gold", "gold links"))
        yield judge.variants()
        yield Curves(
            name="agreement",
            title="Agreement along training",
            caption="How often the peak of α is among the top 5 % of β of the same run, and of the first run under "
            "uniform attention, at the same step.",
            metric=(("A(α, β)", "β of the same run"), ("A(α, β_uf)", "β_uf")),
            y_title="agreement with α",
            conditions=(ALIGNMENT,),
            reference=judge.value("chance of A"),
            reference_label="chance",
        )
        yield from self.learning()
        yield judge.facts()
