"""A trace computes each quantity once, when it is asked for, and changes nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from attndyn.measures.readings import Answers, Attention, Keep, Lexical, MeanState
from attndyn.models import Learned, Seq2Seq, Uniform
from attndyn.probes import trace as module
from attndyn.probes.trace import Trace
from attndyn.tasks import Permutations
from attndyn.training.condition import Adam, Condition
from attndyn.training.loop import Trainer

SEEDS = (0, 3)


@pytest.fixture
def trace() -> Trace:
    task = Permutations(3)
    return Trace(Seq2Seq(8).build(task.vocabulary, SEEDS).eval(), Learned(), task.build(SEEDS).evaluation(4))


def count_calls(monkeypatch: pytest.MonkeyPatch, trace: Trace) -> dict[str, int]:
    calls = dict.fromkeys(("encode", "scores", "read", "read_each"), 0)

    def counted(name: str, original):
        def call(*arguments):
            calls[name] += 1
            return original(*arguments)

        return call

    for name in calls:
        monkeypatch.setattr(trace.model, name, counted(name, getattr(trace.model, name)))
    return calls


def test_traces_are_computed_side_by_side(monkeypatch: pytest.MonkeyPatch, trace: Trace) -> None:
    both = threading.Barrier(2, timeout=30)
    encode = trace.model.encode

    def waits_for_the_other(batch):
        both.wait()
        return encode(batch)

    monkeypatch.setattr(trace.model, "encode", waits_for_the_other)
    other = Trace(trace.model, trace.rule, trace.batch)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda each: each.alpha, (trace, other))
    assert torch.equal(first, second)


def test_nothing_is_computed_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, trace: Trace) -> None:
    calls = count_calls(monkeypatch, trace)
    assert sum(calls.values()) == 0
    _ = trace.beta
    assert calls == {"encode": 1, "scores": 0, "read": 0, "read_each": 1}
    _ = trace.alpha
    assert calls == {"encode": 1, "scores": 1, "read": 0, "read_each": 1}
    _ = trace.logits
    assert calls == {"encode": 1, "scores": 1, "read": 1, "read_each": 1}


def test_everything_is_computed_once(monkeypatch: pytest.MonkeyPatch, trace: Trace) -> None:
    calls = count_calls(monkeypatch, trace)
    for _ in range(2):
        for kind in (Answers, Attention, Lexical, MeanState, Keep):
            list(kind(every=1).run(trace))
    assert calls == {"encode": 1, "scores": 1, "read": 1, "read_each": 1}


@pytest.mark.parametrize("rule", [Learned(), Uniform()])
def test_a_trace_is_the_forward_pass_under_its_rule(trace: Trace, rule) -> None:
    again = Trace(trace.model, rule, trace.batch)
    logits, alpha = trace.model(trace.batch, rule)
    assert torch.equal(again.logits, logits)
    assert torch.equal(again.alpha, alpha)
    expected = module.lexical_probe(trace.model, trace.model.encode(trace.batch), trace.batch.target)
    assert torch.equal(again.beta, expected)


def test_a_trace_holds_no_graph(trace: Trace) -> None:
    for value in (trace.alpha, trace.beta, trace.logits, *trace.states):
        assert not value.requires_grad


def test_observing_between_steps_changes_no_bit() -> None:
    condition = Condition(
        name="tiny", task=Permutations(3), model=Seq2Seq(8), seeds=SEEDS, steps=6, batch=4, optimiser=Adam(lr=1e-2)
    )
    watched, unwatched = Trainer(condition, SEEDS), Trainer(condition, SEEDS)
    examples = watched.task.evaluation(4)
    for _ in range(6):
        watched.model.eval()
        seen = Trace(watched.model, condition.rule, examples)
        _ = seen.logits, seen.beta
        watched.advance()
        unwatched.advance()
    for name, value in unwatched.state().items():
        assert torch.equal(watched.state()[name], value), name
