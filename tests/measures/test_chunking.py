"""F1 of chunks on padded arrays against lists of tags, one sentence at a time."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import tagger as slow

from attndyn.measures import chunking

TAGS = ("<pad>", "<bos>", "<eos>", "O", "B-NP", "I-NP", "B-VP", "I-VP")
sentence = st.lists(st.tuples(*(st.sampled_from(TAGS[3:]) for _ in range(2))), min_size=1, max_size=7)


def padded(lines: list[list[str]], width: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.zeros(1, len(lines), width, dtype=torch.int64)
    mask = torch.zeros(1, len(lines), width, dtype=torch.bool)
    for n, line in enumerate(lines):
        ids[0, n, : len(line)] = torch.tensor([TAGS.index(tag) for tag in line])
        mask[0, n, : len(line)] = True
    return ids, mask


@given(sentences=st.lists(sentence, min_size=1, max_size=5), more=st.integers(0, 3))
def test_counts_are_those_of_the_definition(sentences: list[list[tuple[str, str]]], more: int) -> None:
    predicted, true = ([[pair[side] for pair in one] for one in sentences] for side in range(2))
    width = max(map(len, sentences)) + more
    (ours, mask), (theirs, _) = padded(predicted, width), padded(true, width)
    ours = torch.where(mask, ours, TAGS.index("I-NP"))  # what stands at padding counts for nothing
    counts = chunking.count(ours, theirs, TAGS, mask)
    found, there = (sum(len(slow.chunks(line)) for line in lines) for lines in (predicted, true))
    assert [int(value) for value in counts] == [
        sum(len(slow.chunks(a) & slow.chunks(b)) for a, b in zip(predicted, true, strict=True)), found, there,
    ]  # fmt: skip
    if found + there:
        value = chunking.f1(*(count.double() for count in counts)).item()
        assert value == pytest.approx(slow.f1(predicted, true), abs=1e-12)


@pytest.mark.parametrize(
    ("predicted", "true", "right"),
    [
        ("B-NP I-NP O", "B-NP I-NP O", 1),
        ("I-NP I-NP O", "B-NP I-NP O", 1),  # a chunk may begin with I-
        ("B-NP I-VP O", "B-NP I-NP O", 0),
        ("B-NP B-NP O", "B-NP I-NP O", 0),
        ("B-NP I-NP I-NP", "B-NP I-NP O", 0),
        ("<bos> B-VP <eos>", "<bos> B-VP <eos>", 1),
    ],
)
def test_a_chunk_is_right_if_both_ends_and_its_kind_are(predicted: str, true: str, right: int) -> None:
    (ours, mask), (theirs, _) = padded([predicted.split()], 3), padded([true.split()], 3)
    assert chunking.count(ours, theirs, TAGS, mask).right.tolist() == [right]
    assert chunking.count(ours, theirs, TAGS).right.tolist() == [right]


def test_replicas_are_counted_apart() -> None:
    ours, _ = padded([["B-NP", "O"]], 2)
    theirs, _ = padded([["B-NP", "B-VP"]], 2)
    counts = chunking.count(torch.cat([ours, theirs]), torch.cat([theirs, theirs]), TAGS)
    assert [count.tolist() for count in counts] == [[1, 2], [1, 2], [2, 2]]
