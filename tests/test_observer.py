"""Observing changes nothing, in any family of models: without readings, with them, and with them at every step training
ends in the same bits. Watched models that are not ours: tests/watching/test_observer.py."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attndyn import runner as module
from attndyn.measures.deceit import Apart
from attndyn.measures.head_readings import Heads
from attndyn.measures.knowledge_readings import LogitAndKnowledge
from attndyn.measures.pair_readings import BestAttention, PairScores, Translate
from attndyn.measures.readings import (
    Answers,
    Attention,
    Chunks,
    Flatness,
    Keep,
    Lexical,
    MeanState,
    Objective,
    Reading,
    RightWord,
    Scores,
)  # fmt: skip
from attndyn.models import Classifier, Seq2Seq, Translator
from attndyn.models.rules import Given
from attndyn.models.specs import ContextTagger, MultiHead, Proxy, Tagger
from attndyn.models.topic import Topic
from attndyn.plan import Unit
from attndyn.runner import Runner, Worker
from attndyn.studies.topic_runs import follow
from attndyn.tasks import Subsets
from attndyn.tasks.grammar import MadeChunks
from attndyn.tasks.keyword import Keyword
from attndyn.tasks.pieces import PieceText
from attndyn.tasks.topics import TopicWords
from attndyn.training.condition import Adam, Condition, Reference
from attndyn.training.precision import Precision
from attndyn.training.recorder import Recorder
from tests.tasks.test_pieces import folder
from tests.test_runner import silent

EVERY = 3
STEPS = 8
COPY = Condition(
    name="copying", task=Subsets(3, of=5), model=Seq2Seq(8), seeds=(0, 1), steps=STEPS, batch=4, evaluation=5,
    optimiser=Adam(lr=1e-2), readings=tuple(
        kind(every=EVERY) for kind in (Answers, Attention, Lexical, Flatness, RightWord, MeanState, Keep)
    ),
)  # fmt: skip
CLASSIFY = replace(
    COPY, name="classifying", task=Keyword(5, 6), model=Classifier(8, 8),
    readings=tuple(kind(every=EVERY) for kind in (Answers, Scores, LogitAndKnowledge)),
)  # fmt: skip
CHUNKING = MadeChunks(sentences=60)
TAG = replace(
    COPY, name="tagging", task=CHUNKING, model=Tagger(width=8, hidden=8, heads=2), best=("lowest loss",),
    readings=(Answers(every=EVERY), Chunks(every=EVERY, tags=CHUNKING.tags), Objective(every=EVERY)),
)  # fmt: skip
OF = Reference(condition=TAG, seeds=(0, 1), best="lowest loss")


def pieces(path: Path) -> PieceText:
    return PieceText(folder(path), None, "xx", "yy", pieces=28)


def translating(path: Path, head: str) -> list[Condition]:
    more = (BestAttention(every=EVERY),) if head == "linear" else ()
    ends = {"start": 2, "end": 3, "beams": 2, "longest": 8}
    readings = (Answers(every=EVERY), PairScores(every=EVERY), Translate(every=EVERY, **ends), *more)
    return [replace(COPY, task=pieces(path), model=Translator(hidden=8, head=head), readings=readings)]


def copying(spec: Any, *more: Reading) -> Callable[[Path], list[Condition]]:
    return lambda path: [replace(COPY, model=spec, readings=(*COPY.readings, *more))]


def classifying(spec: Any, *more: Reading) -> Callable[[Path], list[Condition]]:
    return lambda path: [replace(CLASSIFY, model=spec, readings=(*CLASSIFY.readings, *more))]


FAMILIES: dict[str, Callable[[Path], list[Condition]]] = {
    "seq2seq": copying(Seq2Seq(8)),
    "seq2seq, by the text": copying(Seq2Seq(8, reading="text")),
    "several heads, LSTM": copying(MultiHead(8, heads=2), Heads(every=EVERY)),
    "several heads, GRU": copying(MultiHead(8, heads=2, variant="authors"), Heads(every=EVERY)),
    "classifier": classifying(Classifier(8, 8)),
    "classifier, linear scores": classifying(Classifier(8, 8, scoring="linear", directions=1)),
    "classifier, each word for itself": classifying(Classifier(8, 8, scoring="tanh", encoder="average")),
    "proxy": lambda path: [replace(COPY, model=Proxy(8), readings=(Answers(every=EVERY), Lexical(every=EVERY)))],
    "translator": lambda path: translating(path, "hidden"),
    "translator, linear head": lambda path: translating(path, "linear"),
    "tagger": lambda path: [TAG],
    "tagger, given attention": lambda path: [
        TAG,
        replace(TAG, name="given", seeds=(7, 8), rule=Given(), of=OF),
        replace(TAG, name="context", seeds=(7, 8), rule=Given(), of=OF, model=ContextTagger(8, 8, heads=2)),
    ],
    "classifier, beside another": lambda path: [
        base := replace(CLASSIFY, best=("lowest loss",)),
        replace(
            CLASSIFY, name="beside", of=Reference(condition=base, seeds=(0, 1), best="lowest loss"),
            readings=(Answers(every=EVERY), Apart(every=EVERY)),
        ),
    ],
}  # fmt: skip


def observed(condition: Condition, how: str) -> Condition:
    """What chooses the best weights is read at its own steps always: it is part of the training."""
    own, others = condition.readings[: bool(condition.best)], condition.readings[bool(condition.best) :]
    seen = {"off": (), "on": others, "often": tuple(replace(one, every=1) for one in others)}
    return replace(condition, readings=(*own, *seen[how]))


def final_weights(path: Path, conditions: list[Condition], how: str, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    made: list[Worker] = []

    class Noted(Worker):
        def __init__(self, unit: Unit, device: str, precision: Precision, beside: int | None) -> None:
            super().__init__(unit, device, precision, beside)
            made.append(self)

    base = observed(conditions[0], how)  # the others refer to it
    rest = [observed(replace(one, of=one.of and replace(one.of, condition=base)), how) for one in conditions[1:]]
    with monkeypatch.context() as patch:
        patch.setattr(module, "Worker", Noted)
        Runner([base, *rest], Recorder(path / how), "cpu", silent).execute()
    assert [worker.trainer.step for worker in made] == [STEPS] * 2 * len(conditions)
    return [worker.trainer.optimiser.values for worker in made]


@pytest.mark.parametrize("family", FAMILIES)
def test_readings_off_on_and_at_every_step_end_in_the_same_bits(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions = FAMILIES[family](tmp_path / "data")
    off, on, often = (final_weights(tmp_path, conditions, how, monkeypatch) for how in ("off", "on", "often"))
    for one, other, third in zip(off, on, often, strict=True):
        assert torch.isfinite(one).all()
        assert torch.equal(one, other)
        assert torch.equal(one, third)


def test_every_kind_of_model_is_among_them(tmp_path: Path) -> None:
    """A new model spec needs a line above."""
    from attndyn.models import specs

    known = {kind for kind in vars(specs).values() if isinstance(kind, type) and issubclass(kind, specs.ModelSpec)}
    used = {type(one.model) for make in FAMILIES.values() for one in make(tmp_path)}
    assert used == known - {specs.ModelSpec}


def test_a_reading_that_disturbs_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above can fail."""

    def nudge(self: Answers, trace: Any) -> Any:
        next(trace.model.parameters()).data.mul_(1 + 1e-6)
        yield "loss", trace.logits.sum(dim=(1, 2, 3))

    monkeypatch.setattr(Answers, "run", nudge)
    off, on = (final_weights(tmp_path, [COPY], how, monkeypatch) for how in ("off", "on"))
    assert not any(torch.equal(one, other) for one, other in zip(off, on, strict=True))


@pytest.mark.parametrize("kind", ["FC", "TC", "TL"])
def test_the_topic_model_does_not_know_when_it_is_read(kind: Any) -> None:
    parts = TopicWords(dictionary=20, others=3, sentences=60).draw(0)
    found = []
    for at in ([0, 12], [0, 4, 8, 12], list(range(13))):
        model = Topic(kind).build(len(parts.train.words), len(parts.train.classes), 0)
        follow(model, parts, 0.5, at)
        found.append(model.weights)
    assert any((found[0][name] != 0).any() for name in ("keys",)), "it has learned"
    for other in found[1:]:
        assert all(np.array_equal(found[0][name], other[name]) for name in found[0])
