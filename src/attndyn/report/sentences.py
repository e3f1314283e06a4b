"""Coloured sentences: scores out of stored traces or as a study gives them, one byte each."""

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attndyn.report.maps import text_of
from attndyn.report.parts import NothingToShow, Scoring, Sentence, Sentences, TracedScoring, TracedSentences
from attndyn.report.series import thinned
from attndyn.report.source import Source

if TYPE_CHECKING:
    import numpy as np

# Words of a long text that are shown before the rest is unfolded.
SHOWN = 80


def read_sentences(run: Source, part: TracedSentences) -> Sentences:
    """The sentences that a part names, out of the traces of its replicas."""
    import numpy as np

    traces = [_traces(run, scoring, titled=bool(part.titles)) for scoring in part.scorings]
    first, last = (traces[0][step] for step in (min(traces[0]), max(traces[0])))
    for scoring, mine in zip(part.scorings, traces, strict=True):
        if not np.array_equal(mine[min(mine)]["source"], first["source"]):
            raise NothingToShow(f"{scoring.condition} kept other examples than {part.scorings[0].condition}.")
    held = len(first["source"])
    texts = run.tokens(part.scorings[0].condition)
    sentences = []
    for example in part.examples or range(held):
        if example >= held:
            raise NothingToShow(f"The traces of {part.scorings[0].condition} hold {held} examples, not {example + 1}.")
        length = int(first["lengths"][example])
        titled = bool(part.titles)
        title = part.titles[example] if titled else f"labelled {part.classes[int(first['target'][example])]}"
        if "answer" in last:
            title += f", probability {(1 + np.tanh(last['answer'][example] / 2)) / 2:.2f}"
        sentences.append(
            Sentence(
                title=title,
                words=tuple(text_of(texts, int(token)) for token in first["source"][example, :length]),
                scores=tuple(
                    shares(scores) if scoring.relative else scores
                    for scoring, mine in zip(part.scorings, traces, strict=True)
                    for scores in [np.stack([trace[scoring.kind][example, :length] for trace in mine.values()])]
                ),
            )
        )
    return Sentences(
        name=part.name,
        title=part.title,
        caption=part.caption,
        slider=part.slider,
        scorings=tuple(
            Scoring(label=scoring.label, signed=scoring.signed, most=scoring.most, steps=tuple(mine))
            for scoring, mine in zip(part.scorings, traces, strict=True)
        ),
        sentences=tuple(sentences),
    )


def shares(scores: "np.ndarray") -> "np.ndarray":
    """Of the largest of each step, whatever its sign."""
    import numpy as np

    scores = scores.astype(np.float64)
    largest = np.nan_to_num(np.abs(scores)).max(axis=1, keepdims=True)
    return np.divide(scores, largest, out=np.zeros_like(scores), where=largest > 0)


def _traces(run: Source, scoring: TracedScoring, titled: bool) -> "dict[int, dict[str, np.ndarray]]":
    try:
        steps = sorted(run.trace_steps(scoring.condition, scoring.replica))
    except KeyError:  # such a replica was not trained
        steps = []
    if not steps:
        raise NothingToShow(f"No traces were kept for {scoring.condition}, seed {scoring.replica}.")
    traces = {step: run.trace(scoring.condition, scoring.replica, step) for step in steps}
    for name in (scoring.kind, "source", "lengths", *([] if titled else ["target"])):
        if name not in traces[steps[0]]:
            raise NothingToShow(f"The traces of {scoring.condition} hold no {name}.")
    return traces


def content(part: Sentences, max_bytes: int) -> dict[str, Any]:
    """What the page shows: the words in the colours of the last step, and the levels of all steps for its script.
    Where these would pass `max_bytes`, evenly spread steps are kept."""
    import numpy as np

    if not part.sentences:
        raise NothingToShow("There are no sentences.")
    words = sum(len(sentence.words) for sentence in part.sentences)
    limit = max(2, max_bytes // max(1, words * len(part.scorings)))
    scorings: list[dict[str, Any]] = []
    rows: list[list[dict[str, Any]]] = [[] for _ in part.sentences]
    for number, scoring in enumerate(part.scorings):
        kept = thinned(len(scoring.steps), limit)
        scores = [np.asarray(sentence.scores[number], dtype=np.float64)[kept] for sentence in part.sentences]
        scores = [np.where(np.isfinite(some), some, np.nan) for some in scores]
        if not scoring.signed and any((some < 0).any() for some in scores):
            raise ValueError(f"sentences {part.name!r}: {scoring.label!r} is not signed, but has scores below 0")
        peak = max(float(np.nanmax(np.abs(some), initial=0)) for some in scores) or 1.0
        scorings.append(
            {
                "label": scoring.label,
                "signed": scoring.signed,
                "peak": peak,
                "most": scoring.most or peak,
                "steps": [scoring.steps[i] for i in kept],
            }
        )
        for row, some in zip(rows, scores, strict=True):
            found = levels(some, peak, scoring.signed)
            row.append({"levels": found, "last": [token(level, scorings[-1]) for level in found[-1].tolist()]})
    return {
        "slider": vars(part.slider),
        "steps": sorted({step for scoring in scorings for step in scoring["steps"]}),
        "scorings": scorings,
        "levels": [[base64.b64encode(one["levels"].tobytes()).decode() for one in row] for row in rows],
        "sentences": [
            {"title": sentence.title, "rows": [_row(sentence.words, one["last"]) for one in row]}
            for sentence, row in zip(part.sentences, rows, strict=True)
        ],
    }


def _row(words: Sequence[str], tokens: list[dict[str, Any]]) -> dict[str, Any]:
    """The words that are shown at once, and those that are folded away; a fold hides more than a line."""
    shown = [{"word": word, **token} for word, token in zip(words, tokens, strict=True)]
    cut = SHOWN if len(words) > SHOWN + 20 else len(words)
    return {"shown": shown[:cut], "folded": shown[cut:]}


def levels(scores: "np.ndarray", peak: float, signed: bool) -> "np.ndarray":
    """√ before rounding, as in the maps: 1 … 255 for 0 … peak, or for −peak … peak. 0: undefined."""
    import numpy as np

    size = np.sqrt(np.abs(np.nan_to_num(scores)) / peak)
    found = 128 + np.rint(127 * np.copysign(size, scores)) if signed else 1 + np.rint(254 * size)
    return np.where(np.isnan(scores), 0, found).astype(np.uint8)


def token(level: int, scoring: dict[str, Any]) -> dict[str, Any]:
    """How a word of that level looks: its shade, the side of 0 it lies on, its number (0 below a ten-thousandth of the
    largest). The page's script has a twin."""
    from numpy import format_float_positional

    share = (level - 128) / 127 if scoring["signed"] else (level - 1) / 254
    if level == 0 or abs(share) < 0.01:
        return {"shade": 0, "below": False, "number": "0" if level else "undefined"}
    value = format_float_positional(float(f"{scoring['peak'] * share * abs(share):.2g}"), trim="-")
    shade = min(1.0, abs(share) * (scoring["peak"] / scoring["most"]) ** 0.5)
    return {"shade": f"{shade:.2f}", "below": share < 0, "number": value.replace("-", "−")}
