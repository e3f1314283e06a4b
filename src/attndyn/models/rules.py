"""Attention rules: what the attention weights are. A model takes one as an argument of `forward`.

A rule maps attention logits and the source mask to weights. Masks use the smallest finite number, not −inf, so
that a row of padding alone gives zeros and never NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


@runtime_checkable
class AttentionRule(Protocol):
    """(logits [replica, batch, head, query, key], mask [replica, batch, key]) -> weights of the logits' shape."""

    def __call__(
        self,
        scores: Float[Tensor, "replica batch head query key"],
        mask: Bool[Tensor, "replica batch key"] | None = None,
    ) -> Float[Tensor, "replica batch head query key"]: ...


@dataclass(frozen=True)
class Learned:
    """Softmax of the model's own logits, in at least float32."""

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        import torch

        if mask is None:
            return torch.softmax(scores, dim=-1)
        keep = mask[:, :, None, None]
        wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
        weights = torch.softmax(wide.masked_fill(~keep, torch.finfo(wide.dtype).min), dim=-1) * keep
        return weights.to(scores.dtype)


@dataclass(frozen=True)
class Uniform:
    """The same weight on every source position."""

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        import torch

        return Learned()(torch.zeros_like(scores), mask)


@dataclass(frozen=True)
class NoContext:
    """No weight anywhere: the decoder has only what its recurrent state remembers."""

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        import torch

        return torch.zeros_like(scores)


@dataclass(frozen=True)
class OneHot:
    """All weight on one source position: the definition of the lexical probe."""

    position: int

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        import torch

        weights = torch.zeros_like(scores)
        weights[..., self.position] = 1
        return weights


@dataclass(frozen=True)
class Beside:
    """Another rule for each group of replicas: the first `count` replicas follow the first rule, and so on."""

    parts: tuple[tuple[AttentionRule, int], ...]

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        import torch

        rules, counts = zip(*self.parts, strict=True)
        masks = [None] * len(rules) if mask is None else mask.split(counts)
        return torch.cat([rule(*of) for rule, *of in zip(rules, scores.split(counts), masks, strict=True)])
