"""What counts as a fault of a series. Each rule sees only what the rules before it left unexplained, so that one fault
is one finding."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float64

from attndyn.audit.files import Checkpoint
from attndyn.audit.scan import Scan

Finding = dict[str, Any]

FEWEST = 64
"""Numbers in a tensor that cannot come back to the same bits by chance."""
WINDOW = 4
"""Distances on either side that a distance is compared with."""
RETURN = 3.0
"""A checkpoint is off if it lies this many times farther from both neighbours than they from each other."""
JUMP = 6.0
"""A distance is a jump if it is this many times what is usual on either side of it."""
SHORTER = 0.3
"""Two steps are swapped if undoing it shortens the way through the series by this share of the mean stretch there."""

CALMER = 0.9
"""… and if the longest stretch there becomes shorter than this share of what it was."""


def findings(series: Sequence[Checkpoint], scanned: Scan) -> list[Finding]:
    steps = [checkpoint.step for checkpoint in series]
    found = [*layouts(series, scanned), *not_finite(steps, scanned)]
    kept = [index for index in scanned.comparable if not scanned.bad[index]]
    for group in duplicates(scanned):
        found.append(finding("duplicate", [steps[index] for index in group], "hold the same weights, bit for bit"))
        kept = min(_with_one_of(group, kept), key=lambda some: _way(some, scanned.distance))
    odd_ones = set()
    for (a, b), names in foreign_shards(scanned, kept).items():
        odd = max(a, b, key=lambda index: excess(index, kept, steps, scanned.distance))
        found.append(describe_shard(series[odd], steps[a + b - odd], names))
        odd_ones.add(odd)
    kept = [index for index in kept if index not in odd_ones]
    found += gaps(steps)
    if len(kept) >= 4:
        order, swaps = swapped(kept, steps, scanned.distance)
        found += [finding("swapped", pair, "fit the series better the other way round") for pair in swaps]
        found += jumps(scanned.distance[np.ix_(order, order)], [steps[index] for index in kept])
    return found


def finding(kind: str, steps: Sequence[int], what: str) -> Finding:
    return {"kind": kind, "steps": list(steps), "what": what}


def layouts(series: Sequence[Checkpoint], scanned: Scan) -> Iterator[Finding]:
    """Names, shapes and types other than those of most checkpoints; an index that does not fit its shards."""
    for checkpoint in series:
        for name in checkpoint.index_says[:1]:
            others = _and_more(len(checkpoint.index_says))
            yield finding("layout", [checkpoint.step], f"its index and its shards disagree about {name!r}{others}")
        here, usual = checkpoint.layout, scanned.usual
        differs = [f"{name!r} is missing" for name in usual if name not in here]
        differs += [f"{name!r} is in no other" for name in here if name not in usual]
        both = [name for name in usual if name in here and here[name] != usual[name]]
        differs += [f"{name!r} is {here[name]}, elsewhere {usual[name]}" for name in both]
        if differs:
            yield finding("layout", [checkpoint.step], differs[0] + _and_more(len(differs)))


def _and_more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""


def not_finite(steps: Sequence[int], scanned: Scan) -> Iterator[Finding]:
    for step, bad in zip(steps, scanned.bad, strict=True):
        for name, (nans, infinite) in list(bad.items())[:1]:
            counts = [f"{count:,} {what}" for count, what in ((nans, "NaN"), (infinite, "infinite")) if count]
            more = f", and in {len(bad) - 1} more" if len(bad) > 1 else ""
            yield finding("not finite", [step], f"{' and '.join(counts)} in {name!r}{more}")


def duplicates(scanned: Scan) -> list[list[int]]:
    same: dict[tuple[tuple[str, bytes], ...], list[int]] = defaultdict(list)
    for index, digests in enumerate(scanned.digests):
        same[tuple(sorted(digests.items()))].append(index)
    return [group for group in same.values() if len(group) > 1]


def _with_one_of(group: Sequence[int], kept: Sequence[int]) -> list[list[int]]:
    """The rest with each of the group alone."""
    return [[index for index in kept if index == stays or index not in group] for stays in group]


def _way(kept: Sequence[int], distance: Float64[np.ndarray, "n n"]) -> float:
    return float(sum(distance[a, b] for a, b in pairwise(kept)))


def foreign_shards(scanned: Scan, kept: Sequence[int]) -> dict[tuple[int, int], list[str]]:
    """Tensors by the two checkpoints that share them though they should not: the weights changed in between and came
    back to the same bits, or stood still between two neighbours and nowhere else. The first and the last interval do
    not count for the second: layers are often frozen there."""
    shared: dict[tuple[int, int], list[str]] = defaultdict(list)
    for name, layout in scanned.usual.items():
        if layout.numbers < FEWEST or not layout.real:
            continue
        places: dict[bytes, list[int]] = defaultdict(list)
        for place, index in enumerate(kept):
            places[scanned.digests[index][name]].append(place)
        for group in places.values():
            for p, q in pairwise(group):
                stood_still = len(places) == len(kept) - 1 and p > 0 and q < len(kept) - 1
                if q > p + 1 or stood_still:
                    shared[kept[p], kept[q]].append(name)
    return dict(shared)


def describe_shard(odd: Checkpoint, other: int, names: Sequence[str]) -> Finding:
    files = sorted({odd.file[name].name for name in names})
    where = f", in {', '.join(files)}" if len(set(odd.file.values())) > 1 else ""
    what = f"{len(names)} of {len(odd.file)} tensors are those of step {other}, bit for bit{where}"
    return finding("foreign shard", [odd.step, other], what)


def excess(index: int, kept: Sequence[int], steps: Sequence[int], distance: Float64[np.ndarray, "n n"]) -> float:
    """How much longer the way through the series is for passing this checkpoint; at an end, how much longer its last
    stretch is than the one beside it."""
    place = list(kept).index(index)
    if len(kept) < 3:
        return 0.0
    if 0 < place < len(kept) - 1:
        a, b = kept[place - 1], kept[place + 1]
        return float(distance[a, index] + distance[index, b] - distance[a, b])
    a, b = (kept[1], kept[2]) if place == 0 else (kept[-2], kept[-3])
    pace = abs(steps[index] - steps[a]) / abs(steps[a] - steps[b])
    return float(distance[index, a] - max(1.0, pace) * distance[a, b])


def gaps(steps: Sequence[int]) -> Iterator[Finding]:
    """Steps that a regular series leaves out: two thirds of its intervals are the same, and before and after a gap of
    some multiple of it the series is regular."""
    intervals = np.diff(steps).tolist()
    usual, count = Counter(intervals).most_common(1)[0]
    if count < 2 or 3 * count < 2 * len(intervals):
        return
    for place, interval in enumerate(intervals):
        if interval > usual and interval % usual == 0 and usual in intervals[:place] and usual in intervals[place:]:
            missing = list(range(steps[place] + usual, steps[place + 1], usual))
            names = ", ".join(map(str, missing[:5])) + (f", … ({len(missing)} in all)" if len(missing) > 5 else "")
            yield finding(
                "gap", [steps[place], steps[place + 1]], f"missing between them, by steps of {usual}: {names}"
            )


def usual_distance(
    place: int, distances: Sequence[float], intervals: Sequence[int], leave_out: Sequence[int] = ()
) -> float:
    """What a distance would be by those near it: the larger of the medians to its left and to its right, where longer
    intervals are allowed proportionally more."""
    sides = []
    for near in (range(place - 1, place - 1 - WINDOW, -1), range(place + 1, place + 1 + WINDOW)):
        side = [
            distances[other] * max(1.0, intervals[place] / intervals[other])
            for other in near
            if 0 <= other < len(distances) and other not in leave_out
        ]
        sides += [float(np.median(side)) if len(side) > 2 else min(side)] if side else []
    return max(sides, default=np.inf)


def _neighbours(distance: Float64[np.ndarray, "n n"]) -> list[float]:
    return np.diagonal(distance, 1).tolist()


def swapped(
    kept: Sequence[int], steps: Sequence[int], distance: Float64[np.ndarray, "n n"]
) -> tuple[list[int], list[tuple[int, int]]]:
    """The order in which the way is shortest, found by exchanging two at a time, and the steps exchanged. An exchange
    counts only if no jump is left where it was made: it must explain what was odd, not move it elsewhere."""
    order, pairs = list(kept), []
    intervals = np.diff([steps[index] for index in kept]).tolist()
    for _ in range(len(kept) // 2):
        was = _neighbours(distance[np.ix_(order, order)])
        for i, j in _shorter(distance[np.ix_(order, order)]):
            tried = order.copy()
            tried[i], tried[j] = tried[j], tried[i]
            way = _neighbours(distance[np.ix_(tried, tried)])
            touched = [place for place in (i - 1, i, j - 1, j) if 0 <= place < len(way)]
            calm = all(way[place] <= JUMP * usual_distance(place, way, intervals) for place in touched)
            if calm and max(way[place] for place in touched) < CALMER * max(was[place] for place in touched):
                order = tried
                pairs.append((steps[kept[i]], steps[kept[j]]))
                break
        else:
            break
    return order, pairs


def _shorter(distance: Float64[np.ndarray, "n n"]) -> list[tuple[int, int]]:
    """The exchanges that shorten the way by enough, the best first. Beyond both ends lies a place at distance 0."""
    n = len(distance)
    padded = np.pad(distance, 1)
    before, after = padded[:-2, 1:-1], padded[2:, 1:-1]  # [i, j]: from the left (right) neighbour of i to j
    now = np.diagonal(before) + np.diagonal(after)
    then = before + after + before.T + after.T
    beside = np.eye(n, k=1)
    gain = now[:, None] + now[None, :] - 2 * beside * distance - then
    sides = np.array([1, *[2] * (n - 2), 1])
    stretches = sides[:, None] + sides[None, :] - 2 * beside
    pairs = np.argwhere(np.triu(gain * stretches > SHORTER * then, 1))
    return sorted(((int(i), int(j)) for i, j in pairs), key=lambda pair: -gain[pair])


def jumps(distance: Float64[np.ndarray, "n n"], steps: Sequence[int]) -> Iterator[Finding]:
    """First the single checkpoints from which the series returns, the farthest first; then, without them, the
    distances that nothing around them explains."""
    at = list(range(len(steps)))
    while len(at) >= 4:
        way, intervals = _neighbours(distance[np.ix_(at, at)]), np.diff([steps[place] for place in at]).tolist()
        off = {}
        for k in range(1, len(at) - 1):
            across = float(distance[at[k - 1], at[k + 1]])
            usual = max(across, usual_distance(k, way, intervals, leave_out=(k - 1, k)))
            if (near := min(way[k - 1], way[k])) > RETURN * usual:
                off[k] = (near, near / usual if usual else np.inf)
        if not off:
            break
        k = max(off, key=lambda k: off[k][0])
        times = f"{off[k][1]:.3g} times" if np.isfinite(off[k][1]) else "much"
        yield finding("jump", [steps[at[k]]], f"{times} as far from both neighbours as is usual, and back")
        del at[k]
    way, intervals = _neighbours(distance[np.ix_(at, at)]), np.diff([steps[place] for place in at]).tolist()
    for place, length in enumerate(way):
        usual = usual_distance(place, way, intervals)
        if len(way) >= 4 and length > JUMP * usual and usual > 0:
            pair = [steps[at[place]], steps[at[place + 1]]]
            yield finding("jump", pair, f"{length / usual:.3g} times as far apart as is usual around them")
