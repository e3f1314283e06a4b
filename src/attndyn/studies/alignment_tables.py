"""What `attention-as-alignment` computes after training: links out of α, β, Δ and of IBM Model 1, against gold links.

The source piece where a scoring of a target piece is largest is its partner (of equal ones, the first), and a pair of
words is linked if any of their pieces are. Row t of α, β and Δ is read while target piece t is predicted, so that it
belongs to that piece: no offset. <s> and </s> can be chosen like any piece; they belong to no word, and a target piece
whose partner is one of them has no link. The row of </s> links nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from attndyn.measures import estimates
from attndyn.measures.alignment import links, tally, word_links
from attndyn.store.metrics import Row
from attndyn.studies.alignment_names import (
    ALIGNMENT,
    ALPHA,
    BETA,
    CHANCE,
    COUNTS,
    DELTA,
    EARLY,
    IBM_PIECES,
    IBM_WORDS,
    INSIDE,
    LATE,
    PROXY_BETA,
    UNIFORM_BETA,
)  # fmt: skip
from attndyn.studies.translation_names import STANDARD, SUMMARY, UNIFORM
from attndyn.studies.translation_part import PASSES, Pairs
from attndyn.theory.ibm1 import Ibm1, ibm1

if TYPE_CHECKING:
    from attndyn.tasks.aligned import AlignedExamples

DRAWS = 20
"""Random alignments whose mean is chance."""
READ = (
    (ALPHA, STANDARD, "alpha"),
    (BETA, STANDARD, "beta"),
    (DELTA, STANDARD, "delta"),
    (UNIFORM_BETA, UNIFORM, "beta"),
)
"""What is read at every checkpoint: its name here, the runs, the array."""


class LinkedPairs(Pairs):
    """The pairs that have gold links."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = cast("AlignedExamples", self.examples)
        self.gold = [whole.gold[line] for line in self.lines]
        self.words_of = whole.words_of.take(self.lines)
        self.whole = whole.whole[0], whole.whole[1].take(self.lines)
        """Training and gold pairs in words."""
        self.source_word, self.target_word = self.of_numbers(self.words_of)
        """The source and the target word of each number; −1: none."""

    def marks(self) -> np.ndarray:
        found = np.zeros(len(self.source), np.uint8)
        pair = self.sentence[self.row]
        numbers = zip(pair.tolist(), self.source_word.tolist(), self.target_word.tolist(), strict=True)
        for place, (n, i, j) in enumerate(numbers):
            found[place] = ((i, j) in self.gold[n].possible) + ((i, j) in self.gold[n].sure)
        return found

    def chosen(self, scores: Tensor) -> np.ndarray:
        """For each target position the source position where a scoring is largest."""
        return (self.rows.peaks(scores) - self.rows.first).cpu().numpy()

    def counted_links(self, chosen: np.ndarray) -> np.ndarray:
        """[pair, 4]: |A|, |S|, |A ∩ S|, |A ∩ P|."""
        return tally(word_links(self.pairs, chosen, self.words_of), self.gold)

    def shifted(self, chosen: np.ndarray, by: int) -> np.ndarray:
        """What was chosen one target position later (1) or earlier (−1) in the same pair."""
        found = np.full_like(chosen, -1)
        for begin, end in zip(self.pairs.target.offsets[:-1], self.pairs.target.offsets[1:], strict=True):
            here = chosen[begin:end]
            found[begin:end] = [*here[1:], -1] if by > 0 else [-1, *here[:-1]]
        return found

    @cached_property
    def of_words(self) -> Ibm1:
        return ibm1(self.whole[0], iterations=PASSES)


