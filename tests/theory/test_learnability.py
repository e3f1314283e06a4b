"""The lift predicted from a task is the lift counted in what it draws."""

import numpy as np
import pytest

from attndyn.errors import UserError
from attndyn.tasks import CopyTask, Iid, PermutationMixture, Permutations, PermutedCopy, Subsets, Zipf
from attndyn.tasks.text import drawn
from attndyn.theory.learnability import counted_lift, predicted_lift


@pytest.mark.parametrize(
    "task",
    [
        Permutations(8), Subsets(8, of=9), Subsets(8, of=16), PermutationMixture(8), Iid(8, 8), Iid(8, 3), Iid(8, 30),
        Zipf(8, 10, 0.0), Zipf(8, 10, 0.5), Zipf(8, 6, 1.0),
    ],
)  # fmt: skip
def test_predicted_is_counted(task: CopyTask) -> None:
    assert counted_lift(drawn(task, 40_000)) == pytest.approx(predicted_lift(task), rel=0.02)


def test_known_values() -> None:
    assert predicted_lift(Permutations(40)) == 1
    assert predicted_lift(Subsets(40, of=40)) == 1
    assert predicted_lift(Subsets(40, of=60)) == pytest.approx(59 / 39)
    assert predicted_lift(Iid(40, 40)) == pytest.approx(1 + 40 / 39)
    assert predicted_lift(Zipf(40, 40, 0.0)) == pytest.approx(predicted_lift(Iid(40, 40)))
    # the rarer the word, the larger its lift; frequent words weigh more
    assert predicted_lift(Zipf(40, 40, 1.0)) < predicted_lift(Iid(40, 40))


def test_permutations_are_flat_to_the_bit() -> None:
    assert counted_lift(drawn(Permutations(6), 500)) == pytest.approx(1, abs=1e-12)


def test_a_fixed_order_changes_no_count() -> None:
    task = PermutedCopy(6, of=9)
    order = task.build([0]).order[0].numpy()
    pairs = drawn(task, 20_000)
    assert counted_lift(pairs, order) == pytest.approx(8 / 5, rel=0.02)
    assert counted_lift(pairs) < 1.05 or np.array_equal(order, np.arange(6))


def test_what_has_no_lift() -> None:
    with pytest.raises(UserError, match="one word"):
        predicted_lift(Permutations(1))
    with pytest.raises(UserError, match="two different words"):
        counted_lift(drawn(Iid(3, 1), 5))
