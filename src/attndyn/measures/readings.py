"""What is measured while training. A reading's cadence stands in the condition, beside the model.

`run(trace)` yields (name, tensor) pairs whose first axis is the replica. One number for each replica is a metric;
an array for each replica is kept as a trace. The specs import no torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from attndyn.errors import UserError
from attndyn.training.condition import Likelihood, Terms, terms

if TYPE_CHECKING:
    from torch import Tensor

    from attndyn.probes.trace import Trace

Values = Iterator[tuple[str, "Tensor"]]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Runs at step 0, every `every` steps, at the steps `at`, and after the last step."""

    every: int
    at: tuple[int, ...] = ()
    on: Literal["valid", "train", "test"] = "valid"
    """The examples that are read; on training and test examples the names begin with "train" or "test"."""
    recordable: ClassVar[bool] = True
    """Whether a GPU can record it as a graph: it must not look at a value."""
    passing: ClassVar[tuple[str, ...]] = ()
    """What `follows` needs and nobody else: it is not kept."""

    def __post_init__(self) -> None:
        if self.every < 1:
            raise UserError(f"a reading is taken every 1 or more steps, not every {self.every}")

    def due(self, step: int, last: int) -> bool:
        return step % self.every == 0 or step in self.at or step == last

    def run(self, trace: Trace) -> Values:
        raise NotImplementedError

    def follows(self, found: dict[str, Tensor]) -> Values:
        """What follows from the values of all examples, such as F1 from counts: no mean of slices gives it."""
        yield from ()


@dataclass(frozen=True, kw_only=True)
class Answers(Reading):
    """Is the output right? Token accuracy (the end token counts) and loss, both with the target as input."""

    def run(self, trace: Trace) -> Values:
        from attndyn.measures import scores

        yield "accuracy", scores.accuracy(trace.logits, trace.batch.target, trace.batch.target_mask)
        yield "loss", Likelihood()(trace.logits, trace.alpha, trace.batch)


@dataclass(frozen=True, kw_only=True)
class Ranking(Reading):
    """How well the second of two labels is told from the first: the area under the ROC curve."""

    passing: ClassVar[tuple[str, ...]] = ("vote", "label")

    def run(self, trace: Trace) -> Values:
        logits, target = trace.logits[:, :, 0], trace.batch.target[:, :, 0]
        yield "vote", logits[..., 1] - logits[..., 0]
        yield "label", target

    def follows(self, found: dict[str, Tensor]) -> Values:
        from attndyn.measures import scores

        yield "AUC", scores.auc(found["vote"], found["label"][0] == 1)


@dataclass(frozen=True, kw_only=True)
class Chunks(Reading):
    """F1 of the chunks that the likeliest tags make up."""

    tags: tuple[str, ...]

    def run(self, trace: Trace) -> Values:
        from attndyn.measures import chunking

        batch = trace.batch
        counts = chunking.count(trace.logits.argmax(dim=-1), batch.target, self.tags, batch.target_mask)
        positions = batch.target[0].numel() if batch.target_mask is None else batch.target_mask.sum(dim=(1, 2))
        for name, value in counts._asdict().items():
            yield f"chunks {name}", value / positions

    def follows(self, found: dict[str, Tensor]) -> Values:
        from attndyn.measures import chunking

        # NaN is no better than any F1: where the right answer is that there is no chunk, a worse model would be kept
        if not found["chunks there"].all():
            raise UserError("none of the sentences that are judged has a chunk, so there is no F1: judge more of them")
        yield "F1", chunking.f1(*(found[f"chunks {name}"] for name in chunking.Counts._fields))


@dataclass(frozen=True, kw_only=True)
class Objective(Reading):
    """What is minimised in training, of all examples as of one batch, however they are cut."""

    passing: ClassVar[tuple[str, ...]] = tuple(f"objective {name}" for name in Terms._fields)

    def run(self, trace: Trace) -> Values:
        yield from zip(self.passing, terms(trace.objective, trace.logits, trace.alpha, trace.batch), strict=True)

    def follows(self, found: dict[str, Tensor]) -> Values:
        yield "objective", Terms(*(found[name] for name in self.passing)).whole


