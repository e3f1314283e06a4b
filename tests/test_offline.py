"""The commands in a process of their own, in which nobody may as much as ask for an address. Inside this process
`conftest.py` blocks sockets in every test."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import socket, sys

def refuse(event, given):
    if event == "socket.__new__" and given[1] == socket.AF_UNIX:
        return
    if event.startswith("socket."):
        sys.stderr.write(f"asked for {event} {given[1:]}\\n")
        raise SystemExit(99)

sys.addaudithook(refuse)
from attndyn.cli import main
for command in sys.argv[1].split("\\n"):
    print("$", command, flush=True)
    try:
        main(command.split())
    except SystemExit as stop:
        if stop.code:
            raise
"""
SMALL = "--length 4 --words 6 --hidden 4 --batch 4 --seeds 2 --steps 4"


def run(commands: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", PROGRAM, "\n".join(commands)]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=200)


def test_no_command_asks_for_a_socket(tmp_path: Path) -> None:
    (tmp_path / "train.de").write_text("ja\nnein\nja\n")
    (tmp_path / "train.en").write_text("yes\nno\nyes\n")
    commands = [
        "list", "data list", "data check sms_spam", "doctor", f"run copying {SMALL} --out run",
        "diagnose --source train.de --target train.en", "runs list --under .", "runs show run",
    ]  # fmt: skip
    done = run(commands, tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line[2:] for line in done.stdout.splitlines() if line.startswith("$ ")] == commands
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize("ask", ["socket.socket()", "socket.getaddrinfo('localhost', 80)"])
def test_whoever_asks_is_caught(ask: str, tmp_path: Path) -> None:
    program = PROGRAM.split("from attndyn")[0] + f"{ask}\n"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 99
    assert "asked for socket." in done.stderr
