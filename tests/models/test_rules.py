import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attndyn.errors import UserError
from attndyn.models.rules import Beside, Given, Learned, NoContext, OneHot, Uniform, Weights, of_batch
from attndyn.tasks.sampler import Batch

SHAPE = (2, 3, 2, 4, 5)  # replica, batch, head, query, key


def some_scores(scale: float = 3.0) -> torch.Tensor:
    return scale * torch.randn(SHAPE, generator=torch.Generator().manual_seed(0))


def ragged(lengths: list[int]) -> torch.Tensor:
    """A mask [replica, batch, key] whose rows keep that many keys."""
    return (torch.arange(SHAPE[-1]) < torch.tensor(lengths)[:, None]).view(SHAPE[0], SHAPE[1], SHAPE[-1])


LENGTHS = st.lists(st.integers(0, SHAPE[-1]), min_size=6, max_size=6)


def test_learned_is_softmax() -> None:
    scores = some_scores()
    exponents = scores.double().exp()
    expected = exponents / exponents.sum(dim=-1, keepdim=True)
    torch.testing.assert_close(Learned()(scores), expected.float())
    torch.testing.assert_close(Learned()(scores, ragged([5] * 6)), expected.float())


@given(lengths=LENGTHS)
def test_learned_is_softmax_over_what_is_no_padding(lengths: list[int]) -> None:
    scores = some_scores()
    weights = Learned()(scores, ragged(lengths)).view(6, *SHAPE[2:])
    for row, rest, length in zip(scores.view(6, *SHAPE[2:]), weights, lengths, strict=True):
        torch.testing.assert_close(rest[..., :length], row[..., :length].softmax(dim=-1))
        assert (rest[..., length:] == 0).all()


@given(lengths=LENGTHS)
def test_uniform_gives_each_word_its_share(lengths: list[int]) -> None:
    weights = Uniform()(some_scores(), ragged(lengths)).view(6, *SHAPE[2:])
    for rest, length in zip(weights, lengths, strict=True):
        if length:
            torch.testing.assert_close(rest[..., :length], torch.full_like(rest[..., :length], 1 / length))
        assert (rest[..., length:] == 0).all()


@pytest.mark.parametrize("rule", [Learned(), Uniform()])
@pytest.mark.parametrize("masked", [False, True])
def test_rows_sum_to_one(rule, masked: bool) -> None:
    mask = ragged([1, 2, 3, 4, 5, 5]) if masked else None
    total = rule(some_scores(), mask).sum(dim=-1)
    torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.parametrize("rule", [Learned(), Uniform()])
def test_a_row_of_padding_alone_gives_zeros_and_no_nan_gradient(rule) -> None:
    scores = some_scores().requires_grad_()
    weights = rule(scores, ragged([0, 5, 0, 3, 1, 0]))
    flat = weights.detach().view(6, *SHAPE[2:])
    assert (flat[[0, 2, 5]] == 0).all()
    if isinstance(rule, Learned):
        (weights * some_scores(1.0)).sum().backward()
        assert scores.grad.isfinite().all()
        assert (scores.grad.view(6, *SHAPE[2:])[[0, 2, 5]] == 0).all()


def test_masked_scores_do_not_matter_however_large() -> None:
    mask = ragged([2] * 6)
    scores, loud = some_scores(), some_scores()
    loud[..., 2:] = 1e30
    assert torch.equal(Learned()(scores, mask), Learned()(loud, mask))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_softmax_is_taken_in_at_least_float32(dtype: torch.dtype, masked: bool) -> None:
    scores = some_scores(10.0).to(dtype)
    mask = ragged([5] * 6) if masked else None
    weights = Learned()(scores, mask)
    assert weights.dtype == dtype
    assert torch.equal(weights, scores.float().softmax(dim=-1).to(dtype))


def test_learned_keeps_double_precision() -> None:
    scores = some_scores().double()
    mask = ragged([5] * 6)
    torch.testing.assert_close(Learned()(scores, mask), scores.softmax(dim=-1), rtol=1e-14, atol=1e-15)


def test_without_context_nothing_has_weight() -> None:
    weights = NoContext()(some_scores())
    assert weights.shape == SHAPE
    assert (weights == 0).all()


@pytest.mark.parametrize("position", range(SHAPE[-1]))
def test_one_hot_sits_on_its_position(position: int) -> None:
    weights = OneHot(position)(some_scores())
    assert weights.shape == SHAPE
    assert (weights[..., position] == 1).all()
    assert weights.sum() == weights[..., 0].numel()


def test_rules_leave_the_scores_as_they_are() -> None:
    scores, mask = some_scores(), ragged([1, 2, 3, 4, 5, 0])
    for rule in (Learned(), Uniform(), NoContext(), OneHot(1)):
        rule(scores, mask)
    assert torch.equal(scores, some_scores())
    assert torch.equal(mask, ragged([1, 2, 3, 4, 5, 0]))


def test_rules_are_data() -> None:
    assert OneHot(2) == OneHot(2) != OneHot(3)
    assert len({Learned(), Learned(), Uniform(), NoContext(), OneHot(1), OneHot(1)}) == 4


def bringing(given: torch.Tensor | None) -> Batch:
    source, target = (torch.zeros((*SHAPE[:2], length), dtype=torch.int64) for length in (SHAPE[4], SHAPE[3]))
    return Batch(source, target, target, target, given=given)


def test_given_weights_are_those_of_the_batch_whatever_the_logits_are() -> None:
    weights = torch.rand(SHAPE, generator=torch.Generator().manual_seed(1)).softmax(dim=-1)
    batch = bringing(weights)
    assert torch.equal(of_batch(Given(), batch)(some_scores()), weights)
    assert of_batch(Learned(), batch) == Learned()
    mixed = of_batch(Beside(((Learned(), 1), (Given(), 1))), batch)(some_scores())
    assert torch.equal(mixed[1], weights[1])
    assert torch.equal(mixed[0], Learned()(some_scores())[0])


def test_given_attention_needs_weights_that_fit() -> None:
    with pytest.raises(UserError, match="nothing brings the weights"):
        of_batch(Given(), bringing(None))
    with pytest.raises(UserError, match="without a batch"):
        Given()(some_scores())
    with pytest.raises(UserError, match=r"2 × 2 × 4 × 5 weights .* where 3 × 2 × 4 × 5 are needed"):
        Weights(torch.ones(SHAPE)[:, :2])(some_scores())
