"""Readings of heads and of logit and knowledge, against loops over positions."""

import pytest
import torch

from attndyn.measures.head_readings import Heads
from attndyn.measures.knowledge_readings import LogitAndKnowledge
from attndyn.models import Learned, Seq2Seq
from attndyn.models.specs import Classifier, MultiHead, Origins
from attndyn.probes.trace import Trace
from attndyn.tasks import Permutations
from attndyn.tasks.keyword import Keyword

TASK = Permutations(3)


def heads_of(variant: str):
    origins = [Origins(0, (1, 2, 3), 0), Origins(0, (4, 5, 6), 0)]
    model = MultiHead(8, heads=3, variant=variant).build(TASK.vocabulary, origins)
    with torch.no_grad():
        model.query.weight.mul_(30)  # so that heads look somewhere
    trace = Trace(model.eval(), Learned(), TASK.build([0, 1]).evaluation(6))
    return model, trace, dict(Heads(every=1).run(trace))


@pytest.mark.parametrize("variant", ["text", "authors"])
def test_heads_are_judged_one_by_one(variant: str) -> None:
    model, trace, found = heads_of(variant)
    batch = trace.batch
    for replica in range(2):
        right, left, in_place = [], [], []
        for head in range(3):
            peak = trace.alpha[replica, :, head].argmax(dim=-1)
            right.append((peak == batch.align[replica]).float().mean().item())
            for scale, into in ((1, left), (3, in_place)):
                only = torch.zeros_like(trace.alpha)
                only[:, :, head] = scale * trace.alpha[:, :, head]
                answers = model.read(trace.states, only)[replica].argmax(dim=-1)
                into.append((answers == batch.target[replica]).float().mean().item())
        assert found["attention right"][replica].item() == pytest.approx(max(right))
        assert right[int(found["head that looks"][replica])] == pytest.approx(max(right))
        assert found["heads that look"][replica].item() == sum(share > 0.5 for share in right)
        assert found["one head left"][replica].item() == pytest.approx(max(left))
        assert found["one head in place of all"][replica].item() == pytest.approx(max(in_place))


def test_one_head_left_of_one_is_the_model() -> None:
    model = MultiHead(8, heads=1).build(TASK.vocabulary, [3])
    trace = Trace(model.eval(), Learned(), TASK.build([3]).evaluation(6))
    whole = (trace.logits.argmax(dim=-1) == trace.batch.target).float().mean()
    found = dict(Heads(every=1).run(trace))
    assert found["one head left"].item() == found["one head in place of all"].item() == pytest.approx(whole.item())


@pytest.mark.parametrize("kind", ["translator", "classifier"])
def test_logit_and_knowledge_are_means_over_right_positions(kind: str) -> None:
    if kind == "translator":
        task, model = TASK, Seq2Seq(8).build(TASK.vocabulary, [0, 1])
    else:
        task = Keyword(5, 4)
        model = Classifier(width=6, hidden=8).build(4, [0, 1], 2)
    trace = Trace(model.eval(), Learned(), task.build([0, 1]).slices(6, "valid", 1 << 20)[0])
    found = dict(LogitAndKnowledge(every=1).run(trace))
    scores, batch = model.scores(trace.states)[:, :, 0], trace.batch
    for replica in range(2):
        logit, knowledge, attention = [], [], []
        for example in range(6):
            for query, place in enumerate(batch.align[replica, example].tolist()):
                if place < 0:
                    continue
                line, odds = scores[replica, example, query], trace.log_odds[replica, example, query]
                rest = [key for key in range(len(line)) if key != place]
                logit.append((line[place] - line[rest].exp().mean().log()).item())
                knowledge.append((odds[place] - odds[rest].mean()).item())
                attention.append(trace.alpha[replica, example, 0, query, place].item())
        for name, values in (("logit", logit), ("knowledge", knowledge), ("attention", attention)):
            assert found[name][replica].item() == pytest.approx(sum(values) / len(values), abs=1e-5)
    assert len(logit) == (6 * 4 if kind == "translator" else 3)


def test_the_logit_gives_the_attention_back() -> None:
    """α = eˣ/(m + eˣ), position by position; with one example and one query the means are the values."""
    task = Keyword(5, 4)
    model = Classifier(width=6, hidden=8).build(4, [0], 2)
    trace = Trace(model.eval(), Learned(), task.build([0]).slices(1, "valid", 1 << 20)[0])
    found = dict(LogitAndKnowledge(every=1).run(trace))
    grown = found["logit"].exp()
    torch.testing.assert_close(found["attention"], grown / (4 + grown))
