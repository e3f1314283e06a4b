"""The reader of gold links."""

from pathlib import Path

import pytest

from attndyn.errors import UserError
from attndyn.tasks.gold import Gold, read_gold
from attndyn.tasks.text import pairs


def test_gold_is_read_and_checked(tmp_path: Path) -> None:
    text = pairs([["a", "b"], ["c"]], [["A", "B"], ["C"]])
    path = tmp_path / "gold"
    path.write_text("0-0 1?1\n\n")
    assert read_gold(path, text) == [
        Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})),
        Gold(frozenset(), frozenset()),
    ]
    for bad, sentence in {
        "0-0\n0:0\n": r"gold, line 2: '0:0' is not a link",
        "0-0\n0-1\n": r"gold, line 2: '0-1' points past the end of a sentence of 1 words",
        "0-0\n": r"gold has 1 lines, but the text has 2",
        "0-1\n": r"gold has 1 lines, but the text has 2",  # not that the link points past some other line's end
        "0-0\n0-0\n0-0\n": r"gold has 3 lines, but the text has 2",
        "²-0\n\n": "not a link",
    }.items():
        path.write_text(bad)
        with pytest.raises(UserError, match=sentence):
            read_gold(path, text)


def test_links_of_the_other_direction() -> None:
    gold = Gold(frozenset({(0, 2)}), frozenset({(0, 2), (3, 1)}))
    assert gold.swapped() == Gold(frozenset({(2, 0)}), frozenset({(2, 0), (1, 3)}))
    assert gold.swapped().swapped() == gold
