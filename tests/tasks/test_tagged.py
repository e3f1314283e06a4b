"""Tagged sentences as a task: framing, spelling, parts, what is refused; and the made language."""

import itertools
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attndyn.errors import UserError
from attndyn.tasks.corpus import loaded
from attndyn.tasks.grammar import MadeChunks
from attndyn.tasks.held import forget
from attndyn.tasks.tagged import TaggedText, framed, plain
from attndyn.tasks.tagging import ENDS
from attndyn.tasks.text import number

ANSWERS = [*ENDS, "O", "B-NP", "I-NP"]


def write(folder: Path, train: str, test: str = "Dogs NN B-NP\n\n") -> str:
    folder.mkdir(exist_ok=True)
    (folder / "train.txt").write_text(train)
    (folder / "test.txt").write_text(test)
    return str(folder)


SENTENCE = "The DT B-NP\ndog NN I-NP\nran VBD B-VP\n. . O\n\n"


@given(lines=st.lists(st.lists(st.sampled_from(ANSWERS[3:]), min_size=1, max_size=4), min_size=1, max_size=5))
def test_tags_are_framed(lines: list[list[str]]) -> None:
    text = framed(number(lines), ANSWERS)
    assert [text.line(n) for n in range(len(lines))] == [["<bos>", *line, "<eos>"] for line in lines]


@given(lines=st.lists(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=4), min_size=1, max_size=4))
def test_spelling_is_lower_case_with_digits_zero(lines: list[list[str]]) -> None:
    text = plain(number(lines))
    expected = [["".join("0" if c.isdecimal() else c for c in word.lower()) for word in line] for line in lines]
    assert [text.line(n) for n in range(len(lines))] == expected
    assert len(set(text.words)) == len(text.words)


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    task = TaggedText(
        write(tmp_path / "own", SENTENCE * 20 + "Stop VB B-VP\n\n", "Dogs NN B-NP\n1999 CD I-VP\n\nNo DT O\n")
    )
    examples = loaded(task)
    assert (len(examples.train), len(examples.valid), len(examples.test)) == (19, 2, 2)
    assert task.tags == (*ENDS, "O", "B-NP", "I-NP", "B-VP", "I-VP")
    assert examples.test.source.line(0) == ["<bos>", "<unk>", "<unk>", "<eos>"]
    assert examples.test.target.line(0) == ["<bos>", "B-NP", "I-VP", "<eos>"]
    assert examples.train.source.line(0) == ["<bos>", "the", "dog", "ran", ".", "<eos>"]
    # a sentence of one word has three positions
    batch = task.build((0,)).slices(10, "test", 100)[0]
    assert batch.source_mask.sum(dim=-1).tolist() == [[3, 4]]
    seen = TaggedText(task.corpus, padding="seen")
    bare = seen.build((0,)).slices(10, "test", 100)[0]
    assert bare.source_mask is None
    assert bare.target_mask is None
    assert torch.equal(bare.target, batch.target)
    assert seen.shape != task.shape


def test_padding_that_is_seen_does_not_hang_on_the_room() -> None:
    """How many tokens are read at once differs with the device and the number of replicas."""
    seen = MadeChunks(sentences=1500, padding="seen")
    some, more, all_of_them = (seen.build(seeds).slices(300, "test", tokens)
                               for seeds, tokens in (((0,), 50), ((0, 1), 1000), ((0,), 1 << 20)))  # fmt: skip
    assert [batch.source.shape[1] for batch in all_of_them] == [100, 100, 100]
    for one, other, third in zip(some, more, all_of_them, strict=True):
        assert torch.equal(one.source, third.source)
        assert torch.equal(other.source[:1], third.source)
    masked = MadeChunks(sentences=1500).build((0,))
    assert len(masked.slices(300, "test", 50)) > len(masked.slices(300, "test", 1 << 20)) == 1


