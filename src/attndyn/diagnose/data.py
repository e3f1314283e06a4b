"""The examples that `diagnose` looks at: parallel text, labelled text, or a synthetic task. No torch here."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from attndyn.errors import UserError, nearest
from attndyn.tasks import Iid, PermutationMixture, Permutations, PermutedCopy, Subsets

if TYPE_CHECKING:
    from attndyn.tasks import CopyTask
    from attndyn.tasks.labelled import Source
    from attndyn.tasks.text import Pairs

WORDS_OF_TASK = 60
TASKS: dict[str, Callable[[int, int | None], CopyTask]] = {
    "permutations": lambda length, words: Permutations(length),
    "subsets": lambda length, words: Subsets(length, of=words or WORDS_OF_TASK),
    "mixture": lambda length, words: PermutationMixture(length),
    "iid": lambda length, words: Iid(length, words or length),
    "permuted-copy": lambda length, words: PermutedCopy(length, of=words or WORDS_OF_TASK),
}


@dataclass(frozen=True, kw_only=True)
class Data:
    """Where the examples come from: parallel text, labelled text, or one of the synthetic tasks."""

    source: Path | None = None
    """Text of the inputs, one sentence a line; plain, .gz or .xz."""
    target: Path | None = None
    """Text of the outputs; line n belongs to line n of the source."""
    labelled: str | Path | None = None
    """A corpus by its name, a folder with train.tsv, or a file of label<TAB>text lines; the training part is read."""
    data_dir: Path | None = None
    """Where corpora lie; also $ATTNDYN_DATA, then the user's cache."""
    task: str | None = None
    """A synthetic task: permutations, subsets, mixture, iid or permuted-copy."""
    tokenised: bool = False
    """The text is tokenised: cut it at white space and leave it as it is."""
    length: int = 40
    """Words in a sequence of the task."""
    words: int | None = None
    """Different words of the task; 60 for subsets and permuted-copy, the length for iid."""
    pairs: int = 4000
    """Pairs to draw from the task."""

    def __post_init__(self) -> None:
        text = self.source is not None or self.target is not None
        if text + (self.labelled is not None) + (self.task is not None) != 1:
            raise UserError("diagnose needs --source F --target F, or --labelled F, or --task NAME: one of the three")
        if text and (self.source is None or self.target is None):
            raise UserError("parallel text needs both files: --source F --target F")
        options = {option.name for option in fields(self) if getattr(self, option.name) != option.default}
        for name in sorted(options & {"length", "words", "pairs"}) if self.task is None else ():
            raise UserError(f"--{name} is for --task only")
        if self.data_dir is not None and self.labelled is None:
            raise UserError("--data-dir is for --labelled only")
        if self.task is not None:
            if self.tokenised:
                raise UserError("--tokenised is for text only")
            if self.task not in TASKS:
                raise UserError(f"there is no task {self.task!r}; {nearest(self.task, TASKS)}")
            if self.words is not None and self.task in ("permutations", "mixture"):
                raise UserError(f"{self.task} has no --words: its sequences hold all words of their set")
            if self.pairs < 2:
                raise UserError(f"--pairs must be at least 2, not {self.pairs}")
            TASKS[self.task](self.length, self.words)

    @property
    def title(self) -> str:
        if self.task is not None:
            words = self.words or (self.length if self.task == "iid" else WORDS_OF_TASK)
            return {
                "permutations": f"copying permutations of {self.length} words",
                "subsets": f"copying {self.length} of {words} words",
                "mixture": f"copying permutations of one of two sets of {self.length} words",
                "iid": f"copying {self.length} i.i.d. words out of {words}",
                "permuted-copy": f"copying {self.length} of {words} words in another, fixed order",
            }[self.task]
        return str(self.labelled) if self.labelled else f"{self.source} to {self.target}"

    @property
    def command(self) -> str:
        words = ["attndyn", "diagnose"]
        for option in fields(self):
            value = getattr(self, option.name)
            if value != option.default:
                words += [f"--{option.name.replace('_', '-')}"] + ([] if value is True else [str(value)])
        return shlex.join(words)

    def read(self) -> tuple[Pairs, int]:
        """The pairs with words on both sides, and how many others there were."""
        import numpy as np

        from attndyn.tasks.labelled import read_training
        from attndyn.tasks.text import drawn, read_parallel

        if self.task is not None:
            return drawn(TASKS[self.task](self.length, self.words), self.pairs), 0
        if self.labelled is not None:
            training = read_training(self.labelled, data_dir=self.data_dir, tokenised=self.tokenised)
            check_labels(training)
            every = training.pairs
        else:
            assert self.source is not None
            assert self.target is not None
            every = read_parallel(self.source, self.target, tokenised=self.tokenised)
        filled = np.flatnonzero((every.source.lengths > 0) & (every.target.lengths > 0))
        if len(filled) < 2:
            raise UserError(f"{self.title}: {len(filled)} pairs with words on both sides; at least 2 are needed")
        for text, role in ((every.source, "input"), (every.target, "output")):
            if len(text.words) == 1:
                raise UserError(
                    f"{self.title}: the only {role} word is {text.words[0]!r}, so there is nothing to tell apart"
                )
        return (every.take(filled) if len(filled) < len(every) else every), len(every) - len(filled)


def check_labels(source: Source) -> None:
    path, labels = source.path, source.pairs.target
    if len(labels.words) == 1:
        raise UserError(
            f"{path}: every line has the label {labels.words[0]!r}; with one label there is nothing to learn"
        )
    for number, times in enumerate(labels.counts):
        if times == 1:
            line = source.lines[(labels.ids == number).argmax()]
            raise UserError(
                f"{path}, line {line}: the label {labels.words[number]!r} occurs once; what one example says cannot be "
                "checked against another: leave the line out, or join the label with another"
            )
