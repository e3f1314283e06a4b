"""Learning curves out of the table of metrics, small enough for a page."""

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

from attndyn.report.parts import Curves, NothingToShow

if TYPE_CHECKING:
    import pyarrow as pa

# About 110 kB of JSON a chart, and more points a line than a column of a paper can show.
POINTS_PER_CHART = 10_000
POINTS_PER_LINE = 300


def conditions_of(metrics: "pa.Table") -> list[str]:
    """All conditions of a run, in the order in which they were recorded."""
    return list(metrics["condition"].unique().to_pylist())


def lines(part: Curves, metrics: "pa.Table") -> list[dict[str, Any]]:
    """One record per condition, metric and replica: {condition, label, seed, step: […], value: […]}."""
    import pyarrow as pa
    import pyarrow.compute as pc

    labels = {part.metric: part.y_title} if isinstance(part.metric, str) else dict(part.metric)
    wanted = pc.is_in(metrics["metric"], pa.array(list(labels)))
    if part.conditions:
        wanted = pc.and_(wanted, pc.is_in(metrics["condition"], pa.array(list(part.conditions))))
    keys = ("condition", "metric", "replica", "step")
    table = metrics.filter(wanted).sort_by([(key, "ascending") for key in keys])
    rows = list(zip(*(table[key].to_pylist() for key in (*keys, "value")), strict=True))
    limit = max(20, min(POINTS_PER_LINE, POINTS_PER_CHART // max(1, len({row[:3] for row in rows}))))

    records = []
    for (condition, metric), group in groupby(rows, key=lambda row: row[:2]):
        replicas = list(group)
        # Thinned by step, not by index: the median at a step needs all replicas that have it.
        steps = sorted({step for *_, step, _ in replicas})
        kept = {steps[i] for i in thinned(len(steps), limit)}
        for seed, line in groupby(replicas, key=lambda row: row[2]):
            points = [(step, _short(value)) for *_, step, value in line if step in kept]
            if any(value is not None for _, value in points):
                step_column, value_column = map(list, zip(*points, strict=True))
                record = {"condition": condition, "label": labels[metric], "seed": seed}
                records.append(record | {"step": step_column, "value": value_column})
    if not records:
        where = f" for {', '.join(part.conditions)}" if part.conditions else ""
        raise NothingToShow(f"No values of {' or '.join(labels)} were recorded{where}.")
    return records


def thinned(count: int, limit: int) -> list[int]:
    """At most `limit` indices out of range(count), evenly spread, the first and the last among them."""
    if count <= limit:
        return list(range(count))
    return [i * (count - 1) // (limit - 1) for i in range(limit)]


def _short(value: float | None) -> float | None:
    return float(f"{value:.4g}") if value is not None and math.isfinite(value) else None