class Tables:
    def __init__(self, part: LinkedPairs) -> None:
        self.part, self.seeds = part, {name: part.study.seeds_of(condition) for name, condition, _ in READ}
        self.chosen = {
            name: np.array([
                [part.chosen(part.scores(condition, seed, step, array)) for step in part.steps]
                for seed in self.seeds[name]
            ])
            for name, condition, array in READ
        }  # fmt: skip
        """[seed, step, row]"""
        self.tallies = {
            name: np.array([[part.counted_links(here) for here in run] for run in runs])
            for name, runs in self.chosen.items()
        }
        """[seed, step, pair, 4]"""
        self.still = self._without_training()
        """[pair, 4] of what does not change along training."""

    def _without_training(self) -> dict[str, np.ndarray]:
        part = self.part
        words = links(part.whole[1], part.of_words.align(part.whole[1]))
        return {
            PROXY_BETA: part.counted_links(part.chosen(part.proxy)),
            COUNTS: part.counted_links(part.chosen(part.counted)),
            IBM_PIECES: part.counted_links(part.links),
            IBM_WORDS: tally(words, part.gold),
        }

    def rows(self) -> Iterator[Row]:
        yield from self._facts()
        yield from self._curves()
        yield from self._ends()
        yield from self._differences()
        yield from self._known_first()
        yield from self._order()

    def _facts(self) -> Iterator[Row]:
        part = self.part
        numbers = {
            "pairs": len(part.pairs), "training pairs": len(part.examples.train),
            "gold pairs left out": part.examples.kept["valid"][1] - part.examples.kept["valid"][0],
            "training pairs left out": part.examples.kept["train"][1] - part.examples.kept["train"][0],
            "sure links": sum(len(right.sure) for right in part.gold),
            "possible links": sum(len(right.possible - right.sure) for right in part.gold),
            "pieces of a source word": float((part.words_of.source.ids >= 0).sum() / len(part.whole[1].source.ids)),
            "pieces of a target word": float((part.words_of.target.ids >= 0).sum() / len(part.whole[1].target.ids)),
        }  # fmt: skip
        for name, number in numbers.items():
            yield Row(SUMMARY, 0, 0, name, float(number))
        random = np.random.Generator(np.random.PCG64(0))
        lengths = part.rows.lengths.cpu().numpy()
        drawn = [part.counted_links((random.random(len(lengths)) * lengths).astype(int)) for _ in range(DRAWS)]
        yield Row(SUMMARY, 0, 0, f"AER of {CHANCE}", float(aer(np.array(drawn)[:, None].sum(axis=2)).mean()))

    def _curves(self) -> Iterator[Row]:
        part = self.part
        for name, tallies in self.tallies.items():
            for seed, values in zip(self.seeds[name], aer(tallies.sum(axis=2)), strict=True):
                for step, value in zip(part.steps, values, strict=True):
                    yield Row(ALIGNMENT, seed, step, f"AER of {name}", float(value))
        uniform = part.study.seeds_of(UNIFORM)[0]
        for seed in part.study.seeds_of(STANDARD):
            for step in part.steps:
                peaks = part.rows.peaks(part.scores(STANDARD, seed, step, "alpha"))
                for name, condition, other in (("A(α, β)", STANDARD, seed), ("A(α, β_uf)", UNIFORM, uniform)):
                    known = part.scores(condition, other, step, "beta")
                    found = part.rows.agreement(peaks, known, part.rows.limits(known))
                    yield Row(ALIGNMENT, seed, step, name, float(found.double().mean()))
        yield Row(SUMMARY, 0, 0, "chance of A", float(part.chance.mean()))

    def _ends(self) -> Iterator[Row]:
        """AER, precision and recall of every scoring: along training at the end, and where its AER is lowest."""
        for name, tallies in self.tallies.items():
            yield from entry(name, tallies[:, -1])
            yield from entry(f"lowest {name}", self.lowest(name))
        for name, one in self.still.items():
            yield from entry(name, one[None])
        alpha = self.chosen[ALPHA][:, -1]
        variants = {
            LATE: [self.part.shifted(run, 1) for run in alpha],
            EARLY: [self.part.shifted(run, -1) for run in alpha],
            INSIDE: [self._inside(seed) for seed in self.seeds[ALPHA]],
        }
        for name, runs in variants.items():
            found = np.array([self.part.counted_links(run) for run in runs])
            yield from entry(name, found)
            yield from difference(f"{name} minus {ALPHA}", found, self.tallies[ALPHA][:, -1], same_runs=True)

    def _inside(self, seed: int) -> np.ndarray:
        """Where α is largest among the pieces that belong to a word."""
        part = self.part
        alpha = part.scores(STANDARD, seed, part.steps[-1], "alpha")
        outside = torch.as_tensor(part.source_word < 0, device=alpha.device)
        return part.chosen(alpha.masked_fill(outside, -1.0))

    def lowest(self, name: str) -> np.ndarray:
        """[seed, pair, 4] where the AER of each run is lowest."""
        tallies = self.tallies[name]
        return tallies[np.arange(len(tallies)), aer(tallies.sum(axis=2)).argmin(axis=1)]

    def _differences(self) -> Iterator[Row]:
        alpha, known = self.tallies[ALPHA][:, -1], self.lowest(UNIFORM_BETA)
        yield from difference(f"{UNIFORM_BETA} minus {ALPHA}", known, alpha)
        yield from difference(f"{PROXY_BETA} minus {UNIFORM_BETA}", self.still[PROXY_BETA][None], known)
        for name in (IBM_PIECES, IBM_WORDS):
            yield from difference(f"{name} minus {ALPHA}", self.still[name][None], alpha)

    def _known_first(self) -> Iterator[Row]:
        """Of the sure links, how many the attention has in the end: of those that β_uf had where its AER was lowest,
        and of the others."""
        part = self.part
        places = aer(self.tallies[UNIFORM_BETA].sum(axis=2)).argmin(axis=1)
        known = [word_links(part.pairs, run[at], part.words_of)
                 for run, at in zip(self.chosen[UNIFORM_BETA], places, strict=True)]  # fmt: skip
        attended = [word_links(part.pairs, run[-1], part.words_of) for run in self.chosen[ALPHA]]
        counts = np.array([
            [[(len(a & k & g.sure), len(k & g.sure), len(a & g.sure - k), len(g.sure - k))
              for a, k, g in zip(alpha, beta, part.gold, strict=True)] for beta in known]
            for alpha in attended
        ], dtype=np.float64)  # fmt: skip
        total = counts.sum(axis=(0, 1, 2))
        if not total[1] or not total[3]:
            return  # it had none of the links, or all
        had, others = (estimates.ratio(counts[..., n], counts[..., n + 1], 0.0, 1.0) for n in (0, 2))
        yield Row(SUMMARY, 0, 0, "found of known links", had.value)
        yield Row(SUMMARY, 0, 0, "found of other links", others.value)
        yield from spread("found of known minus other links", had.minus(others, same_runs=True))

    def _order(self) -> Iterator[Row]:
        """Pairs of source positions that α_IBM and β_IBM order differently, in words."""
        model, pairs = self.part.of_words, self.part.whole[1]
        turned = compared = 0
        for n in range(len(pairs)):
            alpha, beta = (read(pairs.source.line(n), pairs.target.line(n)) for read in (model.alpha, model.beta))
            apart = [np.sign(each[:, :, None] - each[:, None, :]) for each in (alpha, beta)]
            known = beta.sum(axis=1) > 0
            turned += int((apart[0] * apart[1] < 0)[known].sum() // 2)
            compared += int((apart[1] != 0)[known].sum() // 2)
        yield Row(SUMMARY, 0, 0, "positions compared", float(compared))
        yield Row(SUMMARY, 0, 0, "positions in another order", float(turned))


def aer(tallies: np.ndarray) -> np.ndarray:
    """Of [… , 4]."""
    found, sure, hit_sure, hit = np.moveaxis(tallies, -1, 0)
    return np.asarray(1 - (hit_sure + hit) / (found + sure))


def estimated(tallies: np.ndarray) -> estimates.Estimate:
    """The AER of [seed, pair, 4], over seeds and pairs."""
    found, sure, hit_sure, hit = np.moveaxis(tallies.astype(np.float64), -1, 0)
    return estimates.ratio(found + sure - hit_sure - hit, found + sure, 0.0, 1.0)


def entry(name: str, tallies: np.ndarray) -> Iterator[Row]:
    """AER with its interval, precision and recall of [seed, pair, 4]."""
    found, sure, hit_sure, hit = tallies.sum(axis=(0, 1))
    yield from spread(f"AER of {name}", estimated(tallies))
    yield Row(SUMMARY, 0, 0, f"precision of {name}", float(hit / found) if found else float("nan"))
    yield Row(SUMMARY, 0, 0, f"recall of {name}", float(hit_sure / sure))


def difference(name: str, first: np.ndarray, second: np.ndarray, same_runs: bool = False) -> Iterator[Row]:
    yield from spread(f"AER of {name}", estimated(first).minus(estimated(second), same_runs))


def spread(name: str, found: estimates.Estimate) -> Iterator[Row]:
    for ending, number in (("", found.value), (" low", found.interval.low), (" high", found.interval.high)):
        yield Row(SUMMARY, 0, 0, name + ending, float(number))
