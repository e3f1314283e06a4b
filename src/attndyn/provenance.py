"""What a run says of how it was made: its settings, its command, where it computed, and with which code."""

from __future__ import annotations

import os
import platform
import shlex
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from attndyn import __version__, spec
from attndyn.errors import UserError
from attndyn.studies import STUDIES, find

if TYPE_CHECKING:
    from attndyn.studies.base import Study

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "fp32", "tf32", "bf16"]
COMPUTING = (
    "errors.py", "spec.py", "kernels", "store", "tasks", "models", "training", "probes", "measures", "theory",
    "plan.py", "process.py", "runner.py", "studies", "provenance.py", "own_files.py", "carry_out.py", "verbs.py",
)  # fmt: skip
"""The parts of attndyn that a run uses, but for its page."""
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "sentencepiece", "sacrebleu")
"""Those that compute."""


def settings_of(study: Study) -> dict[str, Any]:
    return {field.name: spec.encode(getattr(study, field.name)) for field in fields(study)}


def restored(name: str, settings: dict[str, Any]) -> Study:
    """The study with the settings that `settings_of` wrote."""
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    return find(name).at("paper", **plain)


def command_of(study: Study, scale: str) -> str:
    """The command line that repeats this run; of a study declared elsewhere, the call."""
    if study.name not in STUDIES:
        return f"attndyn.run({study!r})"
    words = ["attndyn", "run", study.name, "--scale", scale]
    usual = settings_of(type(study).at(scale))
    for name, value in settings_of(study).items():
        if value != usual[name]:
            flag = name.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--{flag}" if value else f"--no-{flag}")
            elif isinstance(value, list):
                words += [f"--{flag}", *map(str, value)]
            else:
                words += [f"--{flag}", str(value)]
    return shlex.join(words)


def resolve_engine(device: Device, precision: Precision, deterministic: bool) -> dict[str, Any]:
    """Where and how to compute, in the words of run.json."""
    import torch

    for name, value, choices in (("device", device, get_args(Device)), ("precision", precision, get_args(Precision))):
        if value not in choices:
            raise UserError(f"{name} is one of {', '.join(choices)}, not {value!r}")
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda was asked for, but torch sees no CUDA device here; use --device cpu")
    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    if where == "cuda" and deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS when it is first used
    return {"device": device_name(where), **numerics(where, precision, deterministic)}


def numerics(where: str, precision: Precision, deterministic: bool) -> dict[str, Any]:
    """How a CPU or a GPU computes, in the words of run.json."""
    if where == "cpu" and precision in ("tf32", "bf16"):
        raise UserError(f"--precision {precision} needs a GPU; on a CPU everything is fp32")
    usual = "tf32" if where == "cuda" else "fp32"
    return {
        "precision": usual if precision == "auto" else precision,
        "deterministic": deterministic or where == "cpu",
    }


def code() -> dict[str, str]:
    """What else decides about the numbers, beside settings and data: the source of attndyn that computes, as a digest,
    and the versions of the packages that do."""
    from importlib import metadata

    return {"source": source_digest()} | {name: metadata.version(name) for name in PACKAGES}


def source_digest() -> str:
    """Of the files that compute: a revision also where there is no git."""
    import hashlib

    top = Path(__file__).resolve().parent
    files = [path for part in COMPUTING for path in ([top / part] if part.endswith(".py") else (top / part).rglob("*"))]
    whole = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts):
        whole.update(f"{path.relative_to(top).as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()[:12]


def by_other_code(info: dict[str, Any]) -> bool:
    """Whether a run was begun by another version of attndyn than this one."""
    return info.get("code") != source_digest()


def device_name(device: str) -> str:
    import torch

    if device == "cuda":
        return f"cuda ({torch.cuda.get_device_name()})"
    from attndyn.process import cores

    return f"cpu ({cores()} cores, {platform.machine()})"


def versions() -> dict[str, str]:
    import numpy
    import torch

    return {
        "attndyn": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
    }


def revision() -> str | None:
    """The git revision of the code, where it runs from a checkout."""
    import subprocess

    source = Path(__file__).resolve().parent
    if not (source.parents[1] / ".git").exists():
        return None
    command = ["git", "-C", str(source), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() or None
    except (OSError, subprocess.CalledProcessError):
        return None
