"""Measures of a padded batch against their definitions, one example at a time: padding is invisible."""

import math
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import measures as slow
from reference.ragged import GARBAGE, examples, pad

from attndyn.measures import focus

offsets = st.sampled_from([-2, -1, 0, 1, 2])
CLOSE = {"rel": 1e-5, "abs": 1e-7}


def has_position(found: list[dict[str, Any]], offset: int) -> bool:
    return any(0 <= right + offset < len(each["rows"][0]) for each in found for right in each["align"])


@given(found=examples(fewest=2))
def test_entropy(found: list[dict[str, Any]]) -> None:
    padded = pad(found)
    measured = focus.normalised_entropy(padded.values, padded.source_mask, padded.target_mask)
    assert measured.item() == pytest.approx(slow.normalised_entropy(found), **CLOSE)


def test_entropy_of_uniform_and_of_one_position() -> None:
    uniform = torch.full((1, 2, 3, 4), 0.25)
    single = torch.zeros(1, 2, 3, 4)
    single[..., 2] = 1
    both = torch.cat([uniform, single])
    assert focus.normalised_entropy(both).tolist() == pytest.approx([1, 0], abs=1e-6)


def test_entropy_over_one_position_is_not_defined() -> None:
    with pytest.raises(ValueError, match="fewer than two"):
        focus.normalised_entropy(torch.ones(1, 2, 3, 1))
    mask = torch.tensor([[[True, True], [True, False]]])
    with pytest.raises(ValueError, match="fewer than two"):
        focus.normalised_entropy(torch.tensor([[[[0.5, 0.5]], [[1.0, 0.0]]]]), mask)


def test_entropy_does_not_see_an_example_of_padding_alone() -> None:
    alpha = torch.tensor([[[[0.5, 0.5, 0.0]], [[0.0, 0.0, 0.0]]]])
    source_mask = torch.tensor([[[True, True, False], [False, False, False]]])
    target_mask = torch.tensor([[[True], [False]]])
    assert focus.normalised_entropy(alpha, source_mask, target_mask).item() == pytest.approx(1)


@given(found=examples(), offset=offsets, filling=st.sampled_from([0.0, GARBAGE]))
def test_peak_share(found: list[dict[str, Any]], offset: int, filling: float) -> None:
    assume(has_position(found, offset))
    padded = pad(found, filling=filling)
    measured = focus.peak_share(padded.values, padded.align, offset, padded.source_mask, padded.target_mask)
    assert measured.item() == pytest.approx(slow.peak_share(found, offset), **CLOSE)


@given(found=examples(ties=True), offset=offsets)
def test_peak_share_with_ties(found: list[dict[str, Any]], offset: int) -> None:
    assume(has_position(found, offset))
    padded = pad(found)
    measured = focus.peak_share(padded.values, padded.align, offset, padded.source_mask, padded.target_mask)
    assert measured.item() == pytest.approx(slow.peak_share(found, offset), **CLOSE)


def test_a_tie_is_no_peak() -> None:
    values = torch.tensor([[[[0.4, 0.4, 0.2], [0.5, 0.3, 0.2]]]])
    align = torch.tensor([[[0, 0]]])
    assert focus.peak_share(values, align).item() == 0.5


def test_constant_attention_has_no_peak() -> None:
    assert focus.peak_share(torch.full((1, 2, 3, 4), 0.25), torch.zeros(1, 2, 3, dtype=torch.int64)).item() == 0


def test_what_is_shifted_over_the_border_is_left_out() -> None:
    """Of three positions on the diagonal two have a right neighbour: one of them is the peak."""
    values = torch.tensor([[[[0.1, 0.8, 0.1], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]]]])
    align = torch.arange(3).view(1, 1, 3)
    assert focus.peak_share(values, align, offset=1).item() == 0.5
    assert focus.mass(values, align, offset=1).item() == pytest.approx((0.8 + 0.1) / 2)
    assert focus.mass(values, align, offset=-1).item() == pytest.approx((0.1 + 0.0) / 2)
    assert focus.mass(values, align).item() == pytest.approx((0.1 + 0.8 + 1.0) / 3)


@given(found=examples(), filling=st.sampled_from([0.0, GARBAGE]))
def test_mass(found: list[dict[str, Any]], filling: float) -> None:
    padded = pad(found, filling=filling)
    measured = focus.mass(padded.values, padded.align, 0, target_mask=padded.target_mask)
    assert measured.item() == pytest.approx(slow.mass(found), **CLOSE)


@given(found=examples(), offset=offsets)
def test_mass_beside_the_right_position_in_an_unpadded_source(found: list[dict[str, Any]], offset: int) -> None:
    """One example at a time, so that no source is padded; the targets are."""
    for example in found:
        if has_position([example], offset):
            padded = pad([example])
            alpha = padded.values[..., : len(example["rows"][0])]
            measured = focus.mass(alpha, padded.align, offset, target_mask=padded.target_mask)
            assert measured.item() == pytest.approx(slow.mass([example], offset), **CLOSE)


def test_mass_shifted_into_the_padding_is_left_out() -> None:
    found = [{"rows": [[0.25, 0.75], [0.5, 0.5]], "align": [0, 1]}, {"rows": [[0.2, 0.2, 0.6]], "align": [0]}]
    padded = pad(found)
    measured = focus.mass(padded.values, padded.align, 1, padded.source_mask, padded.target_mask)
    assert measured.item() == pytest.approx(slow.mass(found, 1), **CLOSE)


