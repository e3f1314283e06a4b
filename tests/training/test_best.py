"""The weights are kept where a reading was lowest, each replica's own, also through an interruption."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attndyn.errors import UserError
from attndyn.measures.readings import Answers
from attndyn.models import Seq2Seq
from attndyn.plan import listed
from attndyn.runner import Runner
from attndyn.store.folder import Run
from attndyn.store.metrics import Metrics, to_table
from attndyn.tasks import Permutations
from attndyn.training.best import Best
from attndyn.training.condition import Adam, Condition
from attndyn.training.loop import Trainer
from attndyn.training.recorder import Recorder

# so large a rate that the loss rises and falls
WILD = Condition(
    name="wild", task=Permutations(3), model=Seq2Seq(8), seeds=(0, 1, 2), steps=20, batch=4, evaluation=8,
    optimiser=Adam(lr=0.3), readings=(Answers(every=1),), best=("lowest loss",),
)  # fmt: skip


def train(folder: Path, condition: Condition = WILD, stop_at: int = 0) -> Runner:
    def progress(done: int, total: int, seconds: float, rows: object) -> None:
        if stop_at and done >= stop_at:
            import signal

            signal.raise_signal(signal.SIGINT)

    runner = Runner([condition], Recorder(folder), "cpu", progress)
    runner.execute()
    return runner


def test_what_is_lower_is_taken_over() -> None:
    best = Best("lowest loss", torch.zeros(2, 3))
    best.update(torch.tensor([2.0, 5.0]), 1, torch.full((2, 3), 1.0))
    best.update(torch.tensor([3.0, 4.0]), 2, torch.full((2, 3), 2.0))
    best.update(torch.tensor([2.0, torch.nan]), 3, torch.full((2, 3), 3.0))  # neither equal nor undefined is lower
    assert best.weights[:, 0].tolist() == [1.0, 2.0]
    assert best.value.tolist() == [2.0, 4.0]
    assert best.step.tolist() == [1, 2]


def test_each_replica_keeps_the_weights_of_its_lowest_loss(tmp_path: Path) -> None:
    from attndyn.store import atomic

    runner = train(tmp_path)
    losses = Metrics(to_table(runner.recorder.rows)).curves("wild", "loss")
    steps = losses.values.argmin(axis=1)
    assert len(set(steps.tolist())) > 1
    assert steps.max() < 20, "the last step is no test"
    atomic.write_json(tmp_path / "run.json", {"study": "wild", "status": "running", "replicas": listed(runner.chunks)})
    run = Run(tmp_path)
    for seed, step in zip(WILD.seeds, steps.tolist(), strict=True):
        trainer = Trainer(WILD, [seed])
        for _ in range(step):
            trainer.advance()
        kept = run.weights("wild", seed, "lowest loss")
        for name, parameter in trainer.model.named_parameters():
            assert np.array_equal(kept[name], parameter[0].detach().numpy())


def test_an_interruption_changes_nothing(tmp_path: Path) -> None:
    train(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", stop_at=30)
    train(tmp_path / "run")
    one, other = ((tmp_path / name / "weights" / "chunk-000.safetensors").read_bytes() for name in ("whole", "run"))
    assert one == other


def test_without_a_metric_nothing_is_kept(tmp_path: Path) -> None:
    from attndyn.store import atomic

    runner = train(tmp_path, replace(WILD, best=()))
    assert not (tmp_path / "weights").exists()
    atomic.write_json(tmp_path / "run.json", {"study": "wild", "status": "running", "replicas": listed(runner.chunks)})
    with pytest.raises(UserError, match="no weights of 'wild' were kept at 'lowest loss'"):
        Run(tmp_path).weights("wild", 0, "lowest loss")


def test_a_metric_that_is_not_measured_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no reading gives 'lost'; there are accuracy, loss"):
        train(tmp_path, replace(WILD, best=("lowest lost",)))


def test_the_highest_can_be_wanted_too() -> None:
    best = Best("highest accuracy", torch.zeros(1, 2))
    for step, value in enumerate((0.5, 0.9, 0.9, 0.7)):
        best.update(torch.tensor([value]), step, torch.full((1, 2), float(step)))
    assert (best.metric, best.step.tolist(), best.weights.tolist()) == ("accuracy", [1], [[1.0, 1.0]])


def test_what_is_wanted_needs_an_end() -> None:
    with pytest.raises(UserError, match="lowest or highest of a metric, such as lowest loss; not 'loss'"):
        replace(WILD, best=("loss",))
