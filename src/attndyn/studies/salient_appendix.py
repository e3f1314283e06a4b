"""What `salient-words` compares beside table 1, most of it from the paper's appendix.

Tables 9 and 10 (A.6, A.10), the rise and fall along training (A.7), other seeds (A.9), word vectors (A.8); and
influence by leaving words out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch import Tensor

from attndyn.measures.estimates import interval, of_pairs
from attndyn.store.metrics import Row
from attndyn.studies.read_part import APART, entry, highest, of_others, spread
from attndyn.studies.salient_columns import Columns
from attndyn.studies.salient_entries import along, by_gold_run, difference
from attndyn.studies.salient_names import BLOG, CODE, COLUMNS, STANDARD, SUMMARY, UNIFORM, UNIFORM_OF, VECTORS
from attndyn.studies.salient_part import Part, left_out

RISE = "A(α, β_uf)"


def rest(columns: Columns) -> Iterator[Row]:
    """Frozen β (table 9), the logistic regression (table 10), counts, influence, other seeds."""
    part, golds, seeds = columns.part, columns.golds, columns.seeds
    frozen = [columns.frozen["α", CODE, g] for g in golds]
    yield from along(SUMMARY, "A(α, α_fr)", frozen, part.chance)
    yield from by_gold_run(SUMMARY, "A(α, α_fr)", np.stack([highest(each) for each in frozen]), seeds)
    for name in ("β_log", "β_count"):
        yield from along(SUMMARY, f"A({name}, β_uf)", [columns.uniform[name]], part.chance)
    yield from entry(SUMMARY, "A(β_uf, β_log)", columns.against(part.logistic)[None], part.chance_of(part.logistic))
    fixed = {
        "A(α, Δ)": columns.with_fixed({g: columns.deltas["Δ", CODE, g] for g in golds}),
        "A(α, β_count)": columns.with_fixed(dict.fromkeys(golds, part.counted)),
        "A(α, β of the same run)": np.stack([columns.probe["α", CODE, g][g, columns.gold[g]] for g in golds]),
    }
    for name, values in fixed.items():
        chance = part.chance_of(part.counted) if name == "A(α, β_count)" else part.chance
        yield from entry(SUMMARY, name, values, chance)
        yield from by_gold_run(SUMMARY, name, values, seeds)
    attended = of_others(np.stack([columns.attention["α", CODE, g][golds, columns.gold] for g in golds]))
    yield from entry(SUMMARY, "A(α, α of another seed)", attended, part.chance, of_pairs(attended))
    yield from by_gold_run(SUMMARY, "A(α, α of another seed)", attended, seeds)
    yield from _differences(columns)
    yield from _left_out(columns)


def _differences(columns: Columns) -> Iterator[Row]:
    """What is compared run by run and text by text."""
    first, fourth = columns.by_code(COLUMNS[0]), columns.by_code(COLUMNS[3])  # [gold, seed, text]
    shaped = fourth[:, :, None] - first[:, None]  # [gold, other, under uniform attention, text]
    frozen = np.stack([highest(columns.frozen["α", CODE, g]) for g in columns.golds])
    yield from difference("A(α, β_uf) minus A(α, α_fr)", first[:, :, None], frozen[:, None])
    yield from spread(SUMMARY, "A(α, β) minus A(α, β_uf)", shaped, of_pairs(shaped))
    logistic = highest(columns.uniform["β_log"])  # [seed, text]
    yield from difference("A(β_log, β_uf) minus A(β_px, β_uf)", logistic[None], columns.by_code(COLUMNS[1]))


def _left_out(columns: Columns) -> Iterator[Row]:
    """Influence by leaving words out, of the first standard run, beside α, the gradient and β_uf."""
    part, seed = columns.part, columns.seeds[0]
    texts, places, delta = left_out(part, seed)
    limits = texts.limits(delta)
    alpha = part.scores(STANDARD, seed, part.steps[columns.gold[0]], "alpha")[places]
    gradient = columns.deltas["Δ", CODE, 0][places]
    chosen = part.texts.text[places[texts.first]].cpu().numpy()
    peaks, curves = texts.peaks(delta), []
    for uniform in part.study.seeds_of(UNIFORM):
        each = [values[:, places] for _, values in part.along(UNIFORM, uniform, "beta")]
        curves.append(np.concatenate([texts.agreement(peaks, b, texts.limits(b)).cpu().numpy() for b in each]))
    for name, u in (("A(α, Δ_loo)", alpha), ("A(Δ, Δ_loo)", gradient)):
        agreed = texts.agreement(texts.peaks(u), delta, limits).cpu().numpy()
        yield from entry(SUMMARY, name, agreed[None], part.chance[chosen])
    yield from along(SUMMARY, "A(Δ_loo, β_uf)", [np.stack(curves)], part.chance[chosen])
    yield Row(SUMMARY, 0, 0, "texts with words left out", float(len(chosen)))


def gold_peaks(part: Part, condition: str) -> dict[int, Tensor]:
    """The peaks of α of each run of a condition, where its accuracy was highest."""
    at = part.accuracy(condition).argmax(axis=1)
    return {
        i: part.texts.peaks(part.scores(condition, seed, part.steps[at[i]], "alpha"))
        for i, seed in enumerate(part.study.seeds_of(condition))
    }


def with_vectors(part: Part) -> Iterator[Row]:
    """A(α, β_uf) of the runs with random and with given vectors, each against its own run under uniform attention."""
    for name in VECTORS:
        if name in part.metrics:
            found = part.agreeing(gold_peaks(part, name), UNIFORM_OF[name], "beta")
            yield from along(SUMMARY, f"{COLUMNS[0]}, {name}", list(found.values()), part.chance)


def curves(columns: Columns) -> Iterator[Row]:
    """A(α_gold, ·) along training, the mean over the golds of other runs."""
    part = columns.part
    uniform = np.stack([columns.uniform["α", CODE, g] for g in columns.golds])  # [gold, seed, step, text]
    for i, seed in enumerate(part.study.seeds_of(UNIFORM)):
        for step, value in zip(part.steps, uniform[:, i].mean(axis=(0, 2)), strict=True):
            yield Row(UNIFORM, seed, step, RISE, float(value))
    yield from rise_and_fall(uniform, part.steps)
    for name, found in (("A(α, β)", columns.probe), ("A(α, α)", columns.attention)):
        yield from stages(part, STANDARD, name, [found["α", CODE, g] for g in columns.golds])
    if BLOG in part.metrics:
        peaks = gold_peaks(part, BLOG)
        for name, kind in (("A(α, β)", "beta"), ("A(α, α)", "alpha")):
            yield from stages(part, BLOG, name, list(part.agreeing(peaks, BLOG, kind).values()))


def rise_and_fall(found: np.ndarray, steps: list[int]) -> Iterator[Row]:
    """A peak that is chosen and judged on the same texts cannot lie below the end: it is chosen on every second text,
    between the first and the last checkpoint, and the others tell how far it rises and falls, and by how much a maximum
    over checkpoints of their own inflates it. From [gold, seed, step, text]."""
    several = found.shape[-1] > 1
    chosen = found[..., ::2]
    judged = (found[..., 1::2] if several else found).astype(np.float64)
    inside = slice(1, -1) if len(steps) > 2 else slice(0, 1)
    peak = inside.start + int(chosen.mean(axis=(0, 1, 3))[inside].argmax())
    rise, fall = (interval(judged[:, :, peak] - judged[:, :, end], within=APART) for end in (0, -1))
    numbers = {
        f"peak step of {RISE}": steps[peak],
        f"peak of {RISE}": judged[:, :, peak].mean(),
        f"last of {RISE}": judged[:, :, -1].mean(),
        f"first of {RISE}": judged[:, :, 0].mean(),
        f"rise of {RISE} low": rise.low,
        f"rise of {RISE} high": rise.high,
        f"fall of {RISE} low": fall.low,
        f"fall of {RISE} high": fall.high,
    }
    for name, number in numbers.items():
        yield Row(SUMMARY, 0, 0, name, float(number))
    own, other = (
        np.take_along_axis(judged, half.mean(axis=3).argmax(axis=2)[:, :, None, None], axis=2)[:, :, 0]
        for half in (judged, chosen)
    )
    yield from spread(SUMMARY, f"inflation of {RISE}", own - other)


def stages(part: Part, condition: str, name: str, found: list[np.ndarray]) -> Iterator[Row]:
    """The agreement of each run with the gold attention of the others along training, and when it is half of its end;
    from [seed, step, text] for each gold run."""
    for h, seed in enumerate(part.study.seeds_of(condition)):
        rest = [each for g, each in enumerate(found) if g != h] or found
        curve = np.mean([each[h].mean(axis=1) for each in rest], axis=0)
        for step, value in zip(part.steps, curve, strict=True):
            yield Row(condition, seed, step, name, float(value))
        half = part.steps[int((curve >= curve[-1] / 2).argmax())]
        yield Row(condition, seed, 0, f"half of {name} at", float(half))
