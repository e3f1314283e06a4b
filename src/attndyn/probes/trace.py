"""A trace: what a model does on fixed examples at one checkpoint. Each quantity is computed once, when asked for."""

from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attndyn.models.base import Model
from attndyn.models.rules import AttentionRule, attend
from attndyn.probes.influence import gradient_influence
from attndyn.probes.lexical import lexical_log_odds, lexical_probe
from attndyn.tasks.sampler import Batch


class Trace:
    """α, β and the answers of `model` on `batch`. The model is in evaluation mode while a trace is read."""

    def __init__(self, model: Model, rule: AttentionRule, batch: Batch, objective: Any = None) -> None:
        self.model, self.rule, self.batch, self.objective = model, rule, batch, objective

    @cached_property
    @torch.no_grad()
    def states(self) -> Any:
        return self.model.encode(self.batch)

    @cached_property
    @torch.no_grad()
    def alpha(self) -> Float[Tensor, "replica batch head query key"]:
        return attend(self.rule, self.model.scores(self.states), self.batch)

    @cached_property
    @torch.no_grad()
    def logits(self) -> Float[Tensor, "replica batch query output"]:
        return self.model.read(self.states, self.alpha)

    @cached_property
    def influence(self) -> Float[Tensor, "replica batch key"]:
        """Δ by gradient. The states and answers met on the way are kept."""
        delta, states, alpha, logits = gradient_influence(self.model, self.rule, self.batch)
        self.__dict__ |= {"states": states, "alpha": alpha, "logits": logits}
        return delta

    @cached_property
    def log_odds(self) -> Float[Tensor, "replica batch query key"]:
        """β on the scale of logits, where it does not saturate."""
        return lexical_log_odds(self.model, self.states, self.batch.target)

    @cached_property
    def beta(self) -> Float[Tensor, "replica batch query key"]:
        return lexical_probe(self.model, self.states, self.batch.target)
