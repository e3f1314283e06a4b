"""When a reading is due, and what it yields."""

import json

import pytest
import torch

from attndyn import spec
from attndyn.measures import focus, scores
from attndyn.measures.readings import Answers, Attention, Keep, Lexical, MeanState, Reading
from attndyn.models import Learned, Seq2Seq
from attndyn.probes.trace import Trace
from attndyn.tasks import PermutedCopy
from attndyn.training.condition import Likelihood

SEEDS = (0, 3)


@pytest.fixture
def trace() -> Trace:
    task = PermutedCopy(3, of=5)
    model = Seq2Seq(8).build(task.vocabulary, SEEDS)
    return Trace(model.eval(), Learned(), task.build(SEEDS).evaluation(6))


def read(reading: Reading, trace: Trace) -> dict[str, torch.Tensor]:
    pairs = list(reading.run(trace))
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)


@pytest.mark.parametrize(
    ("every", "last", "steps"), [(3, 10, [0, 3, 6, 9, 10]), (5, 10, [0, 5, 10]), (1, 3, [0, 1, 2, 3]), (9, 4, [0, 4])]
)
def test_a_reading_is_due_at_the_start_every_so_often_and_at_the_end(every: int, last: int, steps: list[int]) -> None:
    assert [step for step in range(last + 1) if Answers(every=every).due(step, last)] == steps


@pytest.mark.parametrize("kind", [Answers, Attention, Lexical, MeanState])
def test_a_metric_is_one_number_for_each_replica(kind: type[Reading], trace: Trace) -> None:
    for value in read(kind(every=1), trace).values():
        assert value.shape == (len(SEEDS),)
        assert not value.requires_grad
        assert value.isfinite().all()


def test_answers(trace: Trace) -> None:
    with torch.no_grad():
        logits, alpha = trace.model(trace.batch, Learned())
    found = read(Answers(every=1), trace)
    assert torch.equal(found["accuracy"], scores.accuracy(logits, trace.batch.target))
    assert torch.equal(found["loss"], Likelihood()(logits, alpha, trace.batch))


def test_attention_is_measured_at_and_beside_the_right_position(trace: Trace) -> None:
    found = read(Attention(every=1), trace)
    alpha, align = trace.alpha[:, :, 0], trace.batch.align
    assert torch.equal(found["attention entropy"], focus.normalised_entropy(alpha))
    assert torch.equal(found["attention mass end"], focus.mass_on_last(alpha))
    for name, offset in (("", 0), (" −1", -1), (" +1", 1)):
        assert torch.equal(found[f"attention right{name}"], focus.peak_share(alpha, align, offset))
        assert torch.equal(found[f"attention mass{name}"], focus.mass(alpha, align, offset))
    assert len(found) == 8


def test_lexical_and_mean_state(trace: Trace) -> None:
    assert torch.equal(read(Lexical(every=1), trace)["probe right"], focus.peak_share(trace.beta, trace.batch.align))
    spread = read(MeanState(every=1), trace)["mean state spread"]
    assert torch.equal(spread, focus.mean_state_spread(trace.states.keys))


@pytest.mark.parametrize("examples", [1, 2])
def test_keep_takes_the_first_examples(examples: int, trace: Trace) -> None:
    found = read(Keep(every=1, examples=examples), trace)
    assert {name: (tuple(value.shape), value.dtype) for name, value in found.items()} == {
        "alpha": ((2, examples, 1, 4, 4), torch.float16),
        "beta": ((2, examples, 4, 4), torch.float16),
        "source": ((2, examples, 4), torch.int32),
        "target": ((2, examples, 4), torch.int32),
        "align": ((2, examples, 4), torch.int32),
    }
    assert torch.equal(found["source"].long(), trace.batch.source[:, :examples])
    torch.testing.assert_close(found["alpha"].float(), trace.alpha[:, :examples], rtol=1e-3, atol=1e-4)


def test_readings_are_data() -> None:
    kinds = (Answers, Attention, Lexical, MeanState, Keep)
    assert len({spec.digest(kind(every=2)) for kind in kinds}) == len(kinds)
    assert (
        json.dumps(spec.encode(Keep(every=2))) == '{"kind": "Keep", "every": 2, "at": [], "on": "valid", "examples": 1}'
    )
