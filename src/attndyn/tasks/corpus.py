"""Text as a task: batches of real examples, an epoch at a time.

The order of an epoch is drawn for each seed by the counter-based streams (`tasks/ragged.py`). Padding is masked:
nothing downstream sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from attndyn.errors import UserError
from attndyn.tasks.base import Sampler, Task
from attndyn.tasks.held import held

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from attndyn.tasks.labelled import Labelled
    from attndyn.tasks.text import Pairs, Text


@dataclass(frozen=True)
class Examples:
    """Training and evaluation pairs with the words of both sides; the tokens of the target are the answers. A test
    part of its own is for tasks whose checkpoint is chosen on the evaluation pairs."""

    train: Pairs
    valid: Pairs
    words: list[str]
    answers: list[str]
    test: Pairs | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class CorpusTask(Task):
    """A corpus by its name, or a path. The text is read when it is needed, once for each process."""

    corpus: str
    data_dir: str | None = None

    def load(self) -> Examples:
        raise NotImplementedError

    @property
    def vocabulary(self) -> int:
        return len(loaded(self).words)

    @property
    def outputs(self) -> int:
        return len(loaded(self).answers)

    @property
    def tokens(self) -> list[str]:
        return loaded(self).words

    @property
    def content(self) -> str:
        return digested(self)

    @property
    def beside(self) -> str:
        return digested_beside(self)

    def more(self) -> bytes:
        """What else than its words and numbers was read from files."""
        return b""

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.corpus, self.vocabulary, self.outputs

    def epoch(self, batch: int) -> int:
        """Training steps in which every example comes once; what does not fill a batch is left out of that epoch."""
        steps = len(loaded(self).train) // batch
        if not steps:
            raise UserError(
                f"{self.corpus} has {len(loaded(self).train)} training examples, fewer than a batch of {batch}; "
                f"--batch can be at most {len(loaded(self).train)}"
            )
        return steps

    def build(self, seeds: Sequence[int], device: Any = "cpu") -> Sampler:
        from attndyn.tasks.ragged import RaggedSampler

        examples = loaded(self)
        return RaggedSampler(examples.train, examples.valid, seeds, device, test=examples.test)


@dataclass(frozen=True)
class LabelledText(CorpusTask):
    """Texts with a label each, under the rules of `tasks/labelled.py`; the answer is the label."""

    rule: Literal["count", "count or vector"] = "count"
    vectors: str | None = None
    """A file of word vectors. Under the second rule the words that have one are kept."""
    start: bool = True
    """Whether the words that have a vector start from it. Without a file all words start at random."""

    @property
    def data(self) -> Labelled:
        return labelled(self)

    def load(self) -> Examples:
        return Examples(self.data.train, self.data.valid, self.data.vocabulary.words, self.data.classes)

    def more(self) -> bytes:
        return b"" if self.given is None else self.given[0].tobytes()

    @property
    def given(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The vectors that words start from, and which words have one."""
        if self.vectors is None or not self.start:
            return None
        assert self.data.vectors is not None
        return self.data.vectors.matrix(self.data.vocabulary.words)

    def embed(self, weights: Tensor) -> None:
        if self.given is None:
            return
        import torch

        matrix, has = self.given
        if matrix.shape[1] != weights.shape[2]:
            raise UserError(
                f"the vectors in {self.vectors} have {matrix.shape[1]} numbers, those of the model {weights.shape[2]}"
            )
        known = torch.as_tensor(has, device=weights.device)
        weights[:, known] = torch.as_tensor(matrix[has], device=weights.device)


@dataclass(frozen=True)
class ParallelText(CorpusTask):
    """Pairs of sentences in words seen three times or more; the answers are the words of the target sentence."""

    source: str = "de"
    target: str = "en"

    def load(self) -> Examples:
        from attndyn.tasks.parallel import load_parallel
        from attndyn.tasks.text import Pairs
        from attndyn.tasks.vocabulary import build

        parts = load_parallel(self.corpus, self.source, self.target, data_dir=self.data_dir)
        known = {side: build(getattr(parts["train"], side)) for side in ("source", "target")}
        train, valid = (
            Pairs(known["source"].encode(pairs.source), without_first(known["target"].encode(pairs.target)))
            for pairs in (parts["train"], parts["valid"])
        )
        return Examples(train, valid, known["source"].words, known["target"].words)


def without_first(text: Text) -> Text:
    """<bos> is read, never answered."""
    import numpy as np

    from attndyn.tasks.text import Text

    return Text(np.delete(text.ids, text.offsets[:-1]), text.offsets - np.arange(len(text.offsets)), text.words)


@held
def loaded(task: CorpusTask) -> Examples:
    return task.load()


@held
def digested(task: CorpusTask) -> str:
    """Of the words and numbers of all parts."""
    import hashlib

    examples, found = loaded(task), hashlib.sha256()
    found.update("\n".join([*examples.words, "", *examples.answers]).encode())
    for pairs in (examples.train, examples.valid, examples.test):
        for text in (pairs.source, pairs.target) if pairs is not None else ():
            found.update(text.ids.tobytes())
            found.update(text.offsets.tobytes())
    return found.hexdigest()[:16]


@held
def digested_beside(task: CorpusTask) -> str:
    import hashlib

    more = task.more()
    return hashlib.sha256(more).hexdigest()[:16] if more else ""


def labelled(task: LabelledText) -> Labelled:
    """The texts of the task, which do not depend on where its words start."""
    return _labelled(replace(task, start=True))


@held
def _labelled(task: LabelledText) -> Labelled:
    from attndyn.tasks.labelled import load_labelled

    return load_labelled(task.corpus, data_dir=task.data_dir, rule=task.rule, vectors=task.vectors)
