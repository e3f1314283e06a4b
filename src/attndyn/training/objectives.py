"""What is minimised where it is not the plain likelihood. Data only; torch is imported where it is used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from attndyn.errors import UserError
from attndyn.training.condition import Likelihood, Terms

if TYPE_CHECKING:
    from jaxtyping import Float, Shaped
    from torch import Tensor


@dataclass(frozen=True)
class AttendElsewhere:
    """Answer as another model does, but attend elsewhere: the negative log-likelihood of its likeliest answers, less
    λ times the mean over **every element** of all attention matrices of α log(α / its α), padding left out (Yang §4.2,
    normalised as in the author's program: λ means nothing without it)."""

    strength: float
    """λ"""

    def __post_init__(self) -> None:
        if not (isfinite(self.strength) and self.strength >= 0):
            raise UserError(
                f"λ must be a number of at least 0, not {self.strength}: below 0 the same attention would be asked for"
            )

    def __call__(self, logits: Tensor, alpha: Tensor, batch: Any) -> Float[Tensor, " replica"]:
        kl, elements = element_kl(alpha, batch)
        return told(logits, alpha, batch) - self.strength * (kl / elements)

    def terms(self, logits: Tensor, alpha: Tensor, batch: Any) -> Terms:
        kl, elements = element_kl(alpha, batch)
        positions = batch.target[0].numel() if batch.target_mask is None else batch.target_mask.sum(dim=(1, 2))
        return Terms(told(logits, alpha, batch), self.strength * kl / positions, elements / positions)


def told(logits: Tensor, alpha: Tensor, batch: Any) -> Float[Tensor, " replica"]:
    """The negative log-likelihood of the other model's likeliest answers."""
    return Likelihood()(logits, alpha, replace(batch, target=batch.answer.argmax(dim=-1)))


def element_kl(
    alpha: Float[Tensor, "replica batch head query key"], batch: Any
) -> tuple[Float[Tensor, " replica"], Shaped[Tensor, " replica"]]:
    """Σ α log(α / given α) over the elements of all attention matrices, and their number; padded rows and columns are
    no elements. Weights of 0, such as dropped ones, add 0 and have a finite slope."""
    import torch

    least = torch.finfo(alpha.dtype).tiny
    terms = alpha * (alpha.clamp_min(least).log() - batch.given.clamp_min(least).log())
    if batch.target_mask is None:
        return terms.flatten(1).sum(dim=1), terms.new_full((len(terms),), terms[0].numel())
    elements = (batch.target_mask[:, :, None, :, None] & batch.source_mask[:, :, None, None]).expand_as(terms)
    return (terms * elements).flatten(1).sum(dim=1), elements.flatten(1).sum(dim=1)
