"""The objective of an adversary by its definition, one text at a time; and what is refused."""

import pytest
import torch
from models.test_classifier import SMALL, WORDS, texts
from reference import divergence as slow

from attndyn.errors import UserError
from attndyn.measures.deceit import Apart, Deceive
from attndyn.models import Learned
from attndyn.probes.trace import Trace
from attndyn.tasks.sampler import Batch

LENGTHS = [3, 6, 2, 5]


def beside() -> tuple[Batch, torch.Tensor, torch.Tensor]:
    """Texts with what a base model did on them, and the logits and α of another one."""
    from dataclasses import replace

    batch = texts(LENGTHS, 2)
    with torch.no_grad():
        base, given = SMALL.build(WORDS, (7, 7), 2)(batch, Learned())
        logits, alpha = SMALL.build(WORDS, (0, 1), 2)(batch, Learned())
    return replace(batch, given=given, answer=base.softmax(dim=-1)), logits, alpha


@pytest.mark.parametrize("direction", ["adversary-base", "base-adversary"])
def test_the_objective_is_half_the_variation_minus_lambda_kl(direction) -> None:
    batch, logits, alpha = beside()
    found = Deceive(0.3, direction)(logits, alpha, batch)
    for replica in range(2):
        values = []
        for row, length in enumerate(LENGTHS):
            p, q = (each[replica, row, 0].tolist() for each in (logits.softmax(dim=-1), batch.answer))
            a, b = (each[replica, row, 0, 0, :length].tolist() for each in (alpha, batch.given))
            kl = slow.kl(a, b) if direction == "adversary-base" else slow.kl(b, a)
            values.append(abs(p[1] - q[1]) / 2 - 0.3 * kl)
        assert found[replica].item() == pytest.approx(sum(values) / len(values), abs=1e-6)


def test_a_copy_of_the_base_has_objective_zero() -> None:
    batch, _, _ = beside()
    logits = batch.answer.log()
    torch.testing.assert_close(Deceive(0.5)(logits, batch.given, batch), torch.zeros(2), atol=1e-6, rtol=0)


def test_the_reading_gives_the_two_distances() -> None:
    batch, logits, alpha = beside()
    model = SMALL.build(WORDS, (0, 1), 2)
    values = dict(Apart(every=1).run(Trace(model, Learned(), batch)))
    wanted = (logits.softmax(dim=-1) - batch.answer)[..., 1].abs().mean(dim=(1, 2))
    torch.testing.assert_close(values["TVD from the base"], wanted)
    rows = [slow.jsd(alpha[0, row, 0, 0, :length].tolist(), batch.given[0, row, 0, 0, :length].tolist())
            for row, length in enumerate(LENGTHS)]  # fmt: skip
    assert values["JSD from the base"][0].item() == pytest.approx(sum(rows) / len(rows), abs=1e-6)


@pytest.mark.parametrize("lam", [-0.1, float("nan"), float("inf")])
def test_lambda_below_zero_is_refused(lam: float) -> None:
    with pytest.raises(UserError, match="λ must be a number of at least 0"):
        Deceive(lam)


def test_nothing_to_deceive_beside() -> None:
    _, logits, alpha = beside()
    with pytest.raises(UserError, match="brings no attention and answers"):
        Deceive(0.1)(logits, alpha, texts(LENGTHS, 2))
