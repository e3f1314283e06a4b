"""Examples on which a model is judged that stand in the training part too: it may know them by heart."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence


def repeated(train: Iterable[Hashable], judged: Mapping[str, Sequence[Hashable]]) -> str:
    """A clause for each kind of examples of which some stand in the training part; empty: none does."""
    known = set(train)
    counts = {kind: sum(example in known for example in examples) for kind, examples in judged.items()}
    return "; ".join(
        f"{kind} that stand in the training part too: {count:,} of {len(judged[kind]):,}"
        for kind, count in counts.items()
        if count
    )
