"""Ragged examples, as lists for the definitions and as one padded batch for the measures."""

from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

GARBAGE = 77.0


class Padded(NamedTuple):
    values: Tensor  # [1, batch, query, key]
    align: Tensor  # [1, batch, query]
    source_mask: Tensor  # [1, batch, key]
    target_mask: Tensor  # [1, batch, query]


@st.composite
def examples(draw: Any, fewest: int = 1, ties: bool = False) -> list[dict[str, Any]]:
    """A few examples of their own lengths. With `ties` the values are coarse, so that equal ones occur."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        keys, queries = draw(st.integers(fewest, 5)), draw(st.integers(1, 4))
        value = st.integers(0, 2).map(lambda third: third / 2) if ties else st.integers(1, 1000)
        rows = draw(st.lists(st.lists(value, min_size=keys, max_size=keys), min_size=queries, max_size=queries))
        if not ties:
            rows = [[weight / sum(row) for weight in row] for row in rows]
        align = draw(st.lists(st.integers(0, keys - 1), min_size=queries, max_size=queries))
        found.append({"rows": rows, "align": align})
    return found


def pad(found: list[dict[str, Any]], extra: int = 1, filling: float = 0.0) -> Padded:
    """One batch, `extra` longer than the longest example in both directions, with `filling` where nothing is."""
    keys = max(len(example["rows"][0]) for example in found) + extra
    queries = max(len(example["rows"]) for example in found) + extra
    values = torch.full((1, len(found), queries, keys), filling, dtype=torch.float64)
    align = torch.zeros(1, len(found), queries, dtype=torch.int64)
    source_mask = torch.zeros(1, len(found), keys, dtype=torch.bool)
    target_mask = torch.zeros(1, len(found), queries, dtype=torch.bool)
    for place, example in enumerate(found):
        rows = torch.tensor(example["rows"], dtype=torch.float64)
        values[0, place, : rows.shape[0], : rows.shape[1]] = rows
        align[0, place, : len(rows)] = torch.tensor(example["align"])
        source_mask[0, place, : rows.shape[1]] = True
        target_mask[0, place, : len(rows)] = True
    return Padded(values, align, source_mask, target_mask)
