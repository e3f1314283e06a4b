"""Divergences of padded batches against their definitions, and what always holds of them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from attndyn.measures import divergence
from attndyn.measures.flat import Texts
from tests.reference import divergence as slow

LN2 = math.log(2)
amounts = st.one_of(st.just(0.0), st.floats(1e-6, 1))


@st.composite
def rows(draw: st.DrawFn) -> list[tuple[list[float], list[float]]]:
    """Pairs of distributions of different lengths, with zeros in them."""
    pairs = []
    for _ in range(draw(st.integers(1, 4))):
        length = draw(st.integers(1, 6))
        two = [draw(st.lists(amounts, min_size=length, max_size=length).filter(any)) for _ in range(2)]
        pairs.append(tuple([value / sum(each) for value in each] for each in two))
    return pairs


def padded(pairs: list[tuple[list[float], list[float]]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """p, q and the mask; NaN at padding."""
    longest = max(len(p) for p, _ in pairs)
    p, q = (
        torch.tensor([[*pair[n], *[math.nan] * (longest - len(pair[n]))] for pair in pairs], dtype=torch.float64)
        for n in (0, 1)
    )
    return p, q, ~p.isnan()


@given(rows())
def test_values_are_those_of_the_definitions(pairs) -> None:
    p, q, mask = padded(pairs)
    for name in ("jsd", "total_variation"):
        wanted = torch.tensor([getattr(slow, name)(*pair) for pair in pairs], dtype=torch.float64)
        torch.testing.assert_close(getattr(divergence, name)(p, q, mask), wanted, atol=1e-12, rtol=1e-9)
    distances = torch.tensor([jensenshannon(*pair) ** 2 for pair in pairs], dtype=torch.float64)
    torch.testing.assert_close(divergence.jsd(p, q, mask), distances, atol=1e-7, rtol=1e-7)


@given(rows())
def test_kl_is_that_of_the_definition_where_it_is_finite(pairs) -> None:
    pairs = [(p, [(b + 0.01) / (1 + 0.01 * len(q)) for b in q]) for p, q in pairs]
    p, q, mask = padded(pairs)
    wanted = torch.tensor([slow.kl(*pair) for pair in pairs], dtype=torch.float64)
    torch.testing.assert_close(divergence.kl(p, q, mask), wanted, atol=1e-12, rtol=1e-9)


@given(rows())
def test_bounds(pairs) -> None:
    p, q, mask = (each.float() if each.is_floating_point() else each for each in padded(pairs))
    found, variation = divergence.jsd(p, q, mask), divergence.total_variation(p, q, mask)
    assert (found > -1e-6).all()
    assert (found < LN2 + 1e-6).all()
    torch.testing.assert_close(found, divergence.jsd(q, p, mask))
    assert (divergence.kl(p, q, mask) > -1e-5).all()
    assert (variation <= 1 + 1e-6).all()
    # Lin (1991): JSD ≤ ln 2 · TV; and Pinsker through the middle: TV² ≤ 2 JSD
    assert (found <= LN2 * variation + 1e-5).all()
    assert (variation.square() <= 2 * found + 1e-5).all()


def test_the_bounds_are_reached() -> None:
    p, q = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    assert divergence.jsd(p, q).item() == pytest.approx(divergence.LARGEST_JSD) == pytest.approx(LN2)
    assert divergence.total_variation(p, q).item() == 1
    assert divergence.jsd(p, p).item() == divergence.kl(p, p).item() == divergence.total_variation(p, p).item() == 0


def test_the_direction_of_kl() -> None:
    sharp, flat = torch.tensor([0.98, 0.01, 0.01]), torch.full((3,), 1 / 3)
    assert divergence.kl(sharp, flat).item() == pytest.approx(slow.kl(sharp.tolist(), flat.tolist()), abs=1e-6)
    assert divergence.kl(flat, sharp).item() == pytest.approx(slow.kl(flat.tolist(), sharp.tolist()), abs=1e-6)
    assert divergence.kl(flat, sharp) > divergence.kl(sharp, flat)


def test_texts_one_after_the_other() -> None:
    draw = torch.Generator().manual_seed(0)
    lengths = torch.tensor([2, 5, 3])
    mask = torch.arange(5) < lengths[:, None]
    p, q = (torch.randn(3, 5, generator=draw).masked_fill(~mask, -torch.inf).softmax(dim=-1) for _ in range(2))
    texts = Texts(lengths)
    for whole, terms in (
        (divergence.jsd, divergence.jsd_terms),
        (divergence.kl, divergence.kl_terms),
    ):
        torch.testing.assert_close(texts.total(terms(p[mask], q[mask])), whole(p, q, mask))


def test_two_classes() -> None:
    """The total variation of two classes is the difference of one probability, and the W&P program's value half."""
    y, z = torch.tensor([0.3, -2.0]), torch.tensor([1.0, 0.5])
    logits, others = (torch.stack([torch.zeros(2), each], dim=-1) for each in (y, z))
    found = divergence.output_difference(logits, others)
    torch.testing.assert_close(found, (y.sigmoid() - z.sigmoid()).abs())
    torch.testing.assert_close(divergence.halved(found), (y.sigmoid() - z.sigmoid()).abs() / 2)


@pytest.mark.parametrize("name", ["jsd", "kl", "total_variation"])
def test_padding_changes_no_gradient_and_a_padded_row_is_zero(name: str) -> None:
    measure = getattr(divergence, name)
    scores = torch.tensor([[0.0, 90.0, -400.0, 0.0], [0.0, 0.0, 0.0, 0.0]], requires_grad=True)
    mask = torch.tensor([[True, True, True, False], [False] * 4])
    p = scores.masked_fill(~mask, torch.finfo(torch.float32).min).softmax(dim=-1) * mask
    q = torch.tensor([[1.0, 0.0, 0.0, math.nan], [math.nan] * 4])
    found = measure(p, q, mask)
    assert found.isfinite().all()
    assert found[1] == 0
    assert found[0] > 0.4
    (gradient,) = torch.autograd.grad(found.sum(), scores)
    assert gradient.isfinite().all()
    assert (gradient[~mask] == 0).all()
