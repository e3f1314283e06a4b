"""One pass over all checkpoints together: digests, non-finite numbers, and the distance between every two."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from attndyn.audit.files import Checkpoint, Layout

AT_ONCE = 2**21
"""Numbers of all checkpoints together in memory at a time; 16 MB in double precision."""


@dataclass(frozen=True)
class Scan:
    usual: dict[str, Layout]
    """The layout that most checkpoints have."""
    digests: list[dict[str, bytes]]
    """For each checkpoint, the SHA-256 of the bytes of each tensor."""
    bad: list[dict[str, tuple[int, int]]]
    """For each checkpoint, how many NaN and how many infinities, of the tensors that have any."""
    comparable: list[int]
    """Those with the usual names and shapes: only between them there is a distance."""
    distance: Float64[np.ndarray, "n n"]
    """Euclidean, over all floating-point tensors together; NaN where there is none."""

    def between(self, a: int, b: int) -> float | None:
        """None where a checkpoint has other shapes or a number that is not finite."""
        of = float(self.distance[a, b])
        return None if np.isnan(of) else of


def shapes(layout: dict[str, Layout]) -> dict[str, tuple[int, ...]]:
    return {name: of.shape for name, of in layout.items()}


def scan(series: Sequence[Checkpoint]) -> Scan:
    usual = dict(
        Counter(tuple(sorted(c.layout.items(), key=lambda item: item[0])) for c in series).most_common(1)[0][0]
    )
    comparable = [index for index, c in enumerate(series) if shapes(c.layout) == shapes(usual)]
    digests: list[dict[str, bytes]] = [{} for _ in series]
    bad: list[dict[str, tuple[int, int]]] = [{} for _ in series]
    inner = torch.zeros(len(comparable), len(comparable), dtype=torch.float64)
    together = set(comparable)
    first = series[comparable[0]]
    for name in sorted(usual, key=lambda name: (first.file[name].name, name)):  # one shard after the other
        inner += _scan_tensor(name, series, comparable, digests, bad)
    for index, checkpoint in enumerate(series):
        if index not in together:
            for name in checkpoint.layout:
                _scan_tensor(name, series, [index], digests, bad)
    for checkpoint, of in zip(series, bad, strict=True):
        checkpoint.close()
        for name in [name for name, (nans, _) in of.items() if not nans and _constant(name, digests)]:
            del of[name]
    square = inner.diagonal()[:, None] + inner.diagonal()[None, :] - 2 * inner
    distance = np.full((len(series), len(series)), np.nan)
    distance[np.ix_(comparable, comparable)] = square.clamp(min=0).sqrt().numpy()
    for index, of in enumerate(bad):
        if of:
            distance[index] = distance[:, index] = np.nan
    return Scan(usual, digests, bad, comparable, distance)


def _constant(name: str, digests: Sequence[dict[str, bytes]]) -> bool:
    """The same wherever it is: infinities in such a tensor are a mask, and meant."""
    held = [of[name] for of in digests if name in of]
    return len(held) > 1 and len(set(held)) == 1


def _scan_tensor(
    name: str,
    series: Sequence[Checkpoint],
    members: Sequence[int],
    digests: list[dict[str, bytes]],
    bad: list[dict[str, tuple[int, int]]],
) -> Float64[Tensor, "m m"]:
    """Enters the digests and the counts of one tensor, and returns the inner products of its members, each less their
    mean: distances between neighbours are small beside the weights themselves."""
    layout = series[members[0]].layout[name]
    real = any(series[index].layout[name].real for index in members)
    rows = layout.shape[0] if layout.shape else 1
    piece = max(1, AT_ONCE // len(members) // max(1, layout.numbers // max(1, rows)))
    hashes = [hashlib.sha256() for _ in members]
    nans, infinite = [0] * len(members), [0] * len(members)
    inner = torch.zeros(len(members), len(members), dtype=torch.float64)
    for start in range(0, rows, piece):
        parts = []
        for place, index in enumerate(members):
            part = series[index].rows(name, start, start + piece).contiguous().reshape(-1)
            hashes[place].update(part.view(torch.uint8).numpy().data)
            if real:
                part = part.double()
                nans[place] += int(part.isnan().sum())
                infinite[place] += int(part.isinf().sum())
                parts.append(part.nan_to_num(0.0, 0.0, 0.0))
        if real:
            stacked = torch.stack(parts)
            stacked -= stacked.mean(0)
            inner += stacked @ stacked.T
    for place, index in enumerate(members):
        digests[index][name] = hashes[place].digest()
        if nans[place] or infinite[place]:
            bad[index][name] = (nans[place], infinite[place])
    return inner
