import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import philox as reference
from scipy.stats import chisquare

from attndyn.errors import UserError
from attndyn.kernels.philox import philox
from attndyn.tasks.streams import EVALUATION, ORDER, POSITION_BITS, RELABEL, TRAIN, Streams

SEEDS = [0, 7, 4294967295]
WORD = st.integers(0, 2**32 - 1)


def run_philox(counter: list[int], key: list[int]) -> list[int]:
    tensors = [[torch.tensor([word]) for word in words] for words in (counter, key)]
    return [int(word) for word in philox(*tensors)]


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_known_answers_of_random123(counter: list[int], key: list[int], answer: list[int]) -> None:
    assert run_philox(counter, key) == answer
    assert list(reference.philox4x32(tuple(counter), tuple(key))) == answer


@given(counter=st.lists(WORD, min_size=4, max_size=4), key=st.lists(WORD, min_size=2, max_size=2))
def test_philox_is_philox_in_python_integers(counter: list[int], key: list[int]) -> None:
    assert run_philox(counter, key) == list(reference.philox4x32(tuple(counter), tuple(key)))


@given(
    seeds=st.lists(WORD, min_size=1, max_size=4),
    stream=st.integers(0, 3),
    steps=st.lists(st.integers(0, 10**6), min_size=1, max_size=3),
    count=st.integers(1, 23),
)
def test_words_are_the_counters_in_order(seeds: list[int], stream: int, steps: list[int], count: int) -> None:
    expected = [[reference.words(seed, stream, step, count) for step in steps] for seed in seeds]
    assert Streams(seeds).words(stream, steps, count).tolist() == expected


def test_stream_ids_are_never_renumbered() -> None:
    assert (TRAIN, EVALUATION, ORDER, RELABEL) == (0, 1, 2, 3)


def test_golden_numbers() -> None:
    """These freeze the streams: a change here changes every result ever recorded."""
    streams = Streams(SEEDS)
    assert streams.words(TRAIN, [0], 6)[:, 0].tolist() == [
        [1713891541, 3781805453, 3159862348, 2600524760, 4175744164, 1555169499],
        [4099963437, 3221879260, 490388034, 367897730, 1747881627, 3415718931],
        [4127959009, 4211857312, 3339500845, 2108504476, 2278064444, 3686369147],
    ]
    assert streams.words(EVALUATION, [3], 5)[:, 0].tolist() == [
        [2812937953, 3304576997, 940901633, 2448109767, 3183839912],
        [374372545, 1780640641, 1578989493, 2055537692, 2323188882],
        [769065188, 2753626482, 4091147182, 2366791456, 2777334395],
    ]
    assert streams.shuffles(TRAIN, [5], 2, 6)[:, 0].tolist() == [
        [[3, 4, 2, 1, 0, 5], [3, 2, 5, 4, 0, 1]],
        [[2, 0, 1, 5, 3, 4], [3, 5, 0, 4, 2, 1]],
        [[5, 2, 1, 4, 0, 3], [3, 0, 5, 1, 2, 4]],
    ]
    assert streams.integers(ORDER, [1], 2, 4, below=10)[:, 0].tolist() == [
        [[9, 9, 1, 0], [5, 2, 1, 5]],
        [[8, 6, 9, 3], [2, 4, 4, 7]],
        [[8, 5, 7, 8], [1, 9, 0, 5]],
    ]


@given(seed=WORD, step=st.integers(0, 1000), rows=st.integers(1, 5), n=st.integers(1, 40))
def test_a_shuffle_is_a_permutation_in_the_order_of_its_words(seed: int, step: int, rows: int, n: int) -> None:
    shuffles = Streams([seed]).shuffles(TRAIN, [step], rows, n)[0, 0].tolist()
    numbers = reference.words(seed, TRAIN, step, rows * n)
    for row, shuffle in enumerate(shuffles):
        assert sorted(shuffle) == list(range(n))
        assert shuffle == reference.shuffle(numbers[row * n : (row + 1) * n])


