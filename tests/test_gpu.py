"""The GPU computes what the CPU computes: the same data bit for bit, the same curves within tolerance."""

import os
import signal
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load

from attndyn import runner as module
from attndyn.kernels.graph import tensors
from attndyn.measures.head_readings import Heads
from attndyn.measures.pair_readings import PairScores, Translate
from attndyn.measures.readings import Answers, Attention, Keep, Lexical, Scores
from attndyn.models import Classifier, Learned, Seq2Seq, Translator, Uniform
from attndyn.models.decoding import translate
from attndyn.models.specs import MultiHead, Origins
from attndyn.plan import Replica, Unit, listed
from attndyn.runner import Runner, Worker
from attndyn.store import atomic
from attndyn.store.folder import Run
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.tasks import Iid, PermutationMixture, Permutations, PermutedCopy, Subsets, Zipf
from attndyn.tasks.corpus import LabelledText
from attndyn.tasks.pieces import PieceText
from attndyn.training import recorder as recording
from attndyn.training.condition import Adam, Condition
from attndyn.training.precision import Precision, deterministic
from attndyn.training.recorder import Recorder
from tests.models.test_decoding import build

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS repeats itself to the bit
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

CONDITION = Condition(
    name="control",
    task=Subsets(12, of=18),
    model=Seq2Seq(64),
    seeds=(0, 1, 2, 3),
    steps=300,
    batch=64,
    readings=tuple(kind(every=20) for kind in (Answers, Attention, Lexical)),
)


def silent(done: int, total: int, seconds: float, rows: Sequence[Row]) -> None:
    pass


def make(folder: Path, *conditions: Condition, device: str = "cuda", progress: Any = silent, **options: Any) -> Runner:
    return Runner(conditions, Recorder(folder), device, progress, **options)


def metrics(*conditions: Condition, device: str = "cuda", **options: Any) -> Metrics:
    with tempfile.TemporaryDirectory() as folder:
        runner = make(Path(folder), *conditions, device=device, **options)
        runner.execute()
    return Metrics(to_table(runner.recorder.rows))


def losses(found: Metrics, condition: str = "control") -> np.ndarray:
    return found.curves(condition, "loss").values


@pytest.mark.parametrize(
    "task",
    [
        Permutations(40),
        Subsets(40, of=60),
        PermutedCopy(40, of=60, relabel=True),
        PermutationMixture(40),
        Iid(40, 40),
        Zipf(40, 60),
    ],
)
def test_the_tokens_are_the_same(task) -> None:
    here, there = (task.build([0, 7], device) for device in ("cpu", "cuda"))
    for step in (0, 15, 16, 199):
        for name in ("source", "shifted", "target", "align"):
            assert torch.equal(getattr(here.batch(step, 128), name), getattr(there.batch(step, 128), name).cpu())


@pytest.fixture(scope="module")
def here() -> Metrics:
    return metrics(CONDITION, device="cpu")


@pytest.mark.parametrize(("precision", "most"), [("fp32", 1e-3), ("tf32", 0.05), ("bf16", 0.2)])
def test_the_curves_are_the_cpus(here: Metrics, precision: Precision, most: float) -> None:
    there = metrics(CONDITION, precision=precision)
    assert np.abs(losses(here) - losses(there)).max() < most
    ends = [found.curves("control", "accuracy").last for found in (here, there)]
    assert np.abs(ends[0] - ends[1]).max() <= 0.01


def test_a_replica_does_not_know_its_neighbours() -> None:
    uniform = replace(CONDITION, name="uniform", rule=Uniform())
    together = metrics(CONDITION, uniform)
    for condition in (CONDITION, uniform):
        alone = metrics(replace(condition, seeds=(2,)))
        assert np.abs(losses(together, condition.name)[2] - losses(alone, condition.name)[0]).max() < 1e-3
    assert np.abs(losses(together) - losses(together, "uniform")).max() > 0.1


@pytest.mark.parametrize("variant", ["text", "authors"])
def test_several_heads_learn_as_on_the_cpu(tmp_path: Path, variant: str) -> None:
    """Whatever heads, base and data a replica has, replicas with equally many heads are one program."""
    origins = tuple(Origins(base, (4 * base, 1, 2), base) for base in range(4))
    several = replace(
        CONDITION,
        model=MultiHead(64, heads=3, variant=variant),
        origins=origins,
        steps=100,
        readings=(Answers(every=20), Heads(every=100)),
    )
    found = [metrics(several, device=device, precision="fp32") for device in ("cpu", "cuda")]
    assert np.abs(losses(found[0]) - losses(found[1])).max() < 1e-3
    for name in ("one head left", "one head in place of all"):
        ends = [one.curves("control", name).last for one in found]
        assert np.abs(ends[0] - ends[1]).max() <= 0.02
    runner = make(tmp_path, several, replace(several, name="other"))
    assert [[len(unit.replicas) for unit in chunk] for chunk in runner.chunks] == [[8]]


