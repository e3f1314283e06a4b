"""Some examples of a corpus with all that was read on them along training: what the studies of agreement share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attndyn.measures import estimates
from attndyn.measures.flat import Texts
from attndyn.process import Item, Result, side_by_side
from attndyn.store.metrics import Row
from attndyn.training.precision import products

if TYPE_CHECKING:
    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics

POSITIONS = 1 << 22
"""Of a scoring, that a GPU compares at once."""
SHARE, APART = (0.0, 1.0), (-1.0, 1.0)
"""Where agreements, and where τ and differences of agreements, can lie."""
ORDERS = 20
"""Random ones, whose agreement with a scoring is Â as the authors estimate it."""


@dataclass
class ReadPart:
    """A row is what one peak of a scoring belongs to: a text, or a target position of a pair."""

    study: Any
    metrics: Metrics
    run: Run
    device: str
    name: str
    """valid or train"""

    def prepare(self, lengths: np.ndarray, condition: str) -> None:
        """Takes the number of source positions of each row, and the condition whose checkpoints all have."""
        self.rows = Texts(torch.as_tensor(lengths, device=self.device))
        self.chance = np.ceil(0.05 * lengths) / lengths
        """Â of each row: without ties, ⌈.05 L⌉ / L."""
        self.steps: list[int] = self.metrics.curves(condition, "accuracy").steps.tolist()

    @property
    def prefix(self) -> str:
        return "" if self.name == "valid" else "train "

    def scores(self, condition: str, seed: int, step: int, name: str) -> Tensor:
        return torch.as_tensor(self.run.array(condition, seed, step, self.prefix + name), device=self.device)

    def along(self, condition: str, seed: int, name: str) -> Iterator[tuple[slice, Float[Tensor, "step position"]]]:
        """A scoring of a run along training, some checkpoints at a time."""
        size = at_once(self.device, len(self.rows.text))
        for first in range(0, len(self.steps), size):
            some = slice(first, first + size)
            yield some, torch.stack([self.scores(condition, seed, step, name) for step in self.steps[some]])

    def agreeing(self, peaks: dict[Any, Tensor], condition: str, name: str) -> dict[Any, np.ndarray]:
        """A(u, v) of every row for each u, given by its peaks, with v a scoring of a condition: [seed, step, row]."""
        seeds = self.study.seeds_of(condition)
        found = {key: np.zeros((len(seeds), len(self.steps), len(self.chance)), dtype=bool) for key in peaks}
        for i, seed in enumerate(seeds):
            for some, values in self.along(condition, seed, name):
                limits = self.rows.limits(values)
                for key, places in peaks.items():
                    found[key][i, some] = self.rows.agreement(places, values, limits).cpu().numpy()
        return found

    def chance_of(self, values: Float[Tensor, " position"]) -> np.ndarray:
        """Â of each row with this v, where equal values count as agreement: a table gives equal words the same."""
        among = values >= self.rows.limits(values)[self.rows.text]
        shares = self.rows.total(among.to(torch.float64)) / self.rows.lengths
        return np.asarray(shares.cpu().numpy())

    def at_random(self, values: Float[Tensor, " position"]) -> np.ndarray:
        """A(random order, v) of every row: [order, row]."""
        draw, limits = torch.Generator().manual_seed(0), self.rows.limits(values)
        orders = (torch.rand(len(values), generator=draw).to(self.device) for _ in range(ORDERS))
        return np.stack([self.rows.agreement(self.rows.peaks(order), values, limits).cpu().numpy() for order in orders])

    def taus(
        self, scorings: dict[Any, Tensor], condition: str, seeds: Sequence[int], name: str, every: int
    ) -> dict[Any, np.ndarray]:
        """Kendall's τ(u, v) of one row in `every` for each u, with v a scoring of a condition: [seed, step, row]."""
        rows = len(self.chance[::every])
        found = {key: np.zeros((len(seeds), len(self.steps), rows)) for key in scorings}
        for i, seed in enumerate(seeds):
            for some, values in self.along(condition, seed, name):
                for key, u in scorings.items():
                    found[key][i, some] = self.rows.taus(u, values, every).cpu().numpy()
        return found


def spread(
    table: str,
    name: str,
    values: np.ndarray,
    judged: np.ndarray | None = None,
    within: tuple[float, float] = APART,
    groups: np.ndarray | None = None,
) -> Iterator[Row]:
    """The mean of [run …, row] with its interval, for which every axis counts; or with that of what is `judged`."""
    interval = estimates.interval((values if judged is None else judged).astype(np.float64), groups, within)
    for ending, number in (("", means(values.ravel())), (" low", interval.low), (" high", interval.high)):
        yield Row(table, 0, 0, name + ending, float(number))


def entry(
    table: str,
    name: str,
    values: np.ndarray,
    chance: np.ndarray,
    judged: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Iterator[Row]:
    """The same of an agreement, and the interval of its distance from chance."""
    yield from spread(table, name, values, judged, SHARE, groups)
    expected = float(chance.mean())
    within = SHARE[0] - expected, SHARE[1] - expected
    above = estimates.interval((values if judged is None else judged) - chance, groups, within)
    yield Row(table, 0, 0, f"{name} above low", above.low)
    yield Row(table, 0, 0, f"{name} above high", above.high)


def of_slices(work: Callable[[Item], Result], slices: Sequence[Item], device: str) -> list[Result]:
    """What is read of each slice of texts, in fp32; on a CPU side by side."""
    with products("fp32"):
        return side_by_side(work, slices) if device == "cpu" else [*map(work, slices)]


def at_once(device: str, positions: int) -> int:
    """Checkpoints: as many as fill a GPU; of several, a CPU's cache would hold nothing."""
    return 1 if device == "cpu" else max(1, POSITIONS // positions)


def chosen_apart(found: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """[seed, row] out of [seed, step, row], every second group of rows at the step at which the mean of the others is
    largest: where the rows that choose a step are judged at it, even noise comes out above 0."""
    return _by_halves(found, groups, apart=True)


def chosen_by_own(found: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The same at the step at which their own mean is largest: what this adds is what a maximum inflates."""
    return _by_halves(found, groups, apart=False)


def _by_halves(found: np.ndarray, groups: np.ndarray, apart: bool) -> np.ndarray:
    odd, values = groups % 2 == 1, np.empty((len(found), found.shape[2]))
    for judged in (odd, ~odd):
        chosen = found[:, :, ~judged if apart else judged]
        values[:, judged] = found[np.arange(len(found)), largest(chosen)][:, judged]
    return values


def of_others(found: np.ndarray) -> np.ndarray:
    """[gold run, run, row] of the same runs with NaN where a run would be compared with itself: so the same place is
    the same run, whichever is gold, and an interval draws runs."""
    others = found.astype(np.float64)
    others[range(len(found)), range(len(found))] = np.nan
    return others


def highest(found: np.ndarray) -> np.ndarray:
    """[seed, row] at the step of each seed's largest mean, out of [seed, step, row]."""
    return found[np.arange(len(found)), largest(found)]


def largest(found: np.ndarray) -> np.ndarray:
    """The step of each seed's largest mean; the first where there is none."""
    return np.nan_to_num(means(found), nan=-np.inf).argmax(axis=1)


def means(found: np.ndarray) -> np.ndarray:
    """Over the rows that have a value; NaN where none has."""
    counts = (~np.isnan(found)).sum(axis=-1)
    return np.where(counts, np.nansum(found, axis=-1) / np.maximum(counts, 1), np.nan)