@pytest.mark.parametrize("n", [2, 5])
def test_each_word_comes_equally_often_at_each_position(n: int) -> None:
    rows = 4000
    shuffles = Streams([11]).shuffles(TRAIN, [2], rows, n)[0, 0]
    for position in range(n):
        counts = torch.bincount(shuffles[:, position], minlength=n)
        assert chisquare(counts.numpy()).pvalue > 1e-3


def test_all_orders_come_equally_often() -> None:
    shuffles = Streams([12]).shuffles(EVALUATION, [0], 6000, 4)[0, 0]
    codes = (shuffles * torch.tensor([64, 16, 4, 1])).sum(dim=1)
    _, counts = codes.unique(return_counts=True)
    assert len(counts) == 24
    assert chisquare(counts.numpy()).pvalue > 1e-3


@pytest.mark.parametrize("below", [2, 7, 60])
def test_integers_are_uniform(below: int) -> None:
    drawn = Streams([13]).integers(TRAIN, [1], 500, 20, below)
    assert drawn.min() >= 0
    assert drawn.max() < below
    assert chisquare(torch.bincount(drawn.flatten(), minlength=below).numpy()).pvalue > 1e-3


def test_a_seed_does_not_know_its_neighbours() -> None:
    alone, among = Streams([3]), Streams([0, 3, 9])
    assert torch.equal(alone.words(TRAIN, [4], 50)[0], among.words(TRAIN, [4], 50)[1])
    assert torch.equal(alone.shuffles(TRAIN, [4], 5, 7)[0], among.shuffles(TRAIN, [4], 5, 7)[1])
    assert torch.equal(alone.integers(TRAIN, [4], 5, 7, 9)[0], among.integers(TRAIN, [4], 5, 7, 9)[1])


def test_more_rows_leave_the_first_ones_as_they_are() -> None:
    streams = Streams([3, 4])
    assert torch.equal(streams.words(TRAIN, [0], 10), streams.words(TRAIN, [0], 33)[:, :, :10])
    assert torch.equal(streams.shuffles(TRAIN, [0], 3, 5), streams.shuffles(TRAIN, [0], 8, 5)[:, :, :3])
    assert torch.equal(streams.integers(TRAIN, [0], 3, 5, 9), streams.integers(TRAIN, [0], 8, 5, 9)[:, :, :3])


def test_a_step_does_not_know_its_neighbours() -> None:
    streams = Streams([3, 4])
    assert torch.equal(streams.words(TRAIN, [7], 10)[:, 0], streams.words(TRAIN, range(5, 9), 10)[:, 2])
    assert torch.equal(streams.shuffles(TRAIN, [7], 3, 5)[:, 0], streams.shuffles(TRAIN, [9, 7], 3, 5)[:, 1])
    assert torch.equal(streams.integers(TRAIN, [7], 3, 5, 9)[:, 0], streams.integers(TRAIN, [9, 7], 3, 5, 9)[:, 1])


def test_seed_stream_and_step_each_give_other_numbers() -> None:
    rows = [
        row for seed in (1, 2) for stream in (1, 2) for row in Streams([seed]).words(stream, [1, 2], 64)[0].tolist()
    ]
    numbers = [number for row in rows for number in row]
    # 512 words out of 2^32: the chance of two equal ones is 3 in 100,000.
    assert len(set(numbers)) == len(numbers)


def test_asking_twice_gives_the_same() -> None:
    streams = Streams([5])
    first = streams.shuffles(TRAIN, [0], 2, 6)
    streams.words(TRAIN, [1], 100)
    assert torch.equal(first, streams.shuffles(TRAIN, [0], 2, 6))


def test_equal_keys_still_have_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = torch.tensor([[[2**32 - 1, 9, 9, 0, 9, 2**32 - 1]]])
    monkeypatch.setattr(Streams, "words", lambda self, stream, steps, count: keys[:, :, :count])
    assert Streams([0]).shuffles(TRAIN, [0], 1, 6).tolist() == [[[[3, 1, 2, 4, 0, 5]]]]


def test_the_position_fits_beside_the_key() -> None:
    n = 1 << POSITION_BITS
    with pytest.raises(UserError, match=f"{n + 1:,}"):
        Streams([0]).shuffles(TRAIN, [0], 1, n + 1)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(UserError, match=str(seed)):
        Streams([0, seed])