def test_learned_and_uniform_are_one_program(tmp_path: Path) -> None:
    runner = make(tmp_path, CONDITION, replace(CONDITION, name="uniform", rule=Uniform()))
    assert [[len(unit.replicas) for unit in chunk] for chunk in runner.chunks] == [[8]]
    (measured,) = runner.memory
    assert 0 < measured["each more"] <= measured["one replica"] < measured["free"]


def test_programs_side_by_side_train_as_they_do_alone(tmp_path: Path) -> None:
    """Two shapes on two streams, one of them with fewer steps: the same bits."""
    wider = replace(CONDITION, name="wider", model=Seq2Seq(96), steps=200)
    runner = make(tmp_path, CONDITION, wider)
    assert [[len(unit.replicas) for unit in chunk] for chunk in runner.chunks] == [[4, 4]]
    together = metrics(CONDITION, wider, repeatable=True)
    for condition in (CONDITION, wider):
        alone = metrics(condition, repeatable=True)
        np.testing.assert_array_equal(losses(together, condition.name), losses(alone, condition.name))


def test_what_does_not_fit_is_trained_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (measured,) = make(tmp_path / "whole", CONDITION).memory
    wanted = measured["one replica"] + 1.5 * measured["each more"]  # room for two
    monkeypatch.setattr(module, "MEMORY_SHARE", wanted / measured["free"])
    runner = make(tmp_path / "split", CONDITION)
    assert [[unit.seeds for unit in chunk] for chunk in runner.chunks] == [[(0, 1)], [(2, 3)]]
    runner.execute()
    split = losses(Metrics(to_table(runner.recorder.rows)))
    assert np.abs(split - losses(metrics(CONDITION))).max() < 1e-3


def test_the_memory_measured_is_the_memory_taken(tmp_path: Path) -> None:
    condition = replace(CONDITION, seeds=tuple(range(64)), steps=40)
    runner = make(tmp_path, condition)
    (measured,) = runner.memory
    predicted = measured["one replica"] + 63 * measured["each more"]
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    runner.execute()
    taken = torch.cuda.max_memory_reserved() - before
    assert predicted / 2 < taken < predicted / module.MEMORY_SHARE


