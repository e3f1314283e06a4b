"""What the commands can be told, as dataclasses, and how the words of a command line become it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Any, Literal

from attndyn.errors import UserError, nearest


@dataclass(frozen=True)
class Computing:
    scale: Literal["demo", "paper"] = "demo"
    """demo: about a minute on two cores; paper: the published setting."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; auto takes a GPU if there is one."""
    precision: Literal["auto", "fp32", "tf32", "bf16"] = "auto"
    """Of the matrix products of training; auto is tf32 on a GPU, fp32 on a CPU."""
    deterministic: bool = False
    """Make a GPU give the same bits each time."""


@dataclass(frozen=True)
class RunOptions(Computing):
    out: Path | None = None
    """The run folder; runs/STUDY/SCALE-HASH if not given."""
    fresh: bool = False
    """Start again, and lose what the run folder holds."""


@dataclass(frozen=True)
class SweepOptions(Computing):
    out: Path | None = None
    """The folder of the sweep; sweeps/STUDY if not given. Cells that are finished in it are not run again."""
    engine: Literal["in-process", "ray"] = "in-process"
    """in-process: one cell after the other; ray: many at a time, on a Ray cluster."""
    address: str = "auto"
    """Of the Ray cluster, HOST:PORT; auto is the one that this machine belongs to, local starts one here."""
    cpus_per_cell: int = 1
    """On Ray: the cores that a cell trains on."""
    gpus_per_cell: float = 1.0
    """On Ray with --device cuda: the GPUs of a cell; 0.5 lets two cells share one."""
    json: bool = False
    """Print what sweep.json holds instead of the table."""


def take_flags(words: Sequence[str], flags: Sequence[str]) -> tuple[list[str], set[str]]:
    """Plain words and the flags among them; an unknown flag is a mistake."""
    for word in words:
        if word.startswith("-") and word not in flags:
            raise UserError(f"there is no option {word!r} here; {nearest(word, flags)}")
    return [word for word in words if not word.startswith("-")], set(words) & set(flags)


def take_value(words: Sequence[str], flag: str) -> tuple[list[str], str | None]:
    """The words without `flag VALUE` or `flag=VALUE`, and the value; empty where it was forgotten."""
    rest, value = [], None
    following = iter(words)
    for word in following:
        if word == flag:
            value = next(following, "")
        elif word.startswith(f"{flag}="):
            value = word.removeprefix(f"{flag}=")
        else:
            rest.append(word)
    return rest, value


def parse_run(
    kind: type[Any], words: list[str], options: type[Any] = RunOptions, verb: str = "run", about: str = ""
) -> tuple[Any, Any]:
    """The options of `run`, or of another verb, and the settings of one study, both made from their dataclasses."""
    import tyro

    check_flags(kind.name, words, options, kind)
    scale = "demo"
    for index, word in enumerate(words):
        if word == "--scale" and index + 1 < len(words):
            scale = words[index + 1]
        elif word.startswith("--scale="):
            scale = word.removeprefix("--scale=")
    usual = kind.at(scale)
    name = kind.name.replace("-", "_")
    command = make_dataclass("Command", [(verb, options, field()), (name, kind, field())], frozen=True)
    parsed = tyro.cli(
        command,
        config=(tyro.conf.OmitArgPrefixes,),
        prog=f"attndyn {verb} {kind.name}",
        description="\n\n".join(filter(None, (kind.title, kind.source, about))),
        args=words,
        default=command(**{verb: options(), name: usual}),
    )
    return getattr(parsed, verb), getattr(parsed, name)


def check_flags(name: str, words: Sequence[str], *parts: type[Any]) -> None:
    """An unknown flag is a mistake, and the nearest one is named."""
    flags = ["--help", *(["--grid"] if SweepOptions in parts else [])]
    for option in (option for part in parts for option in fields(part)):
        flag = option.name.replace("_", "-")
        flags += [f"--{flag}", *([f"--no-{flag}"] if option.type in (bool, "bool") else [])]
    for word in words:
        flag = word.split("=")[0].replace("_", "-")
        if flag.startswith("--") and flag not in flags:
            raise UserError(f"{name} has no setting {flag!r}; {nearest(flag, flags)}")
