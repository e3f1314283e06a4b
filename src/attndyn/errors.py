"""The two ways a command can fail; the command line turns each into one sentence and an exit code."""

from collections.abc import Iterable


class UserError(Exception):
    """A mistake in what was asked for: a name, a value, a file, a device. Exit code 2."""


class NoCharts(UserError):
    """The packages that draw are not installed here: what was measured stands, the page can be made elsewhere."""


class Busy(UserError):
    """Another process holds the folder."""


class RunError(Exception):
    """Something failed while running. What was finished before stays readable. Exit code 1."""


def first_line(error: Exception) -> str:
    """What another library says, short enough for our sentence; its name where it says nothing."""
    return next(filter(None, str(error).splitlines()), type(error).__name__)


def nearest(word: str, known: Iterable[str]) -> str:
    """What to say after a name that is not known: the nearest one that is, or all of them."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(word, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"