def test_word_vectors_replace_the_start_of_their_words(tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("dog 3 0\ncat 0 1\n")
    folder = write(tmp_path / "own", SENTENCE * 20)
    task = TaggedText(folder, vectors=str(tmp_path / "vectors"))
    weights = torch.ones(2, task.vocabulary, 2)
    task.embed(weights)
    place = task.tokens.index("dog")
    assert weights[:, place].tolist() == [[3.0, 0.0]] * 2
    assert torch.allclose(weights[:, place - 1], torch.tensor(1.5))  # the others have the vectors' spread
    with pytest.raises(UserError, match="have 2 numbers, those of the model 3"):
        task.embed(torch.ones(1, task.vocabulary, 3))
    before = task.beside
    (tmp_path / "vectors").write_text("dog 5 0\ncat 0 1\n")
    forget()
    task.embed(weights)
    assert weights[:, place].tolist() == [[5.0, 0.0]] * 2, "vectors that were edited are read again"
    assert task.beside != before, "and noticed"


@pytest.mark.parametrize(
    ("train", "test", "sentence"),
    [
        (SENTENCE * 20 + "dog NN\n", "No DT O\n", "train.txt, line 101: expected `word POS chunk`"),
        (
            SENTENCE * 20,
            "No DT O\n\nNo DT O\nbig JJ B-ADJP\n",
            "test.txt, line 4: the tag 'B-ADJP' is not in the training",
        ),
        (SENTENCE * 4, "No DT O\n", "4 sentences are too few"),
        ("", "No DT O\n", "holds no sentences"),
        (SENTENCE * 20, "No DT O\n", "test.txt: there is no chunk in the 1 test sentences, so they have no F1"),
        ("No DT O\n\n" * 20, "No DT O\n", "train.txt: there is no chunk in the 2 validation sentences"),
        (
            SENTENCE * 20,
            "Dogs NN B-NP\n\n\n" + "Dogs NN B-NP\n" * 4095,
            "test.txt, line 4: a sentence of 4,095 words begins here, and at most 4,094 can be read; does",
        ),
        ("No DT O\n" * 5000, "No DT O\n", "train.txt, line 1: a sentence of 5,000 words begins here"),
    ],
)
def test_wrong_files_are_refused(train: str, test: str, sentence: str, tmp_path: Path) -> None:
    task = TaggedText(write(tmp_path / "own", train, test))
    with pytest.raises(UserError, match=sentence):
        loaded(task)


def test_the_longest_sentence_is_whole_on_both_sides(tmp_path: Path) -> None:
    batch = TaggedText(write(tmp_path / "own", SENTENCE * 20 + "Dogs NN B-NP\n" * 4094)).build((0,)).widest(1)
    assert batch.source.shape == batch.target.shape == (1, 1, 4096)


def test_vectors_that_no_word_has_are_refused(tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("<unk> 1 2\nxyzzy 3 0\n")
    folder = write(tmp_path / "own", SENTENCE * 20)
    with pytest.raises(UserError, match="vectors has no vector for any word of the vocabulary of"):
        loaded(TaggedText(folder, vectors=str(tmp_path / "vectors")))


def test_what_is_no_chunking_corpus_is_refused(tmp_path: Path) -> None:
    for corpus, sentence in (("imdb", "imdb is a labelled corpus"), ("conl2000", "did you mean 'conll2000'"),
                             (str(tmp_path), "holds no train.txt")):  # fmt: skip
        with pytest.raises(UserError, match=sentence):
            loaded(TaggedText(corpus))


@pytest.mark.slow
def test_conll2000_has_the_published_parts(shared_data: Path) -> None:
    task = TaggedText("conll2000", str(shared_data))
    examples = loaded(task)
    assert [len(part) for part in (examples.train, examples.valid, examples.test)] == [8042, 894, 2012]
    assert task.outputs == 26  # 22 tags of the training part, I-LST of the test part, and three that are none


def test_the_made_language_is_well_formed_and_needs_context() -> None:
    examples = loaded(MadeChunks(sentences=300))
    assert [len(part) for part in (examples.train, examples.valid, examples.test)] == [210, 30, 60]
    tags_of: dict[str, set[str]] = {}
    for n in range(len(examples.train)):
        words, tags = examples.train.source.line(n), examples.train.target.line(n)
        for before, tag in itertools.pairwise(tags):
            assert tag[0] != "I" or before[1:] == tag[1:]  # no I- without what it continues
        for word, tag in zip(words, tags, strict=True):
            tags_of.setdefault(word, set()).add(tag)
    assert tags_of["watch"] == {"B-NP", "I-NP", "I-VP"}
    assert "<unk>" not in tags_of
    with pytest.raises(UserError, match="at least 10"):
        MadeChunks(sentences=9)
