"""The cipher: one word for each word, and an order that is never more than one place off."""

from hypothesis import given
from hypothesis import strategies as st

from attndyn.tasks.cipher import Cipher, reordered
from attndyn.tasks.parallel import parallel_files
from attndyn.tasks.text import read_lines, tokenise

words = st.lists(st.sampled_from(["tom", "is", "not", "a", "dog", ",", "it", "big", "no", ".", "twenty-five"]))


@given(words)
def test_every_word_has_one_partner_that_is_its_cipher_word(line: list[str]) -> None:
    cipher = Cipher(line)
    translated, gold = cipher.translate(line)
    assert gold.sure == gold.possible
    assert sorted(i for i, _ in gold.sure) == sorted(j for _, j in gold.sure) == list(range(len(line)))
    for i, j in gold.sure:
        assert translated[j] == cipher.words[line[i]]


@given(words)
def test_neighbours_change_places_once_and_punctuation_stays(line: list[str]) -> None:
    order = reordered(line)
    assert sorted(order) == list(range(len(line)))
    for t, l in enumerate(order):
        assert abs(t - l) <= 1
        if not line[l].isalnum():
            assert t == l


def test_the_cipher_of_the_shipped_sentences() -> None:
    files = parallel_files("tatoeba-sample", "en", "de")
    lines = [tokenise(line) for line in read_lines(files["train"][0])]
    cipher = Cipher(word for line in lines for word in line)
    assert len(set(cipher.words.values())) == len(cipher.words) > 3000, "no two words share a cipher word"
    assert cipher.words["tom"] == "raka", "the cipher is part of every result: it never changes"
    moved = [t != l for line in lines for t, l in enumerate(reordered(line))]
    assert 0.2 < sum(moved) / len(moved) < 0.4
