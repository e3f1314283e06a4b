"""`attndyn audit`: what is wrong with a series of checkpoints, before anything is concluded from it.

Every weight is read once, piece by piece (`scan`); the rules that turn digests and distances into findings are in
`rules`. docs/audit.md says what each finding means and what cannot be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

__all__ = ["audit"]


def audit(paths: Sequence[Path | str]) -> dict[str, Any]:
    """All findings and the distances between neighbours, as `--json` prints them."""
    from attndyn.audit.files import open_series

    series = open_series([Path(path) for path in paths])

    from attndyn.audit.rules import findings
    from attndyn.audit.scan import scan

    scanned = scan(series)
    found = findings(series, scanned)
    between = [
        {"from": a.step, "to": b.step, "distance": scanned.between(index, index + 1)}
        for index, (a, b) in enumerate(pairwise(series))
    ]
    return {
        "checkpoints": [{"step": checkpoint.step, "path": str(checkpoint.path)} for checkpoint in series],
        "tensors": len(scanned.usual),
        "numbers": sum(layout.numbers for layout in scanned.usual.values()),
        "distances": between,
        "findings": found,
    }
