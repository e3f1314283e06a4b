"""Scorings without padding against the measures of padded batches."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attndyn.measures import agreement as padded
from attndyn.measures import flat, focus

texts = st.lists(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=45), min_size=1,
                 max_size=6)  # fmt: skip


def both(found: list[list[tuple[int, int]]]) -> tuple[flat.Texts, torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """The texts, two scorings with many ties, and the same padded: u, v, mask."""
    lengths = torch.tensor([len(text) for text in found])
    u, v = (torch.tensor([float(pair[side]) for text in found for pair in text]) for side in (0, 1))
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    wide = [torch.full(mask.shape, 77.0) for _ in range(2)]
    for each, values in zip(wide, (u, v), strict=True):
        each[mask] = values
    return flat.Texts(lengths), u, v, [*wide, mask]


@settings(deadline=None)
@given(texts, st.sampled_from([5.0, 20.0, 100.0]))
def test_agreement_is_that_of_padded_rows(found, percent: float) -> None:
    rows, u, v, (wide_u, wide_v, mask) = both(found)
    mine = rows.agreement(rows.peaks(u), v, rows.limits(v, percent))
    assert mine.double().tolist() == padded.agreement(wide_u, wide_v, mask, percent).values.tolist()


@settings(deadline=None, max_examples=30)
@given(texts, st.integers(1, 2))
def test_many_scorings_at_once(found, every: int) -> None:
    rows, u, v, _ = both(found)
    many = torch.stack([v, -v, u * v]).unsqueeze(1)
    assert torch.equal(rows.total(many), torch.stack([rows.total(one) for one in many[:, 0]]).unsqueeze(1))
    peaks, limits = rows.peaks(u), rows.limits(many)
    assert torch.equal(limits, torch.stack([rows.limits(one) for one in many[:, 0]]).unsqueeze(1))
    agreed = torch.stack([rows.agreement(peaks, one, rows.limits(one)) for one in many[:, 0]]).unsqueeze(1)
    assert torch.equal(rows.agreement(peaks, many, limits), agreed)
    wanted = []
    for one in many[:, 0]:
        try:
            wanted.append(rows.kendall_tau(u, one, every).values)
        except ValueError:
            wanted.append(torch.full((-(-len(rows.lengths) // every),), torch.nan, dtype=torch.float64))
    if torch.stack(wanted).isnan().all():
        return
    mine = rows.kendall_tau(u, many, every)
    assert torch.equal(mine.values.nan_to_num(9), torch.stack(wanted).unsqueeze(1).nan_to_num(9))
    assert (mine.n, mine.n_undefined) == (int((~mine.values.isnan()).sum()), int(mine.values.isnan().sum()))


@settings(deadline=None, max_examples=40)
@given(texts, st.integers(1, 3))
def test_tau_is_that_of_padded_rows(found, every: int) -> None:
    rows, u, v, (wide_u, wide_v, mask) = both(found)
    try:
        wanted = padded.kendall_tau(wide_u[::every], wide_v[::every], mask[::every])
    except ValueError:
        with pytest.raises(ValueError, match="undefined in all"):
            rows.kendall_tau(u, v, every)
        alone = rows.taus(u, v, every)
        assert alone.shape == wide_u[::every].shape[:1]
        assert alone.isnan().all()
        return
    mine = rows.kendall_tau(u, v, every)
    np.testing.assert_array_equal(rows.taus(u, v, every).numpy(), mine.values.numpy())
    np.testing.assert_allclose(mine.values.numpy(), wanted.values.numpy())
    assert (mine.n, mine.n_undefined) == (wanted.n, wanted.n_undefined)


@pytest.mark.parametrize(("limit", "small", "slices"), [("TOKENS", 10, 4), ("WIDER", 1.5, 4), ("WIDER", 2, 2)])
def test_tau_in_slices(limit: str, small: float, slices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = torch.Generator().manual_seed(0)
    lengths = torch.tensor([9, 2, 1, 5, 2, 9])
    u, v = torch.randn(2, 28, generator=draw)
    monkeypatch.setattr(flat, "WIDER", 9)
    whole = flat.Texts(lengths).kendall_tau(u, v)
    monkeypatch.setattr(flat, limit, small)
    rows = flat.Texts(lengths)
    again = rows.kendall_tau(u, v)
    assert len(rows._padded(1)) == slices
    np.testing.assert_array_equal(whole.values.numpy(), again.values.numpy())
    assert (whole.n, whole.n_undefined) == (again.n, again.n_undefined) == (5, 1)


def test_entropy_is_that_of_padded_rows() -> None:
    draw = torch.Generator().manual_seed(0)
    lengths = torch.tensor([2, 5, 9])
    alpha = torch.cat([torch.rand(int(length), generator=draw).softmax(dim=0) for length in lengths])
    mask = torch.arange(9) < lengths[:, None]
    wide = torch.zeros(3, 9)
    wide[mask] = alpha
    wanted = focus.normalised_entropy(wide[None, :, None], mask[None])
    torch.testing.assert_close(flat.Texts(lengths).entropy(alpha).mean(), wanted[0])


def test_what_does_not_fit_raises() -> None:
    rows = flat.Texts(torch.tensor([2, 3]))
    with pytest.raises(ValueError, match="4 values for 5 words"):
        rows.peaks(torch.zeros(4))
    with pytest.raises(ValueError, match="not numbers"):
        rows.limits(torch.full((5,), torch.nan))
    with pytest.raises(ValueError, match="needs a word"):
        flat.Texts(torch.tensor([2, 0]))