@given(found=examples(), filling=st.sampled_from([0.0, GARBAGE]))
def test_mass_on_last(found: list[dict[str, Any]], filling: float) -> None:
    padded = pad(found, filling=filling)
    measured = focus.mass_on_last(padded.values, padded.source_mask, padded.target_mask)
    assert measured.item() == pytest.approx(slow.mass_on_last(found), **CLOSE)


def test_without_masks_every_position_counts() -> None:
    found = [{"rows": [[0.25, 0.75], [0.5, 0.5]], "align": [0, 1]}, {"rows": [[0.9, 0.1], [0.2, 0.8]], "align": [0, 1]}]
    whole = pad(found, extra=0)
    assert focus.normalised_entropy(whole.values).item() == pytest.approx(slow.normalised_entropy(found), **CLOSE)
    assert focus.peak_share(whole.values, whole.align).item() == slow.peak_share(found) == 0.5
    assert focus.mass_on_last(whole.values).item() == pytest.approx(slow.mass_on_last(found), **CLOSE)


@pytest.mark.parametrize("offset", [3, -3])
def test_an_offset_that_leaves_no_position_raises(offset: int) -> None:
    values, align = torch.full((1, 2, 3, 3), 1 / 3), torch.arange(3).expand(1, 2, 3)
    with pytest.raises(ValueError, match="no position"):
        focus.peak_share(values, align, offset)
    with pytest.raises(ValueError, match="no position"):
        focus.mass(values, align, offset)


def test_each_replica_is_measured_alone() -> None:
    random = torch.Generator().manual_seed(0)
    alpha = torch.rand(3, 2, 4, 5, generator=random).softmax(dim=-1)
    align = torch.randint(5, (3, 2, 4), generator=random)
    source_mask = torch.arange(5) < torch.tensor([[5, 3], [4, 2], [5, 5]])[..., None]
    target_mask = torch.rand(3, 2, 4, generator=random) < 0.7
    assert target_mask.any(dim=(1, 2)).all()
    measures = [
        lambda a, l, s, t: focus.normalised_entropy(a, s, t),
        lambda a, l, s, t: focus.peak_share(a, l, 0, s, t),
        lambda a, l, s, t: focus.mass(a, l, 0, target_mask=t),
        lambda a, l, s, t: focus.mass_on_last(a, s, t),
    ]
    # a right position in the padding would not count at all
    align = align.minimum(source_mask.sum(dim=-1, keepdim=True) - 1)
    for measure in measures:
        together = measure(alpha, align, source_mask, target_mask)
        alone = [measure(*(part[r : r + 1] for part in (alpha, align, source_mask, target_mask))) for r in range(3)]
        torch.testing.assert_close(together, torch.cat(alone))
        assert len(set(together.tolist())) > 1


@given(
    st.integers(2, 4).flatmap(
        lambda keys: st.lists(
            st.lists(st.lists(st.floats(-3, 3), min_size=2, max_size=2), min_size=keys, max_size=keys),
            min_size=2,
            max_size=4,
        )
    )
)
def test_mean_state_spread(states: list[list[list[float]]]) -> None:
    tensor = torch.tensor([states], dtype=torch.float64)
    assume((tensor - tensor.mean(dim=(1, 2), keepdim=True)).abs().max() > 1e-3)
    assert focus.mean_state_spread(tensor).item() == pytest.approx(slow.mean_state_spread(states), abs=1e-7)


def test_mean_state_spread_at_its_two_marks() -> None:
    random = torch.Generator().manual_seed(0)
    one = torch.randn(1, 1, 4, 8, generator=random)
    same = torch.cat([one[:, :, torch.randperm(4, generator=random)] for _ in range(5)], dim=1)
    assert focus.mean_state_spread(same).item() == pytest.approx(0, abs=1e-6)
    independent = torch.randn(1, 4000, 4, 8, generator=random)
    assert focus.mean_state_spread(independent).item() == pytest.approx(1 / math.sqrt(4), rel=0.02)


def test_mean_state_spread_of_equal_states_is_undefined_for_that_replica_alone() -> None:
    """0/0: a replica whose states collapsed has no spread, and it is not 0; the others are measured."""
    random = torch.randn(1, 3, 4, 2, generator=torch.Generator().manual_seed(0))
    both = focus.mean_state_spread(torch.cat([torch.ones_like(random), random]))
    assert both[0].isnan()
    torch.testing.assert_close(both[1:], focus.mean_state_spread(random))


@given(found=examples(ties=True), words=st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_peak_on_word(found: list[dict[str, Any]], words: list[int]) -> None:
    padded = pad(found, filling=GARBAGE)
    source = torch.tensor(words)[: padded.values.shape[-1]].expand(1, len(found), -1)
    measured = focus.peak_on_word(padded.values, source, padded.align, padded.source_mask, padded.target_mask)
    each = []
    for example in found:
        for row, right in zip(example["rows"], example["align"], strict=True):
            same = [value for value, word in zip(row, words, strict=False) if word == words[right]]
            other = [value for value, word in zip(row, words, strict=False) if word != words[right]]
            each.append(max(same) > max(other, default=-math.inf))
    assert measured.item() == pytest.approx(sum(each) / len(each), **CLOSE)
