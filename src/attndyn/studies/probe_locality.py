"""Does the probe stay local? Under uniform attention the evidence for a keyword leaves the position where it stands.

Source: Snell et al. §6.1, figure 5; the blog's limitations. A sequence is positive if the word "1" is in it; γ_l is the
log-odds of "positive" if all attention sat on l. The authors' repository does not hold this experiment: task and
quantities follow the text; the classifier, its batch of 32 and its 4,000 steps are those of their other classifications
(A.8). The text does not say in how many directions the encoder reads, so both are trained.
Cost: demo 22 s on two cores; paper 43 s on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.errors import UserError
from attndyn.measures.readings import Answers, Values
from attndyn.models.rules import Uniform
from attndyn.models.specs import Classifier
from attndyn.report.parts import Curves, Part, Table, TracedScoring, TracedSentences
from attndyn.studies.base import Judgement, Statement, Study
from attndyn.tasks.keyword import KEYWORD, Keyword
from attndyn.training.condition import Adam, Condition

if TYPE_CHECKING:
    import numpy as np

    from attndyn.probes.trace import Trace
    from attndyn.store.metrics import Metrics, Row

ENCODERS = {"one direction": 1, "two directions": 2}
PLACES = ("keyword", "next", "mean", "last")
EARLY = 0.75
"""Half-way from chance to perfect: the accuracy of the first reading that is judged."""
FINE = 40
"""Readings, before they are taken ten times as rarely; and so many of these before the next ten times."""


@dataclass(frozen=True, kw_only=True)
class Locality(Answers):
    """The answers, γ around the keyword, what the hidden states hold; and γ of the first examples, kept."""

    words: int
    examples: int = 4

    def due(self, step: int, last: int) -> bool:
        every = self.every
        while step > FINE * every:
            every *= 10
        return step % every == 0 or step == last

    def run(self, trace: Trace) -> Values:
        import torch

        from attndyn.measures.locality import around, explained
        from attndyn.probes.lexical import log_odds

        yield from super().run(trace)
        batch, states = trace.batch, trace.states
        gamma = states.values[..., 1] - states.values[..., 0]
        for place, value in around(
            gamma, batch.align, (batch.target == 1) & (batch.align < gamma.shape[2] - 1)
        ).items():
            yield f"γ {place}", value
        for name, offset in (("own word", 0), ("word before", -1), ("word after", 1)):
            yield f"states: {name}", explained(states.keys, batch.source, self.words, offset)
        # 0: there is no keyword; 1: it comes later; 2: it is here or was before.
        seen = batch.target * (1 + (batch.source == KEYWORD).cumsum(dim=2))
        yield "states: keyword", explained(states.keys, seen, 3, 0)

        first = slice(self.examples)
        yield "alpha", trace.alpha[:, first, 0, 0].to(torch.float16)
        yield "beta", gamma[:, first].to(torch.float16)
        yield "source", batch.source[:, first].to(torch.int32)
        yield "lengths", torch.full_like(batch.target[:, first, 0], gamma.shape[2], dtype=torch.int32)
        yield "target", batch.target[:, first, 0].to(torch.int32)
        yield "answer", log_odds(trace.logits, batch.target)[:, first, 0]


@dataclass(frozen=True, kw_only=True)
class ProbeLocality(Study):
    name: ClassVar[str] = "probe-locality"
    title: ClassVar[str] = "Does the probe stay local? Where the evidence for a keyword stands"
    source: ClassVar[str] = "Snell et al., arXiv 2103.07601, section 6.1, figure 5"
    demo: ClassVar[dict[str, Any]] = {
        "seeds": 6, "steps": 300, "length": 20, "words": 20, "width": 64, "hidden": 64, "lr": 2e-3, "evaluation": 100,
    }  # fmt: skip
    sizes: ClassVar[tuple[str, ...]] = ("length", "words", "width", "hidden", "batch", "steps", "lr")

    seeds: int = 20
    """Independent training runs for each encoder: seeds 0, 1, 2, …"""
    steps: int = 4000
    """Training steps under uniform attention; the last is "after long training"."""
    length: int = 40
    """Words in a sequence."""
    words: int = 40
    """Different words, the keyword among them."""
    width: int = 300
    """Of the word vectors."""
    hidden: int = 256
    """Of the LSTM, each direction."""
    batch: int = 32
    """Sequences in a training step, half of them positive."""
    lr: float = 1e-3
    """Adam's learning rate."""
    every: int = 1
    """Steps between two readings, up to the 40th; then ten times as many up to ten times that step, and so on."""
    evaluation: int = 200
    """Fixed evaluation sequences, half of them positive."""

    def __post_init__(self) -> None:
        self.at_least_one("seeds", "every")
        if not 0 < self.lr < float("inf"):
            raise UserError(f"lr must be a number above 0, not {self.lr}")
        if self.length < 3 or self.evaluation < 2 * self.length:
            raise UserError(
                f"length must be at least 3 and evaluation at least twice the length, not {self.length} and "
                f"{self.evaluation}: γ is a mean over positives whose keyword is not the last word"
            )
        for _ in self.conditions():  # impossible sizes are refused before anything runs
            pass

    def conditions(self) -> Iterator[Condition]:
        for name, directions in ENCODERS.items():
            yield Condition(
                name=name,
                task=Keyword(self.length, self.words),
                model=Classifier(width=self.width, hidden=self.hidden, directions=directions),
                seeds=tuple(range(self.seeds)),
                steps=self.steps,
                batch=self.batch,
                rule=Uniform(),
                optimiser=Adam(lr=self.lr),
                evaluation=self.evaluation,
                readings=(Locality(every=self.every, words=self.words),),
            )

    statements: ClassVar[tuple[Statement, ...]] = (
        Statement(
            id="S-43",
            source="§6.1, fig. 5",
            statement="early, under uniform attention: γ at the keyword ≫ at the next position ≫ mean ≈ last "
            "(hypothesis 2)",
            published="order only (fig.)",
            rule="a ≫ b ≫ c ≈ d means that both steps down are larger than |c − d|. A seed counts if its γ are in this "
            "order at the first reading with an accuracy of at least .75; the interval of the share lies above ½: "
            "holds, below: differs. The published encoder is not named: holds if it does with one or with two "
            "directions, differs if it does with both",
        ),
        Statement(
            id="S-44",
            source="§6.1, fig. 5",
            statement="after long training: γ at the last position ≫ next to the keyword ≫ mean ≈ at the keyword "
            "(observation 3)",
            published="order only (fig.)",
            rule="as S-43, at the last step; how long was trained is not published",
        ),
        Statement(
            id="B-12",
            source="blog, limitations",
            statement="hidden states hold mostly, not only, their own word",
            published="direction",
            rule="share of the variance of the hidden states that knowing a word explains. Mostly: the own word "
            "explains more than all the rest, that is more than ½; not only: the words before and after it explain "
            "together more than .01; both by the interval over seeds. Judged at step 0 and at the last step, each "
            "named: holds if it does at both with both encoders, differs if one of the intervals says the contrary",
        ),
    )

    def stories(self, metrics: Metrics) -> dict[str, Story]:
        return {name: Story(metrics, name) for name in ENCODERS}

    def analyse(self, metrics: Metrics) -> Iterator[Row]:
        from attndyn.store.metrics import Row

        for name, story in self.stories(metrics).items():
            for metric, values in story.events.items():
                for seed, value in zip(story.seeds.tolist(), values.tolist(), strict=True):
                    yield Row(name, seed, self.steps, metric, value)

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        from attndyn.studies.outcomes import share

        stories = self.stories(metrics)
        yield "S-43", either({name: share(*story.count(story.early), "seeds") for name, story in stories.items()})
        late = either({name: share(*story.count(story.late), "seeds") for name, story in stories.items()})
        yield "S-44", replace(late, why="; ".join(f"{name}: {story.ending}" for name, story in stories.items()))
        yield "B-12", self.hold_mostly_their_word(metrics)

    def hold_mostly_their_word(self, metrics: Metrics) -> Judgement:
        from attndyn.measures import verdicts

        if self.seeds < 2:
            return Judgement(measured="one seed", verdict=verdicts.INCONCLUSIVE)
        moments = {"at step 0": 0, f"at step {self.steps}": -1}
        found: dict[str, list[str]] = {when: [] for when in moments}
        measured, rest = [], []
        for name in ENCODERS:
            for when, column in moments.items():
                own, before, after, keyword = (
                    metrics.curves(name, f"states: {what}").values[:, column]
                    for what in ("own word", "word before", "word after", "keyword")
                )
                for values in (own - 0.5, before + after - 0.01):
                    found[when].append(verdicts.by_sign(verdicts.mean_interval(values.tolist())))
                measured.append(f"{own.mean():.2f}, {before.mean():.2f}, {after.mean():.2f} {when}, {name}")
            rest.append(f"{keyword.mean():.2f} with {name}")
        each = {when: verdicts.all_of(several) for when, several in found.items()}
        return Judgement(
            measured=f"own word, before, after: {'; '.join(measured)}",
            verdict=verdicts.all_of(list(each.values())),
            n=self.seeds,
            why=f"{', '.join(f'{when} {verdict}' for when, verdict in each.items())}; in the end, whether the keyword "
            f"has been seen explains {', '.join(rest)}",
        )

    def finding(self, metrics: Metrics) -> str:
        stories = self.stories(metrics)

        def seeds(those: str) -> str:
            one, two = (getattr(story, those).sum() for story in stories.values())
            return f"{one} of {self.seeds} seeds with one direction, {two} of {self.seeds} with two"

        passing = [story.events["last passes keyword"] for story in stories.values()]
        one, two = (f"{middle(steps)} ({(steps == steps).sum()} of {self.seeds} seeds)" for steps in passing)
        return (
            "When training under uniform attention begins, γ is largest at the keyword, then next to it (hypothesis 2) "
            f"in {seeds('early')}; at step {self.steps} it is largest at the last position, then next to the keyword, "
            f"then at the keyword as in the mean (observation 3) in {seeds('late')}. γ at the last position passes γ "
            f"at the keyword for good at step {one} and {two}."
        )

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        stories = self.stories(metrics)
        whole = Curves(
            name="gamma",
            title="Where the evidence for the keyword stands",
            caption="Log-odds γ of “positive” if all attention sat on one position of a positive sequence: the "
            "keyword's, the next, the last; and their mean over all positions. Means over the evaluation sequences "
            "whose keyword is not their last word. Thin: one seed each; thick: the median.",
            metric=tuple((f"γ {place}", label) for place, label in zip(
                PLACES, ("keyword", "next position", "mean", "last position"), strict=True)),
            y_title="γ",
            x_log=True,
        )  # fmt: skip
        yield whole
        yield replace(
            whole,
            name="gamma-early",
            title="The same, where γ is small",
            caption="The curves above where they begin.",
            y_domain=(-1.0, 4.0),
        )
        yield Table(
            name="orders",
            title="Which order holds when",
            caption="a ≫ b ≫ c ≈ d: both steps down are larger than |c − d|. Early: the first reading with an accuracy "
            "of at least .75. Steps are medians over the seeds in which the order was seen at all.",
            columns=("encoder", "early at", "hypothesis 2 early", "hypothesis 2 last seen", "observation 3 first seen",
                     "observation 3 last seen", "observation 3 at the end", "γ last passes γ keyword for good",
                     "accuracy at the end"),
            rows=tuple(story.row() for story in stories.values()),
        )  # fmt: skip
        yield Curves(
            name="states",
            title="What the hidden states hold",
            caption="Share of the variance of the hidden states h_l that is explained by the word at l, by the one "
            "before, by the one after, and by whether the keyword is absent, still to come, or seen.",
            metric=tuple((f"states: {what}", what) for what in ("own word", "word before", "word after", "keyword")),
            y_title="share of the variance",
            x_log=True,
        )
        yield Curves(
            name="accuracy",
            title="Accuracy",
            caption="On the evaluation sequences, under uniform attention.",
            metric="accuracy",
            y_title="accuracy",
            reference=EARLY,
            reference_label="early",
            x_log=True,
        )
        yield TracedSentences(
            name="sentences",
            title="Watch the evidence leave the keyword",
            caption="γ of every position of some evaluation sequences, seed 0. Orange speaks for the keyword 1, blue "
            f"against it. The probability is that of the label in the end, with {next(iter(ENCODERS))}.",
            scorings=tuple(
                TracedScoring(label=f"γ, {name}", condition=name, replica=0, kind="beta", signed=True, most=6.0)
                for name in ENCODERS
            ),
            classes=("without 1", "with 1"),
        )


