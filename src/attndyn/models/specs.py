"""Models as specs: data only, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from attndyn.errors import UserError

if TYPE_CHECKING:
    from attndyn.models.seq2seq import Seq2SeqModel


@dataclass(frozen=True)
class Seq2Seq:
    """The copying translator of `models/seq2seq.py`."""

    hidden: int = 256
    reading: Literal["code", "text"] = "code"

    def __post_init__(self) -> None:
        if self.hidden < 1:
            raise UserError(f"hidden must be at least 1, not {self.hidden}")

    def build(self, vocabulary: int, seeds: Sequence[int]) -> Seq2SeqModel:
        from attndyn.models.seq2seq import Seq2SeqModel

        return Seq2SeqModel(self, vocabulary, seeds)
