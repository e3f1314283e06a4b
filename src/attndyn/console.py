"""What a person sees in the terminal: the live line, plain lines when piped, the table of claims."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attndyn.store.metrics import Row

PLAIN_SECONDS = 10.0
SHOWN = 3
"""Conditions in the live line: the last that were begun."""
EARLIER = "* recorded by an earlier rule of that claim; attndyn now judges it by another one"
COLOURS = {"holds": "green", "differs": "red", "inconclusive": "yellow"}


class Live:
    """Says once how long the work will take here, then where it stands: one line that renews itself, or a plain line
    every few seconds when the output is not a terminal."""

    def __init__(self, headline: str, stream: Any = None) -> None:
        self.headline = headline
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self._latest: dict[str, dict[str, dict[int, float]]] = {}
        self._read = self._step = self._total = 0
        self._start: tuple[int, float] | None = None
        self._estimated = False
        self._shown = time.monotonic()

    def __call__(self, done: int, total: int, seconds: float, rows: Sequence[Row]) -> None:
        if total != self._total or len(rows) < self._read:  # another stage begins, or a run that needed the one before
            self._total, self._read, self._start, self._estimated = total, 0, None, False
            self._latest.clear()
        for row in rows[self._read :]:
            if row.metric in (self.headline, "loss"):
                self._latest.setdefault(row.condition, {}).setdefault(row.metric, {})[row.replica] = row.value
                self._step = row.step
        self._read = len(rows)
        if not rows and not done:  # takes minutes with much text
            words = "reading everything once, before the first step"
            self.close()
            self._write(words if self.terminal else f"{words}\n")
            return
        if self._start is None:  # the first steps also pay for starting up
            self._start = (done, seconds)
            return
        pace = (seconds - self._start[1]) / max(1, done - self._start[0])
        left = pace * (total - done)
        if not self._estimated and (seconds - self._start[1] > 1 or done == total):
            self._estimated = True
            self._print(f"about {duration(seconds + left)} of work on this machine, {duration(left)} left")
        now = time.monotonic()
        if self.terminal:
            self._write("\r\x1b[K" + self._line(done, total, left)[: shutil.get_terminal_size().columns - 1])
        elif self._estimated and now - self._shown > PLAIN_SECONDS:
            self._shown = now
            self._print(self._line(done, total, left))

    def comparing(self, seconds: float) -> None:
        """The study goes on, on a large corpus for minutes, without steps to count."""
        self._print(f"trained and read in {duration(seconds)}; comparing")

    def _line(self, done: int, total: int, left: float) -> str:
        parts = []
        for condition in list(self._latest)[-SHOWN:]:
            means = {name: sum(of.values()) / len(of) for name, of in self._latest[condition].items()}
            parts.append(f"{condition}: " + ", ".join(f"{name} {mean:.2f}" for name, mean in means.items()))
        return " · ".join([f"{100 * done // total} %", f"step {self._step}", *parts, f"{duration(left)} left"])

    def close(self) -> None:
        if self.terminal:
            self._write("\r\x1b[K")

    def _print(self, line: str) -> None:
        self.close()
        self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def duration(seconds: float) -> str:
    """1 s, 1 min 05 s, 2 h 03 min"""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def print_answers(finding: str, answers: Sequence[tuple[str, str]]) -> None:
    """The finding, then each question with its answer below it."""
    from textwrap import fill

    print(fill(finding, 100))
    for question, answer in answers:
        print(f"\n{question}\n{fill(answer, 100, initial_indent='  ', subsequent_indent='  ')}")


def print_claims(claims: Sequence[dict[str, Any]]) -> None:
    """published | measured | verdict, and beside them what was recorded at paper scale, where there is any"""
    beside = any(claim.get("recorded") for claim in claims)
    columns = ["claim", "statement", "published", "measured", "verdict"] + ["at paper scale", "verdict"] * beside
    rows = [
        [claim["id"], claim["statement"], claim["published"], *_result(claim)]
        + (_result(claim.get("recorded")) if beside else [])
        for claim in claims
    ]
    print_table(columns, rows, whole=("claim", "verdict"))
    if any((claim.get("recorded") or {}).get("earlier_rule") for claim in claims):
        print(EARLIER)


def tally_in_words(claims: Sequence[dict[str, Any]]) -> str:
    """3 claims: 2 holds, 1 differs"""
    counts = Counter(claim["verdict"] for claim in claims).most_common()
    return f"{len(claims)} claims: " + ", ".join(f"{count} {verdict}" for verdict, count in counts)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], whole: Sequence[str] = ()) -> None:
    """As wide as the terminal, or $COLUMNS; the columns in `whole` are not broken into lines, and where that is all of
    them, the table is as wide as it has to be."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in whole, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    console = Console(
        width=None if sys.stdout.isatty() else shutil.get_terminal_size((120, 0)).columns, highlight=False
    )
    if set(whole) >= set(columns):
        unlimited = console.options.update(max_width=sys.maxsize)
        console.width = max(console.width, console.measure(table, options=unlimited).maximum)
    console.print(table)


def in_bytes(count: int) -> str:
    """940 bytes, 1.2 kB, 3.4 MB, 5.6 GB"""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def print_audit(found: dict[str, Any]) -> None:
    """What was compared, then a line for each finding."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    steps = [checkpoint["step"] for checkpoint in found["checkpoints"]]
    sizes = f"{found['tensors']:,} tensors, {found['numbers']:,} numbers"
    what = {0: "nothing found", 1: "1 finding"}.get(len(found["findings"]), f"{len(found['findings'])} findings")
    print(f"{len(steps)} checkpoints, steps {steps[0]} to {steps[-1]}, {sizes} each: {what}")
    if not found["findings"]:
        return
    table = Table("finding", "steps", "what", box=box.SIMPLE_HEAD, pad_edge=False)
    for item in found["findings"]:
        table.add_row(item["kind"], ", ".join(map(str, item["steps"])), Text(item["what"]))
    Console(width=None if sys.stdout.isatty() else 120, highlight=False).print(table)


def _result(claim: dict[str, Any] | None) -> list[Any]:
    """measured | verdict"""
    from rich.text import Text

    if claim is None:
        return [Text("–"), Text("")]
    measured = claim["measured"]
    if claim["interval"] is not None:
        of = f"{claim['of']} " if claim.get("of") else ""
        measured += "\n{}{:.3g} to {:.3g} (95 %)".format(of, *claim["interval"])
    if claim.get("on"):
        measured = f"{claim['on']}: {measured}"
    verdict = "not judged" if claim["verdict"].startswith("not judged") else claim["verdict"]
    mark = "*" if claim.get("earlier_rule") else ""
    return [Text(measured), Text(verdict + mark, style=COLOURS.get(verdict, "dim"))]
