"""What a machine of a cluster does with a cell."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attndyn.provenance import code, restored
from attndyn.sweeping.cells import Cell, Way, carry_out
from attndyn.sweeping.files import pack, unpack


def answer(order: dict[str, Any], needed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The files of the finished run; or the `problem` of this cell; or the `refusal` of all, because this machine has
    another code."""
    from attndyn.process import keep_freed_memory, use_cores

    here, there = code(), order["way"]["code"]
    other = [f"{name} {here[name]} instead of {there[name]}" for name in there if here.get(name) != there[name]]
    if other:
        return {"refusal": f"{platform.node()} would compute with another code ({', '.join(other)}); install the same"}
    for name, found in zip(order["needs"], needed, strict=True):
        if "files" not in found:
            return {"problem": f"it needs {name}: {found['problem']}"}
    use_cores(order["cpus"])
    keep_freed_memory()
    with tempfile.TemporaryDirectory(prefix="attndyn-") as scratch:
        for name, found in zip(order["needs"], needed, strict=True):
            unpack(found["files"], Path(scratch, name))
        cell = Cell(restored(order["study"], order["settings"]), Path(scratch, order["name"]), (), order["name"])
        if order["before"]:
            unpack(order["before"], cell.folder)
        try:
            problem = carry_out(cell, Way(**order["way"]))
        except KeyboardInterrupt:
            os._exit(1)  # the machine is going down: if this process dies of it, Ray begins the cell elsewhere
        return {"files": pack(cell.folder)} if problem is None else {"problem": problem}
