"""The example programs run, on a tiny budget."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import attndyn
from tests.watching.models import Encoder, tokens

ROOT = Path(__file__).resolve().parents[1]


def test_the_sms_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"ham\tsee you at home number {i}" for i in range(20)] + [
        f"spam\twin a prize call {i} now" for i in range(20)
    ]
    (tmp_path / "sms.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = tmp_path / "run"
    program = ["watch_sms.py", str(tmp_path / "sms.tsv"), "--steps", "2", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", program)
    runpy.run_path(str(ROOT / "docs" / "examples" / "watch_sms.py"), run_name="__main__")
    assert f"page  {out}/report.html" in capsys.readouterr().out
    assert "prize" in (out / "report.html").read_text(encoding="utf-8")


def test_the_loop_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Your own model, while it trains")[2]
    (block,) = re.findall(r"^```python\n(.*?)^```", text.partition("\n## ")[0], re.DOTALL | re.MULTILINE)
    assert len([line for line in block.splitlines() if line]) <= 8
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)

    class Flat(Encoder):
        def forward(self, words: torch.Tensor) -> torch.Tensor:
            return super().forward(words)[:, 0]

    model = Flat()
    names = {
        "torch": torch, "model": model, "examples": tokens(), "targets": torch.tensor([1, 2, 3, 4, 5]),
        "batches": [(tokens(i), torch.tensor([1, 2, 3, 4, 5])) for i in range(3)],
        "optimiser": torch.optim.Adam(model.parameters()),
    }  # fmt: skip
    exec(compile(block, "README.md", "exec"), names)
    assert attndyn.Run("runs/mine").trace_steps("layer 0", 0) == [0, 3]
    assert Path("runs/mine/report.html").exists()


@pytest.mark.parametrize(
    ("program", "text", "complaint"),
    [
        ("own_task.py", b"caf\xe9\n", "own.tsv, line 1: not UTF-8"),
        ("own_task.py", b"", "own.tsv does not hold two different words"),
        ("own_task.py", b"one one\n", "own.tsv does not hold two different words"),
        ("own_task.py", None, "own.tsv: no such file"),
        ("proxy.py", None, "'own.tsv' is neither a corpus, nor a file, nor a folder"),
        ("watch_sms.py", None, "own.tsv: no such file"),
        ("watch_sms.py", b"a\tx\nb\ty\nc\tz\n" * 9, "messages each are needed; there are: a 9, b 9, c 9"),
        ("watch_sms.py", b"a\tx\nb\ty\n" * 8, "two labels with more than 8 messages each are needed"),
        ("count_tables.py", b"a file", "File exists: 'own.tsv'"),
    ],
)
def test_what_cannot_be_used_gets_one_sentence(
    program: str, text: bytes | None, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("own.tsv").write_bytes(text)
    monkeypatch.setattr(sys, "argv", [program, "own.tsv"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(ROOT / "docs" / "examples" / program), run_name="__main__")
    assert complaint in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_epochs_of_the_proxy_are_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["proxy.py", "sms", "many"])
    with pytest.raises(SystemExit, match="EPOCHS must be a whole number above 0, not 'many'"):
        runpy.run_path(str(ROOT / "docs" / "examples" / "proxy.py"), run_name="__main__")


def test_the_proxy_beside_its_twin(tmp_path: Path) -> None:
    lines = [
        f"{label}\t{word} the{n % 7} of{n % 5} n{n}" for n in range(90) for label, word in (("a", "good"), ("b", "bad"))
    ]
    (tmp_path / "own.tsv").write_text("\n".join(lines) + "\n")
    command = [sys.executable, ROOT / "docs" / "examples" / "proxy.py", "own.tsv", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "logistic regression: accuracy 1.000" in done.stdout
    assert "twin:  good" in done.stdout
    assert "twin:  bad" in done.stdout
    assert list((tmp_path / "runs" / "words-alone").glob("*/weights/chunk-000.safetensors"))
