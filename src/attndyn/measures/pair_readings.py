"""What is measured of a translator while it trains.

α, β and Δ of a pair of sentences are one number for each target and each source position. Those of all pairs are kept
one after the other, without padding: pair by pair, in each the target positions, in each of these the source positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from attndyn.measures.readings import Reading, Values

if TYPE_CHECKING:
    from torch import Tensor

    from attndyn.models.translator import TranslatorModel
    from attndyn.probes.trace import Trace
    from attndyn.tasks.sampler import Batch


@dataclass(frozen=True, kw_only=True)
class PairScores(Reading):
    """Keeps α, β (as log-odds of the right piece) and, by gradient, Δ of every pair; and the entropy of α."""

    influence: bool = True
    recordable: ClassVar[bool] = False

    def run(self, trace: Trace) -> Values:
        from attndyn.measures import focus
        from attndyn.probes.influence_each import influence_each

        batch, alpha = trace.batch, trace.alpha[:, :, 0]
        yield "alpha", flat(batch, alpha)
        yield "beta", flat(batch, trace.log_odds)
        if self.influence:
            yield "delta", flat(batch, influence_each(translator(trace), trace.rule, batch))
        yield "attention entropy", focus.normalised_entropy(alpha, batch.source_mask, batch.target_mask)


@dataclass(frozen=True, kw_only=True)
class Translate(Reading):
    """Keeps the translations that beam search finds: pieces [replica, pair, 1, time], filled up with the end token."""

    start: int
    end: int
    beams: int = 5
    longest: int = 99
    """Pieces after which a translation is cut off."""
    recordable: ClassVar[bool] = False

    def run(self, trace: Trace) -> Values:
        import torch
        from torch.nn import functional as F

        from attndyn.models.decoding import translate

        limits = {"start": self.start, "end": self.end, "beams": self.beams, "longest": self.longest}
        found = translate(translator(trace), trace.rule, trace.batch, **limits)
        pieces = F.pad(found.pieces, (0, self.longest - found.pieces.shape[2]), value=self.end)
        yield "translation", pieces[:, :, None].to(torch.int32)


@dataclass(frozen=True, kw_only=True)
class BestAttention(Reading):
    """Where would attention sit best? For a linear head this is a convex problem (Snell et al. A.1). A(α_opt, β),
    A(α_opt, α), the chance level, how many positions are solved, and how much better α_opt is than α."""

    recordable: ClassVar[bool] = False

    def run(self, trace: Trace) -> Values:
        from attndyn.measures.agreement import agreement, chance
        from attndyn.models.layers import linear
        from attndyn.probes.influence import surprise
        from attndyn.probes.optimal import optimal_attention
        from attndyn.training.precision import products

        model, states, batch = translator(trace), trace.states, trace.batch
        if model.activation is not None:
            raise ValueError("the best attention is a convex problem for a linear head only")
        with products("fp32"):  # TF32 has too few digits to prove a gap of 1e-4
            votes, base = linear(states.values, model.output.weight), model.output(states.base)
            best = optimal_attention(votes, base, batch.target, batch.source_mask, batch.target_mask)
        assert batch.source_mask is not None
        assert batch.target_mask is not None
        mask = batch.source_mask[:, :, None] & batch.target_mask[..., None]
        yield "A(α_opt, β)", agreement(best.alpha, trace.log_odds, mask).mean_for_each()
        yield "A(α_opt, α)", agreement(best.alpha, trace.alpha[:, :, 0], mask).mean_for_each()
        yield "chance", chance(trace.log_odds, mask).mean_for_each()
        kept = batch.target_mask
        count = kept.sum(dim=(1, 2))
        yield "α_opt solved", (best.converged & kept).sum(dim=(1, 2)) / count
        gain = surprise(trace.logits, batch.target) - best.loss.nan_to_num()
        yield "loss above α_opt", (gain * kept).sum(dim=(1, 2)).float() / count


def flat(batch: Batch, values: Tensor) -> Tensor:
    """The numbers of all real positions, [replica, number]; the examples are the same for every replica."""
    assert batch.source_mask is not None
    assert batch.target_mask is not None
    real = batch.source_mask[0][:, None] & batch.target_mask[0][..., None]
    return values[:, real].float()


def translator(trace: Trace) -> TranslatorModel:
    return cast("TranslatorModel", trace.model)
