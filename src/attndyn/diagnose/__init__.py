"""`attndyn diagnose`: what attention will find easy or hard in your data, before anything is trained.

It counts which words occur together, asks for each output token whether one input word stands out (`theory.partners`),
and says what that means by what the studies of this repository measured; docs/diagnose.md explains each number.
"""

from typing import Any

from attndyn.diagnose.data import TASKS, Data

__all__ = ["TASKS", "Data", "diagnose"]


def diagnose(data: Data) -> dict[str, Any]:
    """All numbers and sentences, as `--json` prints them."""
    from attndyn.diagnose.findings import labelled, parallel

    pairs, left_out = data.read()
    found = labelled(pairs) if data.labelled is not None else parallel(pairs)
    if left_out:
        found["answers"].append(("What was left out?", f"{left_out:,} pairs in which one side has no words."))
    return {"data": data.title, "left_out": left_out, **found}
