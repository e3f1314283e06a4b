"""Topic sentences as they are described, and labelled text as bags."""

from pathlib import Path

import numpy as np
import pytest

from attndyn.errors import UserError
from attndyn.tasks import topics
from attndyn.tasks.topics import PADDING, Bags, TopicWords


def test_a_sentence_holds_one_topic_word_of_its_topic_and_m_others() -> None:
    task = TopicWords(topics=3, each=4, dictionary=50, others=7, sentences=400)
    parts = task.draw(0)
    assert [len(part) for part in (parts.train, parts.valid, parts.test)] == [320, 4, 76]
    for bags in (parts.train, parts.valid, parts.test):
        inside = bags.counts[:, : task.topic_words].toarray()
        assert (inside.sum(axis=1) == 1).all()
        assert (inside.argmax(axis=1) // task.each == bags.labels).all()
        assert (bags.lengths == 8).all()
    assert (parts.train.words[4], parts.train.words[12]) == ("t2.1", "w1")
    assert parts.train.counts.max() > 1  # drawn with replacement


def test_draws_depend_on_the_seed_alone() -> None:
    task = TopicWords(sentences=200)
    first, again, other = (task.draw(seed).train for seed in (3, 3, 4))
    assert (first.counts != again.counts).nnz == 0
    assert (first.labels == again.labels).all()
    assert (first.counts != other.counts).nnz > 0


def test_frequencies_are_uniform() -> None:
    task = TopicWords(dictionary=40, others=10, sentences=20_000)
    bags = task.draw(0).train
    shares = np.asarray(bags.counts.sum(axis=0)).ravel() / len(bags)
    assert shares[:8] == pytest.approx(1 / 8, rel=0.1)
    assert shares[8:] == pytest.approx(10 / 40, rel=0.1)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"each": 0}, "a topic without a topic word"),
        ({"dictionary": 0}, "the dictionary of other words is empty"),
        ({"topics": 1}, "fewer than two topics"),
        ({"others": 0}, "a topic word alone"),
        ({"sentences": 10}, "at least 100, not 10"),
    ],
)
def test_an_impossible_task_is_refused(settings: dict[str, int], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        TopicWords(**settings)


def small() -> Bags:
    from scipy.sparse import csr_matrix

    counts = csr_matrix(np.array([[1.0, 2.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 3.0, 0.0]]))
    return Bags(counts, np.array([0, 1, 1]), ["a", "b", "c", "d"], ["neg", "pos"])


def test_facts_of_words() -> None:
    bags = small()
    assert bags.sentences_with.tolist() == [3, 2, 2, 0]
    assert bags.companions[:3].tolist() == pytest.approx([(3 + 2 + 5) / 3 - 1, (3 + 5) / 2 - 1, (2 + 5) / 2 - 1])
    assert bags.purity[:3].tolist() == pytest.approx([1 / 3, 0, 1])
    assert np.isnan([bags.companions[3], bags.purity[3]]).all()


def test_padding_fills_up() -> None:
    padded = small().padded(6)
    assert padded.words[-1] == PADDING
    assert (padded.lengths == 6).all()
    assert padded.counts[:, -1].toarray().ravel().tolist() == [3, 4, 1]


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mail.tsv"
    lines = [f"{'spam' if n % 2 else 'ham'}\tWord{n % 7} , {'win' if n % 2 else 'dear'} !" for n in range(60)]
    file.write_text("\n".join(lines), encoding="utf-8")
    parts = topics.read(str(file))
    assert len(parts.train) + len(parts.valid) + len(parts.test) == 60
    assert parts.train.classes == ["ham", "spam"]
    assert set(parts.train.words) == {"win", "dear", *(f"word{n}" for n in range(7))}
    spam = parts.train.labels == 1
    assert (parts.train.counts[:, parts.train.words.index("win")].toarray().ravel() == spam).all()


def test_bad_files(tmp_path: Path) -> None:
    file = tmp_path / "one.tsv"
    file.write_text("\n".join(["x\tword"] * 20), encoding="utf-8")
    with pytest.raises(UserError, match="with one label there is nothing to learn"):
        topics.read(str(file))
    file.write_text("x\ta\ny\tb\n", encoding="utf-8")
    with pytest.raises(UserError, match="2 lines are too few"):
        topics.read(str(file))
    with pytest.raises(UserError, match=r"none.tsv' is neither a labelled corpus nor a file"):
        topics.read(str(tmp_path / "none.tsv"))
    with pytest.raises(UserError, match="did you mean 'sst5'"):
        topics.read("sst3")
    with pytest.raises(UserError, match="labelled text is needed"):
        topics.read("multi30k")


def test_sst_has_the_published_sizes(shared_data: Path) -> None:
    two, five = (topics.read(name, data_dir=shared_data) for name in ("sst2", "sst5"))
    assert [len(part) for part in (two.train, two.valid, two.test)] == [6920, 872, 1821]
    assert [len(parts.train.classes) for parts in (two, five)] == [2, 5]
    assert not any(word in two.train.words for word in (".", ",", "``"))
