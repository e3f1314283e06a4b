"""The GPU computes what the CPU computes: the same data bit for bit, the same curves within tolerance."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attndyn.measures.readings import Answers, Attention, Lexical
from attndyn.models import Seq2Seq
from attndyn.runner import Runner
from attndyn.store.metrics import Metrics, to_table
from attndyn.tasks import Iid, PermutationMixture, Permutations, PermutedCopy, Subsets
from attndyn.training.condition import Condition
from attndyn.training.recorder import Recorder

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


def metrics(condition: Condition, device: str) -> Metrics:
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder))
        Runner([condition], recorder, device, lambda done, total, seconds, rows: None).execute()
    return Metrics(to_table(recorder.rows))


@pytest.mark.parametrize(
    "task",
    [Permutations(40), Subsets(40, of=60), PermutedCopy(40, of=60, relabel=True), PermutationMixture(40), Iid(40, 40)],
)
def test_the_tokens_are_the_same(task) -> None:
    here, there = (task.build([0, 7], device) for device in ("cpu", "cuda"))
    for step in (0, 15, 16, 199):
        for name in ("source", "shifted", "target", "align"):
            assert torch.equal(getattr(here.batch(step, 128), name), getattr(there.batch(step, 128), name).cpu())


def test_the_curves_are_the_cpus() -> None:
    here, there = metrics(CONDITION, "cpu"), metrics(CONDITION, "cuda")
    losses = [found.curves("control", "loss").values for found in (here, there)]
    assert np.abs(losses[0] - losses[1]).max() < 1e-3
    ends = [found.curves("control", "accuracy").last for found in (here, there)]
    assert np.abs(ends[0] - ends[1]).max() <= 0.01


def test_a_replica_does_not_know_its_neighbours() -> None:
    together = metrics(CONDITION, "cuda").curves("control", "loss").values[2]
    alone = metrics(replace(CONDITION, seeds=(2,)), "cuda").curves("control", "loss").values[0]
    assert np.abs(together - alone).max() < 1e-3
