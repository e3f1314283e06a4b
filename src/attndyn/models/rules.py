"""Attention rules: what the attention weights are. A model takes one as an argument of `forward`.

A rule maps attention logits and the source mask to weights. Masks use the smallest finite number, not −inf, so
that a row of padding alone gives zeros and never NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attndyn.errors import UserError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from attndyn.tasks.sampler import Batch


@runtime_checkable
class AttentionRule(Protocol):
    """(logits [replica, batch, head, query, key], mask [replica, batch, key]) -> weights of the logits' shape."""

    def __call__(
        self,
        scores: Float[Tensor, "replica batch head query key"],
        mask: Bool[Tensor, "replica batch key"] | None = None,
    ) -> Float[Tensor, "replica batch head query key"]: ...


def attend(rule: AttentionRule, scores: Tensor, batch: Batch) -> Tensor:
    """The weights of a rule on a batch, which may bring weights of its own."""
    return of_batch(rule, batch)(scores, batch.source_mask)


def of_batch(rule: AttentionRule, batch: Batch) -> AttentionRule:
    """`Given` becomes the weights that the batch brings; every other rule stays as it is."""
    if isinstance(rule, Beside):
        ends = [sum(count for _, count in rule.parts[: n + 1]) for n in range(len(rule.parts))]
        own = [batch.replicas(slice(end - count, end)) for (_, count), end in zip(rule.parts, ends, strict=True)]
        return Beside(tuple((of_batch(one, part), n) for (one, n), part in zip(rule.parts, own, strict=True)))
    return rule.of(batch) if isinstance(rule, Given) else rule


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
class Given:
    """The weights that the examples bring (`Batch.given`), such as those of another model; they do not move."""

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        raise UserError("given attention has no weights without a batch that brings them")

    def of(self, batch: Batch) -> Weights:
        if batch.given is None:
            raise UserError("attention was to be given, but nothing brings the weights")
        return Weights(batch.given)


@dataclass(frozen=True)
class Scattered(Given):
    """The given weights on words drawn at random: as peaked as they were, but they tell nothing. The order is drawn for
    each text, head and query, and is the same whenever the text comes."""

    def of(self, batch: Batch) -> Weights:
        import torch

        from attndyn.tasks.streams import hashed

        weights = super().of(batch).values
        heads, queries, keys = weights.shape[2:]
        row = torch.arange(1, heads * queries + 1, device=weights.device).view(queries, heads).T[..., None]
        key = torch.arange(keys, device=weights.device)
        text = hashed(batch.source)[:, :, None, None, None]
        drawn = hashed((text + (row << 32))[..., None] + (key << 44)[:, None])
        if batch.source_mask is not None:  # what is padding stays where it is: last
            drawn = torch.where(batch.source_mask[:, :, None, None], drawn, 1 << 32)
        return Weights(weights.gather(-1, drawn.argsort(dim=-1, stable=True)))


@dataclass(frozen=True, eq=False)
class Weights:
    """These weights, whatever the logits are."""

    values: Tensor

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.values.shape[1:] != scores.shape[1:]:
            given, here = (" × ".join(map(str, shape[1:])) for shape in (self.values.shape, scores.shape))
            raise UserError(
                f"attention was given for other texts or another model: {given} weights (texts × heads × queries × "
                f"keys), where {here} are needed"
            )
        return self.values.expand_as(scores)


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
