"""Text as a task: each example once an epoch, padding masked, and the same batches in any company."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attndyn.errors import UserError
from attndyn.tasks.corpus import LabelledText, ParallelText, loaded
from attndyn.tasks.ragged import RaggedSampler, examined, some_of_each
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


@pytest.mark.parametrize("tokens", [1, 6, 100])
def test_the_evaluation_examples_are_the_same_for_every_seed_from_short_to_long(tokens: int) -> None:
    slices = RaggedSampler(MADE, MADE, [0, 5]).slices(3, "valid", tokens)
    found = [[line for batch in slices for line in lines(batch, replica)] for replica in (0, 1)]
    assert found[0] == found[1] == sorted(found[0], key=lambda pair: len(pair[0]))
    assert len(set(found[0])) == 3
    assert set(found[0]) <= set(WHOLE)
    for batch in slices:
        assert batch.source[0].numel() <= tokens or batch.source.shape[1] == 1


def test_a_few_evaluation_examples_are_a_fair_draw_whatever_the_order_of_the_file() -> None:
    sorted_by_label = pairs([["w"]] * 1000, [["no"]] * 500 + [["yes"]] * 500)
    chosen = examined(sorted_by_label, sorted_by_label, 100, "valid")
    assert 30 < (chosen.target.ids == 0).sum() < 70


def test_training_examples_can_be_judged_too() -> None:
    slices = RaggedSampler(MADE, pairs(SOURCES[:4], TARGETS[:4]), [0]).slices(100, "train", 100)
    found = [line for batch in slices for line in lines(batch, 0)]
    assert len(found) == 4
    assert len(set(found) & set(WHOLE)) == len(set(found))
    with pytest.raises(UserError, match="valid or train, not 'test'"):
        RaggedSampler(MADE, MADE, [0]).slices(100, "test", 100)


def test_batches_of_one_class_of_lengths_share_a_width_and_waste_little() -> None:
    lengths = np.exp(np.random.default_rng(0).normal(3, 1, 3000)).astype(int) + 1
    text = pairs([["w"] * length for length in lengths], [["x"]] * 3000)
    sampler = RaggedSampler(text, text, [0, 1])
    batches = [sampler.batch(step, 32) for step in range(3000 // 32)]
    widths = [batch.source.shape[2] for batch in batches]
    assert len(set(widths)) <= 12
    assert sampler.widest(32).source.shape[2] == max(widths) == lengths.max()
    real = sum(int(batch.source_mask.sum()) for batch in batches)
    padded = sum(batch.source.numel() for batch in batches)
    unsorted = 32 * sum(lengths[start : start + 32].max() for start in range(0, 2976, 32)) * 2
    assert padded < 1.5 * real < unsorted
    assert widths != sorted(widths)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=2, max_size=40),
    st.integers(1, 8),
)
def test_no_line_is_cut_though_short_pairs_may_be_the_wider_ones_on_one_side(
    lengths: list[tuple[int, int]], size: int
) -> None:
    size = min(size, len(lengths))
    text = pairs([["w"] * source for source, _ in lengths], [["x"] * target for _, target in lengths])
    sampler = RaggedSampler(text, text, [0])
    wide = sampler.widest(size)
    for step in range(len(lengths) // size):
        drawn, batch = sampler.draw(step, size), sampler.batch(step, size)
        for side, mask in enumerate((batch.source_mask, batch.target_mask)):
            expected = [lengths[line][side] for line in drawn.lines[0].tolist()]
            assert mask[0].sum(dim=1).tolist() == expected
        assert batch.source.shape[2] <= wide.source.shape[2]
        assert batch.target.shape[2] <= wide.target.shape[2]


def test_an_example_without_words_is_refused() -> None:
    with pytest.raises(UserError, match="at least one word"):
        RaggedSampler(pairs([["a"], []], [["x"], ["y"]]), MADE, [0])


def test_the_shipped_texts() -> None:
    task = LabelledText("sms_spam")
    assert task.outputs == 2
    assert task.epoch(64) == 4460 // 64
    examples = loaded(task)
    (batch,) = task.build([0]).slices(20, "valid", 100_000)
    texts = examined(examples.train, examples.valid, 20, "valid").source
    for row in range(20):
        words = batch.source[0, row][batch.source_mask[0, row]].tolist()
        assert words == texts.ids[slice(*texts.offsets[row : row + 2])].tolist()
        assert examples.words[words[0]] == "<bos>"
    assert set(np.unique(examples.valid.target.ids)) == {0, 1}
    assert examples.valid.target.words == examples.answers
    with pytest.raises(UserError, match=r"fewer than a batch of \d+; --batch can be at most \d+$"):
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


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own.tsv").write_text("".join(f"{'ab'[n % 2]}\tword{n % 2} same n{n}\n" for n in range(40)))
    return tmp_path


def test_vectors_may_choose_the_words_without_starting_them(own: Path) -> None:
    (own / "v.txt").write_text("".join(f"n{n} 1 2\n" for n in range(40)))
    given = LabelledText(str(own / "own.tsv"), rule="count or vector", vectors=str(own / "v.txt"))
    random = replace(given, start=False)
    assert random.tokens == given.tokens
    assert sum(word.startswith("n") for word in random.tokens) > 20
    weights = torch.zeros(1, given.vocabulary, 2)
    random.embed(weights)
    assert not weights.any()
    given.embed(weights)
    known = torch.tensor([word.startswith("n") for word in given.tokens])
    assert torch.equal(weights[0, known], torch.tensor([1.0, 2.0]).expand(int(known.sum()), 2))
    assert not weights[0, ~known].any()


@pytest.mark.parametrize("vectors", ["unheard 1 2\n", "<unk> 1 2\n", "n1 1 2\n"])
def test_vectors_of_no_word_of_the_vocabulary_are_refused(vectors: str, own: Path) -> None:
    """Also those of words that occur, but too rarely to be kept."""
    (own / "v.txt").write_text(vectors)
    task = LabelledText(str(own / "own.tsv"), vectors=str(own / "v.txt"))
    with pytest.raises(UserError, match="has no vector for any word of the vocabulary of"):
        _ = task.data


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 16))
def test_some_texts_of_each_label(labels: list[int], most: int) -> None:
    chosen = some_of_each(np.array(labels), most)
    assert 1 <= len(chosen) <= most
    assert len(set(chosen.tolist())) == len(chosen)
    if most >= len(set(labels)):
        assert {labels[n] for n in chosen} == set(labels)


def test_some_texts_are_of_middling_length() -> None:
    """Of texts by length, as they are evaluated; here of one label each half."""
    assert some_of_each(np.array([0] * 8 + [1] * 8), 6).tolist() == [2, 10, 4, 12, 6, 14]
