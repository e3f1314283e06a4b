"""The keyword task: what is drawn, and how it becomes batches."""

import random
from collections import Counter

import pytest
import torch

from attndyn.errors import UserError
from attndyn.tasks import Keyword
from attndyn.tasks.sampler import BLOCK
from attndyn.tasks.streams import EVALUATION, TRAIN, Streams

SEEDS = [0, 3, 9]


def rejected(length: int, words: int, size: int) -> list[list[int]]:
    """As the paper describes it: uniform sequences, kept where the keyword stands once, or never, in turn."""
    source = random.Random(0)
    kept: list[list[int]] = []
    while len(kept) < size:
        drawn = [source.randrange(words) for _ in range(length)]
        if drawn.count(0) == (len(kept) + 1) % 2:
            kept.append(drawn)
    return kept


def test_every_second_sequence_holds_the_keyword_once() -> None:
    batch = Keyword(6, 5).build(SEEDS).batch(0, 40)
    found = (batch.source == 0).sum(dim=2)
    assert found[0].tolist() == [1, 0] * 20
    assert torch.equal(batch.target[..., 0], found)
    assert ((batch.source >= 0) & (batch.source < 5)).all()
    for source, align in zip(batch.source.flatten(0, 1).tolist(), batch.align.flatten().tolist(), strict=True):
        assert align == (source.index(0) if 0 in source else -1)


def test_sequences_are_those_of_rejection_sampling() -> None:
    """Places of the keyword and the other words, as frequent as in the slow definition, to five standard errors."""
    length, words, size = 5, 6, 40_000
    drawn = Keyword(length, words).draw(Streams([1]), TRAIN, [0], size)[0, 0].tolist()
    slow = rejected(length, words, size)
    for rows in ((0, 2), (1, 2)):
        ours, theirs = (Counter((l, word) for row in some[rows[0] :: rows[1]] for l, word in enumerate(row))
                        for some in (drawn, slow))  # fmt: skip
        assert ours.keys() == theirs.keys()
        for cell, count in ours.items():
            assert abs(count - theirs[cell]) < 5 * (count + theirs[cell]) ** 0.5


def test_a_batch_depends_on_its_own_seed_and_step_alone() -> None:
    task = Keyword(6, 5)
    sampler = task.build(SEEDS)
    for step, size in ((BLOCK - 1, 6), (BLOCK, 6), (0, 6), (3 * BLOCK + 2, 4)):
        drawn = task.draw(Streams(SEEDS), TRAIN, [step], size)[:, 0]
        batch = sampler.batch(step, size)
        assert torch.equal(batch.source, drawn)
        assert torch.equal(task.build([9]).batch(step, size).source[0], batch.source[2])
    assert not torch.equal(sampler.batch(0, 6).source[0], sampler.batch(0, 6).source[1])
    held = sampler.evaluation(6).source
    assert torch.equal(held[0], held[2])
    assert torch.equal(held, task.draw(Streams([0] * 3), EVALUATION, [0], 6)[:, 0])


def test_impossible_sizes_are_refused() -> None:
    for sizes in ((1, 5), (5, 1)):
        with pytest.raises(UserError, match="length and words must be at least 2"):
            Keyword(*sizes)
    task = Keyword(4, 3)
    assert (task.vocabulary, task.outputs, task.tokens) == (3, 2, ["1", "2", "3"])
