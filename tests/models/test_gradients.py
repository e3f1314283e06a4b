"""The gradient that training follows is the slope of the loss, in float64, for every family of models and both ways
through a recurrent layer: what a CPU takes, and what a GPU takes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attndyn.measures.deceit import Deceive
from attndyn.models.dropout import Masked
from attndyn.models.gru import GRU
from attndyn.models.layers import LSTM, BiLSTM, Recurrence
from attndyn.training.condition import Condition
from attndyn.training.loop import Trainer
from attndyn.training.objectives import AttendElsewhere
from tests.test_observer import FAMILIES

STEP = 1e-6
DIRECTIONS = 4


@pytest.fixture(params=["one_by_one", "stacked"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for layer in (LSTM, BiLSTM, GRU):
        monkeypatch.setattr(layer, "one_by_one", getattr(layer, request.param))
    return request.param


def slopes(condition: Condition) -> tuple[Tensor, Tensor]:
    """Of the summed loss along a few directions: by the gradient, and by central differences. In training mode: dropout
    depends on seed and step alone, so the same units are dropped each time."""
    trainer = Trainer(condition, condition.seeds)
    model = trainer.model.double().train()
    if trainer.reference is not None:
        trainer.reference.double()
    parameters = [one for one in model.parameters() if one.requires_grad]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for one in parameters:  # biases that start at 0 leave a ReLU on its kink, where there is no slope
            one.add_(torch.randn(one.shape, generator=generator, dtype=torch.float64), alpha=0.05)
        batch = trainer.referred(trainer.task.draw(0, condition.batch).batch())

    def loss() -> Tensor:
        logits, alpha = model(replace(batch, step=trainer.number), condition.rule)
        return condition.objective(logits, alpha, batch).sum()

    gradient = torch.autograd.grad(loss(), parameters, allow_unused=True)
    by_gradient, by_difference = [], []
    for _ in range(DIRECTIONS):
        along = [torch.randn(one.shape, generator=generator, dtype=torch.float64) for one in parameters]
        by_gradient.append(sum((g * d).sum() for g, d in zip(gradient, along, strict=True) if g is not None))
        found = []
        with torch.no_grad():
            for size in (STEP, -STEP):
                for one, direction in zip(parameters, along, strict=True):
                    one.add_(direction, alpha=size)
                found.append(loss())
                for one, direction in zip(parameters, along, strict=True):
                    one.sub_(direction, alpha=size)
        by_difference.append((found[0] - found[1]) / (2 * STEP))
    return torch.stack(by_gradient), torch.stack(by_difference)


def assert_is_the_slope(condition: Condition) -> None:
    by_gradient, by_difference = slopes(condition)
    assert by_gradient.dtype == torch.float64
    assert (by_gradient.abs() > 1e-3).any(), "there is something to follow"
    torch.testing.assert_close(by_gradient, by_difference, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradient_is_the_slope_of_the_loss(family: str, path: str, tmp_path: Path) -> None:
    for condition in FAMILIES[family](tmp_path):
        assert_is_the_slope(condition)


def test_the_other_objectives_too(path: str, tmp_path: Path) -> None:
    _, given, _ = FAMILIES["tagger, given attention"](tmp_path)
    assert_is_the_slope(replace(given, rule=given.of.condition.rule, objective=AttendElsewhere(0.7)))
    _, beside = FAMILIES["classifier, beside another"](tmp_path)
    assert_is_the_slope(replace(beside, objective=Deceive(0.3)))


@pytest.mark.parametrize("rows", [False, True], ids=["positions", "a table of words"])
def test_the_written_out_backward_pass_of_the_lstm(rows: bool) -> None:
    """By every input, through states, last state and last cell."""
    generator = torch.Generator().manual_seed(1)
    replicas, batch, length, hidden, words = 2, 2, 3, 2, 4
    given = [
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in (
            (replicas, words if rows else batch * length, 4 * hidden), (replicas, 4 * hidden, hidden),
            (replicas, batch, hidden), (replicas, batch, hidden),
        )
    ]  # fmt: skip
    index = torch.randint(words, (replicas, batch, length), generator=generator) if rows else None

    def run(inputs: Tensor, weight: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        return Recurrence.apply(inputs, index, weight, h, c, length)

    assert torch.autograd.gradcheck(run, given)


def test_the_backward_pass_of_dropout() -> None:
    x = torch.randn(2, 3, 2, 8, dtype=torch.float64, requires_grad=True)
    seeds, step = torch.tensor([3, 4]), torch.tensor(5)
    assert torch.autograd.gradcheck(lambda given: Masked.apply(given, seeds, step, 1, 100), [x])
