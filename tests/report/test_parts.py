import subprocess
import sys

import pytest

from attndyn.report.parts import Scoring, Sentence, Sentences, Table, number


def test_importing_parts_and_page_loads_nothing_heavy() -> None:
    code = (
        "import sys, attndyn.report.parts, attndyn.report.page\n"
        "print(sorted({'torch', 'altair', 'vl_convert', 'pyarrow', 'numpy', 'jinja2'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["", "Loss", "a b", "../up", "a--b", "ä"])
def test_a_name_that_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="part name"):
        Table(name=name, title="t", caption="c", columns=(), rows=())


def test_a_short_row_and_a_missing_score_are_refused() -> None:
    with pytest.raises(ValueError, match="2 columns"):
        Table(name="t", title="t", caption="c", columns=("a", "b"), rows=((1,),))
    sentence = Sentence(title="", words=("a", "b"), scores=([[1.0]],))
    with pytest.raises(ValueError, match=r"\[\(1, 2\)\] are expected, found \[\(1, 1\)\]"):
        Sentences(name="s", title="t", caption="c", scorings=(Scoring(label="weight"),), sentences=(sentence,))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(29_000.0, "29,000"), (163_391.0, "163,391"), (0.0, "0"), (0.92937, "0.9294"), (13.5, "13.5"), (1234.5, "1,234"),
     (float("nan"), "nan")],
)  # fmt: skip
def test_a_count_is_written_in_full(value: float, shown: str) -> None:
    assert number(value) == shown
