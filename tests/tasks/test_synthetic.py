"""What is drawn: the defining property of each task, and the specs as data."""

import dataclasses
import itertools
import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import philox as reference
from scipy.stats import binomtest, chi2_contingency, chisquare

from attndyn import spec
from attndyn.errors import UserError
from attndyn.tasks import (
    KINDS,
    CopyTask,
    Iid,
    Keyword,
    MadeChunks,
    PermutationMixture,
    Permutations,
    PermutedCopy,
    Subsets,
    Zipf,
)
from attndyn.tasks.streams import TRAIN, Streams

SEED = st.integers(0, 2**32 - 1)
TASKS = [Permutations(4), Subsets(3, of=5), PermutedCopy(3, of=5), PermutationMixture(4), Iid(4, 6), Zipf(4, 6)]


def drawn(task: CopyTask, seeds: list[int], rows: int, step: int = 0) -> list[list[list[int]]]:
    words = task.draw(Streams(seeds), TRAIN, [step + 5, step], rows)
    assert words.shape == (len(seeds), 2, rows, task.length)
    assert words.min() >= 0
    assert words.max() < task.words
    return words[:, 1].tolist()


@given(seed=SEED, n=st.integers(1, 12))
def test_permutations_hold_each_word_once(seed: int, n: int) -> None:
    for row in drawn(Permutations(n), [seed], 5)[0]:
        assert sorted(row) == list(range(n))


@given(seed=SEED, k=st.integers(1, 8), more=st.integers(0, 8))
def test_subsets_hold_different_words(seed: int, k: int, more: int) -> None:
    for row in drawn(Subsets(k, of=k + more), [seed], 5)[0]:
        assert len(set(row)) == k


def test_every_subset_comes_and_equally_often() -> None:
    rows = drawn(Subsets(2, of=5), [3], 2000)[0]
    ordered = [rows.count(list(pair)) for pair in itertools.permutations(range(5), 2)]
    assert sum(ordered) == 2000
    assert chisquare(ordered).pvalue > 1e-3


@given(seed=SEED, n=st.integers(1, 8))
def test_a_mixture_permutes_one_of_two_sets(seed: int, n: int) -> None:
    low, high = list(range(n)), list(range(n, 2 * n))
    for row in drawn(PermutationMixture(n), [seed], 8)[0]:
        assert sorted(row) in (low, high)


def test_a_mixture_takes_each_set_half_the_time_whatever_the_order() -> None:
    rows = torch.tensor(drawn(PermutationMixture(3), [4], 3000)[0])
    upper = rows[:, 0] >= 3
    assert binomtest(int(upper.sum()), len(rows), 0.5).pvalue > 1e-3
    # 0 … 26, of which six are orders of three words
    order = ((rows % 3) * torch.tensor([9, 3, 1])).sum(dim=1)
    table = [[int(((order == code) & (upper == side)).sum()) for code in order.unique()] for side in (False, True)]
    assert len(table[0]) == 6
    assert chi2_contingency(table).pvalue > 1e-3


def test_the_coins_of_a_mixture_follow_the_numbers_of_its_shuffles() -> None:
    """No number serves twice: a coin that is a bit of a sorted key would depend on the order."""
    n, rows = 3, 5
    numbers = reference.words(4, TRAIN, 0, rows * (n + 1))
    expected = []
    for row in range(rows):
        coin = numbers[rows * n + row] % 2
        expected.append([word + n * coin for word in reference.shuffle(numbers[row * n : (row + 1) * n])])
    assert drawn(PermutationMixture(n), [4], rows)[0] == expected


def test_iid_words_are_uniform_independent_and_repeat() -> None:
    rows = torch.tensor(drawn(Iid(2, 4), [5], 4000)[0])
    pairs = torch.bincount(rows[:, 0] * 4 + rows[:, 1], minlength=16)
    assert chisquare(pairs.numpy()).pvalue > 1e-3
    assert (rows[:, 0] == rows[:, 1]).any()


@given(seed=SEED, k=st.integers(1, 9))
def test_permuted_copy_has_one_order_for_each_seed(seed: int, k: int) -> None:
    task = PermutedCopy(k, of=k + 1)
    order = task.order(Streams([seed, 17]))
    assert sorted(order[0].tolist()) == list(range(k))
    assert torch.equal(order[0], task.order(Streams([seed]))[0])


def test_permuted_copy_has_other_orders_for_other_seeds() -> None:
    orders = PermutedCopy(6, of=6).order(Streams(list(range(40))))
    # of 720 orders 40 are drawn: about one pair of equal ones is expected
    assert len({tuple(order) for order in orders.tolist()}) > 35


