"""The folder of a watched run: each reading is written when it is taken, so that memory does not grow with training.

readings/step-000050.parquet   the metrics of one reading; one table, metrics.parquet, when the page is made
traces/chunk-000/…             α, β and Δ of the first examples, as `attndyn.Run` reads them
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from attndyn.store import atomic
from attndyn.store.folder import METRICS
from attndyn.store.metrics import Row, from_parquet, to_parquet, to_table

if TYPE_CHECKING:
    from torch import Tensor


class Record:
    def __init__(self, folder: Path) -> None:
        self.folder, self.readings, self.traces = folder, folder / "readings", folder / "traces" / "chunk-000"

    def steps(self) -> list[int]:
        return sorted(int(path.stem.removeprefix("step-")) for path in self.readings.glob("step-*.parquet"))

    def write(self, step: int, rows: Iterable[Row], tensors: dict[str, Tensor]) -> None:
        import torch
        from safetensors.torch import save

        if tensors:
            kept = {name: tensor.cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
            atomic.write_bytes(self.traces / f"step-{step:06d}.safetensors", save(kept))
        atomic.write_bytes(self.readings / f"step-{step:06d}.parquet", to_parquet(rows))

    def drop_from(self, step: int) -> None:
        """Forgets what was read at this step and later: training goes on from an earlier checkpoint."""
        for folder in (self.readings, self.traces):
            for path in folder.glob("step-*"):
                if int(path.stem.removeprefix("step-")) >= step:
                    path.unlink()

    def gather(self, more: Iterable[Row] = ()) -> None:
        """All readings as metrics.parquet, one after another."""
        import pyarrow.parquet as pq

        part = self.folder / f".{METRICS}.part"
        extra = to_table(more)
        try:
            with pq.ParquetWriter(part, extra.schema) as writer:
                for step in self.steps():
                    writer.write_table(from_parquet((self.readings / f"step-{step:06d}.parquet").read_bytes()))
                writer.write_table(extra)
            with open(part, "rb") as file:
                os.fsync(file.fileno())
            part.replace(self.folder / METRICS)
        finally:
            part.unlink(missing_ok=True)
        atomic.sync_folder(self.folder)

    def clear(self) -> None:
        for folder in (self.readings, self.traces, self.folder / "figures"):
            shutil.rmtree(folder, ignore_errors=True)
        for name in (METRICS, "report.html"):
            (self.folder / name).unlink(missing_ok=True)
