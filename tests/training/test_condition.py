import dataclasses
import math

import pytest
import torch

from attndyn import spec
from attndyn.errors import UserError
from attndyn.measures.readings import Answers
from attndyn.models import Learned, Seq2Seq, Uniform
from attndyn.models.specs import Origins
from attndyn.tasks import Iid, Permutations
from attndyn.tasks.sampler import Batch
from attndyn.training.condition import Adam, Condition, Likelihood


def make_condition(**changes) -> Condition:
    common = {"name": "some", "task": Permutations(4), "model": Seq2Seq(8), "seeds": (0, 1), "steps": 5}
    return Condition(**(common | changes))


def make_batch(target: torch.Tensor, mask: torch.Tensor | None = None) -> Batch:
    return Batch(source=target, shifted=target, target=target, align=target, target_mask=mask)


def test_likelihood_is_the_mean_of_minus_log_p() -> None:
    logits = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    target = torch.randint(5, (2, 3, 4), generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]], [[0, 0, 0, 0], [1, 1, 1, 0], [1, 0, 1, 0]]]).bool()
    alpha = torch.zeros(2, 3, 1, 4, 4)
    whole = Likelihood()(logits, alpha, make_batch(target))
    ragged = Likelihood()(logits, alpha, make_batch(target, mask))
    for replica in range(2):
        losses, kept = [], []
        for example in range(3):
            for query in range(4):
                row = logits[replica, example, query].tolist()
                right = row[target[replica, example, query]]
                losses.append(math.log(sum(math.exp(value) for value in row)) - right)
                if mask[replica, example, query]:
                    kept.append(losses[-1])
        assert whole[replica].item() == pytest.approx(sum(losses) / len(losses), rel=1e-12)
        assert ragged[replica].item() == pytest.approx(sum(kept) / len(kept), rel=1e-12)


def test_guessing_costs_the_logarithm_of_the_vocabulary() -> None:
    target = torch.randint(7, (1, 2, 3), generator=torch.Generator().manual_seed(1))
    loss = Likelihood()(torch.zeros(1, 2, 3, 7), torch.zeros(1, 2, 1, 3, 3), make_batch(target))
    assert loss.item() == pytest.approx(math.log(7), rel=1e-6)


@pytest.mark.parametrize("name", ["steps", "batch", "evaluation"])
def test_impossible_numbers_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"{name} must be at least 1, not 0"):
        make_condition(**{name: 0})


def test_a_condition_needs_a_seed() -> None:
    with pytest.raises(UserError, match="needs seeds"):
        make_condition(seeds=())


def test_the_digest_tells_conditions_apart_by_every_field() -> None:
    changes = {
        "name": "other", "task": Iid(4, 4), "model": Seq2Seq(9), "seeds": (0, 2), "steps": 6, "batch": 64,
        "rule": Uniform(), "objective": Adam(), "optimiser": Adam(lr=2e-3), "evaluation": 10,
        "readings": (Answers(every=2),), "best": ("lowest loss",),
        "origins": (Origins(0, (1,), 2), Origins(0, (3,), 2)),
    }  # fmt: skip
    assert set(changes) == {field.name for field in dataclasses.fields(Condition)}
    digests = {spec.digest(make_condition(**{name: value})) for name, value in changes.items()}
    digests.add(spec.digest(make_condition()))
    assert len(digests) == len(changes) + 1
    assert spec.digest(make_condition()) == spec.digest(make_condition(rule=Learned(), batch=128))
