"""One part of a parallel corpus with all that was read on it by translators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from attndyn.measures.translation import scorer
from attndyn.store.metrics import Row
from attndyn.studies.read_part import ReadPart, entry, spread
from attndyn.studies.translation_names import LINEAR, PROXY, STANDARD, SUMMARY, UNIFORM
from attndyn.tasks.corpus import loaded
from attndyn.tasks.held import held
from attndyn.tasks.ragged import examined_lines
from attndyn.theory.ibm1 import Ibm1, count_table, ibm1, translation

if TYPE_CHECKING:
    from attndyn.studies.translation_study import TranslationStudy
    from attndyn.tasks.pieces import PieceExamples, PieceText
    from attndyn.tasks.text import Pairs as InNumbers

PASSES = 5
"""Of IBM Model 1."""
SHORTEST, LONGEST = 8, 20
"""Pieces of the longer side of a pair that is shown."""

Curve = dict[tuple[str, int, int], float]
"""(condition, seed, step) to a performance."""


@held
def counted_on(task: PieceText) -> Ibm1:
    """IBM Model 1 of the training pairs, which all parts share."""
    return ibm1(loaded(task).train, iterations=PASSES)


@dataclass
class Pairs(ReadPart):
    """One part of the corpus with all that was read on it."""

    study: TranslationStudy

    def __post_init__(self) -> None:
        examples: PieceExamples = loaded(self.study.task)  # type: ignore[assignment]
        self.examples = examples
        whole: Any = {"valid": examples.valid, "train": examples.train}[self.name]
        self.lines = examined_lines(examples.train, examples.valid, self.study.evaluation, self.name)
        """The number of each pair in its part of the corpus."""
        self.pairs = whole.take(self.lines)
        self.references = [examples.references[self.name][line] for line in self.lines]
        self.sentence = self.pairs.target.rows
        """The pair of each row."""
        self.prepare(self.pairs.source.lengths[self.sentence], STANDARD)
        self.row = self.rows.text.cpu().numpy()
        self.inside = np.arange(len(self.row)) - self.rows.first.cpu().numpy()[self.row]
        """The row of each number, and its source position there."""
        self.source, self.target = self.of_numbers(self.pairs)
        """The source and the target piece of each number."""

    def of_numbers(self, pairs: InNumbers) -> tuple[np.ndarray, np.ndarray]:
        """What stands at the source and at the target position of each number, out of pairs of the same lengths."""
        places = pairs.source.offsets[self.sentence[self.row]] + self.inside
        return pairs.source.ids[places], pairs.target.ids[self.row]

    @cached_property
    def bleu(self) -> Curve:
        """Of the standard runs; on validation pairs of the others too."""
        conditions = [STANDARD, *([UNIFORM, LINEAR] if self.name == "valid" else [])]
        found, score = {}, scorer(self.references)
        for condition in conditions:
            for seed in self.study.seeds_of(condition):
                for step in self.steps:
                    found[condition, seed, step] = score(self.translations(condition, seed, step)).score
        return found

    def translations(self, condition: str, seed: int, step: int) -> list[str]:
        pieces = self.run.array(condition, seed, step, f"{self.prefix}translation")[:, 0]
        return [self.examples.spell(line) for line in pieces.tolist()]

    def performance(self, measure: str) -> np.ndarray:
        """Of the standard runs, [seed, step]."""
        if measure == "accuracy":
            return self.metrics.curves(STANDARD, f"{self.prefix}accuracy").values
        return np.array([[self.bleu[STANDARD, seed, step] for step in self.steps] for seed in self.seeds])

    @property
    def seeds(self) -> list[int]:
        return self.study.seeds_of(STANDARD)

    @cached_property
    def proxy(self) -> Tensor:
        """β_px as log p: the output map on the word vectors, without the bias, as in the authors' program."""
        weights = self.run.weights(PROXY, self.study.seeds_of(PROXY)[0], "lowest loss")
        embedding, output = (torch.as_tensor(weights[f"{name}.weight"]) for name in ("embedding", "output"))
        table = (embedding.to(self.device) @ output.to(self.device).T).log_softmax(dim=-1)
        return table[torch.as_tensor(self.source, device=self.device), torch.as_tensor(self.target, device=self.device)]

    @cached_property
    def counted(self) -> Tensor:
        """β_IBM: the count table of the training pairs with its rows normalised, IBM Model 1 after one pass."""
        table = translation(count_table(self.examples.train))
        values = np.asarray(table[self.source, self.target]).ravel()
        return torch.as_tensor(values, dtype=torch.float32, device=self.device)

    @cached_property
    def links(self) -> np.ndarray:
        """For each row the source position that IBM Model 1 chooses; −1: none. <s>, </s> and the empty word stand once
        in every source, so that the table cannot tell them apart: all three are no link."""
        found = counted_on(self.study.task).align(self.pairs)
        source, task = self.pairs.source, self.study.task
        partner = source.ids[source.offsets[self.sentence] + np.maximum(found, 0)]
        return np.where(np.isin(partner, (task.start, task.end)), -1, found)

    def entry(self, table: str, name: str, values: np.ndarray, judged: np.ndarray | None = None) -> Iterator[Row]:
        """An agreement of [run …, row], over runs and pairs of sentences."""
        yield from entry(table, name, values, self.chance, judged, self.sentence)

    def difference(self, name: str, values: np.ndarray, judged: np.ndarray | None = None) -> Iterator[Row]:
        """Of two agreements."""
        yield from spread(SUMMARY, name, values, judged, groups=self.sentence)

    def odds(self, log_odds: Tensor) -> Tensor:
        """Of each number beside the largest of its row, so that none is too large."""
        return (log_odds - log_odds[self.rows.peaks(log_odds)][self.rows.text]).exp()

    def shares(self, values: Tensor) -> Tensor:
        """Each number divided by the sum of its row; 0 in a row of zeros."""
        return values / self.rows.total(values).clamp_min(1e-12)[self.rows.text]

    def marks(self) -> np.ndarray:
        """Of each number, whether the source piece is right for the target piece: 2 is sure, 1 possible, 0 not. As far
        as counting tells: a link of IBM Model 1 is sure."""
        found = np.zeros(len(self.source), np.uint8)
        linked = np.flatnonzero(self.links >= 0)
        found[self.rows.first.cpu().numpy()[linked] + self.links[linked]] = 2
        return found


