"""A grid as it is written, `lr=1e-3,3e-3 extra='0 1,0 1 2'`, and the studies at its points."""

from __future__ import annotations

import contextlib
import io
import itertools
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, make_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from attndyn import spec
from attndyn.errors import UserError, nearest

if TYPE_CHECKING:
    from attndyn.studies.base import Study

Grid = Mapping[str, Sequence[Any]]


def take_grid(words: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The words without `--grid NAME=VALUE,… …`, and the values of each name, as text."""
    rest: list[str] = []
    axes: dict[str, list[str]] = {}
    inside = named = False
    for word in words:
        if word == "--grid" or word.startswith("--grid="):
            inside, named = True, named or "=" in word
            word = word.removeprefix("--grid").removeprefix("=")
            if not word:
                continue
        elif word.startswith("--"):
            inside = False
        if not inside:
            rest.append(word)
            continue
        name, equals, text = word.partition("=")
        name, values = name.replace("-", "_"), text.split(",")
        if not equals or not name or not all(value.strip() for value in values):
            raise UserError(f"--grid takes NAME=VALUE,VALUE,… (lr=1e-3,3e-3), not {word!r}")
        if name in axes:
            raise UserError(f"--grid has {name} twice; put all its values behind one {name}=")
        axes[name] = values
    if not axes and any(word.startswith("--grid") for word in words):
        raise UserError("--grid needs at least one NAME=VALUE,VALUE,… behind it")
    return rest, axes


def read_grid(kind: type[Study], axes: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
    """The values of each axis, as that study's settings."""
    return {name: [value_of(kind, name, text) for text in texts] for name, texts in axes.items()}


def value_of(kind: type[Study], name: str, text: str) -> Any:
    """One value of a setting, read as the command line of the study reads it; a setting of several numbers has spaces
    between them."""
    import tyro

    check_setting(kind, name)
    type_ = get_type_hints(kind)[name]
    words = [text.strip().capitalize()] if type_ is bool else shlex.split(text)
    setting = make_dataclass("Setting", [(name, type_)], frozen=True)
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # what it says in a box is said in a sentence below
            return getattr(tyro.cli(setting, args=[f"--{name}", *words]), name)
    except SystemExit:
        if get_origin(type_) is Literal:
            wanted = nearest(text, map(str, get_args(type_)))
        else:
            wanted = f"it takes {type_.__name__ if isinstance(type_, type) and not get_args(type_) else type_}"
        raise UserError(f"--grid {name}={text}: {kind.name} cannot use {text!r} for {name}; {wanted}") from None


def check_setting(kind: type[Study], name: str) -> None:
    known = [field.name for field in fields(kind)]
    if name not in known:
        raise UserError(f"{kind.name} has no setting {name!r}; {nearest(name, known)}")


def as_grid(given: Mapping[str, Any]) -> Grid:
    """A grid as it is written in Python, where a single value may stand for itself."""
    several = {name: isinstance(values, Iterable) and not isinstance(values, str) for name, values in given.items()}
    return {name: list(values) if several[name] else [values] for name, values in given.items()}


def points(base: Study, grid: Grid) -> Iterator[Study]:
    """The study at each point, the last axis fastest; a point that cannot be is refused by name."""
    for name in grid:
        check_setting(type(base), name)
    hints = get_type_hints(type(base))
    grid = {name: [spec.fitting(name, value, hints[name]) for value in values] for name, values in grid.items()}
    for name, values in grid.items():
        again = [value for index, value in enumerate(values) if value in values[:index]]
        if again:
            raise UserError(f"the grid has {name} {in_words(again[0])} twice")
        if not values:
            raise UserError(f"the grid has no value for {name}")
    for chosen in itertools.product(*grid.values()):
        settings = dict(zip(grid, chosen, strict=True))
        try:
            yield replace(base, **settings)
        except UserError as error:
            raise UserError(f"{base.name} at {point_in_words(settings)}: {error}") from None


def point_in_words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {in_words(value)}" for name, value in settings.items())


def in_words(value: Any) -> str:
    """As the value is written in --grid."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
