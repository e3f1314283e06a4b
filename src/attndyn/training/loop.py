"""The training loop: one chunk of replicas as one tensor program."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attndyn.errors import UserError
from attndyn.kernels.graph import Replayed
from attndyn.models.specs import Origins
from attndyn.tasks.base import Drawn
from attndyn.tasks.sampler import Batch
from attndyn.training.adam import FlatAdam
from attndyn.training.condition import Condition
from attndyn.training.precision import Precision, operands, products

NEVER = -1


class Trainer:
    """Trains the replicas of `seeds` under one condition, step by step, on one device."""

    def __init__(
        self, condition: Condition, seeds: Sequence[int | Origins], device: str = "cpu", precision: Precision = "fp32"
    ) -> None:
        self.condition, self.seeds, self.precision = condition, tuple(seeds), precision
        self.task = condition.task.build([seed.data if isinstance(seed, Origins) else seed for seed in seeds], device)
        self.model = condition.model.build(condition.task.vocabulary, seeds, condition.task.outputs).to(device)
        condition.task.embed(self.model.embedding.weight.data)
        self.reference = None
        if condition.of is not None:
            spec = condition.of.condition.model
            self.reference = spec.build(condition.task.vocabulary, seeds, condition.task.outputs).to(device).eval()
            self.reference.requires_grad_(False)
        self.optimiser = FlatAdam(self.model, condition.optimiser)
        self.step = 0
        self.number = torch.zeros((), dtype=torch.int64, device=device)
        """The step again, where a recorded graph can count it."""
        self.diverged = torch.full((len(seeds),), NEVER, dtype=torch.int64, device=device)
        """The first step of each replica whose loss or gradient was not finite. It moves no further."""
        self.learn = Replayed(self._learn)

    def refer(self, weights: dict[str, Tensor]) -> None:
        """Gives the reference the weights of the runs beside these: name → [replica, …]."""
        assert self.reference is not None
        for name, parameter in self.reference.named_parameters():
            parameter.copy_(weights[name])

    def referred(self, batch: Batch) -> Batch:
        """The batch, with what the reference does on it."""
        if self.reference is None or self.condition.of is None:
            return batch
        with torch.no_grad():
            logits, alpha = self.reference(batch, self.condition.of.condition.rule)
        return replace(batch, given=alpha, answer=logits.softmax(dim=-1))

    def advance(self) -> None:
        """One training step."""
        self.model.train()
        self.learn(self.task.draw(self.step, self.condition.batch))
        self.step += 1

    def widest(self) -> Batch:
        """A training batch that takes as much memory as any."""
        self.model.train()
        return self.task.widest(self.condition.batch)

    def _learn(self, drawn: Drawn) -> None:
        batch = drawn.batch()
        with products(self.precision):
            with operands(self.precision):
                batch = self.referred(batch)
                logits, alpha = self.model(replace(batch, step=self.number), self.condition.rule)
                losses = self.condition.objective(logits, alpha, batch)
            self.optimiser.differentiate(losses.sum())
        finite = losses.detach().isfinite() & self.optimiser.gradient.sum(dim=1).isfinite()
        first = ~finite & (self.diverged == NEVER)
        self.diverged.copy_(torch.where(first, self.number, self.diverged))
        self.number += 1
        self.optimiser.step(self.number, self.diverged == NEVER)

    @property
    def stopped(self) -> bool:
        """Whether no replica is left to train."""
        return bool((self.diverged != NEVER).all())

    def state(self) -> dict[str, Tensor]:
        step = torch.tensor(self.step, dtype=torch.int64)
        return {**self.optimiser.state(), "diverged": self.diverged, "step": step}

    def load(self, state: dict[str, Tensor]) -> None:
        there, here = state["values"].shape, self.optimiser.values.shape
        if there != here:
            sizes = [f"{name} {' × '.join(map(str, p.shape[1:]))}" for name, p in self.model.named_parameters()]
            raise UserError(
                f"the checkpoint of {self.condition.name!r} holds {there[0]} replicas of {there[1]:,} numbers, but "
                f"this model has {here[0]} of {here[1]:,} ({', '.join(sizes)}): the text or the model has changed "
                "since; start again with --fresh"
            )
        self.optimiser.load(state)
        self.diverged.copy_(state["diverged"])
        self.step = int(state["step"])
        self.number.fill_(self.step)
