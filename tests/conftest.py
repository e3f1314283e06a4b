"""What holds for every test: shapes in signatures are checked, one torch thread a worker, no network.

Functions whose annotations name something that is imported for type checkers only (the attention rules, `Likelihood`)
are left unchecked by the hook.
"""

import os
import socket
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from jaxtyping import install_import_hook

if find_spec("triton"):  # Triton reads the source of its kernels, which the hook would change
    import attndyn.kernels.triton_adam
    import attndyn.kernels.triton_dropout
    import attndyn.kernels.triton_lstm  # noqa: F401

install_import_hook("attndyn", "beartype.beartype")

import torch  # noqa: E402 (nothing else of attndyn may be imported before the hook)

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

# The same examples each time: a test that fails must fail again.
hypothesis.settings.register_profile("attndyn", deadline=None, derandomize=True, database=None, max_examples=40)
hypothesis.settings.load_profile("attndyn")


class NetworkUsed(RuntimeError):
    """A test, or what it tests, tried to open a socket."""


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("sockets"):
        yield
        return
    original = socket.socket.__init__

    def refuse(self: socket.socket, family: int = -1, *rest: Any, **named: Any) -> None:
        if family != socket.AF_UNIX:
            raise NetworkUsed(f"a socket of family {family} was asked for")
        original(self, family, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "__init__", refuse)
        yield


@pytest.fixture(autouse=True)
def _no_corpora_but_those_that_ship(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the user of this machine has fetched changes no test."""
    monkeypatch.delenv("ATTNDYN_DATA", raising=False)
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture
def shared_data() -> Path:
    """The corpora that do not ship, where they lie beside this checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the corpora are not beside this checkout")
    return folder


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`full_disk("fsync")`: from now on that function of `os` answers that the disk is full."""

    def fill(name: str) -> None:
        import errno

        def fail(*arguments: Any, **named: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, name, fail)

    return fill


@pytest.fixture
def listing() -> Callable[[Path], list[str]]:
    """Every file below a folder, hidden ones too."""

    def names(folder: Path) -> list[str]:
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    return names
