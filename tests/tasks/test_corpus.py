"""Text as a task: each example once an epoch, padding masked, and the same batches in any company."""

from pathlib import Path

import numpy as np
import pytest
import torch

from attndyn.errors import UserError
from attndyn.tasks.corpus import LabelledText, ParallelText, loaded
from attndyn.tasks.ragged import RaggedSampler
from attndyn.tasks.text import pairs

SOURCES = [list("abc"), list("d"), list("ab"), list("cdab"), list("aa"), list("bd"), list("c")]
TARGETS = [["x"], ["y"], ["x"], ["y"], ["x"], ["y"], ["x"]]
MADE = pairs(SOURCES, TARGETS)


def lines(batch, replica: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The examples of a batch, spelled out through their masks."""
    found = []
    for row in range(batch.source.shape[1]):
        sides = []
        for ids, mask, words in (
            (batch.source, batch.source_mask, MADE.source.words),
            (batch.target, batch.target_mask, MADE.target.words),
        ):
            sides.append(tuple(words[n] for n in ids[replica, row][mask[replica, row]].tolist()))
        found.append(tuple(sides))
    return found


WHOLE = sorted((tuple(source), tuple(target)) for source, target in zip(SOURCES, TARGETS, strict=True))


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_every_example_comes_once_an_epoch_and_the_epochs_differ(size: int) -> None:
    sampler = RaggedSampler(MADE, MADE, [0, 5])
    steps = 7 // size
    orders = []
    for epoch in range(2):
        found = [line for step in range(steps) for line in lines(sampler.batch(epoch * steps + step, size), 1)]
        assert len(found) == steps * size
        if size in (1, 7):
            assert sorted(found) == WHOLE
        orders.append(found)
    assert orders[0] != orders[1]
    others = [line for step in range(steps) for line in lines(sampler.batch(step, size), 0)]
    assert others != orders[0]


def test_a_seed_sees_the_same_examples_in_any_company_and_when_resumed() -> None:
    together, alone = RaggedSampler(MADE, MADE, [0, 5]), RaggedSampler(MADE, MADE, [5])
    for step in (0, 1, 2, 9):
        assert lines(together.batch(step, 2), 1) == lines(alone.batch(step, 2), 0)
    assert lines(RaggedSampler(MADE, MADE, [5]).batch(9, 2), 0) == lines(alone.batch(9, 2), 0)


def test_the_evaluation_examples_are_the_first_for_every_seed() -> None:
    batch = RaggedSampler(MADE, MADE, [0, 5]).evaluation(3)
    assert (
        lines(batch, 0) == lines(batch, 1) == [(tuple(s), tuple(t)) for s, t in zip(SOURCES, TARGETS, strict=True)][:3]
    )
    assert RaggedSampler(MADE, MADE, [0]).evaluation(100).source.shape[1] == 7


def test_an_example_without_words_is_refused() -> None:
    with pytest.raises(UserError, match="at least one word"):
        RaggedSampler(pairs([["a"], []], [["x"], ["y"]]), MADE, [0])


def test_the_shipped_texts() -> None:
    task = LabelledText("sms_spam")
    assert task.outputs == 2
    assert task.epoch(64) == 4460 // 64
    examples = loaded(task)
    batch = task.build([0]).evaluation(20)
    for row in range(20):
        words = batch.source[0, row][batch.source_mask[0, row]].tolist()
        assert words == examples.valid.source.ids[slice(*examples.valid.source.offsets[row : row + 2])].tolist()
        assert examples.words[words[0]] == "<bos>"
    assert set(np.unique(examples.valid.target.ids)) == {0, 1}
    assert examples.valid.target.words == examples.answers
    with pytest.raises(UserError, match="fewer than a batch"):
        task.epoch(5000)


def test_the_shipped_pairs_answer_with_words_and_the_end() -> None:
    task = ParallelText("tatoeba_de_en_small", source="de", target="en")
    batch = task.build([0]).batch(0, 16)
    answers = loaded(task).answers
    for row in range(16):
        words = [answers[n] for n in batch.target[0, row][batch.target_mask[0, row]].tolist()]
        assert words[-1] == "<eos>"
        assert not {"<bos>", "<pad>"} & set(words)


def test_own_files(tmp_path: Path) -> None:
    (tmp_path / "own.tsv").write_text("".join(f"{'ab'[n % 2]}\tword{n % 2} same n{n}\n" for n in range(40)))
    task = LabelledText(str(tmp_path / "own.tsv"))
    assert loaded(task).answers == ["a", "b"]
    assert torch.equal(task.build([1]).batch(1, 8).target_mask, torch.ones(1, 8, 1, dtype=torch.bool))
