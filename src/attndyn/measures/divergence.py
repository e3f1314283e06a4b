"""How different are two distributions: two attentions of one text, or two answers to it? All in nats.

A row is a distribution over the last axis. Every function takes whole padded batches with a mask that is False at
padding, gives one value for each row (0 where a row is padding alone), reads nothing at padding, can be differentiated
and looks at no value, so that a GPU can record it inside a training step. For texts whose words stand one after the
other (`measures/flat.py`) take `Texts.total` of the terms.

0 · log 0 counts as 0. Numbers below the smallest normal one of their type count as that one inside a logarithm, so that
no gradient is infinite.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

LARGEST_JSD = math.log(2)


def jsd(
    p: Float[Tensor, "*rows key"], q: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows key"] | None = None
) -> Float[Tensor, "*rows"]:
    """The Jensen-Shannon divergence, ½ KL(p ‖ m) + ½ KL(q ‖ m) with m = (p + q)/2: 0 to ln 2, the same both ways."""
    return jsd_terms(*_kept(p, q, mask)).sum(dim=-1)


def jsd_terms(p: Float[Tensor, "*any"], q: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    middle = _log((p + q) / 2)
    return (p * (_log(p) - middle) + q * (_log(q) - middle)) / 2


def kl(
    p: Float[Tensor, "*rows key"], q: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows key"] | None = None
) -> Float[Tensor, "*rows"]:
    """KL(p ‖ q) = Σ p log(p/q), in this direction: large where p sits and q does not. Wiegreffe and Pinter's program
    computes KL(adversary ‖ base), the slides print KL(base ‖ adversary)."""
    return kl_terms(*_kept(p, q, mask)).sum(dim=-1)


def kl_terms(p: Float[Tensor, "*any"], q: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    return p * (_log(p) - _log(q))


def total_variation(
    p: Float[Tensor, "*rows key"], q: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows key"] | None = None
) -> Float[Tensor, "*rows"]:
    """½ Σ |p − q|: 0 to 1. Of the answers of a model with two classes it is |p₁ − q₁|."""
    p, q = _kept(p, q, mask)
    return (p - q).abs().sum(dim=-1) / 2


def output_difference(
    logits: Float[Tensor, "*rows output"], others: Float[Tensor, "*rows output"]
) -> Float[Tensor, "*rows"]:
    """The total variation of two answers, from their logits."""
    return total_variation(logits.softmax(dim=-1), others.softmax(dim=-1))


def halved(variation: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
    """What Wiegreffe and Pinter's program calls TVD: ½ |p₁ − q₁| of one sigmoid, half the total variation of the two
    classes. Only for comparing with their numbers."""
    return variation / 2


def _log(p: Tensor) -> Tensor:
    return p.clamp_min(torch.finfo(p.dtype).tiny).log()


def _kept(p: Tensor, q: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Nothing at padding, whatever stands there: it may be NaN, which a product with 0 would not remove."""
    return (p, q) if mask is None else (torch.where(mask, p, 0), torch.where(mask, q, 0))
