"""Which replicas of a run train together.

On a CPU each replica is a unit of its own, and a chunk of units is trained side by side on the cores. On a GPU the
replicas of all conditions of one shape are one unit, or several where the memory is too small; everything that differs
between them (seed, task, attention rule, objective, learning rate) is a value for each replica. A few units of other
shapes are trained side by side there too: the small steps of one leave most of the GPU idle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from attndyn.models import rules
from attndyn.models.specs import Origins
from attndyn.tasks import base as tasks
from attndyn.training import condition as objectives
from attndyn.training.condition import Condition, beside

CHUNK = 16
"""Replicas trained side by side on a CPU; at paper scale one save of them takes 260 MB."""
SIDE_BY_SIDE = 3
"""Units trained at the same time on a GPU."""
READ = 0.5
"""What it takes to read an example, of what it takes to train on one; about. For estimates of time only."""


@dataclass(frozen=True)
class Replica:
    condition: Condition
    seed: int
    place: int
    """In the run: conditions in their order, and in each its seeds."""


@dataclass(frozen=True)
class Unit:
    """Replicas trained as one tensor program."""

    replicas: tuple[Replica, ...]

    @property
    def seeds(self) -> tuple[int | Origins, ...]:
        return tuple(replica.condition.origin(replica.seed) for replica in self.replicas)

    @property
    def steps(self) -> int:
        return self.replicas[0].condition.steps

    @cached_property
    def effort(self) -> list[int]:
        """Up to each step, in training steps of one replica: readings of thousands of texts take as long as many."""
        found, total, of = [], 0.0, self.replicas[0].condition
        for step in range(self.steps + 1):
            parts = {reading.on for reading in of.readings if reading.due(step, self.steps)}
            total += (step > 0) + READ * len(parts) * of.evaluation / of.batch
            found.append(round(total) * len(self.replicas))
        return found

    @property
    def condition(self) -> Condition:
        """One condition for all of its replicas."""
        shares = [(condition, len(list(group))) for condition, group in groupby(self.replicas, lambda r: r.condition)]
        optimisers = [r.condition.optimiser.row(r.condition.seeds.index(r.seed)) for r in self.replicas]
        first = replace(shares[0][0], optimiser=beside(optimisers))
        given, followed, sought = (
            [(getattr(one, name), count) for one, count in shares] for name in ("task", "rule", "objective")
        )
        return replace(
            first,
            task=given[0][0] if same(given) else tasks.Beside(tuple(given)),
            rule=followed[0][0] if same(followed) else rules.Beside(tuple(followed)),
            objective=sought[0][0] if same(sought) else objectives.Beside(tuple(sought)),
            best=tuple(dict.fromkeys(wanted for one, _ in shares for wanted in one.best)),
        )


Chunk = list[Unit]


class Needs(NamedTuple):
    """Bytes that the replicas of a unit take on a device."""

    state: int
    step: int
    """On top of the state, while they train."""
    reading: int
    """On top of the state, while they are read."""


class Room(NamedTuple):
    """The bytes of a device that may be filled, and what the replicas of a unit take of them."""

    limit: float
    one: int
    more: int
    """Each replica after the first."""

    @property
    def most(self) -> int:
        """Replicas at once."""
        return max(1, int((self.limit - self.one) // self.more) + 1)

    def share(self, replicas: int) -> float:
        return (self.one + (replicas - 1) * self.more) / self.limit


def room_for(limit: float, one: Needs, two: Needs) -> Room:
    """From what one and two replicas need. No part counts as shrinking: what was freed between the two measurements
    makes no room."""
    more = (max(0, second - first) for first, second in zip(one, two, strict=True))
    return Room(limit, sum(one), sum(more))


def alone(unit: Unit) -> Room:
    """Room for nothing beside the unit."""
    return Room(len(unit.replicas), 1, 1)


def plan(
    conditions: Sequence[Condition],
    device: str,
    room: Callable[[Unit], Room] = alone,
    before: Sequence[dict[str, Any]] | None = None,
    first: int = 0,
) -> list[Chunk]:
    """The chunks in the order in which they are trained. `room` says how much of the device replicas like those of a
    unit fill; a run that is continued keeps the chunks of `before`, as `listed` wrote them; `first` is the place of
    the first replica in the run."""
    pairs = [(condition, seed) for condition in conditions for seed in condition.seeds]
    replicas = [Replica(condition, seed, first + place) for place, (condition, seed) in enumerate(pairs)]
    if before:
        numbers = sorted({before[r.place]["chunk"] for r in replicas})
        chunks = [[r for r in replicas if before[r.place]["chunk"] == number] for number in numbers]
    else:
        stages = [[r for r in replicas if r.condition.stage == n] for n in sorted({c.stage for c in conditions})]
        if device == "cpu":
            chunks = [part for stage in stages for part in slices(stage, CHUNK)]
        else:
            chunks = [chunk for stage in stages for chunk in packed(together(stage), room)]
    if device == "cpu":
        return [[Unit((replica,)) for replica in chunk] for chunk in chunks]
    return [[Unit(tuple(group)) for group in together(chunk)] for chunk in chunks]


def packed(groups: Sequence[list[Replica]], room: Callable[[Unit], Room]) -> list[list[Replica]]:
    """Groups one after the other, several in a chunk where they fit; one that does not fit as a whole is split into
    chunks of its own."""
    chunks: list[list[Replica]] = []
    units, free = 0, 0.0
    for group in groups:
        found = room(Unit(tuple(group)))
        parts, share = slices(group, found.most), found.share(len(group))
        if units < SIDE_BY_SIDE and share <= free:
            chunks[-1] += group
            units, free = units + 1, free - share
        else:
            chunks += parts
            units, free = 1, 1 - share if len(parts) == 1 else 0.0
    return chunks


def together(replicas: Sequence[Replica]) -> list[list[Replica]]:
    """Groups of replicas whose conditions differ in nothing that changes the shape of the program."""
    groups: list[tuple[Any, list[Replica]]] = []
    for replica in replicas:
        shape = replica.condition.shape
        for known, group in groups:
            if known == shape:
                group.append(replica)
                break
        else:
            groups.append((shape, [replica]))
    return [group for _, group in groups]


def same(shares: Sequence[tuple[Any, int]]) -> bool:
    return all(one == shares[0][0] for one, _ in shares)


def slices(replicas: list[Replica], most: int) -> list[list[Replica]]:
    """As few parts as possible, as equal as possible, of at most `most` replicas."""
    count = max(1, -(-len(replicas) // most))
    cuts = [len(replicas) * part // count for part in range(count + 1)]
    return [replicas[start:end] for start, end in pairwise(cuts) if end > start]


def listed(chunks: Sequence[Chunk]) -> list[dict[str, Any]]:
    """Which replica trains in which chunk, in the order of their places: what run.json says of them."""
    entries = [
        (replica.place, {"condition": replica.condition.name, "replica": replica.seed, "chunk": number})
        for number, chunk in enumerate(chunks)
        for unit in chunk
        for replica in unit.replicas
    ]
    return [entry for _, entry in sorted(entries, key=lambda pair: pair[0])]
