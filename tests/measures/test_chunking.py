"""F1 of chunks on padded arrays against lists of tags, one sentence at a time, and against seqeval."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import tagger as slow
from seqeval.metrics import f1_score

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


@given(sentences=st.lists(sentence, min_size=1, max_size=5))
def test_f1_is_seqevals(sentences: list[list[tuple[str, str]]]) -> None:
    """In its default mode, that of the CoNLL evaluation script."""
    predicted, true = ([[pair[side] for pair in one] for one in sentences] for side in range(2))
    assume(any(tag != "O" for line in predicted for tag in line) and any(tag != "O" for line in true for tag in line))
    width = max(map(len, sentences))
    (ours, mask), (theirs, _) = padded(predicted, width), padded(true, width)
    value = chunking.f1(*(count.double() for count in chunking.count(ours, theirs, TAGS, mask))).item()
    assert value == pytest.approx(f1_score(true, predicted), abs=1e-12)


@pytest.mark.parametrize("side", [0, 1])
def test_f1_is_seqevals_where_one_side_has_no_chunk(side: int) -> None:
    lines = [[["O", "O"]], [["B-NP", "I-NP"]]]
    (ours, _), (theirs, _) = padded(lines[side], 2), padded(lines[1 - side], 2)
    value = chunking.f1(*(count.double() for count in chunking.count(ours, theirs, TAGS))).item()
    assert value == f1_score(lines[1 - side], lines[side], zero_division=0) == 0
