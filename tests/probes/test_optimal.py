"""The best attention against an independent solver, its certificate against what it certifies, and the corners."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from attndyn.probes.optimal import Optimum, optimal_attention

CLOSE = 1e-9


def made(seed: int, keys: int = 4, outputs: int = 5, scale: float = 3.0, batch: int = 6, queries: int = 2) -> Any:
    generator = torch.Generator().manual_seed(seed)
    values = scale * torch.randn(batch, keys, outputs, generator=generator, dtype=torch.float64)
    base = torch.randn(batch, queries, outputs, generator=generator, dtype=torch.float64)
    return values, base, torch.randint(0, outputs, (batch, queries), generator=generator)


def loss(alpha: np.ndarray, values: np.ndarray, base: np.ndarray, target: int) -> float:
    return float(-special.log_softmax(alpha @ values + base)[target])


def by_slsqp(values: np.ndarray, base: np.ndarray, target: int) -> float:
    """The lowest loss on the simplex by SciPy's general solver, from the middle and from every corner."""

    def slope(alpha: np.ndarray) -> np.ndarray:
        return values @ special.softmax(alpha @ values + base) - values[:, target]

    keys = len(values)
    starts = [np.full(keys, 1 / keys), *(0.9 * np.eye(keys) + 0.1 / keys)]
    whole = {"type": "eq", "fun": lambda alpha: alpha.sum() - 1, "jac": np.ones_like}
    found = [
        optimize.minimize(loss, start, (values, base, target), jac=lambda alpha, *_: slope(alpha), method="SLSQP",
                          bounds=[(0, 1)] * keys, constraints=whole, options={"ftol": 1e-13, "maxiter": 500})
        for start in starts
    ]  # fmt: skip
    alphas = [result.x.clip(0) / result.x.clip(0).sum() for result in found]
    return min(loss(alpha, values, base, target) for alpha in alphas)


problems = st.tuples(st.integers(0, 10_000), st.integers(1, 7), st.integers(2, 6), st.sampled_from([0.5, 3.0, 10.0]))


@settings(max_examples=20)
@given(problem=problems)
def test_no_other_solver_finds_a_lower_loss(problem: tuple[int, int, int, float]) -> None:
    values, base, target = made(*problem)
    best = optimal_attention(values, base, target, tolerance=CLOSE)
    assert best.converged.all()
    assert (best.gap <= CLOSE).all()
    for i in range(2):
        other = by_slsqp(values[i].numpy(), base[i, 0].numpy(), int(target[i, 0]))
        assert best.loss[i, 0] - CLOSE <= other, "the gap bounds what any attention can gain"
        assert best.loss[i, 0].item() == pytest.approx(other, abs=1e-5), "SciPy comes as near as it can"


@given(problem=problems, iterations=st.integers(1, 12))
def test_the_gap_bounds_the_distance_to_the_best_also_before_convergence(
    problem: tuple[int, int, int, float], iterations: int
) -> None:
    values, base, target = made(*problem)
    early = optimal_attention(values, base, target, tolerance=CLOSE, iterations=iterations)
    best = optimal_attention(values, base, target, tolerance=CLOSE)
    assert (early.loss - best.loss <= early.gap + 1e-12).all()
    assert (early.converged == (early.gap <= CLOSE)).all()


def test_it_never_claims_convergence_it_has_not() -> None:
    stopped = optimal_attention(*made(0, keys=8, scale=10.0), tolerance=1e-6, iterations=2)
    assert not stopped.converged.all()
    torch.testing.assert_close(stopped.alpha.sum(dim=-1), torch.ones_like(stopped.loss))


