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
    rows = metrics.filter(wanted).sort_by([(key, "ascending") for key in keys])
    columns = [rows[key].to_pylist() for key in (*keys, "value")]

    records = []
    for (condition, metric, seed), points in groupby(zip(*columns, strict=True), key=lambda row: row[:3]):
        steps, values = zip(*((step, _short(value)) for *_, step, value in points), strict=True)
        if any(value is not None for value in values):
            line = {"condition": condition, "label": labels[metric], "seed": seed}
            records.append(line | {"step": steps, "value": values})
    if not records:
        where = f" for {', '.join(part.conditions)}" if part.conditions else ""
        raise NothingToShow(f"No values of {' or '.join(labels)} were recorded{where}.")

    # Thinned by step, not by index: the median at a step needs all replicas that have it.
    limit = max(20, min(POINTS_PER_LINE, POINTS_PER_CHART // len(records)))
    for _, group in groupby(records, key=lambda record: record["condition"]):
        replicas = list(group)
        every = sorted({step for record in replicas for step in record["step"]})
        kept = {every[i] for i in thinned(len(every), limit)}
        for record in replicas:
            points = zip(record["step"], record["value"], strict=True)
            near = [(step, value) for step, value in points if step in kept]
            record["step"], record["value"] = [step for step, _ in near], [value for _, value in near]
    return records


def thinned(count: int, limit: int) -> list[int]:
    """At most `limit` indices out of range(count), evenly spread, the first and the last among them."""
    if count <= limit:
        return list(range(count))
    return [i * (count - 1) // (limit - 1) for i in range(limit)]


def _short(value: float | None) -> float | None:
    return float(f"{value:.4g}") if value is not None and math.isfinite(value) else None
