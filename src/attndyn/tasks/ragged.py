"""Batches of lines of different lengths, padded and masked.

The examples of a training batch are of about one length, so that little of it is padding: all lengths fall into at most
twelve geometric classes, an epoch goes through the examples class by class, each replica in an order of its own, cut
into batches; and the batches come in a random order, which is the same for all replicas. A batch is padded to the
longest line of its class and those below it, so that there are no more shapes than classes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from attndyn.errors import UserError
from attndyn.tasks.draws import shuffled
from attndyn.tasks.sampler import Batch
from attndyn.tasks.streams import BATCHES, EPOCH, Streams
from attndyn.tasks.text import Pairs, Text

PAD = 0
"""What stands where nothing is; masked everywhere."""
CLASSES = 12
"""Most different lengths of a training batch."""


@dataclass(frozen=True, eq=False)
class Reference:
    """What one or several other models did on the same lines: those of the first model, then those of the second."""

    alpha: Text
    """Their attention: a weight for each word."""
    answers: np.ndarray
    """Their answers: float32 [line, output], as probabilities."""
    models: int = 1

    def take(self, lines: np.ndarray) -> Reference:
        firsts = np.arange(self.models) * (len(self.answers) // self.models)
        chosen = (firsts[:, None] + lines).ravel()
        return Reference(self.alpha.take(chosen), self.answers[chosen], self.models)


class Side:
    """One side of the pairs on a device."""

    def __init__(self, text: Text, device: torch.device | str, dtype: torch.dtype = torch.int64) -> None:
        self.ids = torch.as_tensor(text.ids, dtype=dtype, device=device)
        self.offsets = torch.as_tensor(text.offsets, dtype=torch.int64, device=device)
        self.lengths = self.offsets.diff()

    def pad(
        self, lines: Int[Tensor, "replica batch"], width: int
    ) -> tuple[Shaped[Tensor, "replica batch length"], Bool[Tensor, "replica batch length"]]:
        position = torch.arange(width, device=lines.device)
        mask = position < self.lengths[lines][..., None]
        places = (self.offsets[lines][..., None] + position).clamp_max(len(self.ids) - 1)
        return torch.where(mask, self.ids[places], PAD), mask


class Parallel:
    """Both sides of the pairs on a device, and how long they are."""

    def __init__(
        self,
        pairs: Pairs,
        device: torch.device | str,
        reference: Reference | None = None,
        seeds: Int[Tensor, " replica"] | None = None,
    ) -> None:
        self.source, self.target = Side(pairs.source, device), Side(pairs.target, device)
        self.given: Side | None = None
        if reference is not None:
            seeds = torch.zeros(1, dtype=torch.int64, device=device) if seeds is None else seeds
            self.first = (seeds % reference.models * len(pairs))[:, None]
            """Where the lines of the model begin that a replica follows: with the next seed, the next model."""
            self.given = Side(reference.alpha, device, torch.float32)
            self.answers = torch.as_tensor(reference.answers, dtype=torch.float32, device=device)
        self.lengths = np.stack([pairs.source.lengths, pairs.target.lengths])  # [side, example]
        if not len(pairs) or self.lengths.min() < 1:
            raise UserError("every example needs at least one word on both sides")

    def widths(self, lines: np.ndarray) -> tuple[int, int]:
        """The longest of these lines on either side."""
        source, target = self.lengths[:, lines].max(axis=1).tolist()
        return source, target


@dataclass(frozen=True)
class Lines:
    """Examples by their numbers. The batch is put together when it is used, which a GPU can record."""

    examples: Parallel
    lines: Int[Tensor, "replica batch"]
    widths: tuple[int, int]
    """Of both sides."""

    def batch(self) -> Batch:
        source, source_mask = self.examples.source.pad(self.lines, self.widths[0])
        target, target_mask = self.examples.target.pad(self.lines, self.widths[1])
        return Batch(
            source=source,
            shifted=torch.zeros_like(target),  # nothing here says how a decoder starts; a translator will
            target=target,
            align=torch.zeros_like(target),  # no example says where the right word stands
            source_mask=source_mask,
            target_mask=target_mask,
            **self._reference(),
        )

    def _reference(self) -> dict[str, Tensor]:
        if self.examples.given is None:
            return {}
        lines = self.examples.first + self.lines
        weights, _ = self.examples.given.pad(lines, self.widths[0])
        return {"given": weights[:, :, None, None], "answer": self.examples.answers[lines][:, :, None]}


def in_slices(examples: Parallel, replicas: int, tokens: int, each: int | None = None) -> list[Batch]:
    """All examples in their order, the same for every replica, in batches of at most so many tokens of a replica; or
    of so many examples `each`, however many tokens they have."""
    lines, slices = np.arange(examples.lengths.shape[1]), []
    while len(lines):
        longest = np.maximum.accumulate(examples.lengths[:, lines].max(axis=0))
        fitting = int((longest * np.arange(1, len(lines) + 1) <= tokens).sum())
        some = lines[: each or max(1, fitting)]
        numbers = torch.as_tensor(some, device=examples.source.ids.device).expand(replicas, -1)
        slices.append(Lines(examples, numbers, examples.widths(some)).batch())
        lines = lines[len(some) :]
    return slices


class RaggedSampler:
    """Every training example once an epoch; the same evaluation examples for all seeds."""

    def __init__(
        self,
        train: Pairs,
        valid: Pairs,
        seeds: Sequence[int],
        device: torch.device | str = "cpu",
        references: Mapping[str, Reference] = MappingProxyType({}),
        test: Pairs | None = None,
    ) -> None:
        self.streams = Streams(seeds, device)
        self.common = Streams([0])
        self.texts = {"train": train, "valid": valid} | ({} if test is None else {"test": test})
        self.references = references
        self.train = Parallel(train, device, references.get("train"), self.streams.seeds)
        longest = self.train.lengths.max(axis=0)
        ends = np.ceil(np.geomspace(np.quantile(longest, 0.1), longest.max(), CLASSES))
        found, self.classes = np.unique(np.searchsorted(ends, longest), return_inverse=True)
        classes = [self.train.widths(self.classes == number) for number in range(len(found))]
        self.widths = list(
            itertools.accumulate(classes, lambda below, own: (max(below[0], own[0]), max(below[1], own[1])))
        )
        """Of both sides, in each class. A class counts by its longer side, so that the one below may be wider on the
        other side, and a batch may begin there."""
        self.ordered = np.sort(self.classes)
        self._device_classes = torch.as_tensor(self.classes, device=device)
        self._order: tuple[int, int, Int[Tensor, "replica example"], list[int]] | None = None

    def batch(self, step: int, size: int) -> Batch:
        return self.draw(step, size).batch()

    def draw(self, step: int, size: int) -> Lines:
        steps = len(self.classes) // size
        epoch, place = divmod(step, steps)
        if self._order is None or self._order[:2] != (epoch, size):
            drawn = self.streams.shuffles(EPOCH, [epoch], 1, len(self.classes))[:, 0, 0]
            by_class = self._device_classes[drawn].argsort(dim=1, stable=True)
            batches = self.common.shuffles(BATCHES, [epoch], 1, steps)[0, 0, 0].tolist()
            self._order = epoch, size, drawn.gather(1, by_class), batches
        order, batches = self._order[2:]
        # what does not fill a batch is left out where the lines are shortest
        first = len(self.classes) % size + batches[place] * size
        return Lines(self.train, order[:, first : first + size], self.widths[self.ordered[first + size - 1]])

    def widest(self, size: int) -> Batch:
        """A training batch of the largest shape."""
        lines = torch.arange(min(size, len(self.classes)), device=self.streams.seeds.device)
        return Lines(self.train, lines.expand(len(self.streams.seeds), -1), self.widths[-1]).batch()

    def slices(self, size: int, part: str, tokens: int, each: int | None = None) -> list[Batch]:
        if part == "test" and part in self.texts:
            lines = by_length(self.texts[part], drawn(self.texts[part], size))
        else:
            lines = examined_lines(self.texts["train"], self.texts["valid"], size, part)
        reference = self.references.get(part)
        pairs, known = self.texts[part].take(lines), None if reference is None else reference.take(lines)
        seeds = self.streams.seeds
        return in_slices(Parallel(pairs, seeds.device, known, seeds), len(seeds), tokens, each)


def examined(train: Pairs, valid: Pairs, size: int, part: str) -> Pairs:
    """The examples on which a model is judged."""
    return (valid if part == "valid" else train).take(examined_lines(train, valid, size, part))


def examined_lines(train: Pairs, valid: Pairs, size: int, part: str) -> np.ndarray:
    """Their numbers, from the shortest to the longest: at most `size` of the part "valid", or as many of the part
    "train"."""
    if part not in ("valid", "train"):
        raise UserError(f"examples are valid or train, not {part!r}")
    pairs = valid if part == "valid" else train
    return by_length(pairs, drawn(pairs, min(size, len(valid))))


def drawn(pairs: Pairs, size: int) -> np.ndarray:
    """The numbers of at most `size` pairs, drawn once for all: the first ones of a file may be all of one label."""
    return np.sort(shuffled(len(pairs), 0)[:size])


def some_of_each(labels: Int[np.ndarray, " text"], most: int) -> Int[np.ndarray, " few"]:
    """At most so many texts, evenly from the middle half of each label's: of texts by length, those of middling. The
    labels take turns."""
    chosen, known = [], np.unique(labels)[:most]
    for label in known:
        own = np.flatnonzero(labels == label)
        ends = len(own) // 4, min(3 * len(own) // 4, len(own) - 1)
        chosen.append(own[np.unique(np.linspace(*ends, most // len(known)).astype(int))])
    turns = np.concatenate([np.arange(len(own)) for own in chosen])
    return np.concatenate(chosen)[np.argsort(turns, kind="stable")]


def by_length(pairs: Pairs, lines: np.ndarray) -> np.ndarray:
    """From the shortest to the longest."""
    return lines[np.argsort(larger(pairs)[lines], kind="stable")]


def larger(pairs: Pairs) -> np.ndarray:
    """Words of the longer side of each pair."""
    return np.maximum(pairs.source.lengths, pairs.target.lengths)
