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


def links(page: Path) -> list[tuple[str, Path]]:
    """The texts and the files of the relative links of a page."""
    found = re.findall(r"\[([^\]]*)\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return [(text, page.parent / target) for text, target in found if "://" not in target]


@pytest.mark.parametrize("page", ["reliability.md", "pages/README.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    found = links(DOCS / page)
    assert found
    assert [str(target) for _, target in found if not target.exists()] == []


def test_every_test_that_reliability_names_exists() -> None:
    """Each row has a number, and behind a link to a file the names of tests of that file."""
    page = DOCS / "reliability.md"
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 22))
    for number, row in rows:
        parts = re.split(r"\[`([^`]+)`\]\(\.\./(tests/[^)]+)\)", row.split(" | ")[2])
        assert len(parts) > 1, f"row {number} links to no test"
        for shown, target, named in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            assert f"tests/{shown}" == target
            source = (DOCS.parent / target).read_text(encoding="utf-8")
            names = re.findall(r"`(test_\w+)`", named)
            assert names, f"row {number} names no test of {target}"
            assert [name for name in names if f"def {name}(" not in source] == []


def test_the_pictures_of_pages_are_small() -> None:
    pictures = sorted((DOCS / "pages").glob("*.png"))
    assert len(pictures) == 6
    assert all(picture.stat().st_size < 250_000 for picture in pictures)
