"""The statements of the study `learnability`, and how its runs decide them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from attndyn.studies.base import Judgement, Statement

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.metrics import Metrics
    from attndyn.studies.learnability import Learnability
    from attndyn.studies.outcomes import Outcomes

FLAT = 0.2
"""Spread of β (standard deviation over mean) below which it counts as flat; the small start has about .06 to .12."""
FACTOR = 1.5
BELOW = 1e-3
"""By which rounding may take a loss below the best one."""
OWN = "none: a question the papers leave open"

STATEMENTS = (
    Statement(
        id="S-21",
        source="§3.3",
        statement="on permutations the proxy cannot learn: its best answer gives every output word the same "
        "probability",
        published="exact",
        rule="holds if, from the small start, every proxy ends within .01 of the loss ln(L + 1) of that answer and not "
        f"below it, with a spread of β under {FLAT}; differs otherwise",
    ),
    Statement(
        id="S-26",
        source="A.3, fig. 6",
        statement="on the mixture the proxy learns which set, but β_px is the same at every position",
        published="exact (.25 in the four-letter picture)",
        rule="holds if, from the small start, every proxy ends within .05 of ln(L + 1), the loss of knowing the set, "
        f"and not below it, with a spread of β under {FLAT}; differs otherwise",
    ),
    Statement(
        id="S-34",
        source="§4.3, fig. 1",
        statement="counts alone point from “movie” to “Film”",
        published="β .04 .32 .04 .03 (fig.)",
        rule="in the count table of five sentence pairs of our own, Trans(movie|·) is largest at “film” among the "
        "words of its sentence: holds if so, else differs",
    ),
    Statement(
        id="S-35",
        source="§4.3, fig. 3",
        statement="on permutations the count table is flat and the alignment uniform",
        published="exact",
        rule="holds if the lift counted in drawn permutations is 1 to within 1e-9, else differs",
    ),
    Statement(
        id="O-08",
        source="slides, “dictionary”",
        statement="one sentence pair gives a flat count table, two pairs already tell words apart",
        published="counts 2/1/0 as printed, exact",
        rule="holds if the slides' first pair gives one count everywhere and both pairs give the counts 2, 1 and 0; "
        "else differs",
    ),
    Statement(
        id="N-01",
        source="this study",
        statement="the least signal is enough: with one word more than fits, more seeds learn than without signal",
        published=OWN,
        rule="Fisher's exact test between the two shares, one-sided: holds if p < .05, differs if p < .05 the other "
        "way",
    ),
    Statement(
        id="N-02",
        source="this study",
        statement="the larger the lift, the earlier β is right (k of n)",
        published=OWN,
        rule="Spearman's rank correlation between lift and the step of β over the runs with a lift above 1: holds if "
        "negative with p < .05, differs if positive with p < .05",
    ),
    Statement(
        id="N-03",
        source="this study",
        statement="the larger the lift, the earlier α is right (k of n)",
        published=OWN,
        rule="as N-02 with the step of α",
    ),
    Statement(
        id="N-04",
        source="this study",
        statement="one curve of β's step against the lift holds every family",
        published=OWN,
        rule="a line through log step against log (lift − 1), fitted to the runs of k of n; holds if the median step "
        f"of every other family's condition with a lift above 1 lies within a factor {FACTOR} of it, differs if not",
    ),
    Statement(
        id="N-05",
        source="this study",
        statement="runs without signal that fail in time, trained longer, copy without looking",
        published=OWN,
        rule="of the runs on permutations that fail, the share that in the end reaches .95 while α is on the right "
        "word at fewer than half of the positions: holds if its interval lies above ½, differs if below",
    ),
    Statement(
        id="N-06",
        source="this study",
        statement="a larger batch finds a weak signal earlier",
        published=OWN,
        rule="Spearman's rank correlation between batch size and the step of β at one lift: holds if negative with "
        "p < .05, differs if positive with p < .05",
    ),
)


def judge(study: Learnability, metrics: Metrics, runs: dict[str, Outcomes]) -> Iterator[tuple[str, Judgement]]:
    from attndyn.studies import learnability, outcomes

    yield from _proxies(study, metrics)
    yield from _tables(study, metrics)

    by_family: dict[str, list[learnability.Place]] = {}
    for place in study.places:
        by_family.setdefault(place.family, []).append(place)
    subsets = sorted(by_family[learnability.SUBSETS], key=lambda place: place.number)
    none, signal = runs[subsets[0].condition], subsets[1:]
    if signal:
        yield "N-01", outcomes.easier(runs[signal[0].condition], none)
    for id, of in (("N-02", "probe_at"), ("N-03", "attention_at")):
        pairs = [(study.lift(metrics, place), step) for place in signal for step in getattr(runs[place.condition], of)]
        yield id, earlier(pairs, "runs")
    curve = fit(study, metrics, runs)
    if curve is not None:
        yield "N-04", _one_curve(study, metrics, runs, curve)
    end = metrics.curves(study.permutations, "accuracy").last[~none.learned]
    looks = metrics.curves(study.permutations, "attention on word").last[~none.learned]
    yield "N-05", outcomes.share(int(((end >= 0.95) & (looks < 0.5)).sum()), len(end), "runs that fail in time")
    batches = by_family[learnability.BATCH]
    if len(batches) > 1:
        yield "N-06", earlier([(float(p.batch), step) for p in batches for step in runs[p.condition].probe_at], "runs")


def earlier(pairs: list[tuple[float, float]], of: str) -> Judgement:
    """The larger the first, the smaller the second; pairs without a second are left out."""
    import numpy as np
    from scipy.stats import spearmanr

    from attndyn.measures import verdicts

    kept = np.array([pair for pair in pairs if not math.isnan(pair[1])]).reshape(-1, 2)
    if len(kept) < 3 or len(set(kept[:, 0])) < 2 or len(set(kept[:, 1])) < 2:
        return Judgement(measured=f"{len(kept)} {of}: nothing to correlate", verdict=verdicts.INCONCLUSIVE, n=len(kept))
    rho, p = spearmanr(kept[:, 0], kept[:, 1])
    verdict = verdicts.INCONCLUSIVE
    if p < verdicts.LEVEL:
        verdict = verdicts.HOLDS if rho < 0 else verdicts.DIFFERS
    medians = ", ".join(f"{np.median(kept[kept[:, 0] == x, 1]):.0f}" for x in sorted(set(kept[:, 0])))
    return Judgement(
        measured=f"median steps {medians}; ρ = {rho:.2f}", n=len(kept), verdict=verdict, why=f"two-sided p = {p:.2g}"
    )


def fit(study: Learnability, metrics: Metrics, runs: dict[str, Outcomes]) -> Callable[[float], float] | None:
    """The step of β against the lift, log against log of what exceeds 1, over the runs of k of n; None: too few."""
    import numpy as np

    from attndyn.studies import learnability

    points = [
        (math.log(lift - 1), math.log(step))
        for place in study.places
        if place.family == learnability.SUBSETS and (lift := study.lift(metrics, place)) > 1
        for step in runs[place.condition].probe_at
        if step > 0
    ]
    if len({x for x, _ in points}) < 2:
        return None
    across, up = np.array(points).T
    slope, start = np.polyfit(across, up, 1)

    def step(lift: float) -> float:
        return math.exp(start + slope * math.log(lift - 1)) if lift > 1 else math.nan

    return step


def _one_curve(
    study: Learnability, metrics: Metrics, runs: dict[str, Outcomes], curve: Callable[[float], float]
) -> Judgement:
    import numpy as np

    from attndyn.measures import verdicts
    from attndyn.studies import learnability

    ratios = {}
    for place in study.places:
        steps = runs[place.condition].probe_at
        if place.family in (learnability.IID, learnability.ZIPF) and not np.isnan(steps).all():
            ratios[place.condition] = float(np.nanmedian(steps)) / curve(study.lift(metrics, place))
    if not ratios:
        return Judgement(measured="no other family reaches the stage", verdict=verdicts.INCONCLUSIVE)
    inside = all(1 / FACTOR <= ratio <= FACTOR for ratio in ratios.values())
    return Judgement(
        measured=f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f} times the step on the curve",
        n=len(ratios),
        verdict=verdicts.HOLDS if inside else verdicts.DIFFERS,
        why="; ".join(f"{name}: {ratio:.2f}" for name, ratio in ratios.items()),
    )


def _proxies(study: Learnability, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
    from attndyn.measures import verdicts

    best = math.log(study.length + 1)
    for id, which, above in (("S-21", "permutations", 0.01), ("S-26", "mixture", 0.05)):
        loss, spread = (_of_proxy(study, metrics, "small", which, metric) for metric in ("loss", "probe spread"))
        other = _of_proxy(study, metrics, "program's", which, "probe spread")
        fine = bool(((loss > best - BELOW) & (loss < best + above)).all() and (spread < FLAT).all())
        yield (
            id,
            Judgement(
                measured=f"loss {loss.min():.3f} to {loss.max():.3f} against {best:.3f}; spread of β "
                f"{spread.min():.2f} to {spread.max():.2f}",
                n=len(loss),
                verdict=verdicts.HOLDS if fine else verdicts.DIFFERS,
                why=f"from the start of the authors' program β_px keeps a spread of {other.min():.2g} to "
                f"{other.max():.2g}: it is not the same at every position, and says nothing",
            ),
        )


def _of_proxy(study: Learnability, metrics: Metrics, start: str, which: str, metric: str) -> np.ndarray:
    (name,) = [name for name in study.proxy_names(start) if name.endswith(which)]
    return metrics.curves(name, metric).last


def _tables(study: Learnability, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
    import numpy as np

    from attndyn.measures import verdicts
    from attndyn.studies import learnability
    from attndyn.theory import tables

    def verdict(fine: bool) -> str:
        return verdicts.HOLDS if fine else verdicts.DIFFERS

    source, target = (side.split() for side in tables.FIVE_PAIRS[0])
    row = tables.of_sentences(tables.FIVE_PAIRS).beta(source, target)[target.index("movie")]
    yield (
        "S-34",
        Judgement(
            measured="β " + " ".join(f"{value:.2f}" for value in row),
            verdict=verdict(int(row.argmax()) == source.index("film") and bool((row == row.max()).sum() == 1)),
            why="on five pairs of our own; the published numbers come with no corpus",
        ),
    )
    counted = metrics.curves(learnability.SUBSETS, "counted lift")
    lift = float(counted.values[0, counted.steps.tolist().index(study.length)])
    yield "S-35", Judgement(measured=f"lift 1 {lift - 1:+.1e}", verdict=verdict(abs(lift - 1) < 1e-9))
    one, two = tables.co_occurrences(tables.SLIDES[:1]), tables.co_occurrences(tables.SLIDES)
    values = [int(value) for value in np.unique(two)]
    yield (
        "O-08",
        Judgement(
            measured=f"one pair: {', '.join(map(str, np.unique(one).astype(int)))}; two pairs: "
            f"{', '.join(map(str, values))}",
            verdict=verdict(len(np.unique(one)) == 1 and values == [0, 1, 2]),
        ),
    )
