"""Texts as words alone, within limits, with or without what another model did on them."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attndyn.errors import UserError
from attndyn.tasks.bare import REFERENCES, BareText
from attndyn.tasks.labelled import load_labelled
from attndyn.tasks.ragged import Reference, examined_lines
from attndyn.tasks.text import Pairs, Text
from attndyn.tasks.vocabulary import BOS, EOS, SPECIALS, UNK


def write(path: Path, lengths: list[int], labels: tuple[str, ...] = ("bad", "good")) -> Path:
    draw = random.Random(0)
    words = [[f"w{draw.randrange(9)}" for _ in range(length)] for length in lengths]
    path.write_text("".join(f"{labels[n % len(labels)]}\t{' '.join(text)}\n" for n, text in enumerate(words)))
    return path


@pytest.fixture
def own(tmp_path: Path) -> BareText:
    return BareText(str(write(tmp_path / "own.tsv", [2 + n % 9 for n in range(200)])))


def test_texts_are_the_framed_ones_without_their_frame(own: BareText) -> None:
    framed, bare = load_labelled(own.corpus), own.data
    assert [bare.test.source.line(n) for n in range(len(bare.test))] == [
        framed.test.source.line(n)[1:-1] for n in range(len(framed.test))
    ]
    for part in (bare.train, bare.valid, bare.test):
        assert not np.isin(part.source.ids, [BOS, EOS]).any()


def test_a_fifth_of_the_training_texts_is_for_development(own: BareText) -> None:
    framed, bare = load_labelled(own.corpus), own.data
    assert len(bare.train) + len(bare.valid) == len(framed.train)
    assert len(bare.valid) == len(framed.train) // 5


def test_a_valid_part_of_its_own_is_used(tmp_path: Path) -> None:
    for n, part in enumerate(("train", "valid", "test")):
        write(tmp_path / f"{part}.tsv", [3 + (k + n) % 5 for k in range(20 + 10 * n)])
    data = BareText(str(tmp_path)).data
    assert [len(part) for part in (data.train, data.valid, data.test)] == [20, 30, 40]


def test_limits(own: BareText) -> None:
    data = replace(own, shortest=4, below=7).data
    for part in (data.train, data.valid, data.test):
        assert set(part.source.lengths.tolist()) == {4, 5, 6}


def test_rare_words_are_unknown(own: BareText) -> None:
    whole, some = own.data, replace(own, seen=115).data
    assert len(SPECIALS) < len(some.vocabulary) < len(whole.vocabulary)
    assert some.vocabulary.words == whole.vocabulary.words[: len(some.vocabulary)]
    known = whole.train.source.ids < len(some.vocabulary)
    assert np.array_equal(some.train.source.ids, np.where(known, whole.train.source.ids, UNK))


def test_a_text_of_one_word_is_refused(tmp_path: Path) -> None:
    task = BareText(str(write(tmp_path / "own.tsv", [1, 1, *range(2, 60)])))
    with pytest.raises(UserError, match=r"own.tsv: the \w+ text '\S+' has fewer than two words.*--shortest 2"):
        _ = task.data
    data = replace(task, shortest=2).data
    assert sorted(np.concatenate([p.source.lengths for p in (data.train, data.valid, data.test)])) == [*range(2, 60)]


def test_three_labels_are_refused(tmp_path: Path) -> None:
    task = BareText(str(write(tmp_path / "own.tsv", [5] * 90, ("a", "b", "c"))))
    with pytest.raises(UserError, match=r"3 labels \(a, b, c\); two are needed"):
        _ = task.data


def test_limits_that_leave_one_label_are_refused(tmp_path: Path) -> None:
    task = BareText(str(write(tmp_path / "own.tsv", [3, 9] * 50)), below=5)
    with pytest.raises(UserError, match="do not hold both labels"):
        _ = task.data


def made(pairs: Pairs, seed: int) -> Reference:
    """Weights and answers that can be recognised."""
    draw = np.random.default_rng(seed)
    weights = draw.random(len(pairs.source.ids)).astype(np.float32)
    return Reference(Text(weights, pairs.source.offsets, []), draw.random((len(pairs), 2)).astype(np.float32))


def test_every_batch_brings_its_own_weights(own: BareText, monkeypatch: pytest.MonkeyPatch) -> None:
    data = own.data
    known = {"train": made(data.train, 0), "valid": made(data.valid, 1)}
    monkeypatch.setitem(REFERENCES, "made", known)
    sampler = replace(own, reference="made").build([3, 4])
    lines = sampler.draw(2, 8)
    batch = lines.batch()
    weights, offsets = known["train"].alpha.ids, data.train.source.offsets
    for replica in range(2):
        for row, line in enumerate(lines.lines[replica].tolist()):
            own_weights = weights[offsets[line] : offsets[line + 1]]
            given = batch.given[replica, row, 0, 0].numpy()
            assert np.array_equal(given[: len(own_weights)], own_weights)
            assert not given[len(own_weights) :].any()
            assert np.array_equal(batch.answer[replica, row, 0].numpy(), known["train"].answers[line])
    (slice_,) = sampler.slices(20, "valid", 10_000)
    order = examined_lines(data.train, data.valid, 20, "valid")
    assert np.array_equal(slice_.answer[1, :, 0].numpy(), known["valid"].answers[order])
    assert np.array_equal(slice_.given[0, 3, 0, 0, :2].numpy(),
                          known["valid"].alpha.ids[data.valid.source.offsets[order[3]] :][:2])  # fmt: skip


def test_replicas_follow_the_models_in_turn(own: BareText, monkeypatch: pytest.MonkeyPatch) -> None:
    data = own.data
    several = {
        part: [made(pairs, n) for n in range(3)] for part, pairs in (("train", data.train), ("valid", data.valid))
    }
    offsets = {part: np.tile(one[0].alpha.lengths, 3).cumsum() for part, one in several.items()}
    joined = {
        part: Reference(
            Text(np.concatenate([one.alpha.ids for one in known]), np.concatenate([[0], offsets[part]]), []),
            np.concatenate([one.answers for one in known]), 3,
        )
        for part, known in several.items()
    }  # fmt: skip
    monkeypatch.setitem(REFERENCES, "joined", joined)
    seeds = [7, 3, 11, 5]
    sampler = replace(own, reference="joined").build(seeds)
    for number in range(3):
        monkeypatch.setitem(REFERENCES, "one", {part: known[number] for part, known in several.items()})
        alone = replace(own, reference="one").build(seeds)
        rows = [row for row, seed in enumerate(seeds) if seed % 3 == number]
        pairs = [(sampler.batch(5, 8), alone.batch(5, 8))]
        for part in ("train", "valid"):
            pairs += zip(sampler.slices(20, part, 100), alone.slices(20, part, 100), strict=True)
        for batch, wanted in pairs:
            assert torch.equal(batch.source, wanted.source)
            assert torch.equal(batch.given[rows], wanted.given[rows])
            assert torch.equal(batch.answer[rows], wanted.answer[rows])
    assert rows == [2, 3]


def test_weights_of_another_corpus_are_refused(own: BareText, monkeypatch: pytest.MonkeyPatch) -> None:
    data, task = own.data, replace(own, reference="made")
    with pytest.raises(UserError, match="no model's attention is known under the name 'made'"):
        task.build([0])
    fewer = data.train.take(np.arange(10))
    monkeypatch.setitem(REFERENCES, "made", {"train": made(fewer, 0), "valid": made(data.valid, 0)})
    with pytest.raises(
        UserError, match=r"made gives attention for 10 train texts, but there are \d+: .*another corpus"
    ):
        task.build([0])
    order = np.arange(len(data.train))[::-1]
    monkeypatch.setitem(REFERENCES, "made", {"train": made(data.train.take(order), 0), "valid": made(data.valid, 0)})
    with pytest.raises(UserError, match=r"gives \d+ weights for train text \d+, which has \d+ words"):
        task.build([0])
    monkeypatch.setitem(REFERENCES, "made", {"train": made(data.train, 0)})
    with pytest.raises(UserError, match="no attention for the valid texts"):
        task.build([0])


def test_vectors_of_no_word_are_refused(own: BareText, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("unheard 1 2\n")
    with pytest.raises(UserError, match="has no vector for any word of the vocabulary of"):
        _ = replace(own, vectors=str(tmp_path / "v.txt")).data
