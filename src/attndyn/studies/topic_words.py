"""Topic words: the score of a word and the norm of its embedding are tied by one identity, whatever the classifier.

Source: Lu, Mao & Nayak, *On the Dynamics of Training Attention Models* (arXiv 2011.10036). A bag-of-words attention
model learns which word tells the topic, by gradient descent on the whole training set with exact gradients, in float64.
Cost: demo under two minutes on one core; paper 44 minutes on one busy core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.errors import UserError
from attndyn.studies.base import Judgement, Piece, Statement, Study
from attndyn.studies.topic_claims import STATEMENTS

if TYPE_CHECKING:
    from attndyn.models.topic import Classifier, Topic
    from attndyn.report.parts import Part
    from attndyn.store.metrics import Metrics
    from attndyn.tasks.topics import TopicWords as Task

KINDS: tuple[Classifier, ...] = ("FC", "TC", "TL")
FULL, FROZEN = ", σ = .1", ("-KF", "-EF")
QUERY_TRAINED = "FC-QT"
QUERIES = {"FC, query sd 1": 1.0, "FC, query sd 3": 3.0}
STEP_SIZES, DICTIONARIES, FREQUENCIES = ", step sizes", "FC, dictionaries", "frequencies"
TOPIC_END, OTHER_END = "topic words", "other words"
PADDED = ", FC, padding seen"
WIDTHS: dict[Classifier, int] = {"FC": 200, "TC": 100}
"""Dimensions of the embeddings on real text, in the authors' configuration."""


