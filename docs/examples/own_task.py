"""Your own data: do words drawn by the counts of *your* corpus teach attention where to look?

    python docs/examples/own_task.py [TEXT FILE]

A task says how sequences are drawn, a study says what is trained on it; the readings and the page come with them.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import attndyn
from attndyn.errors import UserError
from attndyn.measures.readings import Answers, Attention, Lexical
from attndyn.models import Seq2Seq
from attndyn.studies.base import Study
from attndyn.tasks import CopyTask, Iid
from attndyn.tasks.text import read_lines
from attndyn.training.condition import Condition


@dataclass(frozen=True)
class Counted(CopyTask):
    """Words drawn independently, each as often as it was counted."""

    size: int
    counts: tuple[int, ...]

    @property
    def length(self) -> int:
        return self.size

    @property
    def words(self) -> int:
        return len(self.counts)

    def draw(self, streams: Any, stream: int, steps: Any, rows: int) -> Any:
        import torch

        ends = torch.tensor(self.counts, device=streams.seeds.device).cumsum(0)
        return torch.searchsorted(ends, streams.integers(stream, steps, rows, self.size, int(ends[-1])), right=True)


@dataclass(frozen=True, kw_only=True)
class MyWords(Study):
    name = "my-words"
    title = "Copying words that are as frequent as mine"

    counts: tuple[int, ...]
    """How often each word was seen."""
    seeds: int = 4
    steps: int = 120

    def conditions(self) -> Iterator[Condition]:
        mine, even = Counted(10, self.counts), Iid(10, len(self.counts))
        for name, task in (("as frequent as mine", mine), ("all equally frequent", even)):
            yield Condition(
                name=name,
                task=task,
                model=Seq2Seq(hidden=64),
                seeds=tuple(range(self.seeds)),
                steps=self.steps,
                batch=64,
                readings=(Answers(every=5), Attention(every=5), Lexical(every=5)),
            )


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else __file__
    try:
        seen = Counter(word for line in read_lines(file) for word in line.lower().split())
        if len(seen) < 2:
            raise UserError(f"{file} does not hold two different words")
        run = attndyn.run(MyWords(counts=tuple(count for _, count in seen.most_common(30))))
    except UserError as error:
        sys.exit(str(error))
    print(run.info["finding"], run.path / "report.html", sep="\n")
