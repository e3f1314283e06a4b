"""The training loop: one chunk of replicas of one condition as one tensor program."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attndyn.training.adam import FlatAdam
from attndyn.training.condition import Condition

NEVER = -1


class Trainer:
    """Trains the replicas of `seeds` under one condition, step by step, on one device."""

    def __init__(self, condition: Condition, seeds: Sequence[int], device: str = "cpu") -> None:
        self.condition, self.seeds = condition, tuple(seeds)
        self.task = condition.task.build(seeds, device)
        self.model = condition.model.build(condition.task.vocabulary, seeds).to(device)
        self.optimiser = FlatAdam(self.model, condition.optimiser)
        self.step = 0
        self.diverged = torch.full((len(seeds),), NEVER, dtype=torch.int64, device=device)
        """The first step of each replica whose loss or gradient was not finite. It moves no further."""

    def advance(self) -> None:
        """One training step."""
        condition = self.condition
        batch = self.task.batch(self.step, condition.batch)
        self.model.train()
        logits, alpha = self.model(batch, condition.rule)
        losses = condition.objective(logits, alpha, batch)
        self.optimiser.differentiate(losses.sum())
        finite = losses.detach().isfinite() & self.optimiser.gradient.sum(dim=1).isfinite()
        first = ~finite & (self.diverged == NEVER)
        self.diverged.masked_fill_(first, self.step)
        self.optimiser.step(self.step + 1, self.diverged == NEVER)
        self.step += 1

    @property
    def stopped(self) -> bool:
        """Whether no replica is left to train."""
        return bool((self.diverged != NEVER).all())

    def state(self) -> dict[str, Tensor]:
        step = torch.tensor(self.step, dtype=torch.int64)
        return {**self.optimiser.state(), "diverged": self.diverged, "step": step}

    def load(self, state: dict[str, Tensor]) -> None:
        self.optimiser.load(state)
        self.diverged.copy_(state["diverged"])
        self.step = int(state["step"])
