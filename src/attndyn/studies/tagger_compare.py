"""Trained taggers on the test sentences: what they score, and how far an adversary, another seed or uniform attention
is from the base in answers and attention.

Heads have no order that seeds share, so divergences are also measured with the heads of one model matched to those of
the other: the assignment with the lowest total divergence over the test sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attndyn.measures import chunking, divergence
from attndyn.measures.agreement import Undefined, kendall_tau
from attndyn.store.metrics import Row
from attndyn.studies.kept import model_at
from attndyn.studies.tagger_names import READ, SEEDS, UNIFORM
from attndyn.tasks.sampler import Batch
from attndyn.training.condition import Likelihood

if TYPE_CHECKING:
    from attndyn.models.base import Model
    from attndyn.models.rules import AttentionRule
    from attndyn.store.folder import Run
    from attndyn.studies.tagger_adversary import TaggerAdversary
    from attndyn.training.condition import Condition

TOKENS = {"cpu": 1 << 14, "cuda": 1 << 18}
RANKED = 200
"""Sentences whose weights are ranked: the cost grows with the cube of the length."""


class Pair(NamedTuple):
    """Models side by side: each replica of `model` beside one of `base`."""

    model: Model
    rule: AttentionRule
    base: Model
    base_rule: AttentionRule

    def on(self, batch: Batch) -> tuple[Batch, Tensor, Tensor]:
        """The batch with what the base does on it, and what the model does."""
        logits, alpha = self.base(batch, self.base_rule)
        batch = replace(batch, given=alpha, answer=logits.softmax(dim=-1))
        return (batch, *self.model(batch, self.rule))


def compared(study: TaggerAdversary, run: Run, device: str) -> Iterator[Row]:
    """All rows about kept weights, at the last step."""
    conditions = list(study.conditions())
    base = conditions[0]
    for condition in conditions:
        model = model_at(condition, run, condition.seeds, condition.best[0], device)
        of = condition.of
        beside, seeds, best = (base, base.seeds, base.best[0]) if of is None else (of.condition, of.seeds, of.best)
        if of is None and condition.name != UNIFORM:
            pair = Pair(model, condition.rule, model, condition.rule)
        else:
            pair = Pair(model, condition.rule, model_at(beside, run, seeds, best, device), beside.rule)
        found = scores(pair, condition, study, device)
        if condition.name in (UNIFORM, *study.adversaries.values()):
            found |= differences(pair, condition, study, device)
        for name, values in found.items():
            for seed, value in zip(condition.seeds, values.tolist(), strict=True):
                yield Row(condition.name, seed, study.last, name, value)
    yield from (Row(base.name, seed, study.last, READ, float(study.sentences)) for seed in base.seeds)
    pairs = list(combinations(base.seeds, 2))
    if pairs:
        first, second = (model_at(base, run, side, base.best[0], device) for side in zip(*pairs, strict=True))
        found = differences(Pair(first, base.rule, second, base.rule), base, study, device, len(pairs))
        for name, values in found.items():
            for number, value in enumerate(values.tolist()):
                yield Row(SEEDS, number, study.last, name, value)


def slices(condition: Condition, study: TaggerAdversary, device: str, replicas: int, most: int) -> list[Batch]:
    sampler = condition.task.build(range(replicas), device)
    return sampler.slices(most, "test", TOKENS[device] // replicas)


@torch.no_grad()
def scores(pair: Pair, condition: Condition, study: TaggerAdversary, device: str) -> dict[str, Tensor]:
    """F1 and loss of the answers."""
    counts, sums = [], []
    for batch in slices(condition, study, device, len(condition.seeds), study.evaluation):
        batch, logits, alpha = pair.on(batch)
        found = chunking.count(logits.argmax(dim=-1), batch.target, study.task.tags, batch.target_mask)
        counts.append(torch.stack(found))
        positions = batch.target[0].numel() if batch.target_mask is None else batch.target_mask.sum(dim=(1, 2))
        sums.append(
            torch.stack(
                [Likelihood(total=True)(logits, alpha, batch), torch.zeros_like(logits[:, 0, 0, 0]) + positions]
            )
        )
    loss, positions = torch.stack(sums).sum(dim=0)
    return {
        "test F1 (kept)": chunking.f1(*torch.stack(counts).sum(dim=0).double()),
        "test loss (kept)": loss / positions,
    }


@torch.no_grad()
def differences(
    pair: Pair, condition: Condition, study: TaggerAdversary, device: str, replicas: int | None = None
) -> dict[str, Tensor]:
    """From the base: NLL of its answers and total variation of answers, a mean over positions; divergences of
    attention, a mean over the rows of all heads; and KL over every element of the matrices."""
    replicas = len(condition.seeds) if replicas is None else replicas
    totals: dict[str, Tensor] = {}
    cross: Tensor | None = None
    for batch in slices(condition, study, device, replicas, study.evaluation):
        batch, logits, alpha = pair.on(batch)
        assert batch.given is not None
        assert batch.answer is not None
        keys, rows = masks(batch)
        told = replace(batch, target=batch.answer.argmax(dim=-1))
        heads = alpha.shape[2]
        parts = {
            "positions": rows.sum(dim=(1, 2)),
            "NLL": Likelihood(total=True)(logits, alpha, told),
            "same tag": ((logits.argmax(dim=-1) == told.target) & rows).sum(dim=(1, 2)),
            "TVD": (divergence.total_variation(logits.softmax(dim=-1), batch.answer) * rows).sum(dim=(1, 2)),
            "keys": (keys.sum(dim=-1, keepdim=True) * rows).sum(dim=(1, 2)),
            "KL": summed(divergence.kl(alpha, batch.given, keys[:, :, None, None]), rows) / heads,
            "JSD of means": summed(divergence.jsd(alpha.mean(dim=2, keepdim=True),
                                                  batch.given.mean(dim=2, keepdim=True), keys[:, :, None, None]), rows),
        }  # fmt: skip
        for name, value in parts.items():
            totals[name] = totals.get(name, 0) + value.double()
        between = torch.stack([
            torch.stack([summed(divergence.jsd(alpha[:, :, [h]], batch.given[:, :, [g]], keys[:, :, None, None]), rows)
                         for g in range(heads)], dim=-1)
            for h in range(heads)
        ], dim=1).double()  # fmt: skip
        cross = between if cross is None else cross + between
    assert cross is not None
    positions = totals.pop("positions")
    found = {name: value / positions for name, value in totals.items()}
    found["KL an element"] = found["KL"] / found["keys"]
    cross = cross / positions[:, None, None]
    found["JSD"] = cross.diagonal(dim1=1, dim2=2).mean(dim=1)
    order = matched(cross)
    found["JSD matched"] = cross.gather(1, order[:, None].to(cross.device))[:, 0].mean(dim=1)
    ranks = ranked(pair, condition, study, device, replicas, order)
    return found if ranks is None else found | {"rank τ": ranks}


def masks(batch: Batch) -> tuple[Bool[Tensor, "replica batch key"], Bool[Tensor, "replica batch query"]]:
    """Which keys and which rows are real."""
    real = torch.ones_like(batch.source, dtype=torch.bool)
    keys = real if batch.source_mask is None else batch.source_mask
    return keys, real if batch.target_mask is None else batch.target_mask


def summed(values: Float[Tensor, "replica batch head query"], rows: Bool[Tensor, "replica batch query"]) -> Tensor:
    return (values * rows[:, :, None]).sum(dim=(1, 2, 3))


def matched(cross: Float[Tensor, "replica head head"]) -> Tensor:
    """For each head of the base the head of the other model that belongs to it: [replica, head]."""
    from scipy.optimize import linear_sum_assignment

    return torch.as_tensor(np.stack([linear_sum_assignment(one.T)[1] for one in cross.cpu().numpy()]))


def ranked(
    pair: Pair, condition: Condition, study: TaggerAdversary, device: str, replicas: int, order: Tensor
) -> Tensor | None:
    """Kendall's τ of the weights of a row with those of the base, heads matched; None where weights do not differ."""
    found: list[Tensor] = []
    for batch in slices(condition, study, device, replicas, RANKED):
        batch, _, alpha = pair.on(batch)
        assert batch.given is not None
        keys, rows = masks(batch)
        mine = alpha.gather(2, order.to(alpha.device)[:, None, :, None, None].expand_as(alpha))
        with suppress(Undefined):  # in every row of the slice
            tau = kendall_tau(mine, batch.given, (keys[:, :, None] & rows[..., None])[:, :, None])
            found.append(tau.values.flatten(1))
    return torch.cat(found, dim=1).nanmean(dim=1) if found else None


