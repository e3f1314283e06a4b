"""Maps out of traces: which cells are outlined."""

from pathlib import Path

from attndyn.report import page
from attndyn.report.maps import read_panels
from attndyn.report.parts import Maps

from .conftest import EVIL, make_parts, make_run, pair_part


def test_links_are_outlined_sure_and_possible(tmp_path: Path) -> None:
    (panel,) = read_panels(make_run(tmp_path), pair_part(), 10**6)
    assert panel.sure == [(0, 1), (1, 2), (2, 4)]
    assert panel.possible == [(1, 3)]
    assert (len(panel.outputs), len(panel.inputs)) == (3, 5), "padding is no position"
    assert panel.levels["delta"].shape[1:] == (3, 5)


def test_one_right_position_for_each_output(tmp_path: Path) -> None:
    part = next(part for part in make_parts() if isinstance(part, Maps))
    panel = read_panels(make_run(tmp_path), part, 10**6)[0]
    assert panel.sure == [(t, t) for t in range(21)]
    assert panel.possible == []


def test_the_switch_says_what_is_outlined_and_is_left_out_where_nothing_is(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    text = page.build(run, [pair_part()], "Found.", formats=()).read_text()
    assert "checked> outline the gold links</label>" in text
    assert 'class="panels across"' in text
    assert EVIL not in text
    text = page.build(run, [pair_part(example=1)], "Found.", formats=()).read_text()
    assert "outline the gold links" not in text