class Story:
    """In which order the γ of one encoder's seeds stand, from reading to reading."""

    def __init__(self, metrics: Metrics, condition: str) -> None:
        import numpy as np

        accuracy = metrics.curves(condition, "accuracy")
        keyword, next_one, mean, last = (metrics.curves(condition, f"γ {place}").values for place in PLACES)
        self.condition_name = condition
        self.seeds, self.steps = accuracy.replicas, accuracy.steps
        self.accuracy = accuracy.last
        second, third = ordered(keyword, next_one, mean, last), ordered(last, next_one, mean, keyword)
        learning = accuracy.values >= EARLY
        first = learning.argmax(axis=1)
        self.early = learning.any(axis=1) & second[np.arange(len(first)), first]
        self.late = third[:, -1]
        self.ends = {"keyword": keyword[:, -1], "next": next_one[:, -1], "mean": mean[:, -1], "last": last[:, -1]}
        self.events = {
            "early at": self.first(learning),
            "hypothesis 2 until": self.last(second),
            "observation 3 from": self.first(third),
            "observation 3 until": self.last(third),
            "last passes keyword": self.for_good(last > keyword),
        }

    def first(self, those: np.ndarray) -> np.ndarray:
        """The first step of each seed at which it is so; NaN: never."""
        import numpy as np

        return np.where(those.any(axis=1), self.steps[those.argmax(axis=1)].astype(float), np.nan)

    def last(self, those: np.ndarray) -> np.ndarray:
        import numpy as np

        return np.where(those.any(axis=1), self.steps[::-1][those[:, ::-1].argmax(axis=1)].astype(float), np.nan)

    def for_good(self, those: np.ndarray) -> np.ndarray:
        """The first step from which on it is so until the end."""
        import numpy as np

        return self.first(np.logical_and.accumulate(those[:, ::-1], axis=1)[:, ::-1])

    @staticmethod
    def count(those: np.ndarray) -> tuple[int, int]:
        return int(those.sum()), len(those)

    @property
    def ending(self) -> str:
        seen = [middle(self.events[f"observation 3 {when}"]) for when in ("from", "until")]
        ends = sorted(self.ends, key=lambda place: -self.ends[place].mean())
        order = " > ".join(f"{place} {self.ends[place].mean():.1f}" for place in ends)
        first = "never seen" if "–" in seen else f"seen from step {seen[0]} to {seen[1]}"
        return f"{first}; at step {self.steps[-1]} {order}"

    def row(self) -> tuple[str | int | float | None, ...]:
        events = self.events
        return (
            self.condition_name, middle(events["early at"]), f"{self.early.sum()} of {len(self.seeds)}",
            middle(events["hypothesis 2 until"]), middle(events["observation 3 from"]),
            middle(events["observation 3 until"]), f"{self.late.sum()} of {len(self.seeds)}",
            middle(events["last passes keyword"]), float(self.accuracy.mean()),
        )  # fmt: skip


def ordered(first: np.ndarray, second: np.ndarray, third: np.ndarray, fourth: np.ndarray) -> np.ndarray:
    """first ≫ second ≫ third ≈ fourth: both steps down are larger than what lies between the last two."""
    import numpy as np

    apart = np.abs(third - fourth)
    return np.asarray((first - second > apart) & (second - np.maximum(third, fourth) > apart))


def middle(steps: np.ndarray) -> str:
    """The median over the seeds in which something happened."""
    import numpy as np

    return f"{np.nanmedian(steps):.0f}" if np.isfinite(steps).any() else "–"


def either(judgements: dict[str, Judgement]) -> Judgement:
    """A statement about an encoder that is not named: it holds if it does for one, and differs if it does for all."""
    from attndyn.measures import verdicts

    found = [judgement.verdict for judgement in judgements.values()]
    verdict = verdicts.HOLDS if verdicts.HOLDS in found else verdicts.INCONCLUSIVE
    if set(found) == {verdicts.DIFFERS}:
        verdict = verdicts.DIFFERS
    return Judgement(
        measured="; ".join(f"{name}: {judgement.measured}" for name, judgement in judgements.items()),
        verdict=verdict,
        n=sum(judgement.n or 0 for judgement in judgements.values()),
    )
