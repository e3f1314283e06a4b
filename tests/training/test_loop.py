"""The training loop: many replicas at once train as each does alone, and one that breaks stops alone."""

import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from attndyn.errors import UserError
from attndyn.models import Learned, NoContext, Seq2Seq, Uniform
from attndyn.tasks import Iid, Permutations, PermutedCopy
from attndyn.training.condition import Adam, Condition, Likelihood
from attndyn.training.loop import NEVER, Trainer

SEEDS = (0, 3, 9)
TINY = Condition(
    name="tiny", task=Permutations(3), model=Seq2Seq(8), seeds=SEEDS, steps=10, batch=4, optimiser=Adam(lr=1e-2)
)


def trained(condition: Condition, seeds: tuple[int, ...], steps: int) -> Trainer:
    trainer = Trainer(condition, seeds)
    for _ in range(steps):
        trainer.advance()
    return trainer


def test_seeds_together_train_as_each_does_alone() -> None:
    together = trained(TINY, SEEDS, 10).optimiser.values
    for replica, seed in enumerate(SEEDS):
        alone = trained(TINY, (seed,), 10).optimiser.values
        torch.testing.assert_close(together[replica], alone[0], rtol=1e-5, atol=1e-5)
        moved = (together[replica] - Trainer(TINY, (seed,)).optimiser.values[0]).abs().max()
        assert moved > 1e-2  # the tolerance is small beside what was learned


def test_settings_of_each_replica_are_its_own() -> None:
    rates = (1e-3, 1e-2, 5e-2)
    frozen = ((), ("embedding.weight",), ("query.weight", "query.bias"))
    together = trained(replace(TINY, optimiser=Adam(lr=rates, frozen=frozen)), SEEDS, 5)
    for replica, seed in enumerate(SEEDS):
        alone = trained(replace(TINY, optimiser=Adam(lr=rates[replica], frozen=frozen[replica])), (seed,), 5)
        torch.testing.assert_close(together.optimiser.values[replica], alone.optimiser.values[0], rtol=1e-5, atol=1e-5)
        for name in frozen[replica]:
            start = Trainer(TINY, (seed,)).model.get_parameter(name)[0]
            assert torch.equal(together.model.get_parameter(name)[replica], start)


@pytest.mark.parametrize(
    ("rule", "unused"),
    [(Uniform(), {"query.weight", "query.bias"}), (NoContext(), {"query.weight", "query.bias", "context.weight"})],
)
def test_what_a_rule_does_not_use_stays(rule: Any, unused: set[str]) -> None:
    trainer = trained(replace(TINY, rule=rule), (0,), 3)
    start = Trainer(TINY, (0,)).model
    parameters = dict(trainer.model.named_parameters())
    assert {name for name in parameters if torch.equal(parameters[name], start.get_parameter(name))} == unused


def test_every_parameter_learns() -> None:
    trainer = trained(replace(TINY, rule=Learned()), (0,), 1)
    start = Trainer(TINY, (0,)).model
    for name, parameter in trainer.model.named_parameters():
        assert not torch.equal(parameter, start.get_parameter(name)), name


def test_the_loss_falls() -> None:
    condition = replace(TINY, task=Iid(2, 3), model=Seq2Seq(16), batch=32, steps=150)
    trainer = Trainer(condition, (1,))

    @torch.no_grad()
    def loss() -> float:
        batch = trainer.task.evaluation(64)
        return Likelihood()(*trainer.model(batch, condition.rule), batch).item()

    before = loss()
    for _ in range(condition.steps):
        trainer.advance()
    assert before > 1.0  # log 5 = 1.6: it guesses
    assert loss() < 0.1 * before


def test_each_step_takes_its_own_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(replace(TINY, task=PermutedCopy(2, of=3)), (0,))
    asked = []
    original = trainer.task.draw
    monkeypatch.setattr(trainer.task, "draw", lambda step, size: (asked.append((step, size)), original(step, size))[1])
    for _ in range(3):
        trainer.advance()
    assert asked == [(0, 4), (1, 4), (2, 4)]
    assert trainer.step == 3


