"""Deceptive attention (Wiegreffe and Pinter 2019, §5.2): answer as the base model does, and attend elsewhere.

The examples bring the base model's attention and answers (`Batch.given`, `Batch.answer`). The specs import no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from attndyn.errors import UserError
from attndyn.measures.readings import Reading, Values

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from attndyn.probes.trace import Trace

Direction = Literal["adversary-base", "base-adversary"]
"""KL(adversary ‖ base), as in their program, or KL(base ‖ adversary), as on the slides."""


def apart(logits: Tensor, alpha: Tensor, batch: Any, direction: Direction) -> tuple[Tensor, Tensor, Tensor]:
    """Total variation of the answers, KL and JSD of the attention, from the base model: means of each replica."""
    from attndyn.measures import divergence

    if batch.given is None or batch.answer is None:
        raise UserError("a model can only deceive beside another one: the task brings no attention and answers of one")
    mask = None if batch.source_mask is None else batch.source_mask[:, :, None, None]
    of, beside = (alpha, batch.given) if direction == "adversary-base" else (batch.given, alpha)
    answers = divergence.total_variation(logits.softmax(dim=-1), batch.answer)
    found = (answers, divergence.kl(of, beside, mask), divergence.jsd(alpha, batch.given, mask))
    variation, kl, jsd = (each.flatten(1).mean(dim=1) for each in found)
    return variation, kl, jsd


@dataclass(frozen=True)
class Deceive:
    """TVD − λ · KL, a mean over examples. TVD is their program's, half the total variation, so that λ is theirs."""

    lam: float
    direction: Direction = "adversary-base"

    def __post_init__(self) -> None:
        if not 0 <= self.lam < float("inf"):
            raise UserError(f"λ must be a number of at least 0, not {self.lam:g}: below it the base would be imitated")

    def __call__(self, logits: Tensor, alpha: Tensor, batch: Any) -> Float[Tensor, " replica"]:
        from attndyn.measures.divergence import halved

        variation, kl, _ = apart(logits, alpha, batch, self.direction)
        return halved(variation) - self.lam * kl


@dataclass(frozen=True, kw_only=True)
class Apart(Reading):
    """How far answers and attention are from those of the base model."""

    def run(self, trace: Trace) -> Values:
        variation, _, jsd = apart(trace.logits, trace.alpha, trace.batch, "adversary-base")
        yield "TVD from the base", variation
        yield "JSD from the base", jsd
