"""Is the keyword there? A toy classification of sequences (Snell et al. §6.1). No torch; `build` makes the sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attndyn.errors import UserError
from attndyn.tasks.base import Task

if TYPE_CHECKING:
    from attndyn.tasks.sampler import KeywordSampler

KEYWORD = 0
"""The id of the word "1"."""


@dataclass(frozen=True)
class Keyword(Task):
    """Uniform i.i.d. words; in every second sequence the keyword stands once, at a uniform place, in the others never.

    Rejection sampling of uniform sequences, which the paper describes, gives the same distribution.
    """

    length: int = 40
    words: int = 40
    """Different ones, the keyword among them."""

    def __post_init__(self) -> None:
        if self.length < 2 or self.words < 2:
            raise UserError(f"length and words must be at least 2, not {self.length} and {self.words}")

    @property
    def vocabulary(self) -> int:
        return self.words

    @property
    def outputs(self) -> int:
        """Without and with the keyword."""
        return 2

    @property
    def shape(self) -> tuple[int, ...]:
        return self.length, self.words

    @property
    def tokens(self) -> list[str]:
        return [str(word + 1) for word in range(self.words)]

    def draw(self, streams: Any, stream: int, steps: Sequence[int], rows: int) -> Any:
        """Words, int64 [replica, step, rows, length]; the rows 0, 2, … hold the keyword."""
        # One number of each row for the place, after those for all the words.
        drawn = streams.words(stream, steps, rows * (self.length + 1))
        others = drawn[:, :, : rows * self.length].unflatten(2, (rows, self.length))
        words = 1 + ((others * (self.words - 1)) >> 32)
        places = (drawn[:, :, -rows:][:, :, ::2, None] * self.length) >> 32
        words[:, :, ::2].scatter_(3, places, KEYWORD)
        return words

    def build(self, seeds: Sequence[int], device: Any = "cpu") -> KeywordSampler:
        from attndyn.tasks.sampler import KeywordSampler

        return KeywordSampler(self, seeds, device)
