"""What `word-translation` computes after training: the columns of Snell et al.'s tables 1 to 7, and what goes with it.

α_g is the attention of a standard run g at its gold checkpoint, the best by token accuracy or by BLEU, on the part of
the table; every standard run is gold in turn. As in the authors' program:
A(α, β_uf), A(β_px, β_uf) and A(Δ, β_uf) are the largest over the checkpoints of a run under uniform attention, A(α, β)
is the largest over the checkpoints of another standard run, ξ is the performance of the other standard runs where their
attention first agrees with α_g more than the column says, ξ* is the performance of run g at its gold checkpoint.
A row is a target position; intervals are over runs and pairs of sentences. Kendall's τ takes the place of the agreement
in the first three columns, on at most 1,000 positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from attndyn.measures import estimates
from attndyn.measures.agreement import xi
from attndyn.measures.estimates import of_pairs
from attndyn.measures.translation import counts, of_counts
from attndyn.store.metrics import Row
from attndyn.studies.read_part import APART, chosen_apart, chosen_by_own, highest, means, of_others
from attndyn.studies.translation_names import (
    COLUMNS,
    DICTIONARY,
    FALLEN,
    INFLATED,
    LINEAR,
    LINEAR_APART,
    LINK_CHANCE,
    RANKS,
    RISEN,
    SHAPED,
    STANDARD,
    SUMMARY,
    TABLES,
    UNIFORM,
)  # fmt: skip
from attndyn.studies.translation_part import Pairs, bleu_rows

if TYPE_CHECKING:
    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics
    from attndyn.studies.word_translation import WordTranslation

RANKED = 1000
"""Most positions for Kendall's τ."""
SCORINGS = ("alpha", "β_px", "delta")
"""What is compared with β_uf, column by column."""
WORDS = 15
"""Entries of the dictionary that are followed along training."""