def test_a_state_put_back_continues_bitwise() -> None:
    condition = replace(TINY, optimiser=Adam(lr=1e-2, amsgrad=True))
    whole = trained(condition, SEEDS, 10)
    state = {name: value.clone() for name, value in trained(condition, SEEDS, 4).state().items()}
    resumed = Trainer(condition, SEEDS)
    resumed.load(state)
    assert resumed.step == 4
    for _ in range(6):
        resumed.advance()
    for name, value in whole.state().items():
        assert torch.equal(resumed.state()[name], value), name


def test_a_checkpoint_of_another_size() -> None:
    state = Trainer(replace(TINY, model=Seq2Seq(6)), SEEDS).state()
    trainer = Trainer(TINY, SEEDS)
    there, here = state["values"].shape[1], trainer.state()["values"].shape[1]
    with pytest.raises(UserError) as error:
        trainer.load(state)
    message = str(error.value)
    assert (
        f"the checkpoint of 'tiny' holds 3 replicas of {there:,} numbers, but this model has 3 of {here:,}" in message
    )
    assert "embedding.weight 5 × 8" in message
    assert message.endswith("start again with --fresh")
    assert "\n" not in message
    with pytest.raises(UserError, match="holds 1 replicas of"):
        trainer.load(Trainer(TINY, SEEDS[:1]).state())


def test_training_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    trained(TINY, SEEDS, 2)
    assert torch.equal(torch.get_rng_state(), before)


@dataclass
class Breaks:
    """Likelihood whose value or whose gradient is not finite for one replica, from the nth time it is asked."""

    replica: int
    at: int
    how: str
    asked: int = 0

    def __call__(self, logits: Tensor, alpha: Tensor, batch: Any) -> Tensor:
        losses = Likelihood()(logits, alpha, batch)
        if self.asked >= self.at and self.how == "loss":
            spoiled = torch.zeros_like(losses)
            spoiled[self.replica] = torch.nan
            losses = losses + spoiled
        elif self.asked >= self.at:
            # √x at 0: the value is finite, the gradient is not.
            none = (logits[self.replica] * 0).sum().sqrt()
            losses = torch.cat([losses[: self.replica], losses[self.replica, None] + none, losses[self.replica + 1 :]])
        self.asked += 1
        return losses


@pytest.mark.parametrize("how", ["loss", "gradient"])
@pytest.mark.parametrize("at", [0, 3])
def test_a_replica_that_breaks_is_frozen_alone(at: int, how: str) -> None:
    broken = Trainer(replace(TINY, objective=Breaks(1, at, how)), SEEDS)
    sound = Trainer(TINY, SEEDS)
    for step in range(6):
        if step == at:
            frozen = broken.optimiser.values[1].clone()
        broken.advance()
        sound.advance()
    assert broken.diverged.tolist() == [NEVER, at, NEVER]
    assert not broken.stopped
    assert frozen.isfinite().all()
    assert torch.equal(broken.optimiser.values[1], frozen)
    for replica in (0, 2):
        assert torch.equal(broken.optimiser.values[replica], sound.optimiser.values[replica])


def test_a_rate_out_of_all_bounds_is_found_at_the_second_step() -> None:
    trainer = Trainer(replace(TINY, optimiser=Adam(lr=1e38)), (0,))
    trainer.advance()
    assert not trainer.stopped
    trainer.advance()
    assert trainer.diverged.tolist() == [1]
    assert trainer.stopped


def test_a_frozen_replica_stays_frozen_when_it_is_resumed() -> None:
    trainer = trained(replace(TINY, objective=Breaks(1, 1, "loss")), SEEDS, 3)
    resumed = Trainer(TINY, SEEDS)
    resumed.load({name: value.clone() for name, value in trainer.state().items()})
    resumed.advance()
    assert resumed.diverged.tolist() == [NEVER, 1, NEVER]
    assert torch.equal(resumed.optimiser.values[1], trainer.optimiser.values[1])
    assert not torch.equal(resumed.optimiser.values[0], trainer.optimiser.values[0])


def test_a_stacked_step_warns_of_nothing() -> None:
    """PyTorch says it once a process, so it is asked for in a process of its own."""
    program = """if True:
        from attndyn.models import Seq2Seq
        from attndyn.tasks import Permutations
        from attndyn.training.condition import Condition
        from attndyn.training.loop import Trainer
        seeds = (0, 1)
        condition = Condition(name="tiny", task=Permutations(3), model=Seq2Seq(8), seeds=seeds, steps=1, batch=4)
        Trainer(condition, seeds).advance()
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