def shown_traces(
    study: TaggerAdversary, run: Run, device: str, lines: Sequence[int]
) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]]:
    """Attention on a few test sentences: of the first base run, and of its adversary by λ."""
    from attndyn.tasks.corpus import loaded
    from attndyn.tasks.ragged import Lines, Parallel

    test = loaded(study.task).test
    assert test is not None
    some = test.take(np.asarray(lines))
    examples = Parallel(some, device)
    batch = Lines(examples, torch.arange(len(some), device=device)[None], examples.widths(np.arange(len(some)))).batch()
    conditions = {condition.name: condition for condition in study.conditions()}
    first, names = next(iter(conditions)), study.adversaries
    for strength, name in names.items():
        for condition, kept in ((conditions[first], conditions[first]), (conditions[name], conditions[names[0.0]])):
            seed = condition.seeds[0]
            model = model_at(condition, run, [seed], condition.best[0], device)
            with torch.no_grad():
                logits, alpha = model(batch, condition.rule)
            yield kept.name, seed, study.as_step(strength), arrays(batch, logits, alpha)


def arrays(batch: Batch, logits: Tensor, alpha: Tensor) -> dict[str, np.ndarray]:
    keys, rows = masks(batch)
    source = torch.where(keys, batch.source, -1)[0]
    # the attention that a word gets, from all words and itself; 1 if all got the same
    received = (alpha.mean(dim=2) * rows[..., None]).sum(dim=2)[0]
    return {
        "alpha": alpha[0].half().cpu().numpy(),
        **{f"head {head + 1}": alpha[0, :, head].half().cpu().numpy() for head in range(alpha.shape[2])},
        "received": received.half().cpu().numpy(),
        "tags": logits.argmax(dim=-1)[0].int().cpu().numpy(),
        "source": source.int().cpu().numpy(),
        "target": source.int().cpu().numpy(),
        "align": torch.full_like(source, -1).int().cpu().numpy(),
        "lengths": keys[0].sum(dim=-1).int().cpu().numpy(),
    }
