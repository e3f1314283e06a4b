"""The Python of the documentation pages runs, and its assertions hold."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize("page", ["counterfactual-attention.md", "data.md", "measures.md"])
def test_the_examples_of_a_page_run(page: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    program = compile("\n".join(blocks), page, "exec")
    exec(program, {})
