"""How what is drawn becomes batches: tokens, targets, alignment, the fixed evaluation examples."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attndyn.tasks import CopyTask, Iid, PermutationMixture, Permutations, PermutedCopy, Subsets, Zipf
from attndyn.tasks.sampler import BLOCK, Batch
from attndyn.tasks.streams import EVALUATION, TRAIN, Streams

SEEDS = [0, 3, 9]
TASKS = [
    dataclasses.replace(task, relabel=relabel)
    for task in (Permutations(4), Subsets(3, of=5), PermutedCopy(3, of=5), PermutationMixture(3), Iid(4, 6), Zipf(4, 6))
    for relabel in (False, True)
]
every_task = pytest.mark.parametrize(
    "task", TASKS, ids=lambda task: type(task).__name__ + (" relabelled" if task.relabel else "")
)


def equal(one: Batch, other: Batch, replica: int, place: int) -> bool:
    names = ("source", "shifted", "target", "align")
    return all(torch.equal(getattr(one, name)[replica], getattr(other, name)[place]) for name in names)


@every_task
def test_tokens_stand_where_they_should(task: CopyTask) -> None:
    batch = task.build(SEEDS).batch(0, 6)
    end, start = task.vocabulary - 2, task.vocabulary - 1
    assert batch.source.shape == batch.target.shape == batch.shifted.shape == (3, 6, task.length + 1)
    assert (batch.source[..., -1] == end).all()
    assert (batch.target[..., -1] == end).all()
    assert (batch.shifted[..., 0] == start).all()
    assert torch.equal(batch.shifted[..., 1:], batch.target[..., :-1])
    # neither token is anywhere else
    assert (batch.source[..., :-1] < task.words).all()
    assert (batch.target[..., :-1] < end).all()
    assert batch.source_mask is None
    assert batch.target_mask is None


@every_task
def test_a_batch_is_the_training_stream_of_its_step_whenever_it_is_asked_for(task: CopyTask) -> None:
    """Words are drawn for several steps at once; neither a resumed run nor another batch size notices."""
    sampler = task.build(SEEDS)
    for step, size in ((BLOCK - 1, 6), (BLOCK, 6), (0, 6), (3 * BLOCK + 2, 6), (3 * BLOCK + 2, 4), (3 * BLOCK + 3, 4)):
        drawn = task.draw(Streams(SEEDS), TRAIN, [step], size)[:, 0]
        assert torch.equal(sampler.batch(step, size).source[..., :-1], drawn)


@every_task
def test_the_target_is_the_source_through_alignment_and_relabelling(task: CopyTask) -> None:
    sampler = task.build(SEEDS)
    batch = sampler.batch(1, 8)
    for replica in range(len(SEEDS)):
        for source, target, align in zip(
            *(part[replica].tolist() for part in (batch.source, batch.target, batch.align)), strict=True
        ):
            assert sorted(align) == list(range(task.length + 1))
            for query, key in enumerate(align):
                word = source[key]
                if task.relabel and key < task.length:
                    word = int(sampler.relabel[replica, word])
                assert target[query] == word


@every_task
def test_alignment_is_fixed_for_a_seed(task: CopyTask) -> None:
    sampler = task.build(SEEDS)
    training, later, judged = sampler.batch(0, 5).align, sampler.batch(9, 5).align, sampler.evaluation(5).align
    assert torch.equal(training, later)
    assert torch.equal(training, judged)
    assert torch.equal(training, training[:, :1].expand_as(training))
    kept = torch.arange(task.length + 1).expand(len(SEEDS), -1)
    if isinstance(task, PermutedCopy):
        assert torch.equal(training[:, 0, :-1], task.order(Streams(SEEDS)))
        assert not torch.equal(training[:, 0], kept)
    else:
        assert torch.equal(training[:, 0], kept)


@given(seed=st.integers(0, 2**32 - 1), words=st.integers(1, 20))
def test_relabelling_is_a_bijection_into_an_alphabet_of_its_own(seed: int, words: int) -> None:
    sampler = Permutations(words, relabel=True).build([seed])
    assert sorted(sampler.relabel[0].tolist()) == list(range(words, 2 * words))


def test_relabelling_differs_between_seeds_and_stays_for_a_seed() -> None:
    task = Subsets(3, of=8, relabel=True)
    both = task.build([1, 2]).relabel
    assert not torch.equal(both[0], both[1])
    assert torch.equal(task.build([2]).relabel[0], both[1])


@every_task
def test_a_replica_does_not_know_its_neighbours(task: CopyTask) -> None:
    among, alone = task.build(SEEDS), task.build([3])
    assert equal(among.batch(7, 5), alone.batch(7, 5), 1, 0)
    assert equal(among.evaluation(5), alone.evaluation(5), 1, 0)


@every_task
def test_all_seeds_are_judged_on_the_same_inputs(task: CopyTask) -> None:
    batch = task.build(SEEDS).evaluation(6)
    assert torch.equal(batch.source, batch.source[:1].expand_as(batch.source))
    assert torch.equal(batch.source[:1, :, :-1], task.draw(Streams([0]), EVALUATION, [0], 6)[:, 0])


def test_no_seed_trains_on_what_it_is_judged_on() -> None:
    """40! inputs: an equal one could only come from an equal stream. Seed 0 lends its key to the evaluation."""
    sampler = Permutations(40).build([0, 1])
    judged = {tuple(row) for row in sampler.evaluation(50).source[0].tolist()}
    trained = {tuple(row) for step in range(20) for row in sampler.batch(step, 50).source.flatten(0, 1).tolist()}
    assert len(trained) == 20 * 50 * 2
    assert not judged & trained


def test_a_batch_is_checked_when_it_is_made() -> None:
    good = Iid(4, 6).build([0]).batch(0, 2)
    with pytest.raises(TypeError, match="target"):
        dataclasses.replace(good, target=good.target[..., :-1])
