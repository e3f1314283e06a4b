"""Salient words: a classifier attends to the words whose label it had already learned under uniform attention.

Source: Snell et al. §2.4, §3, §5.1, A.4 to A.10, tables 1, 2, 4, 6 and 8 to 10, figure 4. Standard runs, runs under
uniform attention and a run with everything but the attention frozen train on the same corpus; α, β and Δ of every word
of up to 4,000 validation and as many training texts are read at 22 checkpoints and compared (`salient_tables.py`,
which says where it follows the authors' program and where their text). Beside them: the bag-of-words proxy, its
logistic twin, and the blog's linear scoring.
Follows the authors' program in what the text leaves open: biases everywhere, <bos> and <eos> can be attended to,
embeddings start from N(0, 1) (the text says GloVe, which their program discards; `--vectors` really uses it).
Batches hold texts of about one length, where the authors draw them at random.
Cost: demo a minute on two cores; paper 28 s (SMS) to 124 s (IMDB) on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attndyn.errors import UserError
from attndyn.measures.readings import Answers, Reading, Scores
from attndyn.models.rules import Uniform
from attndyn.models.specs import Classifier, Proxy
from attndyn.report.parts import Curves, Part, TracedScoring, TracedSentences
from attndyn.studies.base import APART, Judgement, Study
from attndyn.studies.salient_claims import Judge
from attndyn.studies.salient_names import (
    BLOG,
    CODE,
    COLUMNS,
    FROZEN,
    PROXY,
    STANDARD,
    SUMMARY,
    UNIFORM,
    UNIFORM_OF,
    VECTORS,
)  # fmt: skip
from attndyn.studies.salient_statements import STATEMENTS
from attndyn.tasks.corpus import LabelledText
from attndyn.training.condition import Adam, Condition, Likelihood

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics, Row
    from attndyn.studies.salient_twin import Twin
    from attndyn.tasks.labelled import Rule
    from attndyn.theory.logistic import Logistic

SHOWN = 16
"""Texts of which α, β and Δ are kept for the page."""
LARGE = ("imdb", "yelp_sentences", "amazon_reviews")
"""Corpora whose proxy the authors train with the smaller rate."""


@dataclass(frozen=True, kw_only=True)
class SalientWords(Study):
    name: ClassVar[str] = "salient-words"
    title: ClassVar[str] = "Salient words: attention goes where the label was already known"
    source: ClassVar[str] = "Snell et al., arXiv 2103.07601, sections 2.4, 3, 5.1, A.4 to A.10; tables 1, 2, 4, 6, 8-10"
    statements = STATEMENTS
    demo: ClassVar[dict[str, Any]] = {
        "seeds": 4, "uniform": 4, "blog": 2, "proxies": 1, "steps": 400, "width": 48, "hidden": 48, "evaluation": 400,
        "every": 100, "early": (10, 25, 50, 75), "epochs": 15, "proxy_lr": 1e-3,
    }  # fmt: skip

    corpus: str = "sms"
    """sms (ships with attndyn), imdb, sst, ag, 20ng, amazon, yelp; or a folder with train.tsv and test.tsv, or one
    file, with `label<TAB>text` lines."""
    data_dir: str | None = None
    """Where corpora lie; also $ATTNDYN_DATA, then the user's cache."""
    vectors: str | None = None
    """A file of word vectors in GloVe's text format: more runs of its width are trained, with and without it."""
    vocabulary: Literal["count", "count or vector"] = "count"
    """Words that are kept: seen three times in the training texts, or also those with a vector (in the file `vectors`,
    or in the corpus glove)."""
    seeds: int = 6
    """Standard runs; each is gold in turn, the others are compared with it."""
    uniform: int = 3
    """Runs under uniform attention."""
    blog: int | None = None
    """Runs with the blog's linear scoring; if not given, 6 where the median text has under 100 words, else none."""
    proxies: int = 2
    """Runs of the bag-of-words proxy."""
    steps: int = 4000
    """Training steps."""
    batch: int = 32
    """Texts in a training step."""
    lr: float = 1e-3
    """Adam's learning rate."""
    width: int = 300
    """Of the word vectors."""
    hidden: int = 256
    """Of the LSTM, in each direction, and of the attention network."""
    every: int = 250
    """Steps between two checkpoints."""
    early: tuple[int, ...] = (10, 50, 100, 150, 200)
    """More checkpoints, at these steps."""
    evaluation: int = 4000
    """Most validation texts, and as many training texts, that are read at a checkpoint."""
    epochs: int = 60
    """Of the proxy."""
    proxy_lr: float | None = None
    """The proxy's learning rate; if not given, the authors': 5e-5 on IMDB, Yelp and Amazon, 1.5e-4 elsewhere."""
    traces: Literal["shown", "all"] = "shown"
    """What is kept of α, β and Δ after the comparison: those of 16 texts, or all, and the gold weights."""

    def __post_init__(self) -> None:
        self.at_least_one("seeds", "uniform", "proxies", "steps", "batch", "every", "evaluation", "epochs")
        self.seeds_apart("seeds", "uniform", "blog", "proxies")
        if self.seeds < 2:
            raise UserError("seeds must be at least 2, not 1: each standard run is compared with the others")
        if self.blog is not None and self.blog < 0:
            raise UserError(f"blog must be at least 0, not {self.blog}")
        for rate in (self.lr, self.proxy_lr):
            if rate is not None and not 0 < rate < float("inf"):
                raise UserError(f"a learning rate must be a number above 0, not {rate}")
        Classifier(width=self.width, hidden=self.hidden)

    @cached_property
    def task(self) -> LabelledText:
        """Words start at random. A file of vectors says which are kept, if the rule asks for it."""
        kept = self.vectors if self.vocabulary == "count or vector" else None
        return LabelledText(self.corpus, self.data_dir, rule=self.vocabulary, vectors=kept, start=False)

    @cached_property
    def task_with_vectors(self) -> LabelledText:
        """The same texts in the same words, which start from their vectors."""
        return replace(self.task, vectors=self.vectors, start=True)

    @property
    def vocabularies(self) -> dict[Rule, int]:
        """Words under each rule; under the second, where there are vectors."""
        task = self.task if self.vectors is None else self.task_with_vectors
        return task.data.sizes

    @property
    def blogs(self) -> int:
        if self.blog is not None:
            return self.blog
        return 6 if self.task.data.parts["train"].median < 100 else 0

    @cached_property
    def _twin(self) -> Twin:
        from attndyn.studies.salient_twin import Twin

        return Twin(self.task)

    def begin(self, device: str) -> None:
        if device != "cpu":  # where the cores have nothing else to do
            vars(self).pop("_twin", None)  # that of an earlier run, which may have been interrupted
            _ = self._twin

    def twin(self, device: str) -> Logistic:
        from attndyn.theory.logistic import logistic

        data = self.task.data
        return logistic(data.train, data.valid) if device == "cpu" else self._twin.result()

    def seeds_of(self, condition: str) -> list[int]:
        """No two runs of a study share a seed: the weights of a run under uniform attention start elsewhere."""
        if condition in VECTORS:
            return [8000 + 10 * VECTORS.index(condition) + n for n in range(2)]
        if condition in UNIFORM_OF.values():
            return [9000 + 10 * list(UNIFORM_OF.values()).index(condition)]
        counts = {STANDARD: self.seeds, UNIFORM: self.uniform, FROZEN: 1, BLOG: self.blogs, PROXY: self.proxies}
        first = APART * list(counts).index(condition)
        return list(range(first, first + counts[condition]))

    def conditions(self) -> Iterator[Condition]:
        self.task.epoch(self.batch)  # a corpus that cannot be used is refused here
        yield self.condition(STANDARD)
        yield self.condition(UNIFORM, rule=Uniform())
        yield self.condition(FROZEN, optimiser=Adam(lr=self.lr, frozen=self._frozen()))
        if self.blogs:
            yield self.condition(BLOG, model=replace(self.model, scoring="linear"))
        yield self.proxy()
        if self.vectors is not None:
            yield from self._with_vectors()

    @property
    def model(self) -> Classifier:
        return Classifier(width=self.width, hidden=self.hidden)

    def condition(self, name: str, **changes: Any) -> Condition:
        usual: dict[str, Any] = {"every": self.every, "at": self.early}
        readings: tuple[Reading, ...] = (
            Scores(**usual), Answers(**usual),
            Scores(**usual, on="train", influence=False), Answers(**usual, on="train"),
        )  # fmt: skip
        if name == BLOG:  # of which only the order of α and β along training is asked
            readings = (Scores(**usual, influence=False), Answers(**usual))
        common: dict[str, Any] = {
            "task": self.task,
            "model": self.model,
            "seeds": tuple(self.seeds_of(name)),
            "steps": self.steps,
            "batch": self.batch,
            "optimiser": Adam(lr=self.lr),
            "evaluation": self.evaluation,
            "readings": readings,
            # only the weights of standard runs are read again, for Δ at their gold checkpoints
            "best": ("highest accuracy", "highest train accuracy") if name == STANDARD else (),
        }
        return Condition(name=name, **(common | changes))

    def _frozen(self) -> tuple[str, ...]:
        """Every parameter but those of the attention."""
        names = [name for name, _ in self.model.build(1, (0,), 2).named_parameters()]
        return tuple(name for name in names if name.split(".")[0] not in ("attention", "score"))

    def proxy(self) -> Condition:
        usual = 5e-5 if self.task.data.name in LARGE else 1.5e-4
        size = min(64, len(self.task.data.train))
        steps = self.task.epoch(size)
        return Condition(
            name=PROXY,
            task=self.task,
            model=Proxy(),
            seeds=tuple(self.seeds_of(PROXY)),
            steps=self.epochs * steps,
            batch=size,
            rule=Uniform(),
            objective=Likelihood(total=True),
            optimiser=Adam(lr=self.proxy_lr or usual),
            evaluation=self.evaluation,
            readings=(Answers(every=steps),),
            best=("lowest loss",),
        )

    def _with_vectors(self) -> Iterator[Condition]:
        """The same width with and without the vectors; two standard runs and one under uniform attention each."""
        known = self.task_with_vectors.data.vectors
        assert known is not None
        model = replace(self.model, width=known.values.shape[1])
        for name, task in zip(VECTORS, (self.task, self.task_with_vectors), strict=True):
            yield self.condition(name, task=task, model=model)
            yield self.condition(UNIFORM_OF[name], task=task, model=model, rule=Uniform())

    def from_traces(self, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
        from attndyn.studies.salient_tables import tables

        return tables(self, metrics, run, device)

    def shown(self, run: Run, metrics: Metrics) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]] | None:
        """α, β and Δ of a few texts of each label that are not too long, of the first run of each kind."""
        if self.traces == "all":
            return None
        return self._shown(run, metrics)

    def _shown(self, run: Run, metrics: Metrics) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]]:
        import numpy as np

        from attndyn.tasks.ragged import examined, some_of_each

        data = self.task.data
        pairs = examined(data.train, data.valid, self.evaluation, "valid")
        text, label = pairs.source, pairs.target.ids
        chosen = some_of_each(label, SHOWN)
        lengths = text.lengths[chosen]
        mask = np.arange(lengths.max()) < lengths[:, None]
        places = np.minimum(text.offsets[chosen][:, None] + np.arange(lengths.max()), len(text.ids) - 1)
        for condition in (STANDARD, UNIFORM):
            seed = self.seeds_of(condition)[0]
            for step in metrics.curves(condition, "accuracy").steps.tolist():
                arrays = {
                    name: np.where(mask, run.array(condition, seed, step, name)[places], 0).astype(kind)
                    for name, kind in (("alpha", np.float16), ("beta", np.float16), ("delta", np.float32))
                }
                arrays |= {
                    "source": np.where(mask, text.ids[places], 0).astype(np.int32),
                    "lengths": lengths.astype(np.int32),
                    "target": label[chosen].astype(np.int32),
                    "answer": run.array(condition, seed, step, "answer")[chosen].astype(np.float32),
                }
                yield condition, seed, step, arrays

    # --- what was found

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        yield from Judge(self, metrics).all()

    @property
    def caveat(self) -> str:
        data = self.task.data
        paper = type(self)()
        sizes = [
            name for name in ("steps", "batch", "lr", "width", "hidden") if getattr(self, name) != getattr(paper, name)
        ]
        notes = [f"not the published {' and '.join(sizes)}: direction only"] if sizes else []
        if data.name not in ("imdb", "sst5"):
            notes.append("no logged row for this corpus: direction only")
        return "; ".join([*notes, *filter(None, [data.caveat])])

    def finding(self, metrics: Metrics) -> str:
        judge = Judge(self, metrics)
        a, probe, chance = (
            100 * judge.value(*of) for of in ((CODE, COLUMNS[0]), (CODE, COLUMNS[3]), (SUMMARY, "chance"))
        )
        return (
            f"On {self.task.data.name} the word that gets most attention is among the 5 % whose label is best known "
            f"under uniform attention in {a:.1f} % of {judge.value(SUMMARY, 'evaluation examples'):,.0f} texts, and "
            f"among those that another run knows best in {probe:.1f} %; by chance {chance:.1f} %."
        )

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        from attndyn.studies.salient_page import Tables

        judge = Tables(self, metrics)
        yield judge.table_one()
        yield Curves(
            name="agreement",
            title="Votes of words and attention along training",
            caption="How often the peak of the gold attention of the other runs is among the top 5 % of β and of α, "
            "along training. A thin line is a run.",
            metric=(("A(α, β)", "β, the probe"), ("A(α, α)", "α, the attention of another seed")),
            y_title="agreement with the gold attention",
            conditions=(STANDARD, BLOG) if self.blogs else (STANDARD,),
            y_domain=(0.0, 1.0),
            reference=judge.value(SUMMARY, "chance"),
            reference_label="chance",
        )
        yield Curves(
            name="uniform",
            title="What is known without attention",
            caption="Agreement of the gold attention with β under uniform attention (A.7: it rises, then falls).",
            metric="A(α, β_uf)",
            y_title="A(α, β_uf)",
            conditions=(UNIFORM,),
            reference=judge.value(SUMMARY, "chance"),
            reference_label="chance",
        )
        for metric, name in (("accuracy", "accuracy"), ("loss", "loss")):
            yield Curves(
                name=name,
                title=f"{name.capitalize()} on the validation texts",
                caption="Learned attention beside uniform attention and beside attention that learns alone (frozen β)"
                + ("; learned attention with random and with given vectors of one width." if self.vectors else "."),
                metric=metric,
                y_title=name,
                conditions=(STANDARD, UNIFORM, FROZEN, *(VECTORS if self.vectors else ())),
            )
        if self.traces == "shown":
            yield TracedSentences(
                name="sentences",
                title="Watch the words be found",
                caption="Validation texts of each label, of middling length. α and Δ of the first standard run, and β "
                "of the first run under uniform attention, as log-odds of the text's label: above 0 the word speaks "
                "for it. Δ is a share of the largest in its text at that step: where the answer is certain all are "
                "small.",
                scorings=(
                    TracedScoring(label="attention α", condition=STANDARD, replica=0, kind="alpha"),
                    TracedScoring(label="β under uniform attention", condition=UNIFORM, kind="beta", signed=True,
                                  replica=self.seeds_of(UNIFORM)[0]),
                    TracedScoring(label="influence Δ", condition=STANDARD, replica=0, kind="delta", signed=True,
                                  relative=True),
                ),
                classes=tuple(self.task.data.classes),
            )  # fmt: skip
        yield from judge.more_tables()
