"""What holds for the whole source, read from its syntax trees: who may import whom, and what nobody may use.

The order of the folders also holds for imports inside functions and for those made for type checkers only: a name in
an annotation is knowledge too.
"""

import ast
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import attndyn

SOURCE = Path(attndyn.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST = 450

# A part imports itself and what stands to its left.
ORDER = [
    "errors",
    "spec",
    "kernels",
    "store",
    "tasks",
    "models",
    "training",
    "probes",
    "measures",
    "plan",
    "process",
    "runner",
]
ALLOWED = {part: set(ORDER[:place]) for place, part in enumerate(ORDER)}
ALLOWED["theory"] = {"errors", "spec", "tasks"}
ALLOWED["report"] = {"errors", "store", "measures"}
ALLOWED["studies"] = {*ORDER, "report", "theory"}
ALLOWED["console"] = {"errors", "store"}
ALLOWED["provenance"] = {*ORDER, "studies"}
ALLOWED["own_files"] = {*ORDER, "studies"}
ALLOWED["carry_out"] = {*ORDER, "studies", "provenance", "own_files"}
ALLOWED["verbs"] = {*ORDER, "report", "studies", "provenance", "own_files", "carry_out"}
ALLOWED["diagnose"] = {"errors", "spec", "tasks", "theory", "store", "report", "provenance", "verbs"}
ALLOWED["data"] = {"errors", "tasks", "store"}
ALLOWED["watching"] = {"errors", "spec", "models", "store", "measures", "report", "provenance", "verbs"}
ALLOWED["integrations"] = {"errors", "watching"}
ALLOWED["housekeeping"] = {"errors", "store", "console"}
ALLOWED["doctor"] = {"errors", "console", "provenance", "verbs", "data"}
ALLOWED["audit"] = {"errors", "watching"}
ALLOWED["sweeping"] = {
    "errors", "spec", "store", "measures", "process", "runner", "studies", "tasks", "provenance", "own_files", "verbs",
    "console",
    "housekeeping", "options",
}  # fmt: skip
ALLOWED["cli"] = {
    *ALLOWED["verbs"], "usage", "console", "verbs", "diagnose", "data", "watching", "audit",
    "housekeeping", "doctor", "sweeping", "options",
}  # fmt: skip
ALLOWED["options"] = {"errors"}
ALLOWED["usage"] = set()
ALLOWED["__main__"] = {"cli"}
ALLOWED["__init__"] = set()
# `run.report()` in a notebook is the verb of that name, and the verb knows two kinds of run; nothing else may point to
# the right.
EXCEPTIONS = {
    ("store/folder.py", "attndyn.verbs"), ("verbs.py", "attndyn.watching.page"),
    ("verbs.py", "attndyn.watching.compare"),
}  # fmt: skip

FORBIDDEN_MODULES = {
    "pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve",
    "socket", "socketserver", "ssl", "http", "urllib.request", "urllib3", "requests", "httpx", "aiohttp", "ftplib",
    "smtplib", "xmlrpc", "telnetlib", "asyncio",
    "tarfile",
}  # fmt: skip
FORBIDDEN_BUILTINS = {"eval", "exec", "__import__"}
FORBIDDEN_ATTRIBUTES = {
    "os.system", "os.popen", "os.execv", "os.execvp", "torch.load", "torch.save", "torch.jit.load", "torch.hub.load",
    "pandas.read_pickle", "builtins.eval", "builtins.exec",
    "shutil.unpack_archive", "zipfile.ZipFile",
}  # fmt: skip


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def module_of(path: Path) -> str:
    parts = ("attndyn", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in FILES}


def imports(tree: ast.AST, package: str = "attndyn") -> Iterator[str]:
    """Every module that is imported, at the top or inside a function; `from package import module` names the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                module = ".".join([*above, *filter(None, [module])])
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                yield whole if whole in MODULES or whole in FORBIDDEN_MODULES else module


def dotted(node: ast.AST) -> str:
    """`a.b.c` as text; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        left = dotted(node.value)
        return f"{left}.{node.attr}" if left else ""
    return ""


def reads_weights_only(call: ast.Call) -> bool:
    """`weights_only=True`, written out: then torch.load reads tensors and runs nothing."""
    return any(
        word.arg == "weights_only" and isinstance(word.value, ast.Constant) and word.value.value is True
        for word in call.keywords
    )


def forbidden(tree: ast.AST) -> list[str]:
    """What a source file uses and may not."""
    found = []
    for module in imports(tree):
        parts = module.split(".")
        if any(".".join(parts[:length]) in FORBIDDEN_MODULES for length in range(1, len(parts) + 1)):
            found.append(f"import {module}")
    full_names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            full_names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            full_names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    weights_only = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and reads_weights_only(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, _, rest = dotted(node).partition(".")
            name = ".".join(filter(None, [full_names.get(first, first), rest]))
            if name == "torch.load" and id(node) in weights_only:
                continue
            if name in FORBIDDEN_BUILTINS | FORBIDDEN_ATTRIBUTES:
                found.append(name)
        elif isinstance(node, ast.keyword) and node.arg in ("shell", "allow_pickle"):
            found += [] if isinstance(node.value, ast.Constant) and node.value.value is False else [f"{node.arg}="]
    return found


def written(tree: ast.AST) -> list[str]:
    """What writes a file other than through `store.atomic`."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        owner, name = "", getattr(node.func, "id", "")
        if isinstance(node.func, ast.Attribute):
            owner, name = dotted(node.func.value) or "…", node.func.attr
        if name == "write_bytes":
            writes = owner not in ("", "atomic")
        else:  # `open(path, mode)`, `path.open(mode)`; a mode may also be given by name
            given = [*node.args, *(word.value for word in node.keywords if word.arg == "mode")]
            modes = [str(one.value) for one in given if isinstance(one, ast.Constant)]
            opens = name in ("open", "fdopen") and any(re.fullmatch("[rwaxbt+]{1,3}", mode) for mode in modes)
            writes = name == "write_text" or (opens and any(set(mode) & set("wax+") for mode in modes))
        if writes:
            found.append(f"{owner}.{name}" if owner else name)
    return found


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))


def test_the_source_is_found() -> None:
    assert {"attndyn.cli", "attndyn.runner", "attndyn.tasks.streams", "attndyn.store.folder"} < MODULES


@every_file
def test_imports_point_to_the_left(path: Path) -> None:
    part = part_of(path)
    assert part in ALLOWED, f"{part} is new: give it a place in the order"
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
    for module in imports(parse(path), package):
        if module.split(".")[0] != "attndyn" or module == "attndyn":
            continue
        if (str(path.relative_to(SOURCE)), module) in EXCEPTIONS:
            continue
        other = module.split(".")[1]
        assert other == part or other in ALLOWED[part], f"{part} may not import {module}"


@every_file
def test_nothing_imports_a_study(path: Path) -> None:
    """Others reach one through the registry in `studies/__init__.py`, or know the base class."""
    if part_of(path) == "studies":
        return
    reaching = ("cli", "verbs", "own_files", "carry_out", "provenance", "sweeping")
    known = {"attndyn.studies", "attndyn.studies.base"} if part_of(path) in reaching else set()
    studies = {module for module in imports(parse(path)) if module.startswith("attndyn.studies")}
    assert studies <= known


def test_the_code_that_decides_about_a_cell_is_all_that_a_run_may_use() -> None:
    """Pages decide about no number, and every other part that a run may import is in the key of a cell."""
    from attndyn.provenance import COMPUTING

    parts = {part.removesuffix(".py") for part in COMPUTING}
    assert parts == {*ALLOWED["verbs"], *ALLOWED["studies"], "verbs"} - {"report"}
    assert all((SOURCE / part).exists() for part in COMPUTING)


def test_each_exception_is_still_needed() -> None:
    assert all(module in set(imports(parse(SOURCE / file))) for file, module in EXCEPTIONS)


@every_file
def test_no_pickle_no_network_no_shell_no_code_from_text(path: Path) -> None:
    assert forbidden(parse(path)) == []


@pytest.mark.parametrize(
    "bad",
    [
        "import pickle", "from pickle import loads", "import os, marshal", "def f():\n import shelve",
        "import socket", "import requests", "import urllib.request", "from urllib import request",
        "from http import client", "import http.server",
        "eval('1')", "__import__('pickle')", "exec('x = 1')", "f = eval",
        "import os\nos.system('ls')", "from os import system\nsystem('ls')", "import os as o\no.popen('ls')",
        "subprocess.run('ls', shell=True)", "subprocess.run('ls', shell=flag)", "np.load(p, allow_pickle=True)",
        "import torch\ntorch.load(p)", "import torch\ntorch.save(x, p)", "from torch import load as l\nl(p)",
        "import torch\ntorch.load(p, weights_only=False)", "import torch\ntorch.load(p, weights_only=flag)",
        "import torch\nf = torch.load\nf(p, weights_only=True)", "import torch\ntorch.save(x, p, weights_only=True)",
        "import torch as t\nt.save(x, p)",
        "import tarfile", "import shutil\nshutil.unpack_archive(p)", "from zipfile import ZipFile\nZipFile(p)",
    ],
)  # fmt: skip
def test_the_search_finds_what_is_forbidden(bad: str) -> None:
    assert forbidden(ast.parse(bad))


@pytest.mark.parametrize(
    "good",
    [
        "model.eval()", "import torch\ntorch.no_grad()", "from safetensors.torch import load, save\nsave(load(x))",
        "subprocess.run(['ls'])", "subprocess.run(['ls'], shell=False)", "from urllib.parse import quote",
        "import os\nos.replace(a, b)", "run.save()",
        "import torch\ntorch.load(p, weights_only=True)",
    ],
)  # fmt: skip
def test_the_search_lets_the_rest_pass(good: str) -> None:
    assert forbidden(ast.parse(good)) == []


@every_file
def test_files_are_written_in_one_place(path: Path) -> None:
    """Elsewhere nobody has to think of temporary files, fsync and renames."""
    assert written(parse(path)) == (["os.fdopen"] if path == SOURCE / "store" / "atomic.py" else [])


@pytest.mark.parametrize(
    "bad",
    [
        "path.write_text('x')", "(folder / 'x').write_bytes(b'')", "open(p, 'w')", "open(p, mode='ab')", "p.open('x')",
        "Path(p).open('wb')", "os.fdopen(handle, 'r+')",
    ],
)  # fmt: skip
def test_a_write_of_ones_own_is_found(bad: str) -> None:
    assert written(ast.parse(bad))


def test_the_search_follows_every_kind_of_import() -> None:
    text = (
        "from . import lexical\nfrom .trace import Trace\nfrom attndyn import runner\nfrom attndyn.models import base"
    )
    found = set(imports(ast.parse(text), "attndyn.probes"))
    assert found == {"attndyn.probes.lexical", "attndyn.probes.trace", "attndyn.runner", "attndyn.models.base"}


@every_file
def test_no_file_is_two_files(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_specs_and_the_command_line_need_no_torch() -> None:
    program = """if True:
        import sys
        import attndyn, attndyn.cli, attndyn.studies, attndyn.tasks, attndyn.models, attndyn.training.condition
        import attndyn.measures.readings, attndyn.store.folder, attndyn.spec
        study = attndyn.studies.find("copying").at("demo")
        for condition in study.conditions():
            attndyn.spec.digest(condition)
        print("heavy" if "torch" in sys.modules else "light")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("light\n", "")


def test_shapes_are_checked_while_tests_run() -> None:
    from attndyn.measures.scores import accuracy

    with pytest.raises(TypeError, match="target"):
        accuracy(torch.zeros(1, 2, 3, 4), torch.zeros(1, 3, 2, dtype=torch.int64))


def test_no_test_reaches_the_network() -> None:
    for make in (socket.socket, lambda: socket.create_connection(("localhost", 9)), lambda: socket.socket(type=2)):
        with pytest.raises(RuntimeError, match="a socket of family"):
            make()
    with socket.socket(socket.AF_UNIX) as local:
        assert local.family == socket.AF_UNIX
