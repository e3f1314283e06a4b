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
| ξ* | the best accuracy | the last |

Δ is −e · ∂loss/∂e in both: the authors' program negates it twice in its last version, which is a slip.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from attndyn.measures.agreement import xi
from attndyn.measures.verdicts import resampled
from attndyn.models.layers import of_classes
from attndyn.models.proxy import votes_of_words
from attndyn.store.metrics import Row
from attndyn.studies.kept import model_at
from attndyn.studies.read_part import highest
from attndyn.studies.salient_names import (
    BLOG,
    CODE,
    COLUMNS,
    FROZEN,
    KENDALL,
    PROXY,
    STANDARD,
    SUMMARY,
    TEXT,
    TRAIN,
    UNIFORM,
)  # fmt: skip
from attndyn.studies.salient_part import RANKED, SEEN, TOKENS, Part, influence_at_gold, left_out

if TYPE_CHECKING:
    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics
    from attndyn.studies.salient_words import SalientWords


def tables(study: SalientWords, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
    """Every row that the claims and figures read."""
    twin = study.twin(device)
    valid = Part(study, metrics, run, device, "valid", twin)
    yield from facts(valid)
    yield from Columns(valid).rows()
    yield from kendall(valid)
    yield from Columns(Part(study, metrics, run, device, "train", twin)).rows()


def facts(part: Part) -> Iterator[Row]:
    """Sizes, and what holds exactly."""
    study, texts = part.study, part.texts
    data = study.task.data
    numbers = {
        "vocabulary": len(data.vocabulary.words),
        "training examples": len(data.train),
        "evaluation examples": len(part.pairs),
        "median length": data.parts["train"].median,
        "texts cut": sum(each.cut for each in data.parts.values()),
        "parameters": sum(
            p[0].numel() for p in next(study.conditions()).model.build(1, (0,), study.task.outputs).parameters()
        )
        - study.width,
        "logistic accuracy": part.twin.chosen.accuracy,
        "chance": float(part.chance.mean()),
    }
    for name, number in numbers.items():
        yield Row(SUMMARY, 0, 0, name, float(number))
    worst = apart = 0.0
    for i, seed in enumerate(study.seeds_of(STANDARD)):
        gold = part.steps[int(part.accuracy(STANDARD)[i].argmax())]
        for condition, step in ((STANDARD, 0), (STANDARD, gold)):
            alpha = part.scores(condition, seed, step, "alpha")
            beta = part.scores(condition, seed, step, "beta")
            when = "start" if step == 0 else "gold"
            yield Row(condition, seed, step, f"attention entropy, {when}", float(texts.entropy(alpha).mean()))
            yield Row(condition, seed, step, f"probe spread, {when}", float(beta.sigmoid().std()))
            combined = texts.total((alpha.double() * beta.double()).to(torch.float64)).sigmoid()
            answer = part.scores(condition, seed, step, "answer").double().sigmoid()
            worst = max(worst, float((combined - answer).abs().max()))
            odds = beta.double().exp()
            apart = max(apart, float((odds - beta.double()).abs().median()))
    yield Row(SUMMARY, 0, 0, "answer minus combined votes", worst)
    yield Row(SUMMARY, 0, 0, "odds minus log-odds", apart)
    yield from bag_of_words(part)


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
        known = (votes[frequent, -1] - votes[frequent, 0]).numpy()
        yield Row(
            PROXY, seed, 0, "rank correlation with the logistic", float(spearmanr(known, twin[frequent]).statistic)
        )


class Columns:
    """The agreement columns of one part, in both readings."""

    def __init__(self, part: Part) -> None:
        self.part = part
        study, accuracy = part.study, part.accuracy(STANDARD)
        self.seeds, steps = study.seeds_of(STANDARD), part.steps
        self.gold = [int(row.argmax()) for row in accuracy]
        last = len(steps) - 1
        texts = part.texts
        peaks: dict[Any, Tensor] = {}
        for i, seed in enumerate(self.seeds):
            for reading, at in ((CODE, self.gold[i]), (TEXT, last)):
                peaks["α", reading, i] = texts.peaks(part.scores(STANDARD, seed, steps[at], "alpha"))
        deltas = self._deltas()
        peaks |= {key: texts.peaks(values) for key, values in deltas.items()}
        for i, beta in enumerate(part.proxies):
            peaks["β_px", i] = texts.peaks(beta)
        peaks["β_log"], peaks["β_count"] = texts.peaks(part.logistic), texts.peaks(part.counted)
        self.uniform = part.agreeing(peaks, UNIFORM, "beta")
        golds = {key: places for key, places in peaks.items() if key[0] == "α"}
        self.probe = part.agreeing(golds, STANDARD, "beta")
        self.attention = part.agreeing(golds, STANDARD, "alpha")
        self.frozen = part.agreeing(golds, FROZEN, "alpha")
        self.peaks, self.deltas = peaks, deltas

    def _deltas(self) -> dict[Any, Tensor]:
        part, found = self.part, {}
        if part.name == "train":
            at_gold = influence_at_gold(part)
            return {("Δ", CODE, i): delta for i, delta in enumerate(at_gold)}
        for i, seed in enumerate(self.seeds):
            for reading, at in ((CODE, self.gold[i]), (TEXT, -1)):
                found["Δ", reading, i] = part.scores(STANDARD, seed, part.steps[at], "delta")
        return found

    def against(self, values: Tensor) -> np.ndarray:
        """A(β_uf, v) for a fixed v, at the last checkpoint: [seed, text]."""
        part = self.part
        limits, found = part.texts.limits(values), []
        for seed in part.study.seeds_of(UNIFORM):
            peaks = part.texts.peaks(part.scores(UNIFORM, seed, part.steps[-1], "beta"))
            found.append(part.texts.agreement(peaks, values, limits).cpu().numpy())
        return np.stack(found)

    def column(self, name: str, reading: str) -> np.ndarray:
        """[gold, other seed, text] at the checkpoint that the reading takes; of the last axis a mean is the entry."""
        golds = range(len(self.seeds))
        if name == COLUMNS[0]:
            return np.stack([highest(self.uniform["α", reading, g]) for g in golds])
        if name == COLUMNS[1]:
            if reading == TEXT:
                return np.stack([self.against(beta) for beta in self.part.proxies])
            return np.stack([highest(self.uniform["β_px", i]) for i in range(len(self.part.proxies))])
        if name == COLUMNS[2]:
            take = highest if reading == CODE else final
            return np.stack([take(self.uniform["Δ", reading, g]) for g in golds])
        if reading == TEXT:
            return np.stack([self.probe["α", TEXT, g][[g], -1] for g in golds])
        return np.stack([highest(np.delete(self.probe["α", CODE, g], g, axis=0)) for g in golds])

    def others(self, g: int, reading: str) -> tuple[np.ndarray, np.ndarray]:
        """A(α_g, α(τ)) and the accuracy of the other standard runs: [seed, step]."""
        curve = np.delete(self.attention["α", reading, g], g, axis=0).mean(axis=2)
        return curve, np.delete(self.part.accuracy(STANDARD), g, axis=0)

    def rows(self) -> Iterator[Row]:
        part = self.part
        for reading in (CODE, TEXT) if part.name == "valid" else (CODE,):
            table = reading if part.name == "valid" else TRAIN
            accuracy = part.accuracy(STANDARD)
            for name in COLUMNS:
                values = self.column(name, reading)
                yield from self._entry(table, name, values)
                entries = values.mean(axis=2)
                for g, seed in enumerate(self.seeds):
                    value = float(entries[g].mean() if len(entries) == len(self.seeds) else entries.mean())
                    threshold = xi(value, *self.others(g, reading)) if len(self.seeds) > 1 else torch.tensor(torch.nan)
                    yield Row(table, seed, part.steps[self.gold[g]], f"ξ of {name}", float(threshold))
            for g, seed in enumerate(self.seeds):
                star = accuracy[g].max() if reading == CODE else accuracy[g, -1]
                yield Row(table, seed, part.steps[self.gold[g]], "ξ*", float(star))
        if part.name == "valid":
            yield from self._rest()
            yield from self._curves()

    def _entry(self, table: str, name: str, values: np.ndarray) -> Iterator[Row]:
        """The mean over seeds and texts, and those of each gold run."""
        yield from entry(table, name, values, self.part.chance)
        for g, mean in enumerate(values.reshape(len(values), -1).mean(axis=1)):
            yield Row(f"{table}, by gold run", g, 0, name, float(mean))

    def _rest(self) -> Iterator[Row]:
        """Frozen β (table 9), the logistic regression (table 10), counts, influence and its other form, other seeds."""
        part, golds = self.part, range(len(self.seeds))
        texts = part.texts
        yield from self._entry(SUMMARY, "A(α, α_fr)", np.stack([highest(self.frozen["α", CODE, g]) for g in golds]))
        first = np.stack([highest(self.uniform["α", CODE, g]) for g in golds])
        frozen = np.stack([highest(self.frozen["α", CODE, g]) for g in golds])
        gap = resampled(first.mean(axis=1) - frozen.mean(axis=1))
        yield Row(SUMMARY, 0, 0, "A(α, β_uf) minus A(α, α_fr) low", gap.low)
        yield Row(SUMMARY, 0, 0, "A(α, β_uf) minus A(α, α_fr) high", gap.high)
        yield from self._entry(SUMMARY, "A(β_log, β_uf)", highest(self.uniform["β_log"])[None])
        yield from self._entry(SUMMARY, "A(β_count, β_uf)", highest(self.uniform["β_count"])[None])
        yield from self._entry(SUMMARY, "A(β_uf, β_log)", self.against(part.logistic)[None])
        proxy = np.stack([highest(self.uniform["β_px", i]) for i in range(len(part.proxies))])
        gap = resampled(highest(self.uniform["β_log"]).mean(axis=0) - proxy.mean(axis=(0, 1)))
        yield Row(SUMMARY, 0, 0, "A(β_log, β_uf) minus A(β_px, β_uf) low", gap.low)
        yield Row(SUMMARY, 0, 0, "A(β_log, β_uf) minus A(β_px, β_uf) high", gap.high)
        of_delta, of_count = [], []
        count_limits = texts.limits(part.counted)
        for g in golds:
            delta = self.deltas["Δ", CODE, g]
            of_delta.append(texts.agreement(self.peaks["α", CODE, g], delta, texts.limits(delta)).cpu().numpy())
            agreed = texts.agreement(self.peaks["α", CODE, g], part.counted, count_limits)
            of_count.append(agreed.cpu().numpy())
        yield from self._entry(SUMMARY, "A(α, Δ)", np.stack(of_delta)[:, None])
        yield from self._entry(SUMMARY, "A(α, β_count)", np.stack(of_count)[:, None])
        if len(self.seeds) > 1:
            between = np.stack([self.attention["α", CODE, g][h, self.gold[h]] for g in golds for h in golds if h != g])
            yield from self._entry(SUMMARY, "A(α, α of another seed)", between[:, None])
            own = np.stack([self.probe["α", CODE, g][g, self.gold[g]] for g in golds])
            yield from self._entry(SUMMARY, "A(α, β of the same run)", own[:, None])
            apart = resampled(self.column(COLUMNS[3], CODE).mean(axis=(0, 1)) - first.mean(axis=(0, 1)))
            yield Row(SUMMARY, 0, 0, "A(α, β) minus A(α, β_uf) low", apart.low)
            yield Row(SUMMARY, 0, 0, "A(α, β) minus A(α, β_uf) high", apart.high)
        yield from self._left_out()

    def _left_out(self) -> Iterator[Row]:
        part = self.part
        texts, places, delta = left_out(part, self.seeds[0])
        alpha = part.scores(STANDARD, self.seeds[0], part.steps[self.gold[0]], "alpha")[places]
        gradient = self.deltas["Δ", CODE, 0][places]
        chosen = part.texts.text[places[texts.first]].cpu().numpy()
        chance = part.chance[chosen]
        found = {"A(α, Δ_loo)": texts.agreement(texts.peaks(alpha), delta, texts.limits(delta)).cpu().numpy()[None]}
        found["A(Δ, Δ_loo)"] = texts.agreement(texts.peaks(gradient), delta, texts.limits(delta)).cpu().numpy()[None]
        peaks, best = texts.peaks(delta), []
        for seed in part.study.seeds_of(UNIFORM):
            each = [values[:, places] for _, values in part.along(UNIFORM, seed, "beta")]
            best.append(np.concatenate([texts.agreement(peaks, b, texts.limits(b)).cpu().numpy() for b in each]))
        found["A(Δ_loo, β_uf)"] = highest(np.stack(best))
        for name, values in found.items():
            yield from entry(SUMMARY, name, values, chance)
        yield Row(SUMMARY, 0, 0, "texts with words left out", float(len(chosen)))

    def _curves(self) -> Iterator[Row]:
        """A(α_gold, ·) along training, the mean over the golds of other runs."""
        part, golds = self.part, list(range(len(self.seeds)))
        for i, seed in enumerate(part.study.seeds_of(UNIFORM)):
            for j, step in enumerate(part.steps):
                value = np.mean([self.uniform["α", CODE, g][i, j].mean() for g in golds])
                yield Row(UNIFORM, seed, step, "A(α, β_uf)", float(value))
        mean = np.mean([self.uniform["α", CODE, g] for g in golds], axis=0)  # [seed, step, text]
        peak = int(mean.mean(axis=(0, 2)).argmax())
        fall = resampled(mean[:, peak] - mean[:, -1])
        numbers = {
            "peak step of A(α, β_uf)": part.steps[peak],
            "peak of A(α, β_uf)": mean[:, peak].mean(),
            "last of A(α, β_uf)": mean[:, -1].mean(),
            "fall of A(α, β_uf) low": fall.low,
            "fall of A(α, β_uf) high": fall.high,
        }
        for name, number in numbers.items():
            yield Row(SUMMARY, 0, 0, name, float(number))
        for name, found in (("A(α, β)", self.probe), ("A(α, α)", self.attention)):
            yield from stages(part, STANDARD, name, [found["α", CODE, g] for g in golds])
        if BLOG in part.metrics:
            yield from self._blog()

    def _blog(self) -> Iterator[Row]:
        """The two stages of the runs with linear scoring, against their own gold attention."""
        part = self.part
        accuracy = part.accuracy(BLOG)
        seeds = part.study.seeds_of(BLOG)
        peaks = {
            i: part.texts.peaks(part.scores(BLOG, seed, part.steps[int(accuracy[i].argmax())], "alpha"))
            for i, seed in enumerate(seeds)
        }
        for name, kind in (("A(α, β)", "beta"), ("A(α, α)", "alpha")):
            yield from stages(part, BLOG, name, list(part.agreeing(peaks, BLOG, kind).values()))


def entry(table: str, name: str, values: np.ndarray, chance: np.ndarray) -> Iterator[Row]:
    """The mean over seeds and texts with its interval, and that of its distance from chance."""
    spread, above = resampled(values.astype(np.float64)), resampled(values - chance)
    for ending, number in (
        ("", values.mean()), (" low", spread.low), (" high", spread.high),
        (" above low", above.low), (" above high", above.high),
    ):  # fmt: skip
        yield Row(table, 0, 0, name + ending, float(number))


def stages(part: Part, condition: str, name: str, found: list[np.ndarray]) -> Iterator[Row]:
    """The agreement of each run with the gold attention of the others along training, and when it is half of its end;
    from [seed, step, text] for each gold run."""
    for h, seed in enumerate(part.study.seeds_of(condition)):
        rest = [each for g, each in enumerate(found) if g != h] or found
        curve = np.mean([each[h].mean(axis=1) for each in rest], axis=0)
        for step, value in zip(part.steps, curve, strict=True):
            yield Row(condition, seed, step, name, float(value))
        half = part.steps[int((curve >= curve[-1] / 2).argmax())]
        yield Row(condition, seed, 0, f"half of {name} at", float(half))


def kendall(part: Part) -> Iterator[Row]:
    """Table 2: Kendall's τ in place of A, with the first standard run as gold and the second beside it."""
    every = -(-len(part.pairs) // RANKED)
    seeds = part.study.seeds_of(STANDARD)
    accuracy = part.accuracy(STANDARD)
    gold = part.steps[int(accuracy[0].argmax())]
    alpha, delta = (part.scores(STANDARD, seeds[0], gold, name) for name in ("alpha", "delta"))
    fixed = {COLUMNS[0]: alpha, COLUMNS[1]: part.proxies[0], COLUMNS[2]: delta}
    found = part.taus(fixed, UNIFORM, part.study.seeds_of(UNIFORM), "beta", every)
    curve: list[float] = []
    if len(seeds) > 1:
        found |= part.taus({COLUMNS[3]: alpha}, STANDARD, seeds[1:2], "beta", every)
        (curves,) = part.taus({"α": alpha}, STANDARD, seeds[1:2], "alpha", every).values()
        curve = np.nanmean(curves[0], axis=1).tolist()
    for name, along in found.items():
        taus = highest(along)
        spread = resampled(taus)
        for ending, number in (("", np.nanmean(taus)), (" low", spread.low), (" high", spread.high)):
            yield Row(KENDALL, 0, 0, name + ending, float(number))
        yield Row(KENDALL, 0, 0, f"{name} undefined", float(np.isnan(taus).sum()))
        if curve:
            yield Row(KENDALL, 0, 0, f"ξ of {name}", float(xi(float(np.nanmean(taus)), [curve], accuracy[[1]])))
    yield Row(KENDALL, 0, 0, "texts", float(len(range(0, len(part.pairs), every))))


def final(found: np.ndarray) -> np.ndarray:
    return found[:, -1]
