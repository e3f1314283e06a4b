"""What the report reads from a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


@runtime_checkable
class Source(Protocol):
    """A run folder, as `attndyn.store.folder.Run` reads it."""

    @property
    def path(self) -> Path: ...
    @property
    def info(self) -> dict[str, Any]: ...
    @property
    def metrics(self) -> "pa.Table": ...
    @property
    def claims(self) -> list[dict[str, Any]]: ...

    def trace_steps(self, condition: str, replica: int) -> list[int]: ...
    def trace(self, condition: str, replica: int, step: int) -> "dict[str, np.ndarray]": ...
    def tokens(self, condition: str) -> list[str]: ...
