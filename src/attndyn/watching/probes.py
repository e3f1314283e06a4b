"""Δ and β of any model: how much an input matters, and what the model would say if it looked at one position only.

Every probe is an ordinary forward pass with something changed, batched over the input positions.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attndyn.errors import UserError, nearest
from attndyn.watching.examples import Examples
from attndyn.watching.rules import Cell, layer_name, only
from attndyn.watching.tap import Call, Place, Rule, Tap

ROWS = 256
"""Examples of one forward pass; more are taken one part after another."""
OUTPUTS = 32
"""Outputs of an example whose gradient is taken; of more, these many evenly spread."""


def find_embedding(model: nn.Module, examples: Examples, chosen: nn.Module | str | None = None) -> nn.Embedding | None:
    """The layer whose rows are the input positions: the one that was named, the one a Hugging Face model names, or the
    first `nn.Embedding` that sees more than one token of each example."""
    if isinstance(chosen, str):
        modules = dict(model.named_modules())
        if chosen not in modules:
            raise UserError(
                f"the model has no module {chosen!r}; {nearest(chosen, [name for name in modules if name])}"
            )
        chosen = modules[chosen]
    if chosen is not None:
        return chosen  # type: ignore[return-value]
    if hasattr(model, "get_input_embeddings"):
        with contextlib.suppress(NotImplementedError, AttributeError):
            found = model.get_input_embeddings()
            if isinstance(found, nn.Embedding):
                return found
    seen: list[nn.Embedding] = []
    hooks = [
        module.register_forward_hook(
            lambda module, inputs, output: seen.append(module) if inputs[0].ndim >= 2 else None
        )
        for module in model.modules()
        if isinstance(module, nn.Embedding)
    ]
    try:
        examples.run(model)
    finally:
        for hook in hooks:
            hook.remove()
    return seen[0] if seen else None


@contextlib.contextmanager
def embedded(embedding: nn.Module, change: Any) -> Iterator[None]:
    """`change(vectors)` stands in for the output of the embedding's first call of each pass through it."""
    fresh = [True]

    def hook(module: nn.Module, inputs: Any, output: Tensor) -> Tensor | None:
        if not fresh[0]:
            return None
        fresh[0] = False
        return change(output)

    handle = embedding.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def tokens_of(model: nn.Module, examples: Examples, embedding: nn.Module) -> Tensor | None:
    """The token numbers [batch, key] that the embedding reads first."""
    seen: list[Tensor] = []
    handle = embedding.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    try:
        examples.run(model)
    finally:
        handle.remove()
    ids = seen[0] if seen else None
    if ids is None or ids.ndim != 2:
        return None
    return ids if examples.batch_axis == 0 else ids.mT


def gradient(model: nn.Module, examples: Examples, embedding: nn.Module) -> Float[Tensor, "batch output key"]:
    """Δ by gradient: the length of ∂p/∂e_l, p the probability of the right output, e_l the vector of input word l."""
    kept: list[Tensor] = []

    def change(vectors: Tensor) -> Tensor:
        kept.append(vectors.detach().requires_grad_())
        return kept[0]

    # cuDNN's recurrent layers have no backward pass in evaluation mode.
    with torch.enable_grad(), embedded(embedding, change), torch.backends.cudnn.flags(enabled=False):
        right = examples.right(examples.run(model))
    lengths = []
    count = right.shape[1]
    taken = {i * (count - 1) // max(1, OUTPUTS - 1) for i in range(OUTPUTS)} if count > OUTPUTS else set(range(count))
    for output in range(count):
        with torch.enable_grad():
            column = right[:, output]
            real = column.isfinite()
            total = column[real].sum()
        if output not in taken or not real.any():
            lengths.append(None)
            continue
        (slope,) = torch.autograd.grad(total, kept[0], retain_graph=True, allow_unused=True)
        if slope is None:
            raise UserError("the output does not depend on the embedding; name another one with embedding=")
        slope = slope if examples.batch_axis == 0 else slope.transpose(0, 1)
        lengths.append(slope.norm(dim=-1).masked_fill(~real[:, None], torch.nan))
    blank = torch.full_like(next(one for one in lengths if one is not None), torch.nan)
    return torch.stack([blank if one is None else one for one in lengths], dim=1).float()


@torch.no_grad()
def leave_one_out(
    model: nn.Module, examples: Examples, embedding: nn.Module, keys: int
) -> Float[Tensor, "batch output key"]:
    """Δ by leaving out: |p − p without word l|, where the vector of word l is zero."""
    right = examples.right(examples.run(model))
    parts = []
    for positions in _parts(keys, examples.count):
        rows = torch.tensor(positions).repeat_interleave(examples.count)

        def change(vectors: Tensor, rows: Tensor = rows) -> Tensor:
            vectors = vectors.clone()
            every = torch.arange(len(rows), device=vectors.device)
            if examples.batch_axis == 0:
                vectors[every, rows.to(vectors.device)] = 0
            else:
                vectors[rows.to(vectors.device), every] = 0
            return vectors

        with embedded(embedding, change):
            repeated = examples.times(len(positions))
            without = repeated.right(repeated.run(model))
        parts.append(without.unflatten(0, (len(positions), examples.count)))
    return (right[..., None] - torch.cat(parts).permute(1, 2, 0)).abs()


@torch.no_grad()
def lexical(
    model: nn.Module, examples: Examples, cell: Cell, calls: dict[str, Call]
) -> Float[Tensor, "batch output key"]:
    """β by intervention: the probability of the right output with all attention of the cell on position l. A query that
    may not look at l keeps its own attention; NaN where none of the queries that an output is read from may."""
    layers = list(calls)
    names = layers if cell.layer is None else [layer_name(cell.layer, layers)]
    mask = calls[str(names[0])].mask[: examples.count]
    keys = mask.shape[-1]
    parts = []
    for positions in _parts(keys, examples.count):
        repeated = examples.times(len(positions))
        rule = only(one_position(torch.tensor(positions).repeat_interleave(examples.count)), cell, layers)
        with Tap(model, rule, keep=False):
            right = repeated.right(repeated.run(model))
        parts.append(right.unflatten(0, (len(positions), examples.count)))
    beta = torch.cat(parts).permute(1, 2, 0)  # [batch, output, key]
    return beta.masked_fill(~visible(mask, cell.query, beta.shape[1]), torch.nan)


def visible(mask: Tensor, query: int | None, outputs: int) -> Tensor:
    """[batch, 1 or output, key]: may the query of this output, or any query if there is no such one, look there?"""
    allowed = mask.any(dim=1)
    if query is not None:
        return allowed[:, query][:, None]
    return allowed if outputs == allowed.shape[1] else allowed.any(dim=1, keepdim=True)


def one_position(rows: Tensor) -> Rule:
    """All attention of example r on position rows[r], where that may be looked at."""
    from attndyn.models.rules import Learned
    from attndyn.watching.tap import folded

    def rule(place: Place, scores: Tensor, mask: Tensor) -> Tensor:
        at = rows.to(scores.device)[:, None] == torch.arange(scores.shape[-1], device=scores.device)
        weights = at[:, None, None].expand(scores.shape)
        return torch.where(
            (weights & mask).any(dim=-1, keepdim=True), weights.to(scores), folded(Learned(), scores, mask)
        )

    return rule


def _parts(keys: int, examples: int) -> Iterator[Sequence[int]]:
    size = max(1, ROWS // examples)
    for start in range(0, keys, size):
        yield range(start, min(keys, start + size))
