import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import measures as slow
from sklearn.metrics import roc_auc_score

from attndyn.errors import UserError
from attndyn.measures.scores import accuracy, auc, masked_mean

OUTPUTS = 4


@st.composite
def answers(draw) -> list[tuple[list[list[float]], list[int]]]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        queries = draw(st.integers(1, 4))
        row = st.permutations([0.0, 0.5, 1.5, 3.0])  # no ties: which of two equal logits wins is not defined
        rows = draw(st.lists(row, min_size=queries, max_size=queries))
        target = draw(st.lists(st.integers(0, OUTPUTS - 1), min_size=queries, max_size=queries))
        found.append((rows, target))
    return found


@given(found=answers())
def test_accuracy_does_not_see_padding(found: list[tuple[list[list[float]], list[int]]]) -> None:
    queries = max(len(target) for _, target in found) + 1
    logits = torch.zeros(1, len(found), queries, OUTPUTS)
    target = torch.zeros(1, len(found), queries, dtype=torch.int64)  # in the padding 0 would be right
    mask = torch.zeros(1, len(found), queries, dtype=torch.bool)
    for place, (rows, wanted) in enumerate(found):
        logits[0, place, : len(rows)] = torch.tensor(rows)
        target[0, place, : len(rows)] = torch.tensor(wanted)
        mask[0, place, : len(rows)] = True
    assert accuracy(logits, target, mask).item() == pytest.approx(slow.accuracy(found), rel=1e-6)


def test_accuracy_of_each_replica() -> None:
    logits = torch.eye(3).view(1, 1, 3, 3).repeat(2, 1, 1, 1)
    target = torch.tensor([[[0, 1, 2]], [[0, 0, 0]]])
    assert accuracy(logits, target).tolist() == pytest.approx([1, 1 / 3])


def test_the_mean_is_over_positions_not_over_examples() -> None:
    values = torch.tensor([[[1.0, 1.0, 1.0], [0.0, 9.0, 9.0]]])
    keep = torch.tensor([[[True, True, True], [True, False, False]]])
    assert masked_mean(values, keep).item() == 0.75


def test_nan_in_the_padding_does_not_spread() -> None:
    values = torch.tensor([[[1.0, torch.nan], [0.0, torch.inf]]])
    keep = torch.tensor([[[True, False], [True, False]]])
    assert masked_mean(values, keep).item() == 0.5


def test_a_nan_that_counts_is_not_hidden() -> None:
    assert masked_mean(torch.tensor([[[1.0, torch.nan]]]), torch.ones(1, 1, 2, dtype=torch.bool)).isnan().all()


def test_one_replica_without_a_position_raises() -> None:
    keep = torch.tensor([[[True, True]], [[False, False]]])
    with pytest.raises(ValueError, match="no position"):
        masked_mean(torch.zeros(2, 1, 2), keep)


def test_no_example_at_all_raises() -> None:
    with pytest.raises(ValueError, match="no position"):
        masked_mean(torch.zeros(1, 0, 3), None)


@given(
    votes=st.lists(st.lists(st.integers(-3, 3), min_size=2, max_size=12), min_size=1, max_size=3),
    draw=st.integers(0, 2**12 - 1),
)
def test_the_auc_is_scikit_learns(votes: list[list[int]], draw: int) -> None:
    length = min(map(len, votes))
    right = np.array([bool(draw >> n & 1) for n in range(length)])
    values = torch.tensor([row[:length] for row in votes], dtype=torch.float32)
    if right.all() or not right.any():
        with pytest.raises(UserError, match="one label"):
            auc(values, torch.as_tensor(right))
        return
    found = auc(values, torch.as_tensor(right))
    assert found.tolist() == pytest.approx([roc_auc_score(right, row) for row in values.numpy()])
