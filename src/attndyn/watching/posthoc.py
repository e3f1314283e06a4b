"""`attndyn watch`: the measurements of `attndyn.watch` over stored checkpoints, after training."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import importlib
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from attndyn.errors import NoCharts, RunError, UserError, first_line, nearest

if TYPE_CHECKING:
    from torch import Tensor, nn

    from attndyn.store.folder import Run


MADE_FROM = "made from"
"""In run.json: the options and the content of the files of this command."""
NAMED = 3
"""Things that have changed, in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    checkpoints: str
    """The files, as a pattern in quotes: 'runs/mine/step-*.safetensors'. The last number in a path is its step."""
    builder: str
    """module:function that returns the model, with any weights; the module may lie in this folder."""
    examples: Path
    """A .safetensors or .json file of named arrays: the model's arguments ('input' alone is passed without a name), and
    'targets' and 'align' where Δ and β are wanted."""
    out: Path = Path("runs/watch")
    """The run folder."""
    query: int | None = None
    """The position an output is read from, where there is one output for each example (0 for BERT's [CLS])."""
    tokens: Path | None = None
    """A text file with the token of number n in line n + 1."""
    cells: Literal["layers", "heads"] = "layers"
    """Where β is taken: each layer as a whole, or each head."""
    probe: int = 4
    """Examples that Δ and β are taken on."""
    fresh: bool = False
    """Replace what the run folder holds."""


def watch_stored(asked: Stored) -> Run:
    """Builds the model once, loads each checkpoint into it, and reads. A finished run of the same is shown again."""
    files = checkpoints(asked.checkpoints)
    inputs, extra = read_examples(asked.examples)
    tokens = None if asked.tokens is None else _lines(asked.tokens)
    made_from = origin(asked, files)

    from attndyn.verbs import check_folder
    from attndyn.watching.watch import STUDY, watch

    before = check_folder(STUDY, asked.out, asked.fresh)
    if before is not None and not asked.fresh and before["status"] == "finished" and MADE_FROM in before:
        return shown_again(asked.out, before, made_from)
    model = build(asked.builder)
    load(model, next(iter(files.values())))
    w = watch(
        model, inputs, out=asked.out, steps=files, targets=extra.get("targets"), align=extra.get("align"),
        query=asked.query, tokens=tokens, cells=asked.cells, probe=asked.probe, probes="all", fresh=asked.fresh,
    )  # fmt: skip
    w.info[MADE_FROM] = made_from
    with w:
        for step, path in files.items():
            load(model, path)
            w.step(step)
    return w.close()


def origin(asked: Stored, files: dict[int, Path]) -> dict[str, Any]:
    """What a run is made from: options as they are given, files by their content."""
    options = {f"--{name}": getattr(asked, name) for name in ("builder", "query", "cells", "probe")}
    source = module_of(asked.builder)[0].__file__
    read = {"--examples": asked.examples, "--tokens": asked.tokens, "the source of --builder": source}
    read |= {f"the checkpoint of step {step}": path for step, path in files.items()}
    return options | {name: digest(Path(path)) for name, path in read.items() if path is not None}


def digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {first_line(error)}") from error


def shown_again(folder: Path, before: dict[str, Any], made_from: dict[str, Any]) -> Run:
    """A finished run, with the page that Ctrl-C may have kept it from; refused if it was made from something else."""
    from attndyn.store.folder import Run, check_whole
    from attndyn.verbs import report

    there = before[MADE_FROM]
    other = [name for name in {**there, **made_from} if there.get(name) != made_from.get(name)]
    anew = "--fresh makes it again, another --out keeps it"
    if other:
        more = f" and {len(other) - NAMED} more" if len(other) > NAMED else ""
        raise UserError(f"what {folder} was made from has changed since: {', '.join(other[:NAMED])}{more}; {anew}")
    check_whole(folder, before, anew)
    if not (folder / "report.html").exists():
        with contextlib.suppress(NoCharts):
            report(folder)
    return Run(folder)


def checkpoints(pattern: str) -> dict[int, Path]:
    """By their step, the first first."""
    paths = [Path(path) for path in glob.glob(pattern, recursive=True)]
    if not paths:
        raise UserError(f"no file fits {pattern!r}")
    steps: dict[int, Path] = {}
    for path in sorted(paths):
        numbers = re.findall(r"\d+", str(path.with_suffix("")))
        if not numbers:
            raise UserError(f"{path} has no number in its name, so its step is not known")
        if (step := int(numbers[-1])) in steps:
            raise UserError(f"{steps[step]} and {path} are both of step {step}")
        steps[step] = path
    return dict(sorted(steps.items()))


def module_of(builder: str) -> tuple[ModuleType, str]:
    """The module of a builder, and the name of the function in it."""
    name, colon, function = builder.partition(":")
    if not colon or not name or not function:
        raise UserError(f"--builder is module:function, not {builder!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UserError(f"--builder {builder}: there is no module {error.name!r}") from error
    if not hasattr(module, function):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UserError(f"--builder {builder}: {name} has no {function!r}; {nearest(function, known)}")
    return module, function


def build(builder: str) -> nn.Module:
    from torch import nn

    module, function = module_of(builder)
    try:
        model = getattr(module, function)()
    except Exception as error:
        raise RunError(f"--builder {builder} failed: {type(error).__name__}: {error}") from error
    if not isinstance(model, nn.Module):
        raise UserError(f"--builder {builder} returned a {type(model).__name__}, not an nn.Module")
    return model


def load(model: nn.Module, path: Path) -> None:
    """The weights of a checkpoint; every one of the model's must be there, except those tied to another."""
    weights = read_weights(path)
    try:
        missing, unknown = model.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise UserError(f"{path} does not fit the model: {str(error).splitlines()[-1].strip()}") from error
    tensors = model.state_dict(keep_vars=True)
    present = {id(tensors[name]) for name in weights if name in tensors}
    missing = [name for name in missing if id(tensors[name]) not in present]
    for names, what in ((missing, "has no weight"), (unknown, "has a weight that the model does not know:")):
        if names:
            raise UserError(f"{path} {what} {names[0]!r}" + (f" (and {len(names) - 1} more)" if len(names) > 1 else ""))


def read_weights(path: Path) -> dict[str, Tensor]:
    """A safetensors file, or what torch.save wrote, read without running anything in it. Of a torch file in today's
    format a weight is read from disk only when it is used."""
    from zipfile import is_zipfile

    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Detected pickle protocol")  # whether it can be read is said below
            found: Any = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zipfile(path))
    except (SafetensorError, OSError, RuntimeError, ValueError, EOFError) as error:
        raise UserError(f"{path} cannot be read: {first_line(error)}") from error
    except Exception as error:  # torch raises pickle's own error, a class that nothing here may import
        raise UserError(f"{path} holds more than weights, or is no checkpoint; it was not opened further") from error
    for key in ("state_dict", "model", "model_state_dict"):
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
    if not isinstance(found, dict) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise UserError(f"{path} holds no table of weights")
    return found


def read_examples(path: Path) -> tuple[Any, dict[str, Tensor]]:
    import json

    import torch

    if not path.is_file():
        raise UserError(f"there is no file {path}")
    if path.suffix == ".safetensors":
        arrays = read_weights(path)
    else:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            arrays = {name: torch.tensor(values) for name, values in content.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise UserError(f"{path} is no JSON of named arrays: {error}") from error
    extra = {name: arrays.pop(name) for name in list(arrays) if name in ("targets", "align")}
    if not arrays:
        raise UserError(f"{path} holds nothing that the model could be called with")
    return (arrays["input"] if list(arrays) == ["input"] else arrays), extra


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
