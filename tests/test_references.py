"""Conditions that look at trained ones: who trains first, what is given, and that it does not move."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attndyn import plan as planning
from attndyn.errors import UserError
from attndyn.measures.readings import Answers, Chunks, Objective, Reading, Values
from attndyn.models.rules import Given, Learned, Scattered, Uniform
from attndyn.models.specs import Tagger
from attndyn.plan import Replica, Unit, plan
from attndyn.runner import Runner, Worker
from attndyn.tasks.grammar import MadeChunks
from attndyn.training.condition import Adam, Condition, Reference
from attndyn.training.objectives import AttendElsewhere
from attndyn.training.recorder import Recorder
from tests.test_runner import interrupting, results, silent

TASK = MadeChunks(sentences=60)


@dataclass(frozen=True, kw_only=True)
class KeepAlpha(Reading):
    """α of every example; evaluation sentences are in one slice."""

    def run(self, trace: Any) -> Values:
        yield "alpha", trace.alpha
        yield "given", trace.alpha if trace.batch.given is None else trace.batch.given


BASE = Condition(
    name="base", task=TASK, model=Tagger(width=8, hidden=8, heads=2), seeds=(0, 1), steps=6, batch=8, evaluation=6,
    optimiser=Adam(lr=0.2, warmup=4), readings=(Answers(every=2), Chunks(every=2, tags=TASK.tags), KeepAlpha(every=3)),
    best=("lowest loss",),
)  # fmt: skip
OF = Reference(condition=BASE, seeds=(0, 1), best="lowest loss")
PROBE = replace(BASE, name="probe", seeds=(7, 8), rule=Given(), of=OF)
ADVERSARY = replace(
    BASE, name="adversary", seeds=(5, 6), of=OF, objective=AttendElsewhere(1.0), best=("lowest objective",),
    readings=(Objective(every=2),),
)  # fmt: skip
LAST = replace(PROBE, name="last", of=Reference(condition=ADVERSARY, seeds=(6, 5), best="lowest objective"))
ALL = (LAST, PROBE, ADVERSARY, BASE)


def make(folder: Path, conditions: tuple[Condition, ...] = ALL, progress: Any = silent) -> Runner:
    return Runner(conditions, Recorder(folder), "cpu", progress)


def run(folder: Path, conditions: tuple[Condition, ...] = ALL) -> Runner:
    runner = make(folder, conditions)
    runner.execute()
    return runner


def traces(runner: Runner, condition: str, name: str) -> dict[int, list[torch.Tensor]]:
    """By step, of each seed."""
    from safetensors.torch import load_file

    found: dict[int, list[torch.Tensor]] = {}
    places = sorted(value for (one, _), value in runner.places.items() if one == condition)
    for chunk, place in places:
        for path in sorted((runner.recorder.folder / "traces" / f"chunk-{chunk:03d}").glob("*.safetensors")):
            arrays = load_file(path)
            if f"{place}.{name}" in arrays:
                found.setdefault(int(path.stem.removeprefix("step-")), []).append(arrays[f"{place}.{name}"])
    return found


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_is_looked_at_trains_first(device: str) -> None:
    chunks = plan(ALL, device)
    order = [replica.condition.name for chunk in chunks for unit in chunk for replica in unit.replicas]
    assert order == ["base"] * 2 + ["probe"] * 2 + ["adversary"] * 2 + ["last"] * 2
    stages = [{r.condition.stage for unit in chunk for r in unit.replicas} for chunk in chunks]
    assert all(len(stage) == 1 for stage in stages)


def test_a_given_attention_is_that_of_the_kept_base_and_does_not_move(tmp_path: Path) -> None:
    runner = run(tmp_path)
    alpha, brought = traces(runner, "probe", "alpha"), traces(runner, "probe", "given")
    assert sorted(alpha) == [0, 3, 6]
    for step in (0, 3, 6):
        for seed in range(2):
            assert torch.equal(alpha[step][seed], alpha[0][seed])
            assert torch.equal(alpha[step][seed], brought[step][seed])
    moving = traces(runner, "base", "alpha")
    assert not torch.equal(moving[0][0], moving[6][0])
    # the weights of the kept base give it
    kept = runner.recorder.kept(*runner.places["base", 1], "lowest loss")
    model = BASE.model.build(TASK.vocabulary, (1,), TASK.outputs).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(kept[name][None])
        (batch,) = TASK.build((1,)).slices(6, "valid", 10_000)
        _, expected = model(batch, Learned())
    assert torch.equal(expected[0], alpha[0][1])
    # the last ones look at the adversary of the other seed
    others = traces(runner, "last", "alpha")
    assert not torch.allclose(others[0][0], alpha[0][0])


def test_replicas_of_different_objectives_and_rules_train_as_one(tmp_path: Path) -> None:
    """As on a GPU, where they are one unit: λ, rule and reference are those of each replica."""
    strong = replace(ADVERSARY, name="strong", seeds=(5,), objective=AttendElsewhere(3.0),
                     of=Reference(condition=BASE, seeds=(1,), best="lowest loss"))  # fmt: skip
    scattered = replace(strong, name="scattered", rule=Scattered())
    conditions = (BASE, ADVERSARY, strong, scattered)
    runner = run(tmp_path, conditions)
    assert len({one.shape for one in conditions[1:]}) == 1
    units = [unit for chunk in runner.chunks for unit in chunk if unit.replicas[0].condition.stage]
    together = Worker(Unit(tuple(unit.replicas[0] for unit in units)), "cpu")
    together.trainer.refer(runner._referred(together.unit))
    for row, unit in enumerate(units):
        alone = Worker(unit, "cpu")
        alone.trainer.refer(runner._referred(unit))
        for trainer in (alone.trainer, together.trainer):
            for _ in range(2 if trainer is alone.trainer or not row else 0):
                trainer.advance()
        size = alone.trainer.optimiser.values.shape[1]
        ours = together.trainer.optimiser.values[row, :size]
        torch.testing.assert_close(ours, alone.trainer.optimiser.values[0], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "CHUNK", 1)  # a stage is more than one chunk
        return results(run(tmp_path_factory.mktemp("whole")))


@pytest.mark.parametrize("at", [8, 14, 20])
def test_interrupted_in_any_stage_is_uninterrupted(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: dict[str, bytes]
) -> None:
    monkeypatch.setattr(planning, "CHUNK", 1)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, progress=interrupting(at)).execute()
    assert results(run(tmp_path)) == uninterrupted


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"seeds": (0,)}, "its 2 runs are beside seeds"),
        ({"seeds": (0, 9)}, "its 2 runs are beside seeds"),
        ({"best": "highest F1"}, "no weights are kept there"),
        ({"condition": replace(BASE, task=MadeChunks(sentences=60, padding="seen"))}, "trained on other text"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        replace(PROBE, of=replace(OF, **changes))


def test_a_reference_must_be_trained_in_the_same_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'probe' looks at 'base', which is not trained here"):
        make(tmp_path, (PROBE,))


def test_given_attention_needs_a_reference(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing brings the weights"):
        run(tmp_path, (replace(BASE, rule=Given()),))
    run(tmp_path / "other", (replace(BASE, rule=Uniform()),))


def test_f1_of_all_slices_is_that_of_all_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    from attndyn import runner as module

    unit = plan([replace(BASE, seeds=(0,), evaluation=18, readings=(Chunks(every=1, tags=TASK.tags, on="test"),),
                         best=())], "cpu")[0][0]  # fmt: skip
    whole = dict(Worker(unit, "cpu").observe().values)
    monkeypatch.setattr(module, "TOKENS", 40)
    cut = Worker(unit, "cpu")
    assert len(cut.examples["test"]) > 3
    found = dict(cut.observe().values)
    assert set(found) == {"test chunks right", "test chunks found", "test chunks there", "test F1"}
    torch.testing.assert_close(found["test F1"], whole["test F1"])


def test_sentences_without_a_chunk_have_no_f1() -> None:
    """NaN, where no chunk is found either, would be passed over for a worse model's 0."""
    reading = Chunks(every=1, tags=("O",) * len(TASK.tags))
    unit = plan([replace(BASE, readings=(reading,), best=("highest F1",))], "cpu")[0][0]
    with pytest.raises(UserError, match="none of the sentences that are judged has a chunk"):
        Worker(unit, "cpu").observe()


