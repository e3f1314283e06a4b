"""Hugging Face models call whichever attention function their configuration names; while a tap is open, ours."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from attndyn.errors import UserError
from attndyn.watching.tap import open_taps

NAME = "attndyn"
FIELD = "_attn_implementation_internal"


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """An attention function of the registry: whichever of eager, sdpa and flash it stands in for, the weights are
    those of the definition."""
    tap = next(tap for tap in reversed(open_taps()) if module in tap.names)
    for name in ("softcap", "s_aux", "sinks"):
        if others.get(name) is not None:
            raise UserError(
                f"{type(module).__name__} changes its attention scores by {name}, which attndyn cannot read"
            )
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if position_bias is not None:
        scores = scores + position_bias
    causal = getattr(module, "is_causal", False) if is_causal is None else is_causal
    if attention_mask is not None:
        attention_mask = attention_mask[..., : key.shape[2]]
    elif causal and query.shape[2] > 1:
        attention_mask = scores.new_ones(scores.shape[-2:]).tril().bool()
    weights = tap.attend(tap.names[module], scores, attention_mask)
    mixed = F.dropout(weights.to(value.dtype), dropout) if dropout else weights.to(value.dtype)
    return (mixed @ value).transpose(1, 2).contiguous(), weights


@contextlib.contextmanager
def switched(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Every configuration among the modules names our function."""
    configs = {id(config): config for module in modules if hasattr(config := getattr(module, "config", None), FIELD)}
    if configs:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import eager_mask

        AttentionInterface.register(NAME, attend)
        AttentionMaskInterface.register(NAME, eager_mask)
    before = {key: getattr(config, FIELD) for key, config in configs.items()}
    try:
        for config in configs.values():
            setattr(config, FIELD, NAME)
        yield
    finally:
        for key, config in configs.items():
            setattr(config, FIELD, before[key])
