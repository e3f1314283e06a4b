"""The page of the study `topic-words`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attndyn.report.parts import Cell, Curves, Part, Points, Scoring, Sentence, Sentences, Table
from attndyn.studies import topic_words as names

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics

SCORE, NORM = "score s = q·κ", "|q| |ν|"
RESIDUAL = "|predicted − measured| / final norm"


def figures(study: names.TopicWords, metrics: Metrics) -> Iterator[Part]:
    yield Points(
        name="identity",
        title="One curve for three classifiers",
        caption=f"All topic words of seed 0 along {study.epochs:,} epochs. Dashed: √(2 (s + (eˢ − 1)/m)) with "
        f"m = {study.others}, with nothing to fit.",
        metric="word norm", predicted="word norm predicted", x="word score", x_title=SCORE, y_title=NORM,
        conditions=names.KINDS,
    )  # fmt: skip
    yield Points(
        name="scatter",
        title="Topic words stand out",
        caption="FC, seed 0, at the end: all topic words, and every tenth of the other words. Dashed: the identity.",
        metric="final norm", predicted="final norm predicted", x="final score", x_title=SCORE, y_title=NORM,
        conditions=(names.TOPIC_END, names.OTHER_END),
    )  # fmt: skip
    yield Curves(
        name="promotion",
        title="Score and norm grow together",
        caption="Mean over the topic words; one line a seed.",
        metric=(("topic score", "score"), ("topic norm", NORM)), y_title="score, |q| |ν|", conditions=names.KINDS,
        x_title="epoch",
    )  # fmt: skip
    yield Curves(
        name="ablation",
        title="Frozen keys or embeddings slow training down",
        caption="Training loss from embeddings of σ = .1; KF: keys frozen, EF: embeddings frozen.",
        metric="loss", y_title="training loss", x_title="epoch",
        conditions=tuple(kind + ending for kind in ("FC", "TC") for ending in (names.FULL, *names.FROZEN)),
    )  # fmt: skip
    yield Curves(
        name="suppression",
        title="Down together before up together",
        caption="In each seed the topic word whose score falls lowest, from embeddings of σ = .1, until its score is "
        ".03 above its start: change since the start.",
        metric=(("change of score", "score"), ("change of norm", NORM)), y_title="change", x_title="epoch",
        conditions=("FC" + names.FULL, "TC" + names.FULL), y_domain=(-0.1, 0.15),
    )  # fmt: skip
    yield Points(
        name="law",
        title="How fast attention arrives",
        caption="What the topic words of seed 0 lack of all attention, with queries of three sizes. Dashed: "
        "2/(|q|²|ν|²), the law for large norms.",
        metric="unattended", predicted="unattended predicted", x="word norm square", x_title="|q|² |ν|²",
        y_title="1 − a", conditions=("FC", *names.QUERIES), log="xy",
    )  # fmt: skip
    yield Points(
        name="steps",
        title="The general form is exact as steps become small",
        caption="Worst topic word at step size × epochs = 100, dictionary of 500. Dashed: proportional to the step.",
        metric="general residual", predicted="first order", x="step size", x_title="step size",
        y_title=RESIDUAL, conditions=tuple(kind + names.STEP_SIZES for kind in names.KINDS), log="xy",
    )  # fmt: skip
    yield Points(
        name="dictionaries",
        title="The simple form needs a large dictionary",
        caption="FC, worst topic word and reading: the other words learn too when they come often.",
        metric="simple residual", x_title="other words |Θ|", y_title=RESIDUAL,
        conditions=(names.DICTIONARIES,), log="xy",
    )  # fmt: skip
    yield _table(study, metrics)
    if study.texts:
        yield from _on_text(study, metrics)


def _table(study: names.TopicWords, metrics: Metrics) -> Table:
    columns = {
        "test accuracy": "accuracy", "final loss": "loss", "score": "topic score", NORM: "topic norm",
        "attention": "attention", "largest other score": "largest other score", "drift of Σ s": "score sum drift",
        "drift of |q|² − Σ|κ|²": "balance drift", "simple form": "simple residual",
        "general form, all words": "general residual of all words",
    }  # fmt: skip
    return Table(
        name="ends",
        title="At the end",
        caption=f"Means over {study.seeds} seeds; of the simple form, at the last epoch.",
        columns=("model", *columns),
        rows=tuple(_row(metrics, name, list(columns.values())) for name in study.variants),
    )


def _row(metrics: Metrics, condition: str, wanted: list[str]) -> tuple[Cell, ...]:
    """Means over seeds of what was recorded last."""
    cells: list[Cell] = [condition]
    for metric in wanted:
        try:
            cells.append(float(f"{metrics.curves(condition, metric).last.mean():.3g}"))
        except KeyError:
            cells.append(None)
    return tuple(cells)


def _on_text(study: names.TopicWords, metrics: Metrics) -> Iterator[Part]:
    import numpy as np

    from attndyn.studies.topic_texts import sentence

    texts = [names.title(name) for name in study.texts]
    models = (*(f"{name}, {kind}" for name in texts for kind in names.WIDTHS), texts[0] + names.PADDED)
    first = f"{texts[0]}, FC"
    every = metrics.table["metric"].unique().to_pylist()
    yield Points(
        name="text",
        title="Real words beside the theory",
        caption="The 100 words with the highest scores at the end, seed 0; m is the mean number of words beside them. "
        "Dashed: exact agreement. With padding seen as a word, the m of the theory is not the m of the model.",
        metric="strength", predicted="strength if exact", x="predicted strength", x_title="predicted |q| |ν|",
        y_title="measured |q| |ν|", conditions=models,
    )  # fmt: skip
    for what, axis in (("frequency", "share of sentences that hold it"), ("purity", "purity")):
        yield Curves(
            name=f"competition-{what}",
            title=f"Who is attended to most: {what}",
            caption=f"{first}: mean {what} of the word with the highest score, in the training sentences that hold "
            "the word of the legend.",
            metric=tuple((f"{what} {word}", word) for word in study.followed if f"{what} {word}" in every) or what,
            y_title=axis, x_title="epoch", conditions=(first,),
        )  # fmt: skip
    found = {word: metrics.curves(first, metric) for metric, word in sentence(every)}
    epochs = next(iter(found.values())).steps
    yield Sentences(
        name="overtaking",
        title="One word overtakes another",
        caption=f"{first}, seed 0: attention in one training sentence over epochs, its words in the order of the "
        "dictionary.",
        scorings=(Scoring(label="attention", most=1.0, steps=tuple(int(epoch) for epoch in epochs)),),
        sentences=(
            Sentence(
                title=f"epochs {epochs[0]:,} to {epochs[-1]:,}",
                words=tuple(found),
                scores=(np.stack([curves.values[0] for curves in found.values()], axis=1),),
            ),
        ),
    )
    columns = {
        "test accuracy": "accuracy at the best epoch", "best epoch": "best epoch",
        "median error of the norm": "median error", "same, m of the model": "median error, m of the model",
        "score of the padding": "padding score", "general form, all words": "general residual of all words",
        "overtaken": "overtaken",
    }  # fmt: skip
    yield Table(
        name="texts",
        title="Real text",
        caption="Means over seeds. Error: |predicted − measured|/measured |q| |ν| of the 100 strongest words. "
        "Overtaken: training sentences whose strongest word is another at the end than after 100 epochs.",
        columns=("text, model", *columns),
        rows=tuple(_row(metrics, name, list(columns.values())) for name in models),
    )