def test_what_is_read_at_once_is_shared_with_the_replicas_of_other_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk has room for its share of the tokens, not for all of them."""
    from attndyn import runner as module

    monkeypatch.setattr(module, "TOKENS", 160)
    reading = Chunks(every=1, tags=TASK.tags)
    unit = plan([replace(BASE, seeds=(0,), evaluation=18, readings=(reading,), best=())], "cpu")[0][0]
    alone, shared = Worker(unit, "cpu"), Worker(unit, "cpu", beside=4)
    longest = [max(batch.source[0].numel() for batch in worker.examples["valid"]) for worker in (alone, shared)]
    assert longest[0] > 40 >= longest[1]
    whole, cut = (dict(worker.observe().values) for worker in (alone, shared))
    torch.testing.assert_close(cut["F1"], whole["F1"])


def test_the_objective_does_not_depend_on_how_the_sentences_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Into how many slices they are cut hangs on how many replicas are read at once."""
    from attndyn import runner as module

    conditions = [replace(ADVERSARY, evaluation=18, objective=AttendElsewhere(one)) for one in (1.0, 3.0)]
    unit = Unit(tuple(Replica(one, one.seeds[0], place) for place, one in enumerate(conditions)))
    found, counts = [], []
    for tokens in (80, 160, 1 << 13):
        monkeypatch.setattr(module, "TOKENS", tokens)
        worker = Worker(unit, "cpu")
        weights = {name: 3 * one.detach() for name, one in worker.trainer.model.named_parameters()}
        worker.trainer.refer({name: one.flip(0) for name, one in weights.items()})
        counts.append(len(worker.examples["valid"]))
        observed = worker.observe()
        assert observed is not None
        found.append(dict(observed.values))
    assert counts[0] > counts[1] > counts[2] == 1
    assert list(found[0]) == ["objective"]
    for one in found:
        torch.testing.assert_close(one["objective"], found[-1]["objective"])
