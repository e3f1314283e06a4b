"""What `word-translation` computes after training: the columns of Snell et al.'s tables 1 to 7, and what goes with it.

α_g is the attention of a standard run g at its gold checkpoint, the best by token accuracy or by BLEU, on the part of
the table; every standard run is gold in turn. As in the authors' program:
A(α, β_uf), A(β_px, β_uf) and A(Δ, β_uf) are the largest over the checkpoints of a run under uniform attention, A(α, β)
is the largest over the checkpoints of another standard run, ξ is the performance of the other standard runs where their
attention first agrees with α_g more than the column says, ξ* is the performance of run g at its gold checkpoint.
A row is a target position; intervals are over runs and pairs of sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from attndyn.measures.agreement import xi
from attndyn.measures.flat import Texts
from attndyn.measures.translation import scorer
from attndyn.measures.verdicts import LEVEL, Interval
from attndyn.store.metrics import Row
from attndyn.studies.translation_names import (
    COLUMNS,
    DICTIONARY,
    LINEAR,
    PROXY,
    RANKS,
    STANDARD,
    SUMMARY,
    TABLES,
    UNIFORM,
)  # fmt: skip
from attndyn.tasks.corpus import loaded
from attndyn.tasks.ragged import examined_lines
from attndyn.theory.ibm1 import count_table, ibm1, translation

if TYPE_CHECKING:
    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics
    from attndyn.studies.word_translation import WordTranslation
    from attndyn.tasks.pieces import PieceExamples

RANKED = 1000
"""Most positions for Kendall's τ."""
WORDS = 15
"""Entries of the dictionary that are followed along training."""

Curve = dict[tuple[str, int, int], float]
"""(condition, seed, step) to a performance."""


@dataclass
class Pairs:
    """One part of the corpus with all that was read on it."""

    study: WordTranslation
    metrics: Metrics
    run: Run
    device: str
    name: str
    """valid or train"""

    def __post_init__(self) -> None:
        examples: PieceExamples = loaded(self.study.task)  # type: ignore[assignment]
        self.examples = examples
        self.steps = self.metrics.curves(STANDARD, "accuracy").steps.tolist()
        self.prefix = "" if self.name == "valid" else "train "
        whole: Any = {"valid": examples.valid, "train": examples.train}[self.name]
        lines = examined_lines(examples.train, examples.valid, self.study.evaluation, self.name)
        self.pairs = whole.take(lines)
        self.references = [examples.references[self.name][line] for line in lines]
        self.sentence = self.pairs.target.rows
        """The pair of each row."""
        lengths = self.pairs.source.lengths[self.sentence]
        self.rows = Texts(torch.as_tensor(lengths, device=self.device))
        self.chance = np.ceil(0.05 * lengths) / lengths
        """Â of each row: without ties, ⌈.05 L⌉ / L."""
        row = self.rows.text.cpu().numpy()
        inside = np.arange(len(row)) - self.rows.first.cpu().numpy()[row]
        self.source = self.pairs.source.ids[self.pairs.source.offsets[self.sentence[row]] + inside]
        self.target = self.pairs.target.ids[row]
        """The source and the target piece of each number."""

    def scores(self, condition: str, seed: int, step: int, name: str) -> Tensor:
        return torch.as_tensor(self.run.array(condition, seed, step, self.prefix + name), device=self.device)

    @cached_property
    def bleu(self) -> Curve:
        """Of the standard runs; on validation pairs of the others too."""
        conditions = [STANDARD, *([UNIFORM, LINEAR] if self.name == "valid" else [])]
        found, score = {}, scorer(self.references)
        for condition in conditions:
            for seed in self.study.seeds_of(condition):
                for step in self.steps:
                    pieces = self.run.array(condition, seed, step, f"{self.prefix}translation")[:, 0]
                    texts = [self.examples.spell(line) for line in pieces.tolist()]
                    found[condition, seed, step] = score(texts).score
        return found

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
        """For each row the source position that IBM Model 1 chooses after five passes; −1: none."""
        return ibm1(self.examples.train, iterations=5).align(self.pairs)

    def agreeing(self, peaks: dict[Any, Tensor], condition: str, name: str) -> dict[Any, np.ndarray]:
        """A(u, v) of every row for each u, given by its peaks, with v a scoring of a condition: [seed, step, row]."""
        seeds = self.study.seeds_of(condition)
        found = {key: np.zeros((len(seeds), len(self.steps), len(self.sentence)), dtype=bool) for key in peaks}
        for i, seed in enumerate(seeds):
            for j, step in enumerate(self.steps):
                values = self.scores(condition, seed, step, name)
                limits = self.rows.limits(values)
                for key, places in peaks.items():
                    found[key][i, j] = self.rows.agreement(places, values, limits).cpu().numpy()
        return found

    def entry(self, table: str, name: str, values: np.ndarray) -> Iterator[Row]:
        """The mean of [run …, row] with its interval, and that of its distance from chance."""
        spread, above = (clustered(each, self.sentence) for each in (values, values - self.chance))
        for ending, number in (
            ("", values.mean()), (" low", spread.low), (" high", spread.high),
            (" above low", above.low), (" above high", above.high),
        ):  # fmt: skip
            yield Row(table, 0, 0, name + ending, float(number))


