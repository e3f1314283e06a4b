"""Pairs with gold links: which word a piece belongs to, and what is refused."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from attndyn.errors import UserError
from attndyn.tasks.aligned import AlignedText, in_words
from attndyn.tasks.corpus import loaded
from attndyn.tasks.held import forget
from attndyn.tasks.pieces import encode, sentences
from attndyn.tasks.text import Text

from .test_pieces import LINES, folder

CIPHER = AlignedText("tatoeba-cipher", None, "en", "cipher", 800)


def lines(text: Text) -> list[list[int]]:
    return [text.ids[a:b].tolist() for a, b in pairwise(text.offsets)]


def own(path: Path, links: str | None = None, **changes) -> AlignedText:
    start = path / "gold"
    for ending in ("xx", "yy"):
        start.with_suffix(f".{ending}").write_text(f"{LINES[0]}\n{LINES[5]}\n")
    start.with_suffix(".gold").write_text("0-0 1?1 4-2\n3-3\n" if links is None else links)
    settings = {"corpus": folder(path), "gold": str(start), "source": "xx", "target": "yy", "pieces": 28}
    return AlignedText(**(settings | changes))


def test_the_pieces_of_a_word_spell_it() -> None:
    examples = loaded(CIPHER)
    sides = ((examples.valid.source, examples.words_of.source, examples.whole[1].source, 1),
             (examples.valid.target, examples.words_of.target, examples.whole[1].target, 0))  # fmt: skip
    assert len(examples.gold) == len(examples.valid) == len(examples.whole[1]) == 500
    for pieces, words, whole, first in sides:
        for n, (ids, of) in enumerate(zip(lines(pieces), lines(words), strict=True)):
            assert of[-1] == -1
            assert (of[0] == -1) == bool(first), "sources begin with <s>, targets do not"
            spelled = [
                "".join(examples.words[piece] for piece, word in zip(ids, of, strict=True) if word == number)
                for number in range(max(of) + 1)
            ]
            assert [word.removeprefix("▁") for word in spelled] == whole.line(n)


def test_word_by_word_gives_the_pieces_of_the_line() -> None:
    examples = loaded(CIPHER)
    sides, _ = CIPHER.ciphered()
    for text in sides["train"][:2]:
        together, (apart, _) = encode(examples.model, text, examples.words), in_words(examples.model, text, [])
        assert np.array_equal(together.ids, apart.ids)
        assert np.array_equal(together.offsets, apart.offsets)


def test_gold_links_are_within_the_words() -> None:
    examples = loaded(CIPHER)
    for n, gold in enumerate(examples.gold):
        for i, j in gold.possible:
            assert i < examples.whole[1].source.lengths[n]
            assert j < examples.whole[1].target.lengths[n]


def test_the_other_direction_has_the_same_links() -> None:
    there, back = loaded(CIPHER), loaded(AlignedText("tatoeba-cipher", None, "cipher", "en", 800))
    assert [gold.swapped() for gold in there.gold] == back.gold
    assert there.words == back.words


def test_links_of_ones_own(tmp_path: Path) -> None:
    examples = loaded(own(tmp_path))
    assert [sorted(gold.sure) for gold in examples.gold] == [[(0, 0), (4, 2)], [(3, 3)]]
    assert [sorted(gold.possible) for gold in examples.gold] == [[(0, 0), (1, 1), (4, 2)], [(3, 3)]]
    assert examples.references["valid"] == [LINES[0], LINES[5]]
    assert examples.note == "gold pairs that stand in the training part too: 2 of 2"
    assert loaded(CIPHER).note == ""


def test_links_that_were_edited_are_noticed(tmp_path: Path) -> None:
    task = own(tmp_path)
    before = task.beside
    forget()
    assert task.beside == before
    own(tmp_path, "0-0 1-1 4-2\n3-3\n")
    forget()
    assert task.beside != before


def test_pairs_that_are_too_long_take_their_links_with_them(tmp_path: Path) -> None:
    task = own(tmp_path, links="0-0\n1-1\n", longest=40)
    for ending in ("xx", "yy"):
        (tmp_path / f"gold.{ending}").write_text(f"{' '.join(LINES)}\n{LINES[5]}\n")
    examples = loaded(task)
    assert examples.kept["valid"] == (1, 2)
    assert [sorted(gold.sure) for gold in examples.gold] == [[(1, 1)]]
    assert examples.whole[1].source.line(0) == LINES[5].split()


@pytest.mark.parametrize(
    ("changes", "links", "message"),
    [
        ({"gold": ""}, None, "has no gold links: --gold data/test would read them from data/test.xx"),
        ({"gold": "nowhere/test"}, None, r"nowhere/test\.xx: no such file, neither plain nor packed"),
        ({}, "0-0\n", "gold has 1 lines, but the text has 2"),
        ({}, "0-0\n9-0\n", "line 2: '9-0' points past the end of a sentence of 5 words"),
        ({}, "0?0\n\n", "has no sure link"),
        (
            {"corpus": "tatoeba-cipher"},
            None,
            r"--gold .*/gold cannot be used with tatoeba-cipher, which has exact links",
        ),
        ({"corpus": "tatoeba-cipher", "gold": ""}, None, "English or German on one side and cipher on the other"),
    ],
)
def test_what_is_refused(changes: dict[str, str], links: str | None, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        own(tmp_path, links, **changes).load()


def trained(path: Path, **settings) -> str:
    import io

    import sentencepiece

    from attndyn.tasks.pieces import FIXED, SPECIALS

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 2), model_writer=written, vocab_size=29, **settings, **SPECIALS, **FIXED
    )
    path.write_bytes(written.getvalue())
    return str(path)


def test_pieces_that_go_across_words(tmp_path: Path) -> None:
    model = trained(tmp_path / "across.model", split_by_whitespace=False)
    with pytest.raises(UserError, match=r"across\.model has pieces that go across words \('.*'\)"):
        own(tmp_path, model=model, pieces=29).load()


def test_a_model_that_cuts_words_alone_otherwise_than_in_a_line(tmp_path: Path) -> None:
    """Without the space in front of a line its first word is cut otherwise, and by themselves all words are first."""
    model = trained(tmp_path / "bare.model", add_dummy_prefix=False)
    with pytest.raises(
        UserError, match=r"bare\.model cuts a line \('the red .*'\) otherwise than its words one by one"
    ):
        own(tmp_path, model=model, pieces=29).load()
    assert len(own(tmp_path, model=trained(tmp_path / "usual.model"), pieces=29).load().gold) == 2


def test_europarl_has_its_links_in_both_directions(shared_data: Path) -> None:
    there = AlignedText("europarl_de_en", str(shared_data), pieces=2000)
    sides, gold = there.linked()
    assert len(gold) == len(sides["valid"].source) == 128
    assert sum(len(links.sure) for links in gold) == 1869
    assert sum(len(links.possible - links.sure) for links in gold) == 718
    back = AlignedText("europarl_de_en", str(shared_data), "en", "de", 2000).linked()
    assert back[1] == [links.swapped() for links in gold]
    assert (
        back[0]["valid"].source == sides["valid"].target == sentences(shared_data / "align_gold/europarl_de_en.en.xz")
    )
