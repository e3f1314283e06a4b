"""Writes the golden curves: python -m tests.golden [STUDY …]"""

import json
import sys
import tempfile
from pathlib import Path

import pytest

from attndyn.verbs import run
from tests.golden import CHANGES, FILES, curves
from tests.studies.tiny import TINY, make_tiny

with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
    make_tiny(patch)
    for study in sys.argv[1:] or TINY:
        found = curves(run(study, out=Path(folder) / study, page=False, device="cpu", **CHANGES.get(study, {})))
        lines = [
            f"{json.dumps(condition, ensure_ascii=False)}: {json.dumps(chosen, ensure_ascii=False)}"
            for condition, chosen in found.items()
        ]
        (FILES / f"{study}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(f"{study}: {sum(map(len, found.values()))} curves")
