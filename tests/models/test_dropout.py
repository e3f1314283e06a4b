"""Dropout by counter: a mask belongs to (seed, step, place), and to nothing else."""

import pytest
import torch

from attndyn.models import Translator
from attndyn.models.dropout import Dropout
from attndyn.tasks.pieces import PieceText
from attndyn.training.condition import Condition
from attndyn.training.loop import Trainer

ONES = torch.ones(2, 40, 25, 30)


def at(step: int) -> torch.Tensor:
    return torch.tensor(step)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.75])
def test_units_are_dropped_and_the_rest_makes_up_for_them(p: float) -> None:
    dropped = Dropout([0, 7], p, 0)(ONES, at(3))
    share = round(256 * p) / 256
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / (1 - share)])
    for replica in dropped:  # 30,000 units: five standard deviations
        assert (replica == 0).float().mean().item() == pytest.approx(
            share, abs=5 * (share * (1 - share) / 30_000) ** 0.5
        )


def test_every_seed_step_and_place_has_a_mask_of_its_own() -> None:
    masks = [Dropout([seed], 0.5, place)(ONES[:1], at(step)) for seed in (0, 1) for place in (0, 1) for step in (0, 1)]
    for n, mask in enumerate(masks):
        for other in masks[:n]:
            assert ((mask == 0) == (other == 0)).float().mean().item() == pytest.approx(0.5, abs=0.02)
    assert torch.equal(masks[0], Dropout([0], 0.5, 0)(ONES[:1], at(0)))


def test_neighbours_and_padding_change_no_mask() -> None:
    together = Dropout([0, 7], 0.5, 1)(ONES, at(3))
    assert torch.equal(Dropout([7], 0.5, 1)(ONES[:1], at(3))[0], together[1])
    assert torch.equal(Dropout([7], 0.5, 1)(ONES[:1, :, :11], at(3))[0], together[1, :, :11])


def test_the_gradient_passes_where_the_units_passed() -> None:
    x = ONES.clone().requires_grad_()
    result = Dropout([0, 7], 0.5, 1)(x, at(3))
    (result * ONES.cumsum(dim=-1)).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, result.detach() * ONES.cumsum(dim=-1))


def test_nothing_is_dropped_while_evaluating() -> None:
    module = Dropout([0, 7], 0.5, 0).eval()
    assert module(ONES, None) is ONES
    with pytest.raises(ValueError, match="training step"):
        module.train()(ONES, None)


def condition(**changes) -> Condition:
    task = PieceText("tatoeba_de_en_small", pieces=600)
    common = {"name": "x", "task": task, "model": Translator(hidden=6), "seeds": (0, 1, 2), "steps": 4, "batch": 3}
    return Condition(**(common | changes))


def weights(trainer: Trainer) -> torch.Tensor:
    return trainer.optimiser.values


def test_a_replica_with_dropout_does_not_know_its_neighbours() -> None:
    together, alone = Trainer(condition(), (0, 1, 2)), Trainer(condition(), (1,))
    for _ in range(3):
        together.advance()
        alone.advance()
    torch.testing.assert_close(weights(together)[1], weights(alone)[0], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(weights(together)[1], weights(together)[2], atol=1e-2)


def test_dropout_is_felt_and_a_resumed_run_has_the_same_masks() -> None:
    straight = Trainer(condition(), (0, 1))
    for _ in range(4):
        straight.advance()
    first, second = Trainer(condition(), (0, 1)), Trainer(condition(), (0, 1))
    for _ in range(2):
        first.advance()
    second.load(first.state())
    for _ in range(2):
        second.advance()
    assert torch.equal(weights(straight), weights(second))
    without = Trainer(condition(model=Translator(hidden=6, dropout=0.0)), (0, 1))
    for _ in range(4):
        without.advance()
    assert not torch.allclose(weights(straight), weights(without), atol=1e-4)
