"""What every task offers. A task is a spec, data only; `build` makes the sampler that draws its batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor

    from attndyn.tasks.sampler import Batch


@runtime_checkable
class Drawn(Protocol):
    """A dataclass whose tensors, with whatever else it holds, determine a batch."""

    def batch(self) -> Batch: ...


@runtime_checkable
class Sampler(Protocol):
    """The batches of a task for several replicas, each from its own seed."""

    def draw(self, step: int, size: int) -> Drawn:
        """What gives the training batch of one step."""
        ...

    def slices(self, size: int, part: str, tokens: int) -> list[Batch]:
        """The fixed evaluation examples of a part (valid or train), in batches of at most so many tokens of a replica,
        if they can be divided."""
        ...

    def widest(self, size: int) -> Batch:
        """A training batch that takes as much memory as any."""
        ...


@dataclass(frozen=True)
class Task:
    @property
    def vocabulary(self) -> int:
        """How many token ids there are."""
        raise NotImplementedError

    @property
    def outputs(self) -> int:
        """How many different answers there are; by default the tokens themselves."""
        return self.vocabulary

    @property
    def tokens(self) -> list[str]:
        """The text of each token id."""
        raise NotImplementedError

    @property
    def content(self) -> str:
        """A digest of the examples, where they come from files: what the name of a file does not say."""
        return ""

    @property
    def beside(self) -> str:
        """A digest of what else comes from files, such as the vectors that words start from."""
        return ""

    @property
    def shape(self) -> tuple[Any, ...]:
        """Tasks of equal shapes can train side by side: their batches and vocabularies are of one size."""
        raise NotImplementedError

    def build(self, seeds: Sequence[int], device: Any = "cpu") -> Sampler:
        raise NotImplementedError

    def embed(self, weights: Tensor) -> None:
        """Changes word vectors [replica, word, width] at their start, if the task brings some."""


@dataclass(frozen=True)
class Beside(Task):
    """Another task of the same shape for each group of replicas: the first `count` replicas have the first task."""

    parts: tuple[tuple[Task, int], ...]

    @property
    def vocabulary(self) -> int:
        return self.parts[0][0].vocabulary

    @property
    def outputs(self) -> int:
        return self.parts[0][0].outputs

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.parts[0][0].shape

    def build(self, seeds: Sequence[int], device: Any = "cpu") -> Sampler:
        from attndyn.tasks.sampler import Together

        rest = iter(seeds)
        return Together([task.build([next(rest) for _ in range(count)], device) for task, count in self.parts])

    def embed(self, weights: Tensor) -> None:
        rows = weights.split([count for _, count in self.parts])
        for (task, _), part in zip(self.parts, rows, strict=True):
            task.embed(part)
