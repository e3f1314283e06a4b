"""Δ and β of any model: how much an input matters, and what the model would say if it looked at one position only.

Every probe is an ordinary forward pass with something changed, batched over the input positions.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attndyn.errors import UserError, nearest
from attndyn.watching.examples import Examples
from attndyn.watching.rules import Cell, layer_name, only
from attndyn.watching.tap import Call, Place, Rule, Tap

ROWS = 64
"""Examples of one forward pass; more are taken one part after another, so that a CPU's cache holds them."""
OUTPUTS = 32
"""Outputs of an example whose gradient is taken; of more, these many evenly spread."""


def find_embedding(model: nn.Module, examples: Examples, chosen: nn.Module | str | None = None) -> nn.Module | None:
    """The layer whose rows are the input positions: the one that was named, the one a Hugging Face model names, or the
    first `nn.Embedding` that sees more than one token of each example."""
    if isinstance(chosen, str):
        modules = dict(model.named_modules())
        if chosen not in modules:
            raise UserError(
                f"the model has no module {chosen!r}; {nearest(chosen, [name for name in modules if name])}"
            )
        chosen = modules[chosen]
    named = chosen
    if named is None and hasattr(model, "get_input_embeddings"):
        with contextlib.suppress(NotImplementedError, AttributeError):
            named = model.get_input_embeddings()  # type: ignore[operator]
    seen: list[nn.Module] = []
    hooks = [
        module.register_forward_hook(
            lambda module, inputs, output: seen.append(module) if inputs and inputs[0].ndim >= 2 else None
        )
        for module in model.modules()
        if isinstance(module, nn.Embedding) or module is named
    ]
    try:
        examples.run(model)
    finally:
        for hook in hooks:
            hook.remove()
    if named in seen and (chosen is not None or isinstance(named, nn.Embedding)):
        return named
    if chosen is not None:
        raise UserError(f"embedding=: the {type(chosen).__name__} does not run when the model does")
    # Encoders and decoders may share the weights of the one that the model names, and not the module.
    return next((module for module in seen if isinstance(module, nn.Embedding)), None)


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
    lengths: list[Tensor | None] = []
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
    model: nn.Module,
    examples: Examples,
    embedding: nn.Module,
    words: Bool[Tensor, "batch key"],
    right: Float[Tensor, "batch output"],
) -> Float[Tensor, "batch output key"]:
    """Δ by leaving out: |p − p without word l|, where the vector of word l is zero; NaN at padding. `right` is p."""

    def without(rows: Examples, positions: Tensor) -> Tensor:
        def change(vectors: Tensor) -> Tensor:
            batch_first = vectors.clone() if examples.batch_axis == 0 else vectors.transpose(0, 1).clone()
            batch_first[torch.arange(len(positions), device=vectors.device), positions.to(vectors.device)] = 0
            return batch_first if examples.batch_axis == 0 else batch_first.transpose(0, 1)

        with embedded(embedding, change):
            return rows.right(rows.run(model))

    return (right[..., None] - each_position(examples, words, without)).abs()


@torch.no_grad()
def lexical(
    model: nn.Module, examples: Examples, cell: Cell, calls: dict[str, Call]
) -> Float[Tensor, "batch output key"]:
    """β by intervention: the probability of the right output with all attention of the cell on position l. A query that
    may not look at l keeps its own attention; NaN where none of the queries that an output is read from may."""
    layers = list(calls)
    mask = calls[layer_name(cell.layer, layers) or layers[0]].mask[: examples.count]
    at_query = mask.any(dim=1) if cell.query is None else mask.any(dim=1)[:, cell.query][:, None]

    def answered(rows: Examples, positions: Tensor) -> Tensor:
        with Tap(model, only(one_position(positions), cell, layers, fill=True), keep=False):
            return rows.right(rows.run(model))

    beta = each_position(examples, at_query.any(dim=1), answered)
    return beta.masked_fill(~visible(mask, cell.query, beta.shape[1]), torch.nan)


def each_position(
    examples: Examples, words: Bool[Tensor, "batch key"], answer: Callable[[Examples, Tensor], Tensor]
) -> Float[Tensor, "batch output key"]:
    """`answer(rows, positions)` for every word of every example, many at a time; NaN at padding."""
    example, position = words.cpu().nonzero().unbind(dim=1)
    parts = [
        answer(examples.take(some), at) for some, at in zip(example.split(ROWS), position.split(ROWS), strict=True)
    ]
    found = torch.cat(parts)  # [word, output]
    values = found.new_full((*words.shape, found.shape[1]), torch.nan)
    values[example.to(found.device), position.to(found.device)] = found
    return values.mT


def visible(mask: Tensor, query: int | None, outputs: int) -> Tensor:
    """[batch, 1 or output, key]: may the query of this output, or any query if there is no such one, look there?"""
    allowed = mask.any(dim=1)
    if query is not None:
        return allowed[:, query][:, None]
    return allowed if outputs == allowed.shape[1] else allowed.any(dim=1, keepdim=True)


def one_position(rows: Tensor) -> Rule:
    """All attention of example r on position rows[r], where that may be looked at."""

    def rule(place: Place, scores: Tensor, mask: Tensor) -> Tensor:
        at = rows.to(scores.device)[:, None] == torch.arange(scores.shape[-1], device=scores.device)
        return (at[:, None, None] & mask).to(scores.dtype)

    return rule
