"""The numbering of the words, against the definition with plain lists."""

from hypothesis import given
from hypothesis import strategies as st

from attndyn.tasks.text import number
from attndyn.tasks.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, build
from tests.reference import labelled as reference

words = st.sampled_from(["a", "b", "c", "d", "7", "12", "123", "<unk>", "<pad>", "<eos>", "1a", "٣٤"])
texts_of_words = st.lists(st.lists(words, max_size=9), min_size=1, max_size=8)


@given(
    train=texts_of_words,
    other=texts_of_words,
    vectors=st.sets(words),
    integers=st.booleans(),
    longest=st.integers(2, 8),
)
def test_the_array_version_is_the_list_version(
    train: list[list[str]], other: list[list[str]], vectors: set[str], integers: bool, longest: int
) -> None:
    vocabulary = build(number(train), with_vector=vectors, integers_unknown=integers)
    kept = reference.vocabulary(train, vectors=vectors, integers_unknown=integers)
    assert vocabulary.words[:4] == list(SPECIALS)
    assert set(vocabulary.words[4:]) == kept
    assert len(vocabulary) == len(kept) + 4
    for texts in (train, other):
        encoded = vocabulary.encode(number(texts), longest)
        assert [encoded.line(n) for n in range(len(texts))] == [reference.framed(t, kept, longest) for t in texts]


def test_frequent_words_have_small_ids() -> None:
    vocabulary = build(number([["b"] * 3 + ["a"] * 5 + ["c"] * 3 + ["rare"] * 2]))
    assert vocabulary.words == [*SPECIALS, "a", "b", "c"]
    assert [SPECIALS[n] for n in (PAD, UNK, BOS, EOS)] == ["<pad>", "<unk>", "<bos>", "<eos>"]


def test_a_word_at_the_threshold() -> None:
    assert "x" in build(number([["x", "x"], ["x"]])).words
    assert "x" not in build(number([["x", "x"]])).words