@dataclass(frozen=True, kw_only=True)
class TopicWords(Study):
    name: ClassVar[str] = "topic-words"
    title: ClassVar[str] = "Topic words: attention and embeddings grow together, along one curve"
    source: ClassVar[str] = "Lu, Mao & Nayak, ICLR 2021, arXiv 2011.10036"
    headline: ClassVar[str] = "attention"
    demo: ClassVar[dict[str, Any]] = {
        "seeds": 4,
        "sentences": 1250,
        "rate": 0.25,
        "epochs": 2000,
        "ablation_epochs": 1200,
        "rates": (0.4, 0.2, 0.1),
        "dictionaries": (50, 500, 5000),
        "texts": ("sms_spam",),
        "text_seeds": 2,
        "text_epochs": 1000,
        "followed": ("free", "mobile", "stop", "text", "claim"),
    }

    seeds: int = 6
    """Draws of the sentences and the initial weights: seeds 0, 1, 2, …"""
    epochs: int = 5000
    """Steps of gradient descent on the topic task."""
    ablation_epochs: int = 6000
    """The same where keys or embeddings are frozen."""
    rate: float = 0.1
    """Step size."""
    topics: int = 4
    """Topics J."""
    each: int = 2
    """Topic words of each topic."""
    dictionary: int = 5000
    """Other words, |Θ|."""
    others: int = 20
    """Other words in a sentence, m."""
    sentences: int = 5000
    """Sentences: .80 to train on, .01 for validation, .19 to test."""
    rates: tuple[float, ...] = (0.4, 0.2, 0.1, 0.05)
    """Step sizes at which the identity is compared, in three seeds."""
    dictionaries: tuple[int, ...] = (50, 500, 5000, 50_000)
    """Dictionary sizes at which it is compared, in one seed."""
    texts: tuple[str, ...] = ("sst2", "sst5")
    """Real text: sst2, sst5, another labelled corpus, or a file with label<TAB>text a line."""
    text_seeds: int = 3
    """Initial weights for each text; the trained classifier, which takes longer, has one."""
    text_epochs: int = 20_000
    """Most epochs on real text."""
    patience: int = 2000
    """On real text, epochs without a better validation loss after which training stops."""
    followed: tuple[str, ...] = ("powerful", "stupid", "solid", "suffers", "mess")
    """Words whose sentences are watched for who is attended to most."""

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise UserError(f"seeds must be at least 2, for the intervals, not {self.seeds}")
        if self.texts and self.text_seeds < 2:
            raise UserError(f"text-seeds must be at least 2, for the intervals, not {self.text_seeds}")
        for name in ("epochs", "ablation_epochs", "text_epochs", "patience"):
            if getattr(self, name) < 100:
                raise UserError(f"{name.replace('_', '-')} must be at least 100, not {getattr(self, name)}")
        if len(set(self.rates)) < 2 or min(self.rates) <= 0:
            raise UserError(f"rates must be two or more different numbers above 0, not {self.rates}")
        if not self.rate > 0:
            raise UserError(f"rate must be above 0, not {self.rate}")
        _ = self.task, [self._task(dictionary=size) for size in self.dictionaries]

    @property
    def task(self) -> Task:
        return self._task()

    def _task(self, **changes: int) -> Task:
        from attndyn.tasks.topics import TopicWords as Task

        names = ("topics", "each", "dictionary", "others", "sentences")
        return Task(**{name: getattr(self, name) for name in names} | changes)

    @property
    def variants(self) -> dict[str, tuple[Topic, int]]:
        """What is trained on the topic task, and for how long."""
        from attndyn.models.topic import Topic

        made: dict[str, tuple[Topic, int]] = {kind: (Topic(kind), self.epochs) for kind in KINDS}
        linear: tuple[Classifier, ...] = ("FC", "TC")
        for kind in linear:
            for ending, frozen in ((FULL, ()), ("-KF", ("keys",)), ("-EF", ("embeddings",))):
                made[kind + ending] = (Topic(kind, frozen=frozen, embedding_sd=0.1), self.ablation_epochs)
        made[QUERY_TRAINED] = (Topic("FC", query_trained=True), self.epochs)
        return made | {name: (Topic("FC", query_sd=sd), self.epochs) for name, sd in QUERIES.items()}

    def pieces(self) -> Iterator[Piece]:
        from attndyn.models.topic import Topic
        from attndyn.studies import topic_runs as runs
        from attndyn.studies import topic_texts as texts
        from attndyn.tasks.topics import read

        corpora = {title(name): read(name) for name in self.texts}
        task, seeds = self.task, range(self.seeds)
        second = 2e-4 + self.sentences / 6e6  # of one core, an epoch of FC
        for seed in seeds:
            yield Piece(condition=FREQUENCIES, replica=seed, cost=0.1, measure=partial(runs.frequencies, task, seed))
        for name, (spec, epochs) in self.variants.items():
            for seed in seeds[:3] if name in (QUERY_TRAINED, *QUERIES) else seeds:
                measure = partial(runs.variant, task, spec, self.rate, epochs, seed)
                cost = epochs * second * (2 if spec.classifier == "TL" else 1)
                yield Piece(condition=name, replica=seed, cost=cost, measure=measure)
        for name, topic in ((TOPIC_END, True), (OTHER_END, False)):
            measure = partial(runs.scatter, task, self.rate, self.epochs, topic)
            yield Piece(condition=name, cost=self.epochs * second * topic + 0.01, measure=measure)
        for kind in KINDS:
            for seed in seeds[:3]:
                measure = partial(runs.steps, task, kind, self.rates, seed)
                yield Piece(condition=kind + STEP_SIZES, replica=seed, cost=1.0, measure=measure)
        measure = partial(runs.dictionaries, task, self.dictionaries, self.rate, self.epochs, 0)
        cost = self.epochs * sum(second + size / 1e7 for size in self.dictionaries)
        yield Piece(condition=DICTIONARIES, cost=cost, measure=measure)
        settings = (self.rate, self.text_epochs, self.patience)
        for number, (name, parts) in enumerate(corpora.items()):
            long = 1.5e-8 * parts.train.counts.nnz * min(8000, self.text_epochs)
            for seed in range(self.text_seeds):
                for kind, width in WIDTHS.items():
                    if kind == "TC" and seed:
                        continue
                    spec = Topic(kind, width=width)
                    shown = (number, seed, kind) == (0, 0, "FC")
                    measure = partial(texts.text, parts, spec, *settings, seed, followed=self.followed, shown=shown)
                    cost = long * (1 if kind == "FC" else 2)
                    yield Piece(condition=f"{name}, {kind}", replica=seed, cost=cost, measure=measure)
                if number == 0:
                    spec = Topic("FC", width=WIDTHS["FC"])
                    measure = partial(texts.padded, parts, spec, *settings, seed)
                    yield Piece(condition=name + PADDED, replica=seed, cost=long, measure=measure)

    # --- claims

    statements: ClassVar[tuple[Statement, ...]] = STATEMENTS

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        from attndyn.studies.topic_claims import judge

        yield from judge(self, metrics)

    def finding(self, metrics: Metrics) -> str:
        worst = {kind: metrics.curves(kind, "simple residual").values.max() for kind in KINDS}
        scores = {kind: metrics.curves(kind, "topic score").last.mean() for kind in KINDS}
        attention = metrics.curves("FC", "attention").last.mean()
        return (
            "Score and norm of every topic word stay on the one predicted curve, within "
            f"{', '.join(f'{value:.2%} ({kind})' for kind, value in worst.items())} of the final norm; the final "
            f"scores are {', '.join(f'{value:.2f} ({kind})' for kind, value in scores.items())}. After {self.epochs:,} "
            f"epochs the topic word has {attention:.0%} of the attention of its sentence under FC: convergence is slow."
        )

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        from attndyn.studies.topic_figures import figures

        yield from figures(self, metrics)


def title(text: str) -> str:
    """How a text is named on the page."""
    return {"sst2": "SST-2", "sst5": "SST-5"}.get(text, Path(text).name)
