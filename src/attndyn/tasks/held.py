"""What is read from files once and then held in memory, until it is to be forgotten."""

import functools
from collections.abc import Callable, Hashable
from typing import TypeVar

A = TypeVar("A", bound=Hashable)
T = TypeVar("T")
_clears: list[Callable[[], None]] = []


def held(function: Callable[[A], T]) -> Callable[[A], T]:
    """Remembers what the function gave for equal arguments."""
    remembered = functools.cache(function)
    _clears.append(remembered.cache_clear)
    return remembered


def forget() -> None:
    """From now on files are read again, as they may have changed."""
    for clear in _clears:
        clear()