def bleu_rows(part: Pairs) -> Iterator[Row]:
    for (condition, seed, step), score in part.bleu.items():
        yield Row(condition, seed, step, f"{part.prefix}BLEU", score)


def maps(part: Pairs, count: int) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]]:
    """α, β, Δ and the β_uf of a run under uniform attention for some pairs that a page has room for, padded."""
    sides = part.pairs.source, part.pairs.target
    longest = np.maximum(*(side.lengths for side in sides))
    fit = np.flatnonzero((longest >= SHORTEST) & (longest <= LONGEST))
    if len(fit) < count:
        fit = np.arange(min(count, len(longest)))  # the shortest
    chosen = fit[np.unique(np.linspace(0, len(fit) - 1, count).astype(int))]
    first = np.concatenate([[0], (sides[0].lengths * sides[1].lengths).cumsum()])
    shape = len(chosen), int(sides[1].lengths[chosen].max()), int(sides[0].lengths[chosen].max())

    def grid(values: np.ndarray) -> np.ndarray:
        """[pair, query, key] of the numbers of the chosen pairs."""
        padded = np.zeros(shape, values.dtype)
        for k, n in enumerate(chosen):
            rows, columns = sides[1].lengths[n], sides[0].lengths[n]
            padded[k, :rows, :columns] = values[first[n] : first[n + 1]].reshape(rows, columns)
        return padded

    marks = grid(part.marks())
    same = {"align": marks, "gold": (marks / 2).astype(np.float16)}
    for name, side, width in (("source", sides[0], shape[2]), ("target", sides[1], shape[1])):
        ids = [side.ids[side.offsets[n] : side.offsets[n + 1]] for n in chosen]
        same[name] = np.stack([np.pad(line, (0, width - len(line)), constant_values=-1) for line in ids])
    standard, uniform = (part.study.seeds_of(condition)[0] for condition in (STANDARD, UNIFORM))
    for step in part.steps:
        alpha, beta, delta = (part.scores(STANDARD, standard, step, name) for name in ("alpha", "beta", "delta"))
        shown = {
            "alpha": alpha,
            "beta": part.shares(part.odds(beta)),
            "delta": part.shares(delta.clamp_min(0)),
            "beta_uf": part.shares(part.odds(part.scores(UNIFORM, uniform, step, "beta"))),
        }
        arrays = {name: grid(values.numpy().astype(np.float16)) for name, values in shown.items()}
        arrays["alpha"] = arrays["alpha"][:, None]  # its one head
        yield STANDARD, standard, step, {**same, **arrays}
