"""A trace: what a model does on fixed examples at one checkpoint. Each quantity is computed once, when asked for."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from attndyn.models.base import Model
from attndyn.models.rules import AttentionRule, attend
from attndyn.probes.influence import gradient_influence
from attndyn.probes.lexical import lexical_log_odds, lexical_probe
from attndyn.tasks.sampler import Batch

T = TypeVar("T")


class once(Generic[T]):
    """A cached property without a lock. That of Python 3.11 has one for all instances, so that the replicas which are
    read on other threads would wait while a value is computed."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


class Trace:
    """α, β and the answers of `model` on `batch`. The model is in evaluation mode while a trace is read."""

    def __init__(self, model: Model, rule: AttentionRule, batch: Batch, objective: Any = None) -> None:
        self.model, self.rule, self.batch, self.objective = model, rule, batch, objective

    @once
    @torch.no_grad()
    def states(self) -> Any:
        return self.model.encode(self.batch)

    @once
    @torch.no_grad()
    def alpha(self) -> Float[Tensor, "replica batch head query key"]:
        return attend(self.rule, self.model.scores(self.states), self.batch)

    @once
    @torch.no_grad()
    def logits(self) -> Float[Tensor, "replica batch query output"]:
        return self.model.read(self.states, self.alpha)

    @once
    def influence(self) -> Float[Tensor, "replica batch key"]:
        """Δ by gradient. The states and answers met on the way are kept."""
        delta, states, alpha, logits = gradient_influence(self.model, self.rule, self.batch)
        self.__dict__ |= {"states": states, "alpha": alpha, "logits": logits}
        return delta

    @once
    def log_odds(self) -> Float[Tensor, "replica batch query key"]:
        """β on the scale of logits, where it does not saturate."""
        return lexical_log_odds(self.model, self.states, self.batch.target)

    @once
    def beta(self) -> Float[Tensor, "replica batch query key"]:
        return lexical_probe(self.model, self.states, self.batch.target)