def test_the_other_tasks_keep_the_order() -> None:
    for task in (Permutations(4), Subsets(3, of=5), PermutationMixture(4), Iid(4, 6), Zipf(4, 6)):
        assert task.order(Streams([0])) is None


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_a_seed_and_a_step_give_their_own_examples(task: CopyTask) -> None:
    together = drawn(task, [0, 3, 9], 6, step=2)
    assert together[1] == drawn(task, [3], 6, step=2)[0]
    assert together[1] != together[0]
    assert together[1] != drawn(task, [3], 6, step=1)[0]


@pytest.mark.parametrize(
    ("task", "length", "words"),
    [
        (Permutations(4), 4, 4),
        (Subsets(3, of=5), 3, 5),
        (PermutedCopy(3, of=5), 3, 5),
        (PermutationMixture(4), 4, 8),
        (Iid(4, 6), 4, 6),
        (Zipf(4, 6), 4, 6),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sizes(task: CopyTask, length: int, words: int) -> None:
    relabelled = dataclasses.replace(task, relabel=True)
    assert (task.length, task.words) == (relabelled.length, relabelled.words) == (length, words)
    assert task.vocabulary == words + 2
    assert relabelled.vocabulary == 2 * words + 2


@pytest.mark.parametrize("relabel", [False, True])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_each_token_has_its_own_text(task: CopyTask, relabel: bool) -> None:
    tokens = dataclasses.replace(task, relabel=relabel).tokens
    assert len(set(tokens)) == len(tokens) == dataclasses.replace(task, relabel=relabel).vocabulary
    assert tokens[-2:] == ["</s>", "<s>"]
    assert tokens[0] == "1"


def test_a_token_of_the_other_alphabet_names_its_word() -> None:
    assert Permutations(2, relabel=True).tokens == ["1", "2", "1′", "2′", "</s>", "<s>"]


@pytest.mark.parametrize(
    "impossible",
    [
        lambda: Permutations(0),
        lambda: Permutations(-3),
        lambda: Subsets(5, of=4),
        lambda: Subsets(0, of=4),
        lambda: PermutedCopy(5, of=4),
        lambda: PermutationMixture(0),
        lambda: Iid(0, 4),
        lambda: Iid(4, 0),
    ],
)
def test_impossible_sizes_are_refused(impossible) -> None:
    with pytest.raises(UserError, match=r"at least 1|different words"):
        impossible()


def test_a_subset_may_be_everything() -> None:
    assert sorted(drawn(Subsets(4, of=4), [0], 1)[0][0]) == [0, 1, 2, 3]


def test_a_spec_is_json_and_names_its_kind() -> None:
    encoded = spec.encode(Subsets(3, of=5))
    assert json.loads(json.dumps(encoded)) == encoded == {"kind": "Subsets", "relabel": False, "k": 3, "of": 5}


def test_the_digest_of_a_spec_is_stable() -> None:
    """A change here makes every stored run look like other work."""
    assert spec.digest(Permutations(4)) == "1a24bb68c8bd372e6fe0a4da22272547e934c942cd5bacea1c7130c590445ab7"


def test_equal_specs_have_equal_digests() -> None:
    assert spec.digest(Subsets(3, of=5)) == spec.digest(Subsets(k=3, of=5, relabel=False))
    assert spec.digest({"a": 1, "b": [1, 2]}) == spec.digest({"b": (1, 2), "a": 1})


def test_different_work_has_different_digests() -> None:
    tasks = [
        Permutations(4), Permutations(5), Permutations(4, relabel=True), PermutationMixture(4),
        Subsets(3, of=5), PermutedCopy(3, of=5), Subsets(5, of=5), Iid(3, 5), Iid(5, 3),
    ]  # fmt: skip
    assert len({spec.digest(task) for task in tasks}) == len(tasks)


@pytest.mark.parametrize("stranger", [object(), math, Permutations, {1, 2}, torch.zeros(1)])
def test_what_is_no_data_cannot_be_part_of_a_spec(stranger: object) -> None:
    with pytest.raises(TypeError, match="cannot be part of a spec"):
        spec.encode({"it": [stranger]})


def test_all_kinds_are_listed() -> None:
    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    assert set(KINDS) == below(CopyTask) - {CopyTask} | {Keyword, MadeChunks}


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.5])
def test_zipf_words_are_as_frequent_as_their_ranks_say(exponent: float) -> None:
    task = Zipf(3, 5, exponent)
    rows = torch.tensor(drawn(task, [5], 4000)[0])
    assert sum(task.probabilities) == pytest.approx(1)
    for position in range(3):
        counts = rows[:, position].bincount(minlength=5)
        assert chisquare(counts.tolist(), [4000 * p for p in task.probabilities]).pvalue > 1e-3


@pytest.mark.parametrize("exponent", [-1.0, float("nan"), 10.0])
def test_an_impossible_exponent(exponent: float) -> None:
    with pytest.raises(UserError, match="exponent"):
        Zipf(3, 5, exponent)
