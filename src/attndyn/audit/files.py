"""Checkpoints on disk: safetensors files, torch files, Hugging Face folders; opened without reading their weights."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attndyn.errors import UserError, first_line
from attndyn.watching.posthoc import read_weights

if TYPE_CHECKING:
    from torch import Tensor

SINGLE = ("model.safetensors", "pytorch_model.bin")
INDEX = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


@dataclass(frozen=True)
class Layout:
    shape: tuple[int, ...]
    dtype: str

    @property
    def numbers(self) -> int:
        return math.prod(self.shape)

    @property
    def real(self) -> bool:
        return "float" in self.dtype

    def __str__(self) -> str:
        return f"{self.dtype} {'×'.join(map(str, self.shape)) or 'scalar'}"


@dataclass
class Checkpoint:
    step: int
    path: Path
    layout: dict[str, Layout]
    file: dict[str, Path]
    """Where each tensor lies."""
    index_says: list[str]
    """What the index of a folder says and its files do not hold, or the other way round."""
    _opened: tuple[Path, Any] | None = field(default=None, repr=False)

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """Part of a tensor along its first axis. Only the file last used stays open."""
        path = self.file[name]
        if self._opened is None or self._opened[0] != path:
            self._opened = (path, _open(path))
        source = self._opened[1]
        if not self.layout[name].shape:
            return source.get_tensor(name) if hasattr(source, "get_tensor") else source[name]
        return (source.get_slice(name) if hasattr(source, "get_slice") else source[name])[start:stop]

    def close(self) -> None:
        self._opened = None


def open_series(paths: Sequence[Path]) -> list[Checkpoint]:
    """By their step, the first first."""
    if len(paths) < 2:
        raise UserError("audit compares checkpoints with each other and needs at least two: attndyn audit ckpt/step-*")
    steps: dict[int, Path] = {}
    for path in paths:
        if not path.exists():
            raise UserError(f"there is no file or folder {path}")
        step = step_of(path)
        if step in steps:
            raise UserError(f"{steps[step]} and {path} are both of step {step}")
        steps[step] = path
    return [_checkpoint(step, steps[step]) for step in sorted(steps)]


def step_of(path: Path) -> int:
    """The last number in the name; of a Hugging Face file, in the name of its folder."""
    named = path.absolute().parent if path.name in SINGLE + INDEX else path
    numbers = re.findall(r"\d+", named.name if named.is_dir() else named.stem)
    if not numbers:
        raise UserError(f"{path} has no number in its name, so its step is not known")
    return int(numbers[-1])


def _checkpoint(step: int, path: Path) -> Checkpoint:
    whole = path
    if path.is_dir():
        names = [name for name in INDEX + SINGLE if (path / name).is_file()]
        if not names:
            raise UserError(f"the folder {path} has no {' or '.join(SINGLE)} and no index of shards")
        whole = path / names[0]
    index = _read_index(whole) if whole.name in INDEX else None
    files = [whole] if index is None else [whole.parent / name for name in sorted(set(index.values()))]
    layout: dict[str, Layout] = {}
    file: dict[str, Path] = {}
    for part in files:
        if not part.is_file():
            raise UserError(f"{whole} names the shard {part.name}, which is not there")
        for name, of in _layouts(part).items():
            layout[name], file[name] = of, part
    says = []
    if index is not None:
        says = [name for name in index if name not in file or file[name].name != index[name]]
        says += [name for name in file if name not in index]
    if not layout:
        raise UserError(f"{path} holds no tensor")
    return Checkpoint(step, path, layout, file, says)


def _read_index(path: Path) -> dict[str, str]:
    try:
        shards = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
        if not all(isinstance(name, str) and Path(name).name == name for name in shards.values()):
            raise ValueError("a shard is a file name")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is no index of shards (a JSON object with a weight_map)") from error
    return shards


def _open(path: Path) -> Any:
    """Something with `get_slice` and `get_tensor`, or a dictionary of tensors."""
    from safetensors import SafetensorError, safe_open

    if path.suffix != ".safetensors":
        return read_weights(path)
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} cannot be read: {first_line(error)}") from error


def _layouts(path: Path) -> dict[str, Layout]:
    source = _open(path)
    found = {}
    for name in source.keys():  # noqa: SIM118 (safe_open is no dictionary)
        if hasattr(source, "get_slice"):
            shape = tuple(source.get_slice(name).get_shape())
            one = source.get_slice(name)[0:0] if shape else source.get_tensor(name)
        else:
            one = source[name]
            shape = tuple(one.shape)
        found[name] = Layout(shape, str(one.dtype).removeprefix("torch."))
    return found
