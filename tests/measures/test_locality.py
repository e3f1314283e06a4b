"""Where the evidence stands, and what states hold, against their definitions one example at a time."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attndyn.measures.locality import around, explained


def test_gamma_around_a_place() -> None:
    generator = torch.Generator().manual_seed(0)
    gamma = torch.randn(2, 7, 5, generator=generator)
    place = torch.tensor([[3, -1, 4, 0, 2, 4, -1], [0, 1, 2, 3, 4, -1, -1]])[..., None]
    keep = (place >= 0) & (place < 4)
    found = around(gamma, place, keep)
    for replica in range(2):
        rows = [(row, int(l)) for row, l in enumerate(place[replica, :, 0]) if 0 <= l < 4]
        slow = {
            "keyword": [float(gamma[replica, row, l]) for row, l in rows],
            "next": [float(gamma[replica, row, l + 1]) for row, l in rows],
            "mean": [float(gamma[replica, row].mean()) for row, _ in rows],
            "last": [float(gamma[replica, row, 4]) for row, _ in rows],
        }
        for name, values in slow.items():
            assert float(found[name][replica]) == pytest.approx(np.mean(values), abs=1e-6)
    with pytest.raises(ValueError, match="no position to average over"):
        around(gamma, place, torch.zeros_like(keep))


def slow_explained(states: np.ndarray, words: np.ndarray, offset: int) -> float:
    """ε² of a one-way analysis of variance, dimension after dimension."""
    pairs = [
        (states[b, l], words[b, l + offset])
        for b in range(words.shape[0])
        for l in range(words.shape[1])
        if 0 <= l + offset < words.shape[1]
    ]
    groups = {word: np.array([state for state, other in pairs if other == word]) for _, word in pairs}
    everything = np.array([state for state, _ in pairs])
    total = ((everything - everything.mean(0)) ** 2).sum()
    within = sum(((group - group.mean(0)) ** 2).sum() for group in groups.values())
    between = total - within
    k, n = len(groups), len(pairs)
    return (between - (k - 1) * within / (n - k)) / total


@given(st.integers(0, 1000), st.sampled_from([-2, -1, 0, 1, 2]))
def test_the_share_explained_is_that_of_the_analysis_of_variance(seed: int, offset: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(0, 4, (2, 6, 5), generator=generator)
    states = torch.randn(2, 6, 5, 3, generator=generator) + 2 * torch.randn(7, 3, generator=generator)[words]
    found = explained(states, words, 7, offset)
    for replica in range(2):
        expected = slow_explained(states[replica].double().numpy(), words[replica].numpy(), offset)
        assert float(found[replica]) == pytest.approx(expected, abs=1e-4)


def test_a_state_that_is_its_word_holds_nothing_else() -> None:
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(0, 10, (1, 300, 20), generator=generator)
    states = torch.randn(10, 8, generator=generator)[words]
    assert float(explained(states, words, 10, 0)) == pytest.approx(1, abs=1e-5)
    for offset in (-1, 1):
        assert abs(float(explained(states, words, 10, offset))) < 0.01
    shifted = states.roll(1, dims=2)
    assert float(explained(shifted[:, :, 1:], words[:, :, 1:], 10, -1)) == pytest.approx(1, abs=1e-5)
