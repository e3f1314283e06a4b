"""The metrics table: one row for each (condition, replica, step, metric). A replica is named by its seed."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


class Row(NamedTuple):
    condition: str
    replica: int
    step: int
    metric: str
    value: float


class Curves(NamedTuple):
    """One metric of one condition."""

    replicas: np.ndarray  # [replica]
    steps: np.ndarray  # [step]
    values: np.ndarray  # [replica, step]; NaN where a replica has no value

    @property
    def last(self) -> np.ndarray:
        """The value of each replica at the last step."""
        return np.asarray(self.values[:, -1])

    def until(self, step: int) -> Curves:
        """The part up to and including that step."""
        kept = self.steps <= step
        return Curves(self.replicas, self.steps[kept], self.values[:, kept])


class Metrics:
    """Reads a metrics table by condition and metric."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._columns = {name: table[name].to_numpy() for name in Row._fields}
        self.conditions: list[str] = list(dict.fromkeys(self._columns["condition"].tolist()))

    def __contains__(self, condition: str) -> bool:
        return condition in self.conditions

    def curves_of(self, condition: str) -> list[str]:
        """The metrics of a condition, each once."""
        chosen = self._columns["condition"] == condition
        return list(dict.fromkeys(self._columns["metric"][chosen].tolist()))

    def curves(self, condition: str, metric: str) -> Curves:
        """Raises KeyError where nothing was recorded."""
        columns = self._columns
        chosen = (columns["condition"] == condition) & (columns["metric"] == metric)
        if not chosen.any():
            raise KeyError(f"no {metric!r} was recorded for {condition!r}")
        replicas, row = np.unique(columns["replica"][chosen], return_inverse=True)
        steps, column = np.unique(columns["step"][chosen], return_inverse=True)
        values = np.full((len(replicas), len(steps)), np.nan)
        values[row, column] = columns["value"][chosen]
        return Curves(replicas, steps, values)


def to_table(rows: Iterable[Row]) -> pa.Table:
    import pyarrow as pa

    columns: Sequence[Sequence[object]] = list(zip(*rows, strict=True)) or [[]] * len(Row._fields)
    types = (pa.string(), pa.int64(), pa.int64(), pa.string(), pa.float64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(dict(zip(Row._fields, arrays, strict=True)))


def to_parquet(rows: Iterable[Row]) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(to_table(rows), buffer)
    return buffer.getvalue()


def from_parquet(data: bytes) -> pa.Table:
    """With this thread alone: one of Arrow's pool may still hold a buffer of Python's when the process ends, which
    aborts it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(use_threads=False)
