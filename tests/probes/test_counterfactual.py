"""Counterfactual attention against a fine grid over three words, against a search, and by its own promises."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attndyn.measures.divergence import LARGEST_JSD, jsd
from attndyn.probes import counterfactual
from attndyn.probes.counterfactual import most_different, permuted_answers

STEPS = 200


def simplex() -> torch.Tensor:
    """Every attention over three words whose weights are multiples of 1/200."""
    whole = [(i, j, STEPS - i - j) for i in range(STEPS + 1) for j in range(STEPS + 1 - i)]
    return torch.tensor(whole, dtype=torch.float64) / STEPS


GRID = simplex()


def answer(alpha: torch.Tensor, votes: torch.Tensor) -> torch.Tensor:
    return (alpha * votes).sum(dim=-1).sigmoid()


def drawn(shape: tuple[int, ...], lengths: list[int], seed: int, scale: float = 2.0) -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(seed)
    mask = torch.arange(shape[-1]) < torch.tensor(lengths)[:, None]
    scores, votes = (scale * torch.randn(shape, generator=draw, dtype=torch.float64) for _ in range(2))
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1), votes, mask


@given(st.integers(0, 500), st.sampled_from([0.01, 0.05, 0.2]), st.sampled_from([0.3, 2.0, 6.0]))
def test_three_words_against_brute_force(seed: int, epsilon: float, scale: float) -> None:
    alpha, votes, mask = drawn((1, 3), [3], seed, scale)
    other, found = most_different(alpha, votes, mask, epsilon)
    near = (answer(GRID, votes) - answer(alpha, votes)).abs() <= epsilon
    best = jsd(GRID, alpha.expand_as(GRID))[near].max() if near.any() else torch.tensor(0.0)
    assert found >= best - 1e-9  # no point of the grid is better
    assert (answer(other, votes) - answer(alpha, votes)).abs() <= epsilon + 1e-9  # and it is allowed
    torch.testing.assert_close(jsd(other, alpha), found)
    torch.testing.assert_close(other.sum(dim=1), torch.ones(1, dtype=torch.float64))
    assert (other >= 0).all()
    # the grid comes close, so the optimum is no better than it should be: a slightly wider band holds a near point
    wider = (answer(GRID, votes) - answer(alpha, votes)).abs() <= epsilon + 0.02 * scale
    assert found <= jsd(GRID, alpha.expand_as(GRID))[wider].max() + 0.05


def test_no_search_finds_more() -> None:
    """The authors' search, by Adam from five random starts, in the same texts."""
    alpha, votes, mask = drawn((6, 9), [9, 9, 5, 2, 7, 9], seed=3)
    _, found = most_different(alpha, votes, mask, 0.01)
    torch.manual_seed(0)
    logits = (3 * torch.randn(5, 6, 9, dtype=torch.float64)).requires_grad_()
    optimiser = torch.optim.Adam([logits], lr=0.05)
    for _ in range(400):
        other = logits.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        moved = (answer(other, votes) - answer(alpha, votes)).abs()
        loss = (-jsd(other, alpha.expand_as(other)) + 500 * (moved - 0.01).relu()).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    searched = torch.where(moved <= 0.01, jsd(other, alpha.expand_as(other)), 0).amax(dim=0).detach()
    assert (found >= searched - 1e-9).all()
    assert (searched > 0.5 * found).sum() >= 4  # and the search is no straw man


def test_padding_and_slices_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [2, 3, 8, 5]
    alpha, votes, mask = drawn((4, 8), lengths, seed=1)
    other, found = most_different(alpha, votes.masked_fill(~mask, math.nan), mask, 0.02)
    for row, length in enumerate(lengths):
        one = [each[row : row + 1, :length] for each in (alpha, votes, mask)]
        alone, value = most_different(*one, 0.02)
        torch.testing.assert_close(other[row, :length], alone[0])
        torch.testing.assert_close(found[row], value[0])
        assert (other[row, length:] == 0).all()
    monkeypatch.setattr(counterfactual, "PAIRS", 20)
    again, same = most_different(alpha, votes, mask, 0.02)
    assert torch.equal(again, other)
    assert torch.equal(same, found)


@given(st.integers(0, 200), st.sampled_from([0.0, 0.01, 1.0]))
def test_bounds(seed: int, epsilon: float) -> None:
    alpha, votes, mask = (each.float() if each.is_floating_point() else each for each in drawn((3, 6), [6, 4, 2], seed))
    other, found = most_different(alpha, votes, mask, epsilon)
    assert (found >= -1e-9).all()
    assert (found <= LARGEST_JSD + 1e-6).all()
    assert ((answer(other, votes) - answer(alpha, votes)).abs() <= epsilon + 1e-5).all()


def test_where_every_answer_is_allowed_all_weight_goes_to_the_least_attended_word() -> None:
    alpha = torch.tensor([[0.5, 0.2, 0.3]], dtype=torch.float64)
    other, _ = most_different(alpha, torch.tensor([[1.0, 2.0, -3.0]]).double(), torch.ones(1, 3, dtype=torch.bool), 1.0)
    assert other.tolist() == [[0, 1, 0]]


def test_equal_votes_and_epsilon_out_of_range() -> None:
    alpha, votes = torch.tensor([[0.7, 0.3]]), torch.tensor([[1.0, 1.0]])
    other, found = most_different(alpha, votes, torch.ones(1, 2, dtype=torch.bool), 0.01)
    assert other.tolist() == [[0, 1]]
    assert found > 0.2
    with pytest.raises(ValueError, match="between 0 and 1"):
        most_different(alpha, votes, torch.ones(1, 2, dtype=torch.bool), -0.1)


def test_permutations_are_those_of_each_text() -> None:
    """With three real words there are six answers; each comes about as often, and padding takes no part."""
    alpha = torch.tensor([[[0.6, 0.3, 0.1, 0.0]]])
    votes = torch.tensor([[[1.0, -2.0, 4.0, 99.0]]])
    mask = torch.tensor([[True, True, True, False]])
    found = permuted_answers(alpha, votes, mask, 600)[0, 0]
    orders = torch.tensor([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    wanted = (alpha[0, 0, :3] * votes[0, 0][orders]).sum(dim=1).sigmoid()
    counts = (found[:, None] - wanted).abs().lt(1e-6).sum(dim=0)
    assert counts.sum() == 600
    assert counts.min() > 60


def test_permuting_uniform_attention_changes_nothing() -> None:
    alpha = torch.full((2, 1, 4), 0.25)
    votes = torch.randn(2, 1, 4, generator=torch.Generator().manual_seed(0))
    found = permuted_answers(alpha, votes, torch.ones(1, 4, dtype=torch.bool), 5)
    torch.testing.assert_close(found, votes.mean(dim=2, keepdim=True).sigmoid().expand_as(found))
