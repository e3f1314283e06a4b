"""What the terminal shows while a run works."""

import io

import pytest

from attndyn.console import Live, duration
from attndyn.store.metrics import Row


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_says_once_how_long_it_takes() -> None:
    stream = io.StringIO()
    live = Live("accuracy", stream)
    for done in range(0, 101, 10):
        live(done, 100, 2.0 * done, [Row("easy", 0, 4, "accuracy", 0.2)])
    live.comparing(200.0)
    told = "about 3 min 20 s of work on this machine, 3 min 00 s left\ntrained and read in 3 min 20 s; comparing\n"
    assert stream.getvalue() == told


def test_says_that_it_reads_before_there_is_anything_to_count() -> None:
    piped, terminal = io.StringIO(), Terminal()
    for stream in (piped, terminal):
        Live("accuracy", stream)(0, 10, 0.0, [])
        assert "reading everything once" in stream.getvalue()
    assert piped.getvalue().endswith("\n")
    assert "\n" not in terminal.getvalue()  # the next line takes its place


def test_one_line_renews_itself_in_a_terminal() -> None:
    stream = Terminal()
    live = Live("accuracy", stream)
    rows = [Row("easy", 0, 4, "accuracy", 0.2), Row("easy", 1, 4, "accuracy", 0.4), Row("easy", 0, 4, "other", 9.0)]
    live(1, 10, 0.1, [])
    live(5, 10, 0.5, rows)
    rows += [Row("easy", 0, 6, "accuracy", 0.6), Row("easy", 0, 6, "loss", 1.0)]
    live(6, 10, 0.6, rows)
    assert "\n" not in stream.getvalue()
    _, first, second = stream.getvalue().split("\r\x1b[K")
    assert first.startswith("50 % · step 4 · easy: accuracy 0.30 · ")
    assert second.startswith("60 % · step 6 · easy: accuracy 0.50, loss 1.00 · ")
    live.close()
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "1 s"), (59.4, "59 s"), (65.0, "1 min 05 s"), (3599.7, "1 h 00 min"), (7380.0, "2 h 03 min")],
)
def test_duration(seconds: float, words: str) -> None:
    assert duration(seconds) == words
