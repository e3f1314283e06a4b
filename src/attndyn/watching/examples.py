"""The fixed examples: how they are given to the model, repeated, and what of its answer is right."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attndyn.errors import UserError

IGNORED = -100
"""A target that does not count, as in `nn.CrossEntropyLoss`."""


def each_tensor(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The same structure of tuples, lists, dicts and dataclasses, with the function applied to its tensors."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict) or hasattr(value, "items"):
        return {key: each_tensor(function, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [each_tensor(function, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and not callable(value):
        fields = {field.name: each_tensor(function, getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    return value


def tensors_of(value: Any) -> list[Tensor]:
    found: list[Tensor] = []

    def collect(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    each_tensor(collect, value)
    return found


class Examples:
    """Examples with their right answers; both are copied, so that nobody changes them later."""

    def __init__(
        self,
        inputs: Any,
        targets: Any = None,
        score: Callable[..., Tensor] | None = None,
        batch_axis: int = 0,
    ) -> None:
        self.inputs = each_tensor(lambda tensor: tensor.detach().clone(), inputs)
        try:
            self.targets = None if targets is None else torch.as_tensor(targets).detach().clone()
        except (TypeError, ValueError, RuntimeError) as error:
            raise UserError(f"targets are no array of numbers: {error}") from error
        self.score, self.batch_axis = score, batch_axis
        tensors = [tensor for tensor in tensors_of(inputs) if tensor.ndim > batch_axis]
        if not tensors:
            raise UserError(
                f"the examples, a {type(inputs).__name__}, hold no tensor: give what the model is called with, a "
                "tensor, or a tuple or dict with tensors"
            )
        self.count = tensors[0].shape[batch_axis]
        if self.targets is not None and (
            self.targets.ndim <= batch_axis or self.targets.shape[batch_axis] != self.count
        ):
            raise UserError(f"there are {self.count} examples, but targets of the shape {[*self.targets.shape]}")

    @property
    def scored(self) -> bool:
        return self.targets is not None or self.score is not None

    def first(self, count: int) -> "Examples":
        return self._map(lambda tensor: tensor.narrow(self.batch_axis, 0, min(count, self.count)))

    def take(self, rows: Int[Tensor, " row"]) -> "Examples":
        """The examples of these numbers, in this order; one may come many times."""
        return self._map(lambda tensor: tensor.index_select(self.batch_axis, rows.to(tensor.device)))

    def _map(self, function: Callable[[Tensor], Tensor]) -> "Examples":
        def mine(tensor: Tensor) -> Tensor:
            batched = tensor.ndim > self.batch_axis and tensor.shape[self.batch_axis] == self.count
            return function(tensor) if batched else tensor

        targets = None if self.targets is None else mine(self.targets)
        return Examples(each_tensor(mine, self.inputs), targets, self.score, self.batch_axis)

    def run(self, model: nn.Module) -> Any:
        """The model's answer, on its own device."""
        device = next((tensor.device for tensor in [*model.parameters(), *model.buffers()]), torch.device("cpu"))
        inputs = each_tensor(lambda tensor: tensor.to(device), self.inputs)
        if isinstance(inputs, Tensor):
            return model(inputs)
        return model(**inputs) if isinstance(inputs, dict) else model(*inputs)

    def right(self, answer: Any) -> Float[Tensor, "batch output"]:
        """The probability of the right output; one output for each example, or one for each position."""
        if self.score is not None:
            probability = self.score(answer) if self.targets is None else self.score(answer, self.targets)
            if not isinstance(probability, Tensor):
                raise UserError(
                    f"score= returned a {type(probability).__name__}, not a tensor with a number an example"
                )
        else:
            assert self.targets is not None
            logits = logits_of(answer)
            targets = self.targets.to(logits.device)
            if logits.shape[:-1] != targets.shape:
                raise UserError(
                    f"targets of the shape {[*targets.shape]} do not fit logits of the shape {[*logits.shape]}: the "
                    "last axis of the logits is the outputs, the others are those of the targets (or give score=)"
                )
            if targets.is_floating_point() or targets.is_complex():
                raise UserError(f"targets are whole numbers, the right one of the outputs, not {targets.dtype}")
            wrong = targets[((targets < 0) & (targets != IGNORED)) | (targets >= logits.shape[-1])]
            if wrong.numel():
                raise UserError(f"the model has {logits.shape[-1]} outputs, so {wrong[0].item()} is no target")
            index = targets.clamp_min(0)[..., None]
            probability = (
                logits.to(torch.promote_types(logits.dtype, torch.float32))
                .log_softmax(dim=-1)
                .gather(-1, index)[..., 0]
                .exp()
            )
            probability = probability.masked_fill(targets == IGNORED, torch.nan)
        if self.batch_axis == 1:
            probability = probability[0] if probability.ndim == 3 else probability.mT
        if probability.ndim not in (1, 2):
            raise UserError(f"a score is one number for each example or position, not {[*probability.shape]}")
        return probability[:, None] if probability.ndim == 1 else probability


def logits_of(answer: Any) -> Tensor:
    """A tensor; the `.logits` of a Hugging Face output; the first of a tuple."""
    if isinstance(answer, Tensor):
        return answer
    if isinstance(getattr(answer, "logits", None), Tensor):
        return answer.logits
    if isinstance(answer, list | tuple) and answer and isinstance(answer[0], Tensor):
        return answer[0]
    raise UserError(f"no logits were found in the model's {type(answer).__name__}: give score=, which finds them")
