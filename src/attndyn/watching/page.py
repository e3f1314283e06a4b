"""The page of a watched run, made from its folder alone."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attndyn.errors import UserError
from attndyn.report import page
from attndyn.report.parts import Curves, Maps, Panel, Part, Table
from attndyn.store import atomic
from attndyn.store.folder import INFO, TRACES, Run, lost
from attndyn.store.metrics import Metrics, Row
from attndyn.watching.numbers import agree
from attndyn.watching.readings import MODEL, WORDS, head_label
from attndyn.watching.record import Record

COLOURED = 8
"""Curves that colours can tell apart; of more heads the layers' means are drawn."""
STAGE = 0.5
PAIRS = ("α, β", "α, Δ", "α, Δ left out", "β, Δ", "β, Δ left out", "Δ, Δ left out")


def write(folder: Path, formats: tuple[str, ...] = ("svg", "png")) -> Path:
    """Gathers the readings, compares each with the last, and builds the page."""
    record = Record(folder)
    check_kept(Run(folder), record)
    record.gather()
    run = Run(folder)
    record.gather(ends(run))
    run = Run(folder)
    metrics = Metrics(run.metrics)
    run.info["finding"] = finding(run, metrics)
    atomic.write_json(folder / INFO, run.info)
    return page.build(run, list(parts(run, metrics)), run.info["finding"], formats)


def check_kept(run: Run, record: Record) -> None:
    """The metrics are made of the readings, and would be written over with what is left of them."""
    steps = record.steps()
    if not steps and run.info["status"] != "finished":
        raise UserError(f"{run.path} holds no reading yet")
    gone = sorted({*steps} - {*run.trace_steps("layer 0", run.info["seed"])})
    if gone or not steps:
        what = f"{run.path / TRACES} has nothing of step {gone[0]}, which was read" if gone else lost(record.readings)
        raise UserError(f"{what}; the page cannot be made again")


def layers_of(run: Run) -> list[dict[str, Any]]:
    layers: list[dict[str, Any]] = run.info["layers"]
    return layers


def heads_of(run: Run) -> list[str]:
    """One condition for each head; for a layer with a single head, the layer's."""
    return [
        f"layer {i}" if layer["heads"] == 1 else head_label(i, head)
        for i, layer in enumerate(layers_of(run))
        for head in range(layer["heads"])
    ]


def ends(run: Run) -> Iterator[Row]:
    """How much the attention and the probe of each reading agree with the attention of the last one."""
    if not run.info["scored"]:
        return
    seed = run.info["seed"]
    for index, layer in enumerate(layers_of(run)):
        label = f"layer {index}"
        steps = run.trace_steps(label, seed)
        if not steps:
            return
        last = run.trace(label, seed, steps[-1])
        final, seen = torch.from_numpy(last["rows"]), torch.from_numpy(last["seen"]).bool()
        for step in steps:
            trace = run.trace(label, seed, step)
            heads = range(layer["heads"])
            betas = [trace.get(f"beta {head}", trace.get("beta all")) for head in heads]
            now = agree([(torch.from_numpy(trace["rows"][head]), final[head], seen) for head in heads])
            probed = [head for head in heads if betas[head] is not None]
            probe = agree([(torch.from_numpy(betas[head]), final[head], seen) for head in probed])
            where = [label] if len(heads) == 1 else [head_label(index, head) for head in heads]
            for head in heads:
                yield Row(where[head], seed, step, "α where α ends", now[head].mean)
            for head, agreed in zip(probed, probe, strict=True):
                yield Row(where[head], seed, step, "β where α ends", agreed.mean)
                yield Row(where[head], seed, step, "chance", agreed.chance)


def finding(run: Run, metrics: Metrics) -> str:
    layers = layers_of(run)
    entropy = [metrics.curves(f"layer {i}", "entropy").values[0] for i in range(len(layers)) if layers[i]["keys"] > 1]
    steps = sorted({int(step) for step in run.metrics["step"].unique().to_pylist()})
    many = sum(layer["heads"] for layer in layers)
    said = f"{many} head{'s' * (many > 1)} in {len(layers)} layer{'s' * (len(layers) > 1)}, "
    said += f"{len(steps)} readings up to step {steps[-1]}"
    if entropy:
        first, last = (float(np.nanmean([curve[i] for curve in entropy])) for i in (0, -1))
        said += f": the entropy of attention went from {first:.2f} to {last:.2f} (1 is uniform)"
    if MODEL in metrics:
        right = metrics.curves(MODEL, "probability of the right output").values[0]
        said += f", the probability of the right output from {right[0]:.2f} to {right[-1]:.2f}"
    said += "."
    if run.info["without"]:
        said += f" Left out: {'; '.join(run.info['without'])}."
    return said


def parts(run: Run, metrics: Metrics) -> Iterator[Part]:
    layers, heads = layers_of(run), heads_of(run)
    shown = tuple(heads if len(heads) <= COLOURED else [f"layer {i}" for i in range(len(layers))][:COLOURED])
    mean = "" if len(heads) <= COLOURED else " Each curve is the mean over the heads of a layer."
    yield Curves(
        name="entropy", title="How spread out the attention is",
        caption="Entropy of α over the logarithm of the number of positions a query may look at." + mean,
        metric="entropy", y_title="entropy of attention", conditions=shown, reference=1.0,
        reference_label="uniform",
    )  # fmt: skip
    yield Curves(
        name="sharpness", title="How sharp it is", caption="The largest weight of a query, on average." + mean,
        metric="sharpness", y_title="largest weight", conditions=shown,
    )  # fmt: skip
    if any(layer["queries"] > 1 for layer in layers):
        yield Curves(
            name="distance", title="How far it looks",
            caption="Mean distance between a query's position and the positions it looks at, weighted by α." + mean,
            metric="distance", y_title="positions", conditions=shown,
        )  # fmt: skip
    if run.info["scored"]:
        yield from scored_parts(run, metrics, shown)
    yield from maps(run)
    yield Table(
        name="layers",
        title="What was watched",
        caption="; ".join(f"left out: {why}" for why in run.info["without"])
        or "Layers in the order of the forward pass.",
        columns=("layer", "module", "heads", "queries", "keys"),
        rows=tuple(
            (i, *(layer[name] for name in ("module", "heads", "queries", "keys"))) for i, layer in enumerate(layers)
        ),
    )


