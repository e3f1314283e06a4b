"""What the page of `tagger-adversary` shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attndyn.report.parts import Curves, Maps, Panel, Part, Points, Slider, Table, TracedScoring, TracedSentences
from attndyn.studies.exclusive import classifiers
from attndyn.studies.strengths import as_step
from attndyn.studies.tagger_claims import F1, Judge
from attndyn.studies.tagger_names import (
    BASE,
    FORWARD,
    RECOMPUTED,
    RUNS,
    SCATTERED,
    SEEDS,
    SWEEP,
    TRAINED,
    UNIFORM,
    UNIT,
    UNMASKED,
    adversary,
    given,
)
from attndyn.tasks.corpus import loaded

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics
    from attndyn.studies.tagger_adversary import TaggerAdversary

ELEMENT = "KL an element"


def parts(study: TaggerAdversary, metrics: Metrics) -> Iterator[Part]:
    judge = Judge(study, metrics)
    base = judge.end(BASE).mean()
    for metric, name, y, caption in (
        (F1, "f1", "F1 on the test sentences", f"Against the true tags; the base has {base:.3f}."),
        ("NLL", "nll", "NLL of the base's tags", "How well the base's own tags are kept."),
        (ELEMENT, "kl", ELEMENT, "Of the adversary's attention from the base's, over every element of the matrices: "
         "what λ multiplies. At λ 0 nothing asks for another attention; a fresh start finds one."),
    ):  # fmt: skip
        yield Points(
            name=name,
            title=f"{y} against λ",
            caption=f"{caption} Small points are seeds, the large one their mean with its 95 % interval.",
            metric=metric,
            x="λ",
            x_title="λ",
            y_title=y,
            conditions=(SWEEP,),
        )
    yield Points(
        name="safe-point",
        title="A safe point, or two states?",
        caption="Every adversary by how far its attention is from the base's and how badly it keeps the base's tags "
        "(figure 1 of the report, which has one run for each λ and a bend at .33).",
        metric="NLL",
        x=ELEMENT,
        x_title=f"{ELEMENT} from the base's attention",
        y_title="NLL of the base's tags",
        conditions=(RUNS,),
    )
    yield Points(
        name="plane",
        title="Attention and answers: how far from the base?",
        caption="The plane of Wiegreffe and Pinter 2019: divergence of attention (JSD, heads matched, at most ln 2 = "
        ".693) and of answers (total variation). Adversaries by λ, pairs of base runs, and taggers trained under "
        "uniform attention. At the published sizes also classifiers of deceptive-attention, as they were recorded: of "
        "each base the adversary that attends furthest at the same accuracy, and another seed.",
        metric="TVD",
        x="JSD matched",
        x_title="JSD of attention, heads matched",
        y_title="TVD of answers",
        conditions=(SWEEP, SEEDS, UNIFORM),
        told="λ",
        elsewhere=() if study.resized else tuple(recorded_points()),
    )
    yield sweep(judge)
    yield probes(judge)
    yield bases(judge)
    yield Curves(
        name="training",
        title="F1 on the validation sentences",
        caption="Along training; the epoch with the highest F1 is kept. A thin line is a run.",
        metric="F1",
        y_title="F1",
        conditions=tuple(name for name in (BASE, UNIFORM, TRAINED, given(BASE)) if name in metrics),
        y_domain=(0.0, 1.0),
    )
    yield from sentences(study)


def recorded_points() -> Iterator[tuple[str, str, float, float]]:
    """The classifiers of `deceptive-attention`, for the plane."""
    for corpus, found in classifiers().items():
        for base, (jsd, tvd) in enumerate(zip(found.jsd, found.tvd, strict=True)):
            yield "classifiers, furthest", f"{corpus}, base {base}", jsd, tvd
        yield "classifiers, another seed", corpus, found.seeds_jsd, found.seeds_tvd


def sweep(judge: Judge) -> Table:
    columns = (F1, "NLL", ELEMENT, "KL", "JSD", "JSD matched", "TVD", "rank τ")
    f1 = judge.along(F1)
    rows: list[tuple[str | float | int | None, ...]] = []
    for place, strength in enumerate(judge.strengths):
        means = [float(judge.along(column)[:, place].mean()) for column in columns]
        span = f"{f1[:, place].min():.3f} to {f1[:, place].max():.3f}"
        rows.append((adversary(strength), means[0], span, *means[1:], int(judge.broken[:, place].sum())))
    if SEEDS in judge.metrics:
        rest = [float(judge.end(SEEDS, column).mean()) for column in columns[1:]]
        rows.append((SEEDS, None, "", *rest, None))
    rest = [float(judge.end(UNIFORM, column).mean()) for column in columns[1:-1]]
    rows.append((UNIFORM, float(judge.end(UNIFORM).mean()), "", *rest, None, None))
    return Table(
        name="sweep",
        title="The adversaries in numbers",
        caption="Means over seeds, on the test sentences. KL: of a row of attention, in nats; divided by the mean "
        "number of words it is KL an element. rank τ: Kendall's τ of a row's weights with the base's, heads matched. "
        "Broken: F1 more than .05 below that of λ 0 with the same seed. Below: two base runs, and uniform attention.",
        columns=("run", "F1", "lowest to highest", *columns[1:], "broken seeds"),
        rows=tuple(rows),
    )


def probes(judge: Judge) -> Table:
    probed = [adversary(one) for one in judge.study.probed]
    rows: list[tuple[str | float | int | None, ...]] = [
        ("recomputed (the author's probe)", float(judge.end(RECOMPUTED).mean()), None),
        *((name, float(judge.end(given(name)).mean()), float(judge.end(f"{FORWARD}{given(name)}").mean()))
          for name in (BASE, *probed)),
        ("the base's weights on random words", *(float(judge.end(f"{p}{SCATTERED}").mean()) for p in ("", FORWARD))),
        ("uniform", float(judge.end(UNIFORM).mean()), float(judge.end(f"{FORWARD}{UNIFORM}").mean())),
    ]  # fmt: skip
    return Table(
        name="probes",
        title="What a new model makes of given attention",
        caption="Mean test F1. The same layer keeps its own way around the attention; the feed-forward probe (§6 of "
        "the report) sees nothing but what is attended to.",
        columns=("attention", "the same layer", "feed-forward probe"),
        rows=tuple(rows),
    )


def bases(judge: Judge) -> Table:
    names = {
        BASE: "base" + (", frozen word vectors" if judge.study.frozen else ""),
        TRAINED: "base, trained word vectors",
        UNMASKED: "base, padding can be attended to (the author's program)",
        UNIFORM: "uniform attention",
    }
    rows = [
        (label, float(judge.end(name).mean()), f"{judge.end(name).min():.3f} to {judge.end(name).max():.3f}")
        for name, label in names.items()
        if name in judge.metrics
    ]
    for metric, label in (("F1", "validation"), ("test F1", "test")):
        rows.append((f"base, stopped after 5 epochs without gain on the {label} sentences", judge.stopped(metric), ""))
    return Table(
        name="bases",
        title="The taggers",
        caption="Test F1; the published .90 was stopped on the test sentences.",
        columns=("tagger", "F1", "lowest to highest"),
        rows=tuple(rows),
    )


def sentences(study: TaggerAdversary) -> Iterator[Part]:
    test = loaded(study.task).test
    assert test is not None
    slider = Slider("λ", as_step(1.0, UNIT))
    adversaries = study.adversaries[0.0]
    seeds = {BASE: 0, adversaries: 1000}
    yield TracedSentences(
        name="sentences",
        title="Which words are looked at",
        caption="Attention that each word gets, from all words and heads together, in the first base run and in its "
        "adversary at the λ of the slider. Titles: the true tags.",
        scorings=tuple(
            TracedScoring(label=label, condition=condition, replica=seeds[condition], kind="received")
            for condition, label in ((BASE, "base"), (adversaries, "adversary"))
        ),
        titles=tuple(" ".join(test.target.line(line)[1:-1]) for line in study.lines),
        slider=slider,
    )
    yield Maps(
        name="heads",
        title="Where each head looks",
        caption="Rows: the word that is tagged; columns: the words it attends to. One test sentence, the first base "
        "run beside its adversary at the λ of the slider. A head of one need not be the same head of the other.",
        panels=tuple(
            Panel(title=label, condition=condition, replica=seeds[condition])
            for condition, label in ((BASE, "base"), (adversaries, "adversary"))
        ),
        kinds=(("alpha", "mean over heads"), *((f"head {n + 1}", f"head {n + 1}") for n in range(study.heads))),
        slider=slider,
    )
