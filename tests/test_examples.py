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
    assert len(block.splitlines()) <= 8
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
