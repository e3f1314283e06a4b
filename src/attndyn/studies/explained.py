"""What `feature-importance`, `counterfactual-attention` and `deceptive-attention` share: corpora, classifiers, limits.

The classifier of Jain and Wallace 2019 (their program, which Wiegreffe and Pinter 2019 build on): a BiLSTM, or each
word for itself, under additive attention with tanh, one sigmoid output, Adam with amsgrad, the second class weighted by
how much rarer it is, the epoch chosen on development texts. `feature-importance` trains them; the other studies take
them from its run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attndyn.errors import UserError
from attndyn.measures.readings import Answers, Ranking
from attndyn.models.specs import Classifier
from attndyn.studies.base import Study
from attndyn.tasks.bare import BareText
from attndyn.tasks.corpora import SHORT
from attndyn.training.condition import Adam, Condition, Likelihood

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attndyn.store.metrics import Metrics
    from attndyn.studies.base import Judgement

BILSTM, AVERAGE = "BiLSTM", "each word for itself"
SUMMARY = "all seeds"
"""What is measured across seeds and texts."""
BEST = "highest AUC"
SIZES = ("epochs", "batch", "lr", "decay", "hidden")
LENGTHS = ("shortest", "below")

LIMITS: dict[str, dict[str, int]] = {
    "sst5": {"shortest": 6},
    "imdb": {"below": 400, "seen": 20},
    "newsgroups_sport": {"shortest": 6, "below": 501},
    "sms_spam": {"shortest": 6},
}
"""Words of a text, and how often a word must be seen: those of the authors' notebooks, as far as they are known. SMS,
which they do not have, is read as SST."""

PUBLISHED: dict[str, dict[str, tuple[float, ...]]] = {
    "sst5": {"τ": (0.351, 0.291, 0.656), "scores": (0.808, 0.783, 0.902), "significant": (0.485, 0.365)},
    "imdb": {"τ": (0.437, 0.341, 0.517), "scores": (0.898, 0.896, 0.960), "significant": (1.0, 0.995)},
    "ag_news_wb": {"scores": (0.958, 0.958, 0.990)},
    "newsgroups_sport": {"scores": (0.922, 0.917, 0.978)},
}
"""The authors' result files: τ of attention with gradient, of attention with leaving out, of the two with each other;
accuracy, F1 and AUC on the test texts; the share of texts with p ≤ .05 (the mean of the two classes)."""


@dataclass(frozen=True, kw_only=True)
class Explained(Study):
    corpus: str = "sms"
    """sms (ships with attndyn), sst, imdb, ag, 20ng; or a folder with train.tsv and test.tsv, or one file, with
    `label<TAB>text` lines and two labels."""
    data_dir: str | None = None
    """Where corpora lie; also $ATTNDYN_DATA, then the user's cache."""
    vectors: str | None = None
    """A file of word vectors in GloVe's text format, from which the words start that have one; the authors take 300
    numbers a word from fastText. Without it all start from N(0, 1)."""
    shortest: int | None = None
    """Texts of fewer words are left out; if not given, the authors' limit for the corpus."""
    below: int | None = None
    """Only texts of fewer words; if not given, the authors' limit for the corpus."""
    seeds: int = 8
    """BiLSTM classifiers; the first is the base, or the first few are the bases."""
    averages: int = 8
    """Classifiers that read each word for itself."""
    epochs: int = 8
    """Of training; the best one on the development texts is kept."""
    batch: int = 32
    """Texts in a training step."""
    lr: float = 1e-3
    """Adam's learning rate (amsgrad)."""
    decay: float = 1e-5
    """Weight decay, of every parameter; the authors leave the attention's out."""
    width: int = 300
    """Of the word vectors, where none are given."""
    hidden: int = 128
    """Of the LSTM, in each direction; half the states is the attention network's."""
    evaluation: int = 4000
    """Most test texts, and most development texts."""

    def __post_init__(self) -> None:
        self.at_least_one("seeds", "averages", "epochs", "batch", "evaluation")
        if not 0 < self.lr < float("inf") or not 0 <= self.decay < float("inf"):
            raise UserError(f"lr must be above 0 and decay at least 0, not {self.lr} and {self.decay}")
        for name in LENGTHS:
            if (value := getattr(self, name)) is not None and value < 2:
                raise UserError(f"{name} must be at least 2, not {value}: attention over one word has no choice")
        Classifier(width=self.width, hidden=self.hidden)

    def common(self) -> dict[str, Any]:
        """The settings that all three studies have: with these, the run of `feature-importance` is the same."""
        return {field.name: getattr(self, field.name) for field in fields(Explained)}

    @cached_property
    def task(self) -> BareText:
        own = {name: value for name in LENGTHS if (value := getattr(self, name)) is not None}
        return BareText(self.corpus, self.data_dir, vectors=self.vectors, **(self.limits | own))

    @property
    def limits(self) -> dict[str, int]:
        """The authors'."""
        return LIMITS.get(SHORT.get(self.corpus, self.corpus), {})

    @property
    def corpus_name(self) -> str:
        return self.task.data.name

    @property
    def epoch(self) -> int:
        """Training steps of an epoch."""
        return self.task.epoch(self.batch)

    def model(self, **changes: Any) -> Classifier:
        width = self.width
        if self.vectors is not None:
            assert self.task.data.vectors is not None
            width = self.task.data.vectors.values.shape[1]
        return Classifier(width=width, hidden=self.hidden, scoring="tanh", **changes)

    @property
    def likelihood(self) -> Likelihood:
        """The rarer class counts as much as the other, if it is the second; as the authors weight it."""
        first, second = self.task.data.train.target.counts
        return Likelihood(weights=(1.0, float(first / second)))

    def condition(self, name: str, seeds: Sequence[int], **changes: Any) -> Condition:
        usual: dict[str, Any] = {
            "task": self.task,
            "model": self.model(),
            "steps": self.epochs * self.epoch,
            "batch": self.batch,
            "objective": self.likelihood,
            "optimiser": Adam(lr=self.lr, decay=self.decay, amsgrad=True),
            "evaluation": self.evaluation,
            "readings": (Answers(every=self.epoch), Ranking(every=self.epoch)),
            "best": (BEST,),
        }
        return Condition(name=name, seeds=tuple(seeds), **(usual | changes))

    def bases(self) -> Iterator[Condition]:
        yield self.condition(BILSTM, range(self.seeds))
        yield self.condition(AVERAGE, range(1000, 1000 + self.averages), model=self.model(encoder="average"))

    def decide(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        """The judgements, as if there were texts and seeds enough."""
        raise NotImplementedError

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        texts = min(self.evaluation, len(self.task.data.test))
        for id, judgement in self.decide(metrics):
            yield id, judgement.on(texts, "test texts").over(self.seeds, "seed")

    @property
    def resized(self) -> list[str]:
        """The sizes and limits that are not the authors'."""
        paper = type(self)()
        other = [name for name in SIZES if getattr(self, name) != getattr(paper, name)]
        other += ["width"] if self.model().width != paper.width else []
        own = {name: value for name in LENGTHS if (value := getattr(self, name)) is not None}
        return other + [name for name, value in own.items() if value != self.limits.get(name)]

    @property
    def caveat(self) -> str:
        data, sizes = self.task.data, self.resized
        notes = [f"not the published {' and '.join(sizes)}: direction only"] if sizes else []
        if data.name not in PUBLISHED:
            notes.append("not a corpus of the authors: direction only")
        if self.vectors is None:
            notes.append("words start from random vectors")
        return "; ".join([*notes, *filter(None, [data.caveat])])

    @property
    def published(self) -> dict[str, tuple[float, ...]]:
        """What the authors' files hold for this corpus, if its texts and these settings are theirs."""
        corpus = self.task.data.corpus
        theirs = corpus is not None and not corpus.apart and not self.resized
        return PUBLISHED.get(self.corpus_name, {}) if theirs else {}