def recomputed(problem: Any, best: Optimum) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and gap by automatic differentiation of the definition."""
    values, base, target = problem
    alpha = best.alpha.to(values.dtype).requires_grad_()
    loss = torch.nn.functional.cross_entropy((alpha @ values + base).flatten(0, 1), target.flatten(), reduction="none")
    (gradient,) = torch.autograd.grad(loss.sum(), alpha)
    return loss.detach().view_as(target), (alpha * gradient).sum(-1).detach() - gradient.amin(-1)


def test_loss_and_gap_are_those_of_the_definition() -> None:
    problem = made(3, keys=6, outputs=9)
    for iterations in (3, 2000):
        best = optimal_attention(*problem, tolerance=CLOSE, iterations=iterations)
        loss, gap = recomputed(problem, best)
        torch.testing.assert_close(best.loss, loss)
        torch.testing.assert_close(best.gap, gap, rtol=1e-7, atol=1e-13)


@pytest.mark.parametrize("scale", [1.0, 10.0, 30.0])
def test_float32_is_certified_in_float64(scale: float) -> None:
    problem = [part.float() if part.is_floating_point() else part for part in made(1, 15, 60, scale)]
    best = optimal_attention(*problem)
    assert (best.alpha.dtype, best.gap.dtype) == (torch.float32, torch.float64)
    assert best.converged.all()
    _, gap = recomputed([part.double() if part.is_floating_point() else part for part in problem], best)
    torch.testing.assert_close(best.gap, gap, rtol=1e-6, atol=1e-8)


@settings(max_examples=15)
@given(problem=problems, seed=st.integers(0, 99))
def test_another_order_of_the_positions_gives_the_same_attention_in_that_order(
    problem: tuple[int, int, int, float], seed: int
) -> None:
    values, base, target = made(*problem)
    order = torch.randperm(values.shape[1], generator=torch.Generator().manual_seed(seed))
    there, here = (optimal_attention(v, base, target, tolerance=1e-11) for v in (values[:, order], values))
    torch.testing.assert_close(there.loss, here.loss, atol=1e-10, rtol=0)
    if values.shape[1] < values.shape[2]:  # else several attentions may give the same logits
        torch.testing.assert_close(there.alpha, here.alpha[..., order], atol=1e-3, rtol=0)


@given(seed=st.integers(0, 10_000), length=st.integers(1, 4), garbage=st.sampled_from([0.0, 1e6, math.nan]))
def test_padding_is_invisible(seed: int, length: int, garbage: float) -> None:
    values, base, target = made(seed)
    alone = optimal_attention(values[:, :length], base, target, tolerance=CLOSE)
    mask = (torch.arange(6) < length).expand(6, -1).clone()
    wide, more = (
        torch.full((6, 6, 5), garbage, dtype=torch.float64),
        torch.full((6, 3, 5), garbage, dtype=torch.float64),
    )
    wide[:, :4], more[:, :2] = values, base
    wide[:, length:] = garbage
    targets = torch.cat([target, torch.full((6, 1), -100)], dim=1)
    real = torch.tensor([True, True, False]).expand(6, -1)
    padded = optimal_attention(wide, more, targets, mask, real, tolerance=CLOSE)
    torch.testing.assert_close(padded.loss[:, :2], alone.loss, atol=2 * CLOSE, rtol=0)
    assert (padded.alpha[:, :2, length:] == 0).all()
    assert padded.alpha[:, 2].isnan().all()
    assert padded.gap[:, 2].isnan().all()
    assert padded.converged.all()


def test_a_batch_is_its_examples_one_by_one() -> None:
    values, base, target = made(5, keys=5, batch=8)
    together = optimal_attention(values, base, target, tolerance=CLOSE)
    for i in range(8):
        alone = optimal_attention(values[i], base[i], target[i], tolerance=CLOSE)
        torch.testing.assert_close(alone.loss, together.loss[i], atol=2 * CLOSE, rtol=0)
    nested = optimal_attention(values.unflatten(0, (2, 4)), base.unflatten(0, (2, 4)), target.unflatten(0, (2, 4)))
    assert nested.alpha.shape == (2, 4, 2, 5)


def test_slices_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = made(6, batch=7)
    whole = optimal_attention(*problem, tolerance=CLOSE)
    monkeypatch.setattr("attndyn.probes.optimal.SLICE", 2 * 5 * 4)
    torch.testing.assert_close(optimal_attention(*problem, tolerance=CLOSE).loss, whole.loss, atol=2 * CLOSE, rtol=0)


def test_the_papers_example_leaves_out_the_largest_probe() -> None:
    """Snell et al. A.1: α_opt = (0, ½, ½), p = .859, although β is ⅓ at the position without attention."""
    values = torch.tensor([[[0, 0, 0], [0, -10, 5], [0, 5, -10]]], dtype=torch.float64)
    best = optimal_attention(values, torch.zeros(1, 1, 3, dtype=torch.float64), torch.tensor([[0]]), tolerance=1e-12)
    assert values.softmax(dim=-1)[0, :, 0].tolist() == pytest.approx([1 / 3, math.exp(-5), math.exp(-5)], rel=0.01)
    assert best.alpha[0, 0].tolist() == pytest.approx([0, 0.5, 0.5], abs=1e-6)
    assert best.loss.neg().exp().item() == pytest.approx(1 / (1 + 2 * math.exp(-2.5)), abs=1e-9)
    assert best.loss.neg().exp().item() == pytest.approx(0.859, abs=5e-4)


def test_with_two_outputs_the_best_attention_is_the_largest_probe() -> None:
    """A classifier's loss falls in every logit difference, so a corner is best, exactly."""
    values, base, target = made(7, keys=9, outputs=2, batch=50)
    best = optimal_attention(values, base, target, tolerance=CLOSE)
    beta = (values[:, None] + base[:, :, None]).softmax(dim=-1)  # [batch, query, key, output]
    right = beta.gather(-1, target[..., None, None].expand(-1, -1, 9, 1))[..., 0]
    assert torch.equal(best.alpha, torch.nn.functional.one_hot(right.argmax(-1), 9).double())


def test_one_position_gets_everything() -> None:
    best = optimal_attention(*made(8, keys=1))
    assert (best.alpha == 1).all()
    assert (best.gap == 0).all()


def test_equal_positions() -> None:
    values, base, target = made(9, keys=1)
    best = optimal_attention(values.expand(-1, 5, -1), base, target)
    assert best.converged.all()
    torch.testing.assert_close(best.loss, optimal_attention(values, base, target).loss)


def test_what_has_no_answer_raises() -> None:
    values, base, target = made(10)
    mask = torch.ones(6, 4, dtype=torch.bool)
    mask[2] = False
    with pytest.raises(ValueError, match="no input position"):
        optimal_attention(values, base, target, mask)
    values[0, 0, 0] = torch.inf
    with pytest.raises(ValueError, match="finite"):
        optimal_attention(values, base, target)
