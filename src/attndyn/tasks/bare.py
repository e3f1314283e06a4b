"""Labelled text as Jain and Wallace 2019 use it: words alone, a development part, and limits on the length.

A text has no <bos> and <eos>, so that attention can sit on its words only (their program frames the texts, and masks
the frame in the attention). The development part, on which the epoch is chosen, is the corpus's own or a fifth of the
training texts; "valid" is that part here, and the test part is read only when training is over. The texts may bring
what another model did on them: its attention and its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attndyn.errors import UserError
from attndyn.tasks.base import Sampler
from attndyn.tasks.corpus import LabelledText
from attndyn.tasks.held import held

if TYPE_CHECKING:
    from attndyn.tasks.labelled import Labelled
    from attndyn.tasks.ragged import Reference
    from attndyn.tasks.text import Pairs

DEVELOPMENT = 5
"""Where the corpus has no part of its own, one in so many training texts."""

REFERENCES: dict[str, dict[str, Reference]] = {}
"""What other models did, by name and part. Filled before training by the study that knows them."""


@dataclass(frozen=True)
class BareText(LabelledText):
    """Words alone, of texts within these limits."""

    shortest: int = 0
    """Texts of fewer words are left out. A text of one word that stays is refused: attention has no choice there."""
    below: int | None = None
    """Only texts of fewer words."""
    seen: int = 3
    """Words that occur less often in the training texts are <unk>; at least 3."""
    reference: str | None = None
    """The name under which `REFERENCES` holds what another model did on the training and development texts."""

    @property
    def data(self) -> Labelled:
        return bare(replace(self, reference=None))

    @property
    def shape(self) -> tuple[Any, ...]:
        return (*super().shape, self.reference is not None)

    def build(self, seeds: Sequence[int], device: Any = "cpu") -> Sampler:
        from attndyn.tasks.ragged import RaggedSampler

        parts = {"train": self.data.train, "valid": self.data.valid}
        references = {} if self.reference is None else fitting(self.reference, parts)
        return RaggedSampler(parts["train"], parts["valid"], seeds, device, references)


def fitting(name: str, parts: dict[str, Pairs]) -> dict[str, Reference]:
    """The reference of that name, if it belongs to these texts."""
    import numpy as np

    if name not in REFERENCES:
        raise UserError(f"no model's attention is known under the name {name!r}")
    for part, pairs in parts.items():
        reference = REFERENCES[name].get(part)
        if reference is None:
            raise UserError(f"{name} gives no attention for the {part} texts")
        wanted, found = pairs.source.lengths, reference.alpha.lengths[: len(reference.answers) // reference.models]
        if len(wanted) != len(found):
            raise UserError(
                f"{name} gives attention for {len(found):,} {part} texts, but there are {len(wanted):,}: it belongs to "
                "another corpus"
            )
        other = np.flatnonzero(wanted != found)
        if len(other):
            raise UserError(
                f"{name} gives {found[other[0]]} weights for {part} text {other[0] + 1}, which has {wanted[other[0]]} "
                "words: it belongs to another corpus"
            )
    return REFERENCES[name]


@held
def bare(task: BareText) -> Labelled:
    import numpy as np

    from attndyn.tasks.draws import shuffled
    from attndyn.tasks.labelled import has_valid, load_labelled
    from attndyn.tasks.vocabulary import SPECIALS, Vocabulary

    own_valid = has_valid(task.corpus, task.data_dir)
    data = load_labelled(task.corpus, data_dir=task.data_dir, rule=task.rule, vectors=task.vectors, own_valid=own_valid)
    if len(data.classes) != 2:
        more = "…" if len(data.classes) > 5 else ""
        raise UserError(
            f"{task.corpus} has {len(data.classes)} labels ({', '.join(data.classes[:5])}{more}); two are needed here"
        )
    # the most frequent words come first
    size = len(SPECIALS) + int((data.train.source.counts[len(SPECIALS) :] >= task.seen).sum())
    data = replace(data, vocabulary=Vocabulary(data.vocabulary.words[:size]))
    parts = {name: _within(task, getattr(data, name), name, size) for name in ("train", "valid", "test")}
    if not own_valid:
        order = shuffled(len(parts["train"]), 0)
        cut = len(order) // DEVELOPMENT
        parts["valid"], parts["train"] = (parts["train"].take(np.sort(some)) for some in (order[:cut], order[cut:]))
    for name, pairs in parts.items():
        if len(np.unique(pairs.target.ids)) < 2:
            raise UserError(f"{task.corpus}: the {name} texts within the limits do not hold both labels")
    return replace(data, train=parts["train"], valid=parts["valid"], test=parts["test"])


def _within(task: BareText, pairs: Pairs, name: str, size: int) -> Pairs:
    """The texts whose number of words is within the limits, without their frame, in the first `size` words."""
    import numpy as np

    from attndyn.tasks.text import Pairs, Text
    from attndyn.tasks.vocabulary import UNK

    words = pairs.source.lengths - 2
    kept = words >= task.shortest
    if task.below is not None:
        kept &= words < task.below
    pairs = pairs.take(np.flatnonzero(kept))
    ends = np.concatenate([pairs.source.offsets[:-1], pairs.source.offsets[1:] - 1])
    ids = np.delete(pairs.source.ids, ends)
    offsets = pairs.source.offsets - 2 * np.arange(len(pairs.source.offsets))
    texts = Text(np.where(ids < size, ids, UNK).astype(np.int32), offsets, pairs.source.words[:size])
    short = np.flatnonzero(texts.lengths < 2)
    if len(short):
        text = " ".join(texts.line(int(short[0])))
        raise UserError(
            f"{task.corpus}: the {name} text {text!r} has fewer than two words, so attention has no choice in it; "
            "--shortest 2 leaves such texts out"
        )
    return Pairs(texts, pairs.target)
