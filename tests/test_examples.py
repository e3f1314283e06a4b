"""The examples of docs/examples do what they say, at a tiny size."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"


def test_the_proxy_beside_its_twin(tmp_path: Path) -> None:
    lines = [
        f"{label}\t{word} the{n % 7} of{n % 5} n{n}" for n in range(90) for label, word in (("a", "good"), ("b", "bad"))
    ]
    (tmp_path / "own.tsv").write_text("\n".join(lines) + "\n")
    command = [sys.executable, EXAMPLES / "proxy.py", "own.tsv", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "logistic regression: accuracy 1.000" in done.stdout
    assert "twin:  good" in done.stdout
    assert "twin:  bad" in done.stdout
    assert list((tmp_path / "runs" / "words-alone").glob("*/weights/chunk-000.safetensors"))
