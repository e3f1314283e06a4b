"""Which replicas train together: one by one on a CPU; on a GPU all of one shape, whatever rule or words they have."""

from dataclasses import replace

import pytest
import torch

from attndyn import plan as module
from attndyn.measures.readings import Answers
from attndyn.models import Seq2Seq, Uniform
from attndyn.models.rules import NoContext
from attndyn.plan import READ, Needs, Replica, Room, Unit, listed, plan, room_for
from attndyn.tasks import Iid, Permutations, PermutedCopy, Subsets
from attndyn.training.condition import Adam, Condition
from attndyn.training.loop import Trainer

HARD = Condition(
    name="hard", task=Permutations(3), model=Seq2Seq(8), seeds=(0, 1, 2, 3), steps=10, batch=4, evaluation=3,
    optimiser=Adam(lr=1e-2), readings=(Answers(every=5),),
)  # fmt: skip
EASY = replace(HARD, name="easy", task=Subsets(3, of=5), seeds=(0, 1), rule=Uniform())
BLIND = replace(HARD, name="blind", seeds=(7, 0), rule=Uniform())
DEAF = replace(HARD, name="deaf", task=Iid(3, 3), seeds=(1,), rule=NoContext(), optimiser=Adam(lr=1e-3))
ALL = (HARD, EASY, BLIND, DEAF)


def names(chunks: list[module.Chunk]) -> list[list[list[tuple[str, int]]]]:
    return [[[(r.condition.name, r.seed) for r in unit.replicas] for unit in chunk] for chunk in chunks]


def test_on_a_cpu_each_replica_is_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 4)
    assert names(plan((HARD, EASY), "cpu")) == [
        [[("hard", 0)], [("hard", 1)], [("hard", 2)]],
        [[("hard", 3)], [("easy", 0)], [("easy", 1)]],
    ]


def test_on_a_gpu_the_replicas_of_one_shape_are_a_unit() -> None:
    hard, blind = [("hard", seed) for seed in HARD.seeds], [("blind", 7), ("blind", 0)]
    assert names(plan(ALL, "cuda")) == [[[*hard, *blind, ("deaf", 1)]], [[("easy", 0), ("easy", 1)]]]


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 11}, {"batch": 5}, {"evaluation": 4}, {"model": Seq2Seq(9)}, {"readings": (Answers(every=4),)},
        {"task": Permutations(4)}, {"task": Permutations(3, relabel=True)}, {"optimiser": Adam(lr=1e-2, amsgrad=True)},
    ],
)  # fmt: skip
def test_what_changes_the_program_trains_apart(change: dict[str, object]) -> None:
    assert len(plan((HARD, replace(BLIND, **change)), "cuda")) == 2


@pytest.mark.parametrize(("room", "sizes"), [(7, [7, 2]), (6, [3, 4, 2]), (3, [2, 2, 3, 2]), (1, [1] * 9)])
def test_what_does_not_fit_is_split_evenly(room: int, sizes: list[int]) -> None:
    chunks = plan(ALL, "cuda", lambda unit: Room(room, 1, 1))
    assert [len(unit.replicas) for chunk in chunks for unit in chunk] == sizes
    assert sorted(r.place for chunk in chunks for unit in chunk for r in unit.replicas) == list(range(9))


def test_units_that_fit_train_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven and two replicas: 5 + 6 · 2 = 17 bytes, and 5 + 2 = 7."""
    sizes = lambda limit: [[len(unit.replicas) for unit in chunk] for chunk in made(limit)]  # noqa: E731
    made = lambda limit: plan(ALL, "cuda", lambda unit: Room(limit, 5, 2))  # noqa: E731
    assert sizes(25) == [[7, 2]]
    assert sizes(23) == [[7], [2]]
    assert sizes(16) == [[3], [4], [2]], "what was split has nothing beside it"
    assert plan(ALL, "cuda", lambda unit: Room(1, 1, 1), listed(made(25))) == made(25)
    monkeypatch.setattr(module, "SIDE_BY_SIDE", 1)
    assert sizes(25) == [[7], [2]]


def test_what_one_and_two_replicas_need() -> None:
    """What is freed between the two measurements, by whomever, makes no room."""
    assert room_for(100.0, Needs(2, 3, 20), Needs(4, 7, 38)) == (100, 25, 24)
    room = room_for(100.0, Needs(2, 3, 20), Needs(4, 7, 5))
    assert room == (100, 25, 6)
    assert [[len(unit.replicas) for unit in chunk] for chunk in plan(ALL, "cuda", lambda unit: room)] == [[7, 2]]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_run_json_lists_the_replicas_in_the_order_of_their_places(device: str) -> None:
    chunks = plan(ALL, device, lambda unit: Room(3, 1, 1))
    entries = listed(chunks)
    assert [(entry["condition"], entry["replica"]) for entry in entries] == [
        (condition.name, seed) for condition in ALL for seed in condition.seeds
    ]
    for number, chunk in enumerate(chunks):
        for unit in chunk:
            assert all(entries[replica.place]["chunk"] == number for replica in unit.replicas)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_continued_run_keeps_its_chunks(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    begun = plan(ALL, device, lambda unit: Room(3, 1, 1))
    monkeypatch.setattr(module, "CHUNK", 2)
    assert plan(ALL, device, lambda unit: Room(1, 1, 1), listed(begun)) == begun
    assert plan(ALL, device, lambda unit: Room(1, 1, 1)) != begun


def test_replicas_of_several_conditions_train_as_they_do_alone() -> None:
    """Their own words, order, rule and learning rate; to float tolerance, since products are batched."""
    permuted = replace(DEAF, name="permuted", task=PermutedCopy(3, of=3), rule=Uniform(), seeds=(2, 5))
    conditions = (HARD, BLIND, DEAF, permuted)
    (chunk,) = plan(conditions, "cuda")
    (unit,) = chunk
    together = Trainer(unit.condition, unit.seeds)
    for _ in range(4):
        together.advance()
    for row, replica in enumerate(unit.replicas):
        alone = Trainer(replica.condition, [replica.seed])
        start = alone.optimiser.values.clone()
        for _ in range(4):
            alone.advance()
        torch.testing.assert_close(together.optimiser.values[row], alone.optimiser.values[0], rtol=1e-3, atol=2e-5)
        moved = (alone.optimiser.values - start).abs().max()
        assert moved > 1e-3


def test_a_unit_of_one_condition_is_that_condition() -> None:
    rates = replace(HARD, optimiser=Adam(lr=(1.0, 2.0, 3.0, 4.0), frozen=((), ("a",), (), ())))
    unit = Unit((Replica(rates, 3, 3), Replica(rates, 1, 1)))
    assert unit.condition == replace(rates, optimiser=Adam(lr=(4.0, 2.0), frozen=((), ("a",))))
    assert Unit((Replica(rates, 1, 1),)).condition.optimiser == Adam(lr=2.0, frozen=("a",))


def test_a_reading_of_many_examples_counts_as_many_steps() -> None:
    readings = (Answers(every=4, at=(1,)), Answers(every=4, on="train"))
    one = replace(HARD, steps=6, batch=10, evaluation=1000, readings=readings)
    each = round(READ * 100)
    unit = Unit((Replica(one, 0, 0), Replica(one, 1, 1)))
    steps = [2 * each, 1 + 3 * each, 2 + 3 * each, 3 + 3 * each, 4 + 5 * each, 5 + 5 * each, 6 + 7 * each]
    assert unit.effort == [2 * step for step in steps]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_nothing_to_train_is_no_chunk(device: str) -> None:
    assert plan((), device) == []
