"""Attention and probe maps out of stored traces, one byte a cell."""

import base64
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attndyn.report.parts import Maps, NothingToShow, Panel
from attndyn.report.series import thinned
from attndyn.report.source import Source
from attndyn.report.theme import ramp_table

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True)
class PanelFrames:
    """The maps of one panel at each of its steps."""

    title: str
    steps: list[int]
    inputs: list[str]
    outputs: list[str]
    sure: list[tuple[int, int]]
    """The right (output, input) positions,"""
    possible: list[tuple[int, int]]
    """and those that may be right."""
    levels: "dict[str, np.ndarray]"
    """By kind: [step, query, key] uint8, 255·√value."""


def read_panels(run: Source, part: Maps, max_bytes: int) -> list[PanelFrames]:
    """All panels of a part; where they would pass `max_bytes`, evenly spread steps are kept."""
    return [_read_panel(run, panel, part, max_bytes // len(part.panels)) for panel in part.panels]


def _read_panel(run: Source, panel: Panel, part: Maps, max_bytes: int) -> PanelFrames:
    import numpy as np

    try:
        steps = sorted(run.trace_steps(panel.condition, panel.replica))
    except KeyError:  # such a replica was not trained
        steps = []
    if not steps:
        raise NothingToShow(f"No traces were kept for {panel.condition}, seed {panel.replica}.")
    first = run.trace(panel.condition, panel.replica, steps[0])
    if panel.example >= len(first["source"]):
        held = len(first["source"])
        raise NothingToShow(f"The traces of {panel.condition} hold {held} examples, not {panel.example + 1}.")
    source, target, align = (first[key][panel.example] for key in ("source", "target", "align"))
    # Negative ids pad the end.
    width, height = int((source >= 0).sum()), int((target >= 0).sum())

    frame_bytes = max(1, height * width * len(part.kinds))
    steps = [steps[i] for i in thinned(len(steps), max(2, max_bytes // frame_bytes))]
    frames: dict[str, list[np.ndarray]] = {kind: [] for kind, _ in part.kinds}
    for step in steps:
        trace = run.trace(panel.condition, panel.replica, step)
        for kind, _ in part.kinds:
            if kind not in trace:
                raise NothingToShow(f"The traces of {panel.condition} hold no {kind}.")
            values = trace[kind][panel.example].astype(np.float32)
            if values.ndim == 3:  # [head, query, key]
                values = values.mean(0) if panel.head is None else values[panel.head]
            frames[kind].append(_levels(values[:height, :width]))
    texts = run.tokens(panel.condition)
    return PanelFrames(
        title=panel.title,
        steps=steps,
        inputs=[text_of(texts, int(token)) for token in source[:width]],
        outputs=[text_of(texts, int(token)) for token in target[:height]],
        sure=_places(align[:height, :width] == 2 if align.ndim == 2 else align[:height, None] == np.arange(width)),
        possible=_places(align[:height, :width] == 1) if align.ndim == 2 else [],
        levels={kind: np.stack(maps) for kind, maps in frames.items()},
    )


def _places(cells: "np.ndarray") -> list[tuple[int, int]]:
    return [(int(t), int(l)) for t, l in zip(*cells.nonzero(), strict=True)]


def _levels(values: "np.ndarray") -> "np.ndarray":
    """√ before rounding: uniform attention over 41 inputs, .024, becomes 40 of 255 levels instead of 6."""
    import numpy as np

    return np.rint(255 * np.sqrt(np.clip(np.nan_to_num(values), 0, 1))).astype(np.uint8)


def text_of(texts: list[str], token: int) -> str:
    return texts[token] if token < len(texts) else f"⟨{token}⟩"


def picture(levels: "np.ndarray", *, scale: int) -> str:
    """A map [query, key] as a data: URL of a palette PNG, each cell `scale` pixels wide."""
    pixels = levels.repeat(scale, 0).repeat(scale, 1)
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    palette = bytes(channel for colour in ramp_table() for channel in colour)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"PLTE", palette)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(png).decode()