@dataclass(frozen=True, kw_only=True)
class Attention(Reading):
    """Where does α sit? Its entropy (1 = uniform), and its peak and mass around the right source position."""

    def run(self, trace: Trace) -> Values:
        from attndyn.measures import focus

        alpha, batch = trace.alpha[:, :, 0], trace.batch
        yield "attention entropy", focus.normalised_entropy(alpha, batch.source_mask, batch.target_mask)
        for offset, name in ((0, ""), (-1, " −1"), (1, " +1")):
            yield (
                f"attention right{name}",
                focus.peak_share(alpha, batch.align, offset, batch.source_mask, batch.target_mask),
            )
            yield f"attention mass{name}", focus.mass(alpha, batch.align, offset, batch.source_mask, batch.target_mask)
        yield "attention mass end", focus.mass_on_last(alpha, batch.source_mask, batch.target_mask)


@dataclass(frozen=True, kw_only=True)
class Lexical(Reading):
    """Does β single out the right source position?"""

    def run(self, trace: Trace) -> Values:
        from attndyn.measures import focus

        batch = trace.batch
        yield "probe right", focus.peak_share(trace.beta, batch.align, 0, batch.source_mask, batch.target_mask)


@dataclass(frozen=True, kw_only=True)
class Flatness(Reading):
    """How much β differs between the words of an input: its standard deviation over its mean, 0 = flat. For copying
    tasks: the end token, which is in every input, is left out on both sides."""

    def run(self, trace: Trace) -> Values:
        beta = trace.beta[:, :, :-1, :-1]
        yield "probe spread", (beta.std(dim=-1, correction=0) / beta.mean(dim=-1)).mean(dim=(1, 2))


@dataclass(frozen=True, kw_only=True)
class RightWord(Reading):
    """Do α and β peak on the right word, wherever it stands? For tasks in which a word may come twice."""

    def run(self, trace: Trace) -> Values:
        from attndyn.measures import focus

        batch = trace.batch
        for name, values in (("attention", trace.alpha[:, :, 0]), ("probe", trace.beta)):
            found = focus.peak_on_word(values, batch.source, batch.align, batch.source_mask, batch.target_mask)
            yield f"{name} on word", found


@dataclass(frozen=True, kw_only=True)
class MeanState(Reading):
    """How much does the mean encoder state differ between inputs, beside how much single states differ?"""

    def run(self, trace: Trace) -> Values:
        from attndyn.measures import focus

        yield "mean state spread", focus.mean_state_spread(trace.states.keys)


@dataclass(frozen=True, kw_only=True)
class Keep(Reading):
    """Keeps α and β of the first examples for the page's maps (half precision: no measure reads them)."""

    examples: int = 1

    def run(self, trace: Trace) -> Values:
        import torch

        first = slice(self.examples)
        yield "alpha", trace.alpha[:, first].to(torch.float16)
        yield "beta", trace.beta[:, first].to(torch.float16)
        for name in ("source", "target", "align"):
            yield name, getattr(trace.batch, name)[:, first].to(torch.int32)


@dataclass(frozen=True, kw_only=True)
class Scores(Reading):
    """Keeps α, β (as log-odds of the right answer) and, by gradient, Δ of every word of every example, and the log-odds
    of the right answer itself, for measures across steps and runs. For models with one head and one answer to a
    text."""

    influence: bool = True

    def run(self, trace: Trace) -> Values:
        from attndyn.probes.lexical import log_odds

        if self.influence:  # first: α and β need no second forward pass then
            yield "delta", trace.influence
        yield "alpha", trace.alpha[:, :, 0, 0]
        yield "beta", trace.log_odds[:, :, 0]
        yield "answer", log_odds(trace.logits, trace.batch.target)[:, :, 0]
