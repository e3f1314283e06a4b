"""The adversary's objective and its gradient against a loop over every element."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from attndyn.errors import UserError
from attndyn.tasks.sampler import Batch
from attndyn.training.condition import Beside, Likelihood
from attndyn.training.objectives import AttendElsewhere

LENGTHS = ((3, 2), (1, 3))  # [replica][text]


def made(masked: bool = True) -> tuple[torch.Tensor, torch.Tensor, Batch]:
    """Attention logits, output logits and a batch of two replicas, two texts, two heads, three words, four tags."""
    random = torch.Generator().manual_seed(5)
    scores, given = (torch.randn(2, 2, 2, 3, 3, generator=random, dtype=torch.float64) for _ in range(2))
    logits, told = (torch.randn(2, 2, 3, 4, generator=random, dtype=torch.float64) for _ in range(2))
    mask = torch.arange(3) < torch.tensor(LENGTHS)[..., None] if masked else None
    keep = torch.ones(2, 2, 3, dtype=torch.bool) if mask is None else mask
    given = given.masked_fill(~keep[:, :, None, None], -1e9).softmax(dim=-1)
    zero = torch.zeros(2, 2, 3, dtype=torch.int64)
    batch = Batch(source=zero, shifted=zero, target=zero, align=zero, source_mask=mask, target_mask=mask, given=given,
                  answer=told.softmax(dim=-1))  # fmt: skip
    return scores.requires_grad_(), logits.requires_grad_(), batch


def attended(scores: torch.Tensor, batch: Batch) -> torch.Tensor:
    mask = batch.source_mask
    return scores.softmax(-1) if mask is None else scores.masked_fill(~mask[:, :, None, None], -1e9).softmax(-1)


def slow(scores: torch.Tensor, logits: torch.Tensor, batch: Batch, strength: float) -> torch.Tensor:
    alpha, losses = attended(scores, batch), []
    for r in range(2):
        terms, nll = [], []
        for n, length in enumerate(LENGTHS[r]):
            for q in range(length):
                nll.append(-logits[r, n, q].log_softmax(dim=0)[batch.answer[r, n, q].argmax()])
                for h in range(2):
                    terms += [alpha[r, n, h, q, k] * (alpha[r, n, h, q, k] / batch.given[r, n, h, q, k]).log()
                              for k in range(length)]  # fmt: skip
        losses.append(torch.stack(nll).mean() - strength * torch.stack(terms).mean())
    return torch.stack(losses)


@pytest.mark.parametrize("strength", [0.0, 0.2, 3.0])
def test_value_and_gradient_are_those_of_the_definition(strength: float) -> None:
    scores, logits, batch = made()
    fast = AttendElsewhere(strength)(logits, attended(scores, batch), batch)
    expected = slow(scores, logits, batch, strength)
    torch.testing.assert_close(fast, expected, rtol=1e-10, atol=1e-12)
    grads, wanted = (torch.autograd.grad(one.sum(), (scores, logits)) for one in (fast, expected))
    for one, other in zip(grads, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_without_padding_it_is_the_mean_that_the_published_lambda_belongs_to() -> None:
    scores, logits, batch = made(masked=False)
    alpha = attended(scores, batch)
    kl = [F.kl_div(given.log(), own, reduction="none").mean() for given, own in zip(batch.given, alpha, strict=True)]
    expected = Likelihood()(logits, alpha, replace(batch, target=batch.answer.argmax(dim=-1))) - 2 * torch.stack(kl)
    torch.testing.assert_close(AttendElsewhere(2.0)(logits, alpha, batch), expected)


def test_dropped_weights_have_a_finite_slope() -> None:
    scores, logits, batch = made()
    kept = (torch.rand(2, 2, 2, 3, 3, generator=torch.Generator().manual_seed(0)) > 0.4).double()
    loss = AttendElsewhere(1.0)(logits, attended(scores, batch) * kept / 0.6, batch)
    (grad,) = torch.autograd.grad(loss.sum(), scores)
    assert loss.isfinite().all()
    assert grad.isfinite().all()


def test_each_replica_has_its_own_strength() -> None:
    scores, logits, batch = made()
    alpha = attended(scores, batch)
    both = Beside(((AttendElsewhere(0.5), 1), (AttendElsewhere(2.0), 1)))(logits, alpha, batch)
    for n, strength in enumerate((0.5, 2.0)):
        torch.testing.assert_close(both[n], AttendElsewhere(strength)(logits, alpha, batch)[n])


@pytest.mark.parametrize("strength", [-0.1, float("nan"), float("inf")])
def test_a_strength_below_zero_is_refused(strength: float) -> None:
    with pytest.raises(UserError, match="λ must be a number of at least 0"):
        AttendElsewhere(strength)
