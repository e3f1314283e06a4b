"""The command line, called in this process."""

import pytest

from attndyn.cli import main


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    code = 0
    try:
        main([str(word) for word in words])
    except SystemExit as stop:
        code = int(stop.code or 0)
    return code, *capsys.readouterr()