def scored_parts(run: Run, metrics: Metrics, shown: tuple[str, ...]) -> Iterator[Part]:
    yield Curves(
        name="answers", title="How good the answers are", caption="On the fixed examples, in evaluation mode.",
        metric="probability of the right output", y_title="probability", conditions=(MODEL,), y_domain=(0.0, 1.0),
    )  # fmt: skip
    recorded = set(run.metrics["metric"].unique().to_pylist())
    known = "attention right" in recorded
    yield Curves(
        name="stages",
        title="When β finds the word, and when α does",
        caption="Share of outputs whose right position has the largest β and the largest α. A stage is reached above ½."
        if known
        else "Share of outputs where the position with the largest α, or β, of that step is among the highest 5 % of "
        "the attention that the run ended with; at the last step this is 1 for α by definition. Give align= to "
        "judge both by positions you know to be right. A stage is reached above ½; β is taken at fewer readings.",
        metric=(("probe right", "β, the probe"), ("attention right", "α, the attention"))
        if known
        else (("β where α ends", "β, the probe"), ("α where α ends", "α, the attention"), ("chance", "chance Â")),
        y_title="share of outputs",
        conditions=tuple(f"layer {i}" for i in range(len(layers_of(run))))[:COLOURED] if known else shown_heads(run),
        y_domain=(0.0, 1.0),
        reference=STAGE,
        reference_label="stage reached",
    )
    table = agreement_table(metrics)
    if table:
        yield Curves(
            name="agreement", title="Attention and influence",
            caption="A(α, Δ): is the position with the largest α among the highest 5 % of Δ, by gradient?",
            metric="A(α, Δ)" if "A(α, Δ)" in recorded else "A(α, β)", y_title="agreement", conditions=shown_heads(run),
            y_domain=(0.0, 1.0),
        )  # fmt: skip
        yield Table(
            name="agreements", title="Who agrees with whom, at the last probing",
            caption="A(u, v): the highest position of u is among the highest 5 % of v. Â: what a random order gets. "
            "The interval (95 %) comes from resampling examples; n counts outputs.",
            columns=("where", "pair", "A", "from", "to", "chance Â", "n"), rows=tuple(table),
        )  # fmt: skip
        yield Table(
            name="stage-steps", title="First step above one half",
            caption="– where it never was.", columns=("where", "β", "α"), rows=tuple(stage_steps(run, metrics, known)),
        )  # fmt: skip


def shown_heads(run: Run) -> tuple[str, ...]:
    return tuple(heads_of(run)[:COLOURED])


def agreement_table(metrics: Metrics) -> list[tuple[str | float | int | None, ...]]:
    rows: list[tuple[str | float | int | None, ...]] = []
    for condition in metrics.conditions:
        for pair in PAIRS:
            try:
                found = {
                    name: metrics.curves(condition, f"{name}({pair})").last[0]
                    for name in ("A", "low", "high", "Â", "n")
                }
            except KeyError:
                continue
            values = [
                None if math.isnan(found[name]) else round(float(found[name]), 3) for name in ("A", "low", "high", "Â")
            ]
            rows.append((condition, pair, *values, int(found["n"])))
    return rows


def stage_steps(run: Run, metrics: Metrics, known: bool) -> Iterator[tuple[str, int | None, int | None]]:
    names = ("probe right", "attention right") if known else ("β where α ends", "α where α ends")
    for condition in metrics.conditions:
        steps: list[int | None] = []
        for name in names:
            try:
                curve = metrics.curves(condition, name)
            except KeyError:
                break
            above = curve.values[0] > STAGE
            steps.append(int(curve.steps[above.argmax()]) if above.any() else None)
        if len(steps) == 2:
            yield condition, steps[0], steps[1]


def maps(run: Run) -> Iterator[Part]:
    seed = run.info["seed"]
    probed = run.trace_steps(WORDS, seed)
    held = len(run.trace(WORDS, seed, probed[0])["source"]) if probed else 0
    for i in range(min(2, held)):
        yield Maps(
            name=f"words-{i + 1}",
            title=f"Word by word: example {i + 1}",
            caption="α 0.1: the attention of head 1 in layer 0. β 0: the probe of layer 0, the probability of the "
            "right output if all of its attention sat on that word. Δ and loo: the influence of the word by gradient "
            "and by leaving it out, as a share of the largest.",
            panels=(Panel(title="α, β and Δ", condition=WORDS, replica=seed, example=i),),
            kinds=(("alpha", ""),),
        )
    yield Maps(
        name="maps",
        title="Watch it learn to look",
        caption="Attention on the first example, mean over heads: queries down, keys across.",
        panels=tuple(
            Panel(title=f"layer {i}", condition=f"layer {i}", replica=seed) for i in range(min(4, len(layers_of(run))))
        ),
        kinds=(("alpha", "attention α"),),
    )