def split(text: Any) -> list[list[int]]:
    return [line.tolist() for line in np.split(text.ids, text.offsets[1:-1])]


def clustered(values: np.ndarray, groups: np.ndarray, resamples: int = 1000) -> Interval:
    """Bootstrap interval of the mean of [run …, row]: runs are drawn anew on each axis, and rows a whole group at a
    time, because the positions of a sentence are not independent. NaN counts as missing. It repeats itself."""
    random = np.random.Generator(np.random.PCG64(0))
    *runs, _ = values.shape
    count = int(groups.max()) + 1
    known = ~np.isnan(values.astype(np.float64))
    sums, counts = (
        np.apply_along_axis(lambda row: np.bincount(groups, row, count), -1, each)
        for each in (np.where(known, values, 0.0), known.astype(np.float64))
    )
    # a draw with replacement is how often each is drawn
    weights = random.multinomial(count, np.full(count, 1 / count), size=resamples).T
    sums, counts = sums @ weights, counts @ weights  # [run …, resample]
    for n in runs:
        drawn = random.multinomial(n, np.full(n, 1 / n), size=resamples)
        sums, counts = (np.einsum("n...r,rn->...r", each, drawn) for each in (sums, counts))
    means = sums / counts
    low, high = np.quantile(means, [LEVEL / 2, 1 - LEVEL / 2])
    return Interval(float(low), float(high))


def highest(found: np.ndarray) -> np.ndarray:
    """[seed, row] at the step of each seed's largest mean, out of [seed, step, row]."""
    return found[np.arange(len(found)), np.nanmean(found, axis=2).argmax(axis=1)]


