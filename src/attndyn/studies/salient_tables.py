"""What `salient-words` computes after training: the columns of Snell et al.'s tables 1, 2, 4, 6, 9 and 10.

α_g is the attention of a standard run g at its gold checkpoint; every standard run is gold in turn. Where the authors'
program and their text differ, there is a table for each:

| | code | text |
| --- | --- | --- |
| gold checkpoint | the best accuracy | the last |
| A(α, β_uf) | the largest over checkpoints | the largest over checkpoints |
| proxy | A(β_px, β_uf), the largest over checkpoints | A(β_uf, β_px), last checkpoint |
| A(Δ, β_uf) | the largest over checkpoints | last checkpoint |
| A(α, β) | β of another seed, the largest over checkpoints | β of the same run, last checkpoint |
| ξ | mean over the other runs | mean over the other runs |
| ξ* | the best accuracy | the last |

The text has one other run for ξ: its attention would pass a threshold at one checkpoint or the next by accident.
Δ is −e · ∂loss/∂e in both: the authors' program negates it twice in its last version, which is a slip.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from attndyn.measures.agreement import xi
from attndyn.models.layers import of_classes
from attndyn.models.proxy import votes_of_words
from attndyn.store.metrics import Row
from attndyn.studies.kept import model_at
from attndyn.studies.read_part import chosen_apart, entry, highest, means, spread
from attndyn.studies.salient_appendix import curves, rest, with_vectors
from attndyn.studies.salient_columns import Columns
from attndyn.studies.salient_names import COLUMNS, KENDALL, PROXY, STANDARD, SUMMARY, UNIFORM
from attndyn.studies.salient_part import RANKED, SEEN, TOKENS, Part

if TYPE_CHECKING:
    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics
    from attndyn.studies.salient_words import SalientWords


def tables(study: SalientWords, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
    """Every row that the claims and figures read."""
    twin = study.twin(device)
    valid = Part(study, metrics, run, device, "valid", twin)
    yield from facts(valid)
    columns = Columns(valid)
    yield from columns.rows()
    yield from rest(columns)
    yield from curves(columns)
    yield from with_vectors(valid)
    yield from kendall(valid)
    yield from Columns(Part(study, metrics, run, device, "train", twin)).rows()


def facts(part: Part) -> Iterator[Row]:
    """Sizes, and what holds exactly."""
    study, data = part.study, part.study.task.data
    numbers = {
        "vocabulary": len(data.vocabulary.words),
        "training examples": len(data.train),
        "evaluation examples": len(part.pairs),
        "median length": data.parts["train"].median,
        "texts cut": sum(data.parts[split].cut for split in ("train", "test")),  # validation texts are test texts
        "parameters": sum(
            p[0].numel() for p in next(study.conditions()).model.build(1, (0,), study.task.outputs).parameters()
        )
        - study.width,
        "logistic accuracy": part.twin.chosen.accuracy,
        "chance": float(part.chance.mean()),
        "most frequent class": float(np.bincount(part.pairs.target.ids).max() / len(part.pairs)),
    }
    for name, number in numbers.items():
        yield Row(SUMMARY, 0, 0, name, float(number))
    yield from at_the_start_and_at_gold(part)
    yield from bag_of_words(part)


def at_the_start_and_at_gold(part: Part) -> Iterator[Row]:
    """How even α and β are, whether the votes combine to the answer, and how far odds are from votes; and what agrees
    with α in random order."""
    worst = apart = 0.0
    for i, seed in enumerate(part.study.seeds_of(STANDARD)):
        gold = part.steps[int(part.accuracy(STANDARD)[i].argmax())]
        for step, when in ((0, "start"), (gold, "gold")):
            alpha, beta, answer = (part.scores(STANDARD, seed, step, name) for name in ("alpha", "beta", "answer"))
            yield Row(STANDARD, seed, 0, f"attention entropy, {when}", float(part.texts.entropy(alpha).mean()))
            yield Row(STANDARD, seed, 0, f"probe spread, {when}", float(beta.sigmoid().std()))
            votes = beta.double()
            combined = part.texts.total(alpha.double() * votes).sigmoid()
            worst = max(worst, float((combined - answer.double().sigmoid()).abs().max()))
            apart = max(apart, float((votes.exp() - votes).abs().median()))
            if (i, when) == (0, "gold"):
                yield from entry(SUMMARY, "A(random order, α)", part.at_random(alpha), part.chance)
    yield Row(SUMMARY, 0, 0, "answer minus combined votes", worst)
    yield Row(SUMMARY, 0, 0, "odds minus log-odds", apart)


def bag_of_words(part: Part) -> Iterator[Row]:
    """The proxy beside its logistic twin: is it one, and do they rank words alike?"""
    from scipy.stats import spearmanr

    study, data = part.study, part.study.task.data
    frequent = data.train.source.counts >= SEEN
    classes = [part.twin.labels.index(label) for label in data.classes]
    twin = part.twin.beta[classes[-1]] - part.twin.beta[classes[0]]
    for seed in study.seeds_of(PROXY):
        weights = part.run.weights(PROXY, seed, "lowest loss")
        votes = votes_of_words(weights)
        table, bias = votes.to(part.device), of_classes(torch.as_tensor(weights["output.bias"], device=part.device))
        model = model_at(study.proxy(), part.run, [seed], "lowest loss", part.device)
        apart = 0.0
        for batch in study.task.build([seed], part.device).slices(study.evaluation, part.name, TOKENS):
            with torch.no_grad():
                logits, _ = model(batch, study.proxy().rule)
            assert batch.source_mask is not None
            mask = batch.source_mask[0, ..., None]
            mean = (table[batch.source[0]] * mask).sum(dim=1) / mask.sum(dim=1)
            apart = max(apart, float((mean + bias - logits[0, :, 0]).abs().max()))
        yield Row(PROXY, seed, 0, "answer minus bag of words", apart)
        known, other = (votes[frequent, -1] - votes[frequent, 0]).numpy(), twin[frequent]
        moves = len(known) > 1 and np.ptp(known) > 0 and np.ptp(other) > 0  # what is the same for all has no order
        rank = float(spearmanr(known, other).statistic) if moves else np.nan
        yield Row(PROXY, seed, 0, "rank correlation with the logistic", rank)


def first_above(threshold: float, curve: np.ndarray, performance: np.ndarray) -> float:
    """ξ by Kendall's τ: a checkpoint at which τ is undefined in every text does not agree, and nothing agrees more than
    what is undefined."""
    return float(xi(np.nan_to_num(threshold, nan=np.inf), np.nan_to_num(curve, nan=-np.inf), performance))


def kendall(part: Part) -> Iterator[Row]:
    """Table 2: Kendall's τ in place of A, with the first standard run as gold and the second beside it."""
    every = -(-len(part.pairs) // RANKED)
    gold, other = part.study.seeds_of(STANDARD)[:2]
    accuracy = part.accuracy(STANDARD)
    step = part.steps[int(accuracy[0].argmax())]
    alpha, delta = (part.scores(STANDARD, gold, step, name) for name in ("alpha", "delta"))
    fixed = {COLUMNS[0]: alpha, COLUMNS[1]: part.proxies[0], COLUMNS[2]: delta}
    found = part.taus(fixed, UNIFORM, part.study.seeds_of(UNIFORM), "beta", every)
    found |= part.taus({COLUMNS[3]: alpha}, STANDARD, [other], "beta", every)
    (attention,) = part.taus({"α": alpha}, STANDARD, [other], "alpha", every).values()
    curve = means(attention)
    for name, along in found.items():
        taus = highest(along)
        yield from spread(KENDALL, name, taus, chosen_apart(along, np.arange(along.shape[2])))
        yield Row(KENDALL, 0, 0, f"{name} undefined", float(np.isnan(taus).any(axis=0).sum()))
        yield Row(KENDALL, 0, 0, f"ξ of {name}", first_above(float(means(taus.ravel())), curve, accuracy[[1]]))
    yield Row(KENDALL, 0, 0, "texts", float(len(range(0, len(part.pairs), every))))