def test_traces_leave_the_gpu_while_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written in small portions, while graphs are recorded and replayed, or all in the end: the same."""
    condition = replace(CONDITION, steps=60, readings=(*CONDITION.readings, Keep(every=1, examples=8)))
    found = []
    for name, many in (("at once", 0), ("in the end", 1 << 40)):
        monkeypatch.setattr(recording, "MANY", many)
        runner = make(tmp_path / name, condition, repeatable=True)
        runner.execute()
        files = sorted((tmp_path / name / "traces").rglob("*.safetensors"))
        found.append({path.name: load(path.read_bytes()) for path in files})
    assert len(found[0]) == 61
    for step, arrays in found[0].items():
        assert arrays.keys() == found[1][step].keys()
        assert all(torch.equal(value, found[1][step][key]) for key, value in arrays.items())


@pytest.mark.parametrize("repeatable", [False, True])
def test_interrupted_is_uninterrupted(tmp_path: Path, repeatable: bool) -> None:
    """Within tolerance; to the bit where that was asked for."""
    whole = losses(metrics(CONDITION, repeatable=repeatable))

    def interrupt(done: int, total: int, seconds: float, rows: Sequence[Row]) -> None:
        if done > total / 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, CONDITION, progress=interrupt, repeatable=repeatable).execute()
    continued = make(tmp_path, CONDITION, repeatable=repeatable)
    assert continued.recorder.resume() is not None
    continued.execute()
    found = losses(Metrics(to_table(continued.recorder.rows)))
    assert found.shape == whole.shape
    assert np.array_equal(found, whole) if repeatable else np.abs(found - whole).max() < 1e-3


def test_observing_changes_nothing(tmp_path: Path) -> None:
    """Under --deterministic to the bit, as on a CPU."""
    ends = []
    for number, every in enumerate((20, 7)):
        readings = tuple(replace(reading, every=every) for reading in CONDITION.readings)
        unit = Unit(tuple(Replica(CONDITION, seed, seed) for seed in CONDITION.seeds))
        worker = Worker(replace_readings(unit, readings if number else ()), "cuda")
        with deterministic(True), torch.cuda.stream(torch.cuda.Stream()):
            worker.advance(60, threading.Event())
        ends.append(worker.trainer.optimiser.values)
    assert torch.equal(*ends)


def replace_readings(unit: Unit, readings: tuple[Any, ...]) -> Unit:
    return Unit(tuple(replace(r, condition=replace(r.condition, readings=readings)) for r in unit.replicas))


def test_a_replica_that_diverges_is_found_without_looking(tmp_path: Path) -> None:
    broken = replace(CONDITION, optimiser=Adam(lr=(1e-3, 1e38, 1e-3, 1e-3)))
    runner = make(tmp_path, broken)
    runner.execute()
    assert [entry["replica"] for entry in runner.diverged] == [1]
    found = Metrics(to_table(runner.recorder.rows)).curves("control", "loss")
    sound = losses(metrics(CONDITION))
    rows = [row for row in runner.recorder.rows if row.metric == "loss" and row.replica != 1]
    assert len(rows) == 3 * len(found.steps)
    assert all(abs(row.value - sound[row.replica][list(found.steps).index(row.step)]) < 1e-3 for row in rows)


def test_a_translator_with_dropout_follows_the_cpu() -> None:
    """Pairs of different lengths, masks of dropout by counter, steps recorded as graphs of several shapes."""
    usual = {"every": 20, "start": 2, "end": 3, "longest": 12}
    condition = Condition(
        name="control",
        task=PieceText("tatoeba_de_en_small", pieces=600),
        model=Translator(hidden=32),
        seeds=(0, 1),
        steps=60,
        batch=16,
        evaluation=40,
        readings=(Answers(every=20), PairScores(every=20), Translate(**usual)),
    )
    other = replace(condition, name="uniform", rule=Uniform(), seeds=(2,))
    here, there = (metrics(condition, other, device=device) for device in ("cpu", "cuda"))
    for name in ("control", "uniform"):
        np.testing.assert_allclose(losses(there, name), losses(here, name), rtol=1e-3)


def test_beam_search_finds_what_it_finds_on_a_cpu() -> None:
    """20 steps: two graphs of eight, and four steps more."""
    model, batch = build((0, 4))
    limits = {"start": 2, "end": 3, "beams": 4, "longest": 20}
    here = translate(model, Learned(), batch, **limits)
    moved = replace(batch, **{name: value.cuda() for name, value in tensors(batch).items()})
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):  # recorded, and not
        with torch.cuda.stream(stream):
            there = translate(model.cuda(), Learned(), moved, **limits)
        assert torch.equal(there.pieces.cpu(), here.pieces)
        torch.testing.assert_close(there.scores.cpu(), here.scores, rtol=1e-4, atol=1e-4)
    assert (here.pieces[..., -1] != 3).all(), "none ends before"


# Texts of different lengths

TEXTS = Condition(
    name="texts",
    task=LabelledText("sms_spam"),
    model=Classifier(width=32, hidden=32),
    seeds=(0, 1),
    steps=60,
    batch=32,
    evaluation=200,
    readings=(Answers(every=20), Scores(every=20)),
)


def scores(folder: Path, device: str, condition: Condition = TEXTS) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The losses, and what is kept of the first seed at the last step."""
    runner = make(folder, condition, device=device)
    runner.execute()
    atomic.write_json(folder / "run.json", {"study": "texts", "status": "running", "replicas": listed(runner.chunks)})
    return losses(Metrics(to_table(runner.recorder.rows)), "texts"), Run(folder).trace("texts", 0, condition.steps)


def test_texts_are_read_as_on_the_cpu(tmp_path: Path) -> None:
    (here, kept), (there, found) = (scores(tmp_path / device, device) for device in ("cpu", "cuda"))
    assert np.abs(here - there).max() < 1e-3
    for name in ("alpha", "beta", "delta", "answer"):
        assert kept[name].shape == found[name].shape
        assert np.abs(kept[name] - found[name]).max() < 1e-2 * max(1, np.abs(kept[name]).max()), name


def test_a_text_classifier_does_not_know_its_neighbours(tmp_path: Path) -> None:
    uniform = replace(TEXTS, name="uniform", rule=Uniform(), seeds=(5,))
    together = metrics(TEXTS, uniform)
    for condition in (TEXTS, uniform):
        alone = metrics(replace(condition, seeds=condition.seeds[-1:]))
        assert np.abs(losses(together, condition.name)[-1] - losses(alone, condition.name)[0]).max() < 1e-3


def test_each_class_of_lengths_is_recorded_once(tmp_path: Path) -> None:
    (chunk,) = make(tmp_path, replace(TEXTS, steps=200)).chunks
    worker = Worker(chunk[0], "cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        worker.advance(200, threading.Event())
    assert 1 < len(worker.trainer.learn.recorded) <= 12