def tables(study: WordTranslation, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
    """Every row that the claims and figures read."""
    valid = Pairs(study, metrics, run, device, "valid")
    train = Pairs(study, metrics, run, device, "train")
    yield from facts(valid)
    for part in (valid, train):
        for (condition, seed, step), score in part.bleu.items():
            yield Row(condition, seed, step, f"{part.prefix}BLEU", score)
        yield from Columns(part).rows()
    yield from dictionary(valid, train)


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
        "median source length": float(np.median(train.source.lengths)),
        "median target length": float(np.median(train.target.lengths)),
        "linked positions": float((part.links >= 0).mean()),
    }
    for name, number in numbers.items():
        yield Row(SUMMARY, 0, 0, name, float(number))
    random = torch.rand(len(part.source), generator=torch.Generator().manual_seed(0)).to(part.device)
    gold = part.scores(STANDARD, part.seeds[0], part.steps[-1], "alpha")
    agreed = part.rows.agreement(part.rows.peaks(random), gold, part.rows.limits(gold)).cpu().numpy()
    yield from part.entry(SUMMARY, "A(random order, α)", agreed[None])
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
        """[gold run, other run, row]; of the rows a mean is the entry."""
        at = [(g, int(place)) for g, place in enumerate(self.gold[measure])]
        if name == COLUMNS[0]:
            return np.stack([highest(self.uniform["alpha", *place]) for place in at])
        if name == COLUMNS[1]:
            return highest(self.uniform["β_px"])[None]
        if name == COLUMNS[2]:
            return np.stack([highest(self.uniform["delta", *place]) for place in at])
        return np.stack([highest(np.delete(self.probe["alpha", *place], place[0], axis=0)) for place in at])

    def rows(self) -> Iterator[Row]:
        part = self.part
        for measure in self.measures:
            table, performance = TABLES[part.name, measure], part.performance(measure)
            for name in COLUMNS:
                values = self.column(name, measure)
                yield from part.entry(table, name, values)
                for g, seed in enumerate(part.seeds):
                    threshold = float(values[g if len(values) > 1 else 0].mean())
                    curve = np.delete(self.attention["alpha", g, int(self.gold[measure][g])], g, axis=0).mean(axis=2)
                    found = float(xi(threshold, curve, np.delete(performance, g, axis=0)))
                    yield Row(table, seed, 0, f"ξ of {name}", found)
            for g, seed in enumerate(part.seeds):
                yield Row(table, seed, part.steps[self.gold[measure][g]], "ξ*", float(performance[g].max()))
        if part.name == "valid":
            yield from self._curves()
            yield from self._ranks()
            apart = self.column(COLUMNS[3], "accuracy").mean(axis=1) - self.column(COLUMNS[0], "accuracy").mean(axis=1)
            yield from part.entry(SUMMARY, "A(α, β) minus A(α, β_uf)", apart)
            yield from part.entry(SUMMARY, "A(β_IBM, β_uf)", highest(self.uniform["β_IBM"])[None])

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
        """Kendall's τ in place of the agreement, the largest over the checkpoints; on at most 1,000 positions."""
        part = self.part
        every = -(-len(part.sentence) // RANKED)
        first = {RANKS[0]: [], RANKS[1]: [part.proxy], RANKS[2]: []}
        for g, seed in enumerate(part.seeds):
            step = part.steps[self.gold["accuracy"][g]]
            first[RANKS[0]].append(part.scores(STANDARD, seed, step, "alpha"))
            first[RANKS[2]].append(part.scores(STANDARD, seed, step, "delta"))
        known = [
            [part.scores(UNIFORM, seed, step, "beta") for step in part.steps] for seed in part.study.seeds_of(UNIFORM)
        ]
        groups = part.sentence[::every]
        for name, scorings in first.items():
            found = np.array([
                [[part.rows.kendall_tau(u, beta, every).values.cpu().numpy() for beta in betas] for betas in known]
                for u in scorings
            ])  # fmt: skip
            best = np.stack([highest(one) for one in found])
            spread = clustered(best, np.unique(groups, return_inverse=True)[1])
            for ending, number in (("", np.nanmean(best)), (" low", spread.low), (" high", spread.high)):
                yield Row(SUMMARY, 0, 0, name + ending, float(number))
            yield Row(SUMMARY, 0, 0, f"{name} undefined", float(np.isnan(best).sum()))


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
                    yield Row(condition, seed, step, metric, float(links[0].found(condition, seed, step, name).mean()))
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
        found = np.concatenate([each.found(UNIFORM, seed, step, "beta") for each in links])
        for n, words in enumerate(common):
            name = " → ".join(spelled[piece][1:] for piece in words)
            yield Row(DICTIONARY, n, step, f"β_uf: {name}", float(found[places[words]].mean()))


def is_word(piece: str) -> bool:
    return len(piece) > 3 and piece[0] == "▁" and piece[1:].isalpha()


def maps(
    study: WordTranslation, run: Run, metrics: Metrics, count: int
) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]]:
    """α, β and Δ of some pairs of middling length, padded, as the page reads them."""
    part = Pairs(study, metrics, run, "cpu", "valid")
    chosen = np.unique(np.linspace(len(part.pairs) // 3, 3 * len(part.pairs) // 4, count).astype(int))
    first = np.concatenate([[0], (part.pairs.source.lengths * part.pairs.target.lengths).cumsum()])
    keys, queries = (int(side.lengths[chosen].max()) for side in (part.pairs.source, part.pairs.target))

    def padded(line: np.ndarray, length: int) -> np.ndarray:
        return np.pad(line, (0, length - len(line)), constant_values=-1).astype(np.int32)

    sides = {
        "source": np.stack([padded(np.array(split(part.pairs.source)[n]), keys) for n in chosen]),
        "target": np.stack([padded(np.array(split(part.pairs.target)[n]), queries) for n in chosen]),
    }
    sides["align"] = np.full_like(sides["target"], -1)
    for condition in (STANDARD, UNIFORM):
        seed = study.seeds_of(condition)[0]
        for step in part.steps:
            arrays = {name: side.copy() for name, side in sides.items()}
            for name in ("alpha", "beta", "delta"):
                values = run.array(condition, seed, step, name)
                arrays[name] = np.zeros((len(chosen), queries, keys), np.float16)
                for k, n in enumerate(chosen):
                    shape = part.pairs.target.lengths[n], part.pairs.source.lengths[n]
                    one = values[first[n] : first[n + 1]].reshape(shape).astype(np.float64)
                    if name == "beta":
                        one = 1 / (1 + np.exp(-one))
                    elif name == "delta":
                        one = np.maximum(one, 0)
                        one /= np.maximum(one.sum(axis=1, keepdims=True), 1e-12)
                    arrays[name][k, : shape[0], : shape[1]] = one
            arrays["alpha"] = arrays["alpha"][:, None]
            yield condition, seed, step, arrays
