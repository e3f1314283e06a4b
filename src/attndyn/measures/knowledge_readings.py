"""What the invariant of `theory/invariant.py` speaks about, read off a network: a logit and the knowledge behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attndyn.measures.readings import Reading, Values

if TYPE_CHECKING:
    from attndyn.probes.trace import Trace


@dataclass(frozen=True, kw_only=True)
class LogitAndKnowledge(Reading):
    """Means over the target positions that have a right source position. "logit": its attention logit, less that of the
    rest (the logarithm of the mean of their exponentials), so that α = eˣ/(m + eˣ). "knowledge": the log-odds of the
    right answer if all attention sat there (β), less their mean over the rest. "attention": α there. For tasks without
    padding."""

    def run(self, trace: Trace) -> Values:
        import math

        import torch

        known = trace.batch.align >= 0  # [replica, batch, query]
        place = trace.batch.align.clamp(min=0)[..., None]
        others = trace.alpha.shape[-1] - 1
        scores = trace.model.scores(trace.states)[:, :, 0]
        rest = scores.scatter(-1, place, -torch.inf).logsumexp(dim=-1) - math.log(others)
        odds = trace.log_odds
        right = odds.gather(-1, place)[..., 0]
        found = {
            "logit": scores.gather(-1, place)[..., 0] - rest,
            "knowledge": right - (odds.sum(dim=-1) - right) / others,
            "attention": trace.alpha[:, :, 0].gather(-1, place)[..., 0],
        }
        counts = known.sum(dim=(1, 2))
        for name, values in found.items():
            yield name, (values * known).sum(dim=(1, 2)) / counts