def tables(study: WordTranslation, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
    """Every row that the claims and figures read."""
    valid = Pairs(study, metrics, run, device, "valid")
    train = Pairs(study, metrics, run, device, "train")
    yield from facts(valid)
    for part in (valid, train):
        yield from bleu_rows(part)
        yield from Columns(part).rows()
    yield from dictionary(valid, train)
    if study.linear:
        yield from linear_apart(valid)


def facts(part: Pairs) -> Iterator[Row]:
    """Sizes, chance, and how good the count table is."""
    study, train = part.study, part.examples.train
    counted = part.rows.peaks(part.counted)
    numbers = {
        "chance": float(part.chance.mean()),
        "positions": len(part.sentence),
        "pairs": len(part.pairs),
        "training pairs": len(train),
        "training pairs left out": part.examples.kept["train"][1] - len(train),
        "validation pairs left out": part.examples.kept["valid"][1] - part.examples.kept["valid"][0],
        "median source length": float(np.median(train.source.lengths)) - 2,  # without <s> and </s>
        "median target length": float(np.median(train.target.lengths)) - 1,  # without </s>
        "linked positions": float((part.links >= 0).mean()),
        LINK_CHANCE: mean_or_nan(1 / part.rows.lengths.cpu().numpy()[part.links >= 0]),
    }
    for name, number in numbers.items():
        yield Row(SUMMARY, 0, 0, name, float(number))
    gold = part.scores(STANDARD, part.seeds[0], part.steps[-1], "alpha")
    yield from part.entry(SUMMARY, "A(random order, α)", part.at_random(gold))
    for seed in study.seeds_of(UNIFORM)[:1]:
        beta = part.scores(UNIFORM, seed, part.steps[-1], "beta")
        found = part.rows.agreement(part.rows.peaks(beta), part.counted, part.rows.limits(part.counted))
        yield from part.entry(SUMMARY, "A(β_uf, β_IBM)", found.cpu().numpy()[None])
    found = part.rows.agreement(counted, part.proxy, part.rows.limits(part.proxy))
    yield from part.entry(SUMMARY, "A(β_IBM, β_px)", found.cpu().numpy()[None])


class Columns:
    """The agreement columns of one part, for both performances."""

    def __init__(self, part: Pairs) -> None:
        self.part, rows, steps = part, part.rows, part.steps
        self.measures = [measure for name, measure in TABLES if name == part.name]
        self.gold = {measure: part.performance(measure).argmax(axis=1) for measure in self.measures}
        """[seed]: the place of the gold checkpoint."""
        self.peaks: dict[Any, Tensor] = {"β_px": rows.peaks(part.proxy), "β_IBM": rows.peaks(part.counted)}
        for g, seed in enumerate(part.seeds):
            for at in {int(gold[g]) for gold in self.gold.values()}:
                for name in ("alpha", "delta"):
                    self.peaks[name, g, at] = rows.peaks(part.scores(STANDARD, seed, steps[at], name))
        attention = {key: places for key, places in self.peaks.items() if key[0] == "alpha"}
        self.uniform = part.agreeing(self.peaks, UNIFORM, "beta")
        self.probe = part.agreeing(attention, STANDARD, "beta")
        self.attention = part.agreeing(attention, STANDARD, "alpha")

    def column(self, name: str, measure: str) -> np.ndarray:
        """[gold run, other run, row], NaN where a run would be compared with itself; the mean is the entry."""
        if name in COLUMNS[:3]:
            found = self.of_gold(self.uniform, SCORINGS[COLUMNS.index(name)], measure)
            return np.stack([highest(one) for one in found])
        return of_others(np.stack([highest(one) for one in self.of_gold(self.probe, "alpha", measure)]))

    def of_gold(self, found: dict[Any, np.ndarray], scoring: str, measure: str) -> list[np.ndarray]:
        """What was found for a scoring of each gold run at its gold checkpoint; the proxy is the same for all."""
        if scoring == "β_px":
            return [found["β_px"]]
        return [found[scoring, g, int(place)] for g, place in enumerate(self.gold[measure])]

    def rows(self) -> Iterator[Row]:
        part = self.part
        for measure in self.measures:
            table, performance = TABLES[part.name, measure], part.performance(measure)
            yield Row(table, 0, 0, "chance", float(part.chance.mean()))
            for name in COLUMNS:
                values = self.column(name, measure)
                yield from part.entry(table, name, values, of_pairs(values) if name == COLUMNS[3] else None)
                for g, seed in enumerate(part.seeds):
                    threshold = float(np.nanmean(values[g if len(values) > 1 else 0]))
                    curve = np.delete(self.attention["alpha", g, int(self.gold[measure][g])], g, axis=0).mean(axis=2)
                    found = float(xi(threshold, curve, np.delete(performance, g, axis=0)))
                    yield Row(table, seed, 0, f"ξ of {name}", found)
            for g, seed in enumerate(part.seeds):
                yield Row(table, seed, part.steps[self.gold[measure][g]], "ξ*", float(performance[g].max()))
        yield from self._ranks()
        if part.name == "valid":
            yield from self._curves()
            yield from self._differences()
            yield from part.entry(SUMMARY, "A(β_IBM, β_uf)", highest(self.uniform["β_IBM"])[None])

    def _differences(self) -> Iterator[Row]:
        """Of gold runs by token accuracy."""
        under, shaped = (self.column(name, "accuracy").astype(np.float32) for name in (COLUMNS[0], COLUMNS[3]))
        # [gold run, other standard run, run under uniform attention, row]
        apart = shaped[:, :, None] - under[:, None]
        yield from self.part.difference(SHAPED, apart, of_pairs(apart))
        along = self.of_gold(self.uniform, "alpha", "accuracy")
        first, last = (np.stack([found[:, end] for found in along]).astype(np.float32) for end in (0, -1))
        peak, own = (
            np.stack([choose(found, self.part.sentence) for found in along]) for choose in (chosen_apart, chosen_by_own)
        )
        yield from self.part.difference(INFLATED, own - peak)
        yield from self.part.difference(RISEN, peak - first)
        yield from self.part.difference(FALLEN, peak - last)

    def _curves(self) -> Iterator[Row]:
        """A(α_gold, ·) along training: the mean over the golds of other runs."""
        part = self.part
        golds = [("alpha", g, int(place)) for g, place in enumerate(self.gold["accuracy"])]
        for j, step in enumerate(part.steps):
            for i, seed in enumerate(part.study.seeds_of(UNIFORM)):
                yield Row(
                    UNIFORM, seed, step, COLUMNS[0], float(np.mean([self.uniform[g][i, j].mean() for g in golds]))
                )
            for i, seed in enumerate(part.seeds):
                others = [g for g in golds if g[1] != i]
                for name, found in (("A(α, β)", self.probe), ("A(α, α)", self.attention)):
                    yield Row(STANDARD, seed, step, name, float(np.mean([found[g][i, j].mean() for g in others])))

    def _ranks(self) -> Iterator[Row]:
        """Kendall's τ in place of the agreement, the largest over the checkpoints; on at most 1,000 positions. For the
        interval every second pair is taken at the checkpoint that the others choose. What two performances choose alike
        is computed once."""
        part = self.part
        every = -(-len(part.sentence) // RANKED)
        scorings: dict[Any, Tensor] = {"β_px": part.proxy}
        for name, g, at in (key for key in self.peaks if isinstance(key, tuple)):
            scorings[name, g, at] = part.scores(STANDARD, part.seeds[g], part.steps[at], name)
        taus = part.taus(scorings, UNIFORM, part.study.seeds_of(UNIFORM), "beta", every)
        groups = np.unique(part.sentence[::every], return_inverse=True)[1]
        for measure in self.measures:
            for name, scoring in zip(RANKS, SCORINGS, strict=True):
                best = np.stack([highest(found) for found in self.of_gold(taus, scoring, measure)])
                apart = np.stack([chosen_apart(found, groups) for found in self.of_gold(taus, scoring, measure)])
                interval = estimates.interval(apart, groups, APART)
                for ending, number in (
                    ("", means(best.ravel())), (" low", interval.low), (" high", interval.high),
                    (" undefined", np.isnan(best).sum()),
                ):  # fmt: skip
                    yield Row(TABLES[part.name, measure], 0, 0, name + ending, float(number))


def linear_apart(part: Pairs) -> Iterator[Row]:
    """The mean BLEU of the runs with a linear head minus that of the standard runs, each run at its best checkpoint;
    the interval is over runs and pairs."""
    means = []
    for condition in (LINEAR, STANDARD):
        scores, drawn = [], []
        for seed in part.study.seeds_of(condition):
            along = [part.bleu[condition, seed, step] for step in part.steps]
            scores.append(max(along))
            best = part.steps[along.index(max(along))]
            sums = estimates.resampled_sums(counts(part.translations(condition, seed, best), part.references))
            drawn.append([of_counts(total) for total in sums])
        means.append(estimates.of_runs(scores, np.array(drawn)))
    apart = means[0].minus(means[1])
    for ending, number in (("", apart.value), (" low", apart.interval.low), (" high", apart.interval.high)):
        yield Row(SUMMARY, 0, 0, LINEAR_APART + ending, float(number))


class Links:
    """The links of IBM Model 1 in one part, and which of them the peak of a scoring finds."""

    def __init__(self, part: Pairs) -> None:
        self.part = part
        self.rows = np.flatnonzero(part.links >= 0)
        self.places = part.rows.first.cpu().numpy()[self.rows] + part.links[self.rows]
        self.words = list(zip(part.source[self.places].tolist(), part.target[self.places].tolist(), strict=True))
        """The source and the target piece of each link."""

    def found(self, condition: str, seed: int, step: int, name: str) -> np.ndarray:
        peaks = self.part.rows.peaks(self.part.scores(condition, seed, step, name))
        return peaks.cpu().numpy()[self.rows] == self.places


def dictionary(valid: Pairs, train: Pairs) -> Iterator[Row]:
    """How many links of the validation pairs have the peaks of β and α found; and of the words that are linked most
    often in all pairs that were read, one by one, how many a run under uniform attention has."""
    links, study = [Links(part) for part in (valid, train)], valid.study
    for step in valid.steps:
        for condition, names in ((STANDARD, ("beta", "alpha")), (UNIFORM, ("beta",))):
            for seed in study.seeds_of(condition):
                for name in names:
                    metric = {"beta": "probe", "alpha": "attention"}[name] + " on link"
                    found = links[0].found(condition, seed, step, name)
                    yield Row(condition, seed, step, metric, mean_or_nan(found))
    spelled = valid.examples.words
    places: dict[tuple[int, int], list[int]] = {}
    for n, words in enumerate(links[0].words + links[1].words):
        places.setdefault(words, []).append(n)
    whole = [words for words in places if all(is_word(spelled[piece]) for piece in words)]
    common = sorted(whole, key=lambda words: -len(places[words]))[:WORDS]
    for n, words in enumerate(common):
        yield Row(DICTIONARY, n, 0, "links", float(len(places[words])))
    seed = study.seeds_of(UNIFORM)[0]
    for step in valid.steps:
        known = np.concatenate([each.found(UNIFORM, seed, step, "beta") for each in links])
        for n, words in enumerate(common):
            name = " → ".join(spelled[piece][1:] for piece in words)
            yield Row(DICTIONARY, n, step, f"β_uf: {name}", float(known[places[words]].mean()))


def mean_or_nan(values: np.ndarray) -> float:
    """NaN where there is nothing: IBM Model 1 may find no link."""
    return float(values.mean()) if len(values) else float("nan")


def is_word(piece: str) -> bool:
    return len(piece) > 3 and piece[0] == "▁" and piece[1:].isalpha()
