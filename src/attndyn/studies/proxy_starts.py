"""The corpora of the study `initial-derivative`, and what is measured on them at one draw of the initial weights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attndyn.errors import UserError
from attndyn.studies.base import Piece

if TYPE_CHECKING:
    from attndyn.tasks.text import Pairs
    from attndyn.theory.initial_derivative import Bags, Init

EVEN, ZIPF, LABELS = "20 → 15 words, even", "200 → 150 words, Zipf", "500 words → 2 labels, Zipf"
SENTENCES = "two sentences"
PYTORCH = ", PyTorch's start"

Corpora = dict[str, "tuple[Pairs, Bags]"]
Measured = Iterator[tuple[int, str, float]]


def made() -> Corpora:
    from attndyn.tasks import pairs
    from attndyn.theory.initial_derivative import bags

    corpora = {
        EVEN: pairs.translation(20, 15, 200, skew=0.0),
        ZIPF: pairs.translation(200, 150, 1000, skew=1.0),
        LABELS: pairs.labelled(500, 1000),
    }
    return {name: (corpus, bags(corpus)) for name, corpus in corpora.items()}


def real(inputs: str, outputs: str, vocabulary: int) -> Corpora:
    """The user's files, or else Multi30k if it is there, or else nothing."""
    from attndyn.tasks import pairs, text
    from attndyn.theory.initial_derivative import bags, centred

    if inputs and outputs:
        name, corpus = f"{Path(inputs).name} → {Path(outputs).name}", text.read_parallel(inputs, outputs)
    elif inputs:
        name, corpus = Path(inputs).name, text.read_labelled(inputs)
    elif files := multi30k():
        name, corpus = "Multi30k de → en", text.read_parallel(*files)
    else:
        return {}
    corpus = text.Pairs(*(pairs.frequent(side, vocabulary) for side in (corpus.source, corpus.target)))
    counted = bags(corpus)
    if abs(centred(counted.counts)).max() <= 1e-12 * counted.counts.max():
        raise UserError(f"{name}: all outputs are equally frequent beside every input word, so counts say nothing")
    return {name: (corpus, counted)}


def multi30k() -> tuple[Path, Path] | None:
    """Its German and English under $ATTNDYN_DATA, plain or compressed."""
    folder = os.environ.get("ATTNDYN_DATA", "")
    for ending in ("", ".xz", ".gz") if folder else ():
        source, target = (Path(folder) / "multi30k" / f"train.{language}{ending}" for language in ("de", "en"))
        if source.is_file() and target.is_file():
            return source, target
    return None


def two_sentences() -> tuple[Pairs, Bags]:
    from attndyn.tasks.text import pairs
    from attndyn.theory.initial_derivative import bags

    shared = ["this", "movie", "is"]
    corpus = pairs([[*shared, "great"], [*shared, "bad"]], [["positive"], ["negative"]])
    return corpus, bags(corpus)


def counts(corpora: Corpora) -> Iterator[Piece]:
    for name, (corpus, bags) in corpora.items():
        yield Piece(condition=name, measure=partial(_counts, corpus, bags), cost=30e-6 * len(corpus))


def flows(corpora: Corpora, width: int, seed: int) -> Iterator[Piece]:
    """The theorem's start on every corpus, PyTorch's on the last, the two sentences. Costs are seconds on one core."""
    last = list(corpora)[-1] if len(corpora) > 3 else ZIPF
    plan: list[tuple[str, str, Init]] = [(name, name, "theorem") for name in corpora]
    for name, of, init in [*plan, (last + PYTORCH, last, "pytorch")]:
        corpus, bags = corpora[of]
        inputs, outputs = bags.counts.shape
        tokens, words = len(corpus.source.ids), inputs + outputs
        cost = 5e-3 + 5e-9 * tokens * outputs + 2e-11 * words**2 * (width + words)
        measure = partial(_flow, corpus, bags, width, seed, init)
        yield Piece(condition=name, replica=seed, cost=cost, measure=measure)
    yield Piece(condition=SENTENCES, replica=seed, cost=1e-3, measure=partial(_drift, *two_sentences(), width, seed))


def _counts(corpus: Pairs, bags: Bags) -> Measured:
    """The count table against IBM Model 1's own pass, and the size of the corpus."""
    import numpy as np

    from attndyn.theory.initial_derivative import first_pass

    table = bags.counts
    passed = first_pass(corpus, np.full(table.shape, 1 / table.shape[1]))
    yield 0, "count table difference", float(np.abs(table - passed).max() / table.max())
    yield 0, "pairs", float(len(corpus))
    yield 0, "input words", float(table.shape[0])
    yield 0, "output words", float(table.shape[1])


def _flow(corpus: Pairs, bags: Bags, width: int, seed: int, init: Init) -> Measured:
    """The derivative at one draw of the weights, beside its limit."""
    import numpy as np

    from attndyn.theory import initial_derivative as theory

    inputs, outputs = bags.counts.shape
    direction = theory.centred(bags.counts)
    found = theory.flow(theory.start(inputs, outputs, width, seed=seed, init=init), bags)
    logits = found.logits
    fastest = np.take_along_axis(bags.counts, logits.argmax(axis=1)[:, None], axis=1)[:, 0]
    kept = np.average(fastest == bags.counts.max(axis=1), weights=corpus.source.counts)
    values = {
        "logit slope": theory.slope(logits, direction),
        "predicted logit slope": 2.0 if init == "theorem" else width + 1 / 3,
        "probability slope": theory.slope(found.probabilities, direction),
        "output slope": theory.slope(found.through_output, direction),
        "embedding slope": theory.slope(found.through_embeddings, direction),
        "top word kept": float(kept),
    }
    if init == "theorem":
        commonest = int((direction**2).sum(axis=1).argmax())
        apart = found.through_output - found.through_embeddings
        values |= {
            "error": theory.relative_error(logits, 2 * direction),
            "predicted error": theory.width_law(inputs, outputs, width),
            "commonest error": theory.relative_error(logits[commonest], 2 * direction[commonest]),
            "predicted commonest error": theory.row_law(bags.counts, commonest, width),
            "parts apart": float(np.linalg.norm(apart) / np.linalg.norm(direction)),
            "predicted θ slope": 2 / outputs,
        }
    yield from ((width, name, value) for name, value in values.items())


def _drift(corpus: Pairs, bags: Bags, width: int, seed: int) -> Measured:
    """How much the positive logit of the shared words moves, over how much that of “great” and “bad” does."""
    import numpy as np

    from attndyn.theory import initial_derivative as theory

    start = theory.start(len(corpus.source.words), 2, width, seed=seed)
    moved = theory.flow(start, bags).logits[:, corpus.target.words.index("positive")]
    shared = np.array([word not in ("great", "bad") for word in corpus.source.words])
    yield width, "drift", float(np.sqrt((moved[shared] ** 2).mean() / (moved[~shared] ** 2).mean()))
