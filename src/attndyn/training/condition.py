"""What is trained: a condition is data only. Same digest = same work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from attndyn.errors import UserError
from attndyn.models.rules import Learned
from attndyn.models.specs import ModelSpec, Origins
from attndyn.tasks.base import Task

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@dataclass(frozen=True)
class Likelihood:
    """Mean negative log-likelihood of the target tokens, padding left out; or their sum."""

    total: bool = False
    weights: tuple[float, ...] | None = None
    """What an example of each answer counts; none: all the same."""

    def __call__(self, logits: Tensor, alpha: Tensor, batch: Any) -> Float[Tensor, " replica"]:
        import torch
        from torch.nn import functional as F

        losses = F.cross_entropy(logits.flatten(0, 2), batch.target.flatten(), reduction="none")
        losses = losses.view(batch.target.shape)
        if self.weights is not None:
            counts = [weight * (batch.target == answer) for answer, weight in enumerate(self.weights)]
            losses = losses * torch.stack(counts).sum(dim=0)
        if batch.target_mask is None:
            return losses.sum(dim=(1, 2)) if self.total else losses.mean(dim=(1, 2))
        kept = batch.target_mask
        total = (losses * kept).sum(dim=(1, 2))
        return total if self.total else total / kept.sum(dim=(1, 2))


class Terms(NamedTuple):
    """An objective as mean − above / below. All three are means over target positions, so that those of several
    batches give the objective of all: a quotient of its own for each would weigh the batches by how they were cut."""

    mean: Float[Tensor, " replica"]
    above: Float[Tensor, " replica"]
    below: Float[Tensor, " replica"]

    @property
    def whole(self) -> Float[Tensor, " replica"]:
        return self.mean - self.above / self.below


def terms(objective: Any, logits: Tensor, alpha: Tensor, batch: Any) -> Terms:
    """Those of an objective that names none: it is a mean."""
    import torch

    if hasattr(objective, "terms"):
        found: Terms = objective.terms(logits, alpha, batch)
        return found
    mean = objective(logits, alpha, batch)
    return Terms(mean, torch.zeros_like(mean), torch.ones_like(mean))


@dataclass(frozen=True)
class Beside:
    """Another objective for each group of replicas: the first `count` replicas have the first, and so on."""

    parts: tuple[tuple[Any, int], ...]

    def __call__(self, logits: Tensor, alpha: Tensor, batch: Any) -> Float[Tensor, " replica"]:
        import torch

        return torch.cat([part(*own) for part, own in self._each(logits, alpha, batch)])

    def terms(self, logits: Tensor, alpha: Tensor, batch: Any) -> Terms:
        import torch

        found = [terms(part, *own) for part, own in self._each(logits, alpha, batch)]
        return Terms(*map(torch.cat, zip(*found, strict=True)))

    def _each(self, logits: Tensor, alpha: Tensor, batch: Any) -> Iterator[tuple[Any, tuple[Tensor, Tensor, Any]]]:
        """Every objective with what its replicas did."""
        first = 0
        for objective, count in self.parts:
            own = slice(first, first + count)
            yield objective, (logits[own], alpha[own], batch.replicas(own))
            first += count


@dataclass(frozen=True)
class Adam:
    """Adam as PyTorch defines it. A tuple gives each replica its own value; names in `frozen` do not move. With a
    `warmup` of w > 0 the rate of update n is lr · min(n w^-1.5, n^-.5) (Vaswani et al. 2017)."""

    lr: float | tuple[float, ...] = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    decay: float | tuple[float, ...] = 0.0
    amsgrad: bool = False
    frozen: tuple[str, ...] | tuple[tuple[str, ...], ...] = ()
    warmup: int = 0

    def row(self, replica: int) -> Adam:
        """The same for one replica alone."""
        changes: dict[str, Any] = {}
        for name in ("lr", "decay", "frozen"):
            value = getattr(self, name)
            if isinstance(value, tuple) and value and not isinstance(value[0], str):
                changes[name] = value[replica]
        return replace(self, **changes)


def beside(rows: Sequence[Adam]) -> Adam:
    """One optimiser for replicas that differ in learning rate, decay or frozen parameters only."""
    changes: dict[str, Any] = {}
    for name in ("lr", "decay", "frozen"):
        values = tuple(getattr(row, name) for row in rows)
        changes[name] = values if len(set(values)) > 1 else values[0]
    return replace(rows[0], **changes)


SHAPE = ("model", "steps", "batch", "evaluation", "readings")
"""What conditions that train side by side have in common, beside the shape of their tasks."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One setting of an experiment, trained once for each seed."""

    name: str
    task: Task
    model: ModelSpec
    seeds: tuple[int, ...]
    steps: int
    batch: int = 128
    rule: Any = Learned()
    objective: Any = Likelihood()
    optimiser: Adam = Adam()
    evaluation: int = 50
    """Fixed evaluation examples."""
    readings: tuple[Any, ...] = ()
    """What is measured, and how often (`measures/readings.py`)."""
    origins: tuple[Origins, ...] = ()
    """For each of the seeds the random streams it stands for, where weights and data do not all come from it."""
    best: tuple[str, ...] = ()
    """Where the weights are kept (`Run.weights`), such as "lowest loss" or "highest accuracy" of the readings."""
    of: Reference | None = None
    """A trained model that the rule, the objective or the readings look at."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "evaluation"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        for wanted in self.best:
            if wanted.split(" ")[0] not in ("lowest", "highest"):
                raise UserError(
                    f"weights are kept at the lowest or highest of a metric, such as lowest loss; not {wanted!r}"
                )
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise UserError(f"a condition needs seeds, each of them once, not {self.seeds}")
        if self.origins and len(self.origins) != len(self.seeds):
            raise UserError(f"a condition of {len(self.seeds)} seeds was given {len(self.origins)} origins")
        if self.of is not None:
            self.of.check(self)

    @property
    def shape(self) -> tuple[Any, ...]:
        """Conditions of equal shapes can train side by side: they differ in seeds, words, rule, objective or rates
        only."""
        optimiser = replace(self.optimiser, lr=0.0, decay=0.0, frozen=())
        rest = [getattr(self, name) for name in SHAPE]
        beside = None if self.of is None else (self.of.condition.model, self.of.condition.rule)
        return (self.task.shape, optimiser, self.stage, beside, *rest)

    @property
    def stage(self) -> int:
        """How many conditions have to be trained before, one after the other."""
        return 0 if self.of is None else 1 + self.of.condition.stage

    def origin(self, seed: int) -> int | Origins:
        """What the random streams of one of its seeds are made from."""
        return self.origins[self.seeds.index(seed)] if self.origins else seed


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Runs of another condition, trained before, that stand beside the runs of this one: what they answer and where
    they attend on the same batch."""

    condition: Condition
    seeds: tuple[int, ...]
    """Beside each run, the seed of the run that it looks at."""
    best: str
    """Which of the kept weights: one of the condition's `best`."""

    def check(self, of: Condition) -> None:
        """Refuses what cannot stand beside the runs of `of`."""
        name = f"{of.name!r} looks at {self.condition.name!r}"
        if len(self.seeds) != len(of.seeds) or not set(self.seeds) <= set(self.condition.seeds):
            raise UserError(f"{name}, but its {len(of.seeds)} runs are beside seeds {self.seeds} of "
                            f"{self.condition.seeds}")  # fmt: skip
        if self.best not in self.condition.best:
            raise UserError(f"{name} at its {self.best}, but no weights are kept there")
        if self.condition.task.shape != of.task.shape:
            raise UserError(f"{name}, which was trained on other text: attention can only be given for the same words")
