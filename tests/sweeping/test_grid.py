"""Grids as they are written, and what is wrong with some."""

import pytest

from attndyn.errors import UserError
from attndyn.studies import find
from attndyn.sweeping.grid import in_words, points, read_grid, take_grid, value_of


def test_the_grid_is_taken_out_of_the_words() -> None:
    words = ["--scale", "demo", "--grid", "lr=1e-3,3e-3", "extra=0 1,0 1 2", "--out", "x", "--grid=keyword-lr=1"]
    rest, axes = take_grid(words)
    assert rest == ["--scale", "demo", "--out", "x"]
    assert axes == {"lr": ["1e-3", "3e-3"], "extra": ["0 1", "0 1 2"], "keyword_lr": ["1"]}
    assert take_grid(["--scale", "demo"]) == (["--scale", "demo"], {})


@pytest.mark.parametrize("word", ["lr", "lr=", "=1", "lr=1,,2", "lr=1,", "lr= "])
def test_an_axis_without_name_or_values_is_refused(word: str) -> None:
    with pytest.raises(UserError, match="NAME=VALUE"):
        take_grid(["--grid", word])


def test_a_grid_of_nothing_and_an_axis_twice_are_refused() -> None:
    with pytest.raises(UserError, match="at least one"):
        take_grid(["--grid", "--out", "x"])
    with pytest.raises(UserError, match="lr twice"):
        take_grid(["--grid", "lr=1", "--grid", "lr=2"])


@pytest.mark.parametrize(
    ("study", "name", "text", "value"),
    [
        ("copying", "seeds", "5", 5),
        ("copying", "lr", "3e-3", 0.003),
        ("copying", "controls", "true", True),
        ("copying", "controls", "False", False),
        ("copying", "reading", "text", "text"),
        ("learnability", "extra", "0 1 2", (0, 1, 2)),
        ("topic-words", "texts", "'my file' b", ("my file", "b")),
        ("head-rescue", "base", "None", None),
        ("head-rescue", "base", "3", 3),
    ],
)
def test_a_value_is_what_the_study_would_read(study: str, name: str, text: str, value: object) -> None:
    found = value_of(find(study), name, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("sead", "1", "did you mean 'seeds'"),
        ("seeds", "many", "it takes int"),
        ("seeds", "1.5", "it takes int"),
        ("seeds", "1 2", "it takes int"),
        ("reading", "txt", "did you mean 'text'"),
        ("controls", "maybe", "it takes bool"),
    ],
)
def test_a_value_that_is_none_is_refused_in_one_sentence(
    name: str, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=says) as refused:
        value_of(find("copying"), name, text)
    assert "\n" not in str(refused.value)
    assert capsys.readouterr() == ("", ""), "the parser itself is silent"


def test_points_come_in_order_and_keep_the_rest() -> None:
    base = find("learnability").at("demo", hidden=16)
    grid = read_grid(type(base), {"seeds": ["2", "1"], "extra": ["0 1", "0 1 4"]})
    found = [(study.seeds, study.extra, study.hidden) for study in points(base, grid)]
    assert found == [(2, (0, 1), 16), (2, (0, 1, 4), 16), (1, (0, 1), 16), (1, (0, 1, 4), 16)]


def test_values_given_twice_are_refused_however_they_are_written() -> None:
    kind = find("copying")
    with pytest.raises(UserError, match=r"lr 0.001 twice"):
        list(points(kind.at("demo"), read_grid(kind, {"lr": ["1e-3", "0.001"]})))
    with pytest.raises(UserError, match="no value for lr"):
        list(points(kind.at("demo"), {"lr": []}))
    with pytest.raises(UserError, match="did you mean 'lr'"):
        list(points(kind.at("demo"), {"lrr": [1.0]}))


def test_a_point_that_cannot_be_is_named() -> None:
    with pytest.raises(UserError, match=r"copying at seeds 1, length 0: length must be at least 1"):
        list(points(find("copying").at("demo"), {"seeds": [1], "length": [4, 0]}))


def test_words_of_a_value_read_back() -> None:
    for value in (5, 0.003, True, "text", (0, 1, 2)):
        name = {5: "seeds", 0.003: "lr", "text": "reading"}.get(value, "controls" if value is True else "extra")
        assert value_of(find("learnability" if name == "extra" else "copying"), name, in_words(value)) == value
