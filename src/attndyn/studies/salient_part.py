"""One set of examples of `salient-words` with all that was read on it, and what the kept weights still tell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from attndyn.measures.flat import Texts
from attndyn.models.proxy import votes_of_words
from attndyn.probes.influence import gradient_influence, leave_one_out
from attndyn.probes.lexical import log_odds
from attndyn.studies.kept import model_at
from attndyn.studies.read_part import ReadPart, of_slices
from attndyn.studies.salient_names import PROXY, STANDARD
from attndyn.tasks.ragged import Lines, Parallel, examined
from attndyn.theory.logistic import Logistic

if TYPE_CHECKING:
    from attndyn.studies.salient_words import SalientWords

TOKENS, STATES_ON_CPU = 1 << 20, 1 << 14
"""Of all runs, that are read at once; by an LSTM on a CPU, which keeps some 20 kB for each."""
RANKED = 1000
"""Most examples for Kendall's τ, whose cost grows with the square of the length."""
LEFT_OUT = 500
"""Most examples in which each word is left out."""
SEEN = 10
"""Times a word must occur for its votes in the proxy and in the logistic regression to be compared."""


@dataclass
class Part(ReadPart):
    """One set of examples with all that was read on it."""

    study: SalientWords
    twin: Logistic

    def __post_init__(self) -> None:
        data = self.study.task.data
        self.pairs = examined(data.train, data.valid, self.study.evaluation, self.name)
        self.prepare(self.pairs.source.lengths, STANDARD)
        self.texts = self.rows
        self.words = torch.as_tensor(self.pairs.source.ids, dtype=torch.int64, device=self.device)
        labels = torch.as_tensor(self.pairs.target.ids, dtype=torch.int64, device=self.device)
        self.labels = labels[self.texts.text]
        """The label of each word's text."""

    def accuracy(self, condition: str) -> np.ndarray:
        """[seed, step]"""
        return self.metrics.curves(condition, f"{self.prefix}accuracy").values

    def votes(self, table: Tensor) -> Tensor:
        """How each word of the texts speaks for its text's label; from logits [word of the vocabulary, label]."""
        return log_odds(table[self.words], self.labels)

    @cached_property
    def proxies(self) -> list[Tensor]:
        """β_px of every proxy: its output map on its word vectors, without the bias, as in the authors' program."""
        found = []
        for seed in self.study.seeds_of(PROXY):
            weights = self.run.weights(PROXY, seed, "lowest loss")
            found.append(self.votes(votes_of_words(weights).to(self.device)))
        return found

    @cached_property
    def logistic(self) -> Tensor:
        order = [self.twin.labels.index(label) for label in self.study.task.data.classes]
        beta = torch.as_tensor(self.twin.beta[order].T.copy(), device=self.device)
        if beta.shape[1] == 2:  # log-odds of each label already
            return beta[self.words].gather(1, self.labels[:, None])[:, 0]
        return self.votes(beta)

    @cached_property
    def counted(self) -> Tensor:
        """Polarity by counting: the log-odds of the label given the word, each count raised by one."""
        data = self.study.task.data
        words, classes = len(data.vocabulary.words), len(data.classes)
        cells = data.train.source.ids * np.int64(classes) + data.train.target.ids[data.train.source.rows]
        counts = 1 + np.bincount(cells, minlength=words * classes).reshape(words, classes)
        return self.votes(torch.as_tensor(np.log(counts), device=self.device))


def influence_at_gold(part: Part) -> list[Tensor]:
    """Δ by gradient of every standard run, where its accuracy on the part was highest."""
    condition = next(part.study.conditions())
    seeds = list(condition.seeds)
    model = model_at(condition, part.run, seeds, f"highest {part.prefix}accuracy", part.device)
    sampler = part.study.task.build(seeds, part.device)
    deltas = []
    tokens = STATES_ON_CPU if part.device == "cpu" else TOKENS
    for batch in sampler.slices(part.study.evaluation, part.name, tokens // len(seeds)):
        delta, *_ = gradient_influence(model, condition.rule, batch)
        assert batch.source_mask is not None
        deltas.append(delta[batch.source_mask].view(len(seeds), -1))
    return list(torch.cat(deltas, dim=1))


def left_out(part: Part, seed: int) -> tuple[Texts, Tensor, Tensor]:
    """At most 500 texts, evenly spread over the lengths: their lengths, the places of their words among all words, and
    Δ of one run at its gold checkpoint by leaving each word out."""
    condition = next(part.study.conditions())
    model = model_at(condition, part.run, [seed], "highest accuracy", part.device)
    chosen = np.arange(0, len(part.pairs), -(-len(part.pairs) // LEFT_OUT))
    some = part.pairs.take(chosen)
    examples, tokens = Parallel(some, part.device), STATES_ON_CPU if part.device == "cpu" else TOKENS

    def of_lines(lines: np.ndarray) -> Tensor:
        batch = Lines(examples, torch.as_tensor(lines, device=part.device)[None], examples.widths(lines)).batch()
        assert batch.source_mask is not None
        return leave_one_out(model, condition.rule, batch, tokens)[batch.source_mask]

    parts = np.array_split(np.arange(len(some)), -(-len(some) // 25))
    deltas = of_slices(of_lines, parts, part.device)
    keep = torch.isin(part.texts.text, torch.as_tensor(chosen, device=part.device))
    texts = Texts(torch.as_tensor(some.source.lengths, device=part.device))
    return texts, keep.nonzero()[:, 0], torch.cat(deltas)
