"""The lexical probe β (Snell et al. §2.2): the probability of the right output if all attention sat on one key."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attndyn.models.base import Model

# Examples are taken in slices whose largest tensor stays in the cache of a CPU core; a GPU takes larger ones.
SLICE, SLICE_ON_GPU = 1 << 20, 1 << 28


@torch.no_grad()
def lexical_probe(
    model: Model, states: Any, target: Int[Tensor, "replica batch query"]
) -> Float[Tensor, "replica batch query key"]:
    """β from stored states; the encoder does not run again."""
    slices = []
    for logits, right in read_slices(model, states, target):
        wanted = right[..., None].expand(*logits.shape[:-1], 1)
        slices.append((logits.gather(-1, wanted)[..., 0] - logits.logsumexp(dim=-1)).exp())
    return torch.cat(slices, dim=1)


@torch.no_grad()
def lexical_log_odds(
    model: Model, states: Any, target: Int[Tensor, "replica batch query"]
) -> Float[Tensor, "replica batch query key"]:
    """log β/(1 − β), which does not saturate."""
    return torch.cat([log_odds(*part) for part in read_slices(model, states, target)], dim=1)


def read_slices(
    model: Model, states: Any, target: Int[Tensor, "replica batch query"]
) -> Iterator[tuple[Float[Tensor, "replica part query key output"], Int[Tensor, "replica part query 1"]]]:
    """The logits under one-hot attention, some examples at a time, with the right outputs."""
    replicas, batch, queries = target.shape
    _, _, keys, width = states.values.shape
    limit = SLICE_ON_GPU if target.is_cuda else SLICE
    size = max(1, limit // (replicas * queries * keys * max(width, model.output.weight.shape[1])))
    for start in range(0, batch, size):
        part = slice(start, start + size)
        yield model.read_each(type(states)(*(tensor[:, part] for tensor in states))), target[:, part, :, None]


def log_odds(logits: Float[Tensor, "*rows output"], target: Int[Tensor, "*#rows"]) -> Float[Tensor, "*rows"]:
    """log p/(1 − p) of the right output: with two outputs, the difference of their logits."""
    right = target[..., None].expand(*logits.shape[:-1], 1)
    others = logits.scatter(-1, right, -torch.inf).logsumexp(dim=-1)
    return logits.gather(-1, right)[..., 0] - others
