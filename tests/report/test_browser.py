"""The page in a real browser, offline."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from attndyn.report import page as report
from attndyn.report.parts import TracedSentences
from attndyn.report.sentences import content, read_sentences

from .conftest import EVIL, make_parts, make_run, pair_part

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PIXELS = "canvas => canvas.toDataURL()"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium; set $CHROMIUM to one"),
]


PAPER = {"width": 794, "height": 1123}
"""A4 at 96 dots an inch."""
CUT = """() => [...document.querySelectorAll("body, section, pre, main table, main td, .scroll, .chart, .panel, .line")]
    .filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "visible"
        || one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((one) => one.tagName + "." + one.className)"""
HIDDEN = """() => [...document.querySelectorAll("details > :not(summary), output.step, .verdict, figcaption")]
    .filter((one) => one.textContent.trim() && !one.checkVisibility({contentVisibilityAuto: true}))
    .map((one) => one.textContent.trim().slice(0, 40))"""
DARKEST = """() => [...document.querySelectorAll("h1, p, td, dd, svg text")].map((one) => {
    const style = getComputedStyle(one);
    return Math.min(...(one.tagName === "text" ? style.fill : style.color).match(/[0-9.]+/g).slice(0, 3).map(Number));
})"""
TOOLTIP = "#vg-tooltip-element.visible"


def until(page, true: str) -> None:
    """Waits for a condition of the page. Playwright's own waiting evaluates text there, which the page forbids."""
    for _ in range(200):
        if page.evaluate(true):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not within 10 s: {true}")


def on_paper(page) -> None:
    """What is printed is whole: nothing is cut off, folded away or as light as on a dark screen, and the step of every
    slider can be read."""
    page.mouse.move(0, 0)
    page.emulate_media(media="print")
    page.set_viewport_size(PAPER)
    until(page, f"Math.max(...({DARKEST})()) < 130")
    page.wait_for_timeout(250)
    assert page.evaluate(CUT) == []
    assert page.evaluate(HIDDEN) == []
    for controls in page.locator(".controls").all():
        assert controls.locator("output.step").inner_text() in controls.inner_text()
        assert not controls.locator("input[type=range]").is_visible()


ON_THE_LINE = """(path, share) => {
    const point = path.getPointAtLength(share * path.getTotalLength()).matrixTransform(path.getScreenCTM());
    return [point.x, point.y];
}"""


def hover(page, chart) -> str:
    """Moves along the lines and points of a chart until a tooltip shows itself."""
    chart.scroll_into_view_if_needed()
    layers = chart.locator("svg .role-mark.mark-line, svg .role-mark.mark-symbol, svg .role-mark.mark-rect").all()
    drawn = [layer.locator("path").all() for layer in reversed(layers)]  # some layers, such as a field, say nothing
    for mark in [mark for marks in drawn for mark in (*marks[-1:], *marks[:4])]:
        box = mark.bounding_box()
        inside = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        for point in (*(mark.evaluate(ON_THE_LINE, share) for share in (0.5, 1.0, 0.0, 0.75)), inside):
            page.mouse.move(*point)
            page.wait_for_timeout(60)
            if page.locator(TOOLTIP).count():
                return page.locator(TOOLTIP).inner_text()
    return ""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """A function that opens the page at a width, and the list of what went wrong there."""
    playwright = pytest.importorskip("playwright.sync_api")
    run, pair = make_run(tmp_path_factory.mktemp("run")), make_run(tmp_path_factory.mktemp("pair"))
    path: Path = report.build(run, make_parts(), "The finding.", formats=())
    other: Path = report.build(pair, [pair_part()], "The finding.", formats=())
    troubles: list[str] = []

    with playwright.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

        def open_page(width: int = 1300, scheme: str = "light", scripts: bool = True, path: Path = path):
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, java_script_enabled=scripts
            )
            page = context.new_page()
            page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on("dialog", lambda dialog: (troubles.append("a dialog"), dialog.dismiss()))
            page.on("request", lambda request: None if allowed(request.url) else troubles.append(request.url))
            page.goto(path.as_uri())
            if scripts and path != other:
                page.wait_for_selector(".chart >> nth=2 >> svg")
            return page

        def allowed(url: str) -> bool:
            return url in (path.as_uri(), other.as_uri()) or url.startswith(("data:", "blob:"))

        open_page.pair = other
        yield open_page, troubles
        browser.close()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1300, "dark"), (375, "light")])
def test_charts_are_drawn_and_nothing_is_asked_for(opened, width: int, scheme: str) -> None:
    open_page, troubles = opened
    page = open_page(width, scheme)
    for place in page.locator(".chart").all():
        assert place.locator("svg .mark-line path").count() >= 16
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert troubles == []


def test_the_slider_changes_the_maps(opened) -> None:
    open_page, troubles = opened
    page = open_page()
    canvas = page.locator(".panel canvas").first
    last = canvas.evaluate(PIXELS)
    part = page.locator(".maps")
    slider = part.get_by_role("slider", name="training step")
    slider.focus()
    slider.press("Home")
    assert part.locator("output.step").inner_text() == "0"
    first = canvas.evaluate(PIXELS)
    assert first != last
    slider.press("End")
    assert canvas.evaluate(PIXELS) == last

    part.get_by_role("button", name="play the steps").click()
    until(page, "Number(document.querySelector('.maps output.step').textContent) >= 6")
    part.get_by_role("button", name="pause").click()
    stopped = part.locator("output.step").inner_text()
    page.wait_for_timeout(300)
    assert part.locator("output.step").inner_text() == stopped
    assert troubles == []


def test_a_cell_is_read_by_mouse_and_by_keyboard_and_tokens_stay_text(opened) -> None:
    open_page, troubles = opened
    page = open_page()
    canvas, readout = page.locator(".panel canvas").first, page.locator(".readout").first
    canvas.focus()
    for _ in range(21):
        canvas.press("ArrowDown")
        if EVIL in readout.inner_text():
            break
    assert f"“{EVIL}”" in readout.inner_text()
    canvas.hover(position={"x": 65, "y": 60})
    assert readout.inner_text().startswith("t = 1 ")
    assert "attention α 1.00 · probe β 1.00" in readout.inner_text()
    assert page.locator("td").get_by_text(EVIL, exact=True).count() == 1
    assert page.locator(".line i").get_by_text(EVIL, exact=True).count() > 3
    assert page.locator("img").count() == 0
    assert troubles == []


WORDS = """lines => lines.map(line => [...line.querySelectorAll("i")].map(
    word => [word.textContent, Number(word.style.getPropertyValue("--s")), word.className, word.dataset.n]))"""


def test_sentences_follow_the_slider_and_need_no_script_for_the_last_step(opened, tmp_path: Path) -> None:
    open_page, troubles = opened
    page = open_page()
    part = page.locator(".sentences").nth(1)
    lines = part.locator(".line")
    without = open_page(scripts=False).locator(".sentences").nth(1).locator(".line")
    last = lines.evaluate_all(WORDS)
    for plain, painted in zip(without.evaluate_all(WORDS), last, strict=True):
        assert [word[:3] for word in plain] == [word[:3] for word in painted]
    assert any(side == "below" for line in last for _, _, side, _ in line)
    traced = next(part for part in make_parts() if isinstance(part, TracedSentences))
    defined = content(read_sentences(make_run(tmp_path), traced), 10**6)["sentences"]
    rows = [row["shown"] + row["folded"] for sentence in defined for row in sentence["rows"]]
    assert [[word[3] for word in line] for line in last] == [[token["number"] for token in row] for row in rows]

    slider = part.get_by_role("slider", name="training step")
    slider.focus()
    slider.press("Home")
    assert part.locator("output.step").inner_text() == "0"
    first = lines.evaluate_all(WORDS)
    assert {number for *_, number in first[1]} == {"0"}
    assert {number for *_, number in first[0]} == {"0.11"}, "uniform over nine words"
    slider.press("ArrowRight")
    assert part.locator(".own-step").all_inner_texts()[:3] == ["", "step 0", ""]
    slider.press("End")
    assert lines.evaluate_all(WORDS) == last
    assert troubles == []


def test_a_word_is_marked_in_every_scoring_and_folds_open_together(opened) -> None:
    open_page, troubles = opened
    for scheme, width in (("light", 1300), ("dark", 375)):
        page = open_page(width, scheme)
        rows = page.locator(".sentences").nth(1).locator(".sentence").nth(1)
        rows.locator(".line").nth(1).locator("i").nth(4).hover()
        assert [line.locator("i.at").count() for line in rows.locator(".line").all()] == [1, 1, 1]
        assert page.locator(".line i.at").count() == 3
        rows.locator("summary").first.click()
        until(page, "document.querySelectorAll('.line details[open]').length == 3")
        assert rows.locator("summary").first.inner_text() == "… 50 more words"
    assert troubles == []


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (375, "light")])
def test_maps_of_a_pair_stand_side_by_side_and_share_the_cell(opened, width: int, scheme: str) -> None:
    open_page, troubles = opened
    page = open_page(width, scheme, path=open_page.pair)
    maps = page.locator(".panel canvas").all()
    boxes = [canvas.bounding_box() for canvas in maps]
    across = width > 1000
    assert len({box["y"] for box in boxes}) == (1 if across else 3)
    assert len({box["x"] for box in boxes}) == (3 if across else 1)
    before = [canvas.evaluate(PIXELS) for canvas in maps]
    maps[1].focus()
    maps[1].press("ArrowDown")
    marked = [canvas.evaluate(PIXELS) for canvas in maps]
    assert all(old != new for old, new in zip(before, marked, strict=True))
    assert f"“{EVIL}”" not in page.locator(".readout").inner_text()
    maps[2].press("ArrowRight")
    assert f"“{EVIL}”" in page.locator(".readout").inner_text()
    assert page.locator(".readout").inner_text().count("·") == 2, "all three maps are read"
    page.get_by_role("slider", name="training step").press("Home")
    assert all(canvas.evaluate(PIXELS) != old for canvas, old in zip(maps, marked, strict=True))
    page.get_by_role("checkbox", name="outline the gold links").uncheck()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert troubles == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chart_says_what_is_under_the_mouse(opened, scheme: str) -> None:
    open_page, troubles = opened
    page = open_page(scheme=scheme)
    for chart in page.locator(".chart").all():
        assert "condition" in hover(page, chart)
        page.mouse.move(0, 0)
        page.wait_for_selector(TOOLTIP, state="detached")
    assert troubles == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_on_paper(opened, scheme: str) -> None:
    open_page, troubles = opened
    page = open_page(scheme=scheme)
    slider = page.locator(".maps").get_by_role("slider", name="training step")
    slider.focus()
    slider.press("Home")
    on_paper(page)
    assert page.locator(".maps output.step").inner_text() == "0", "what was chosen on the screen is printed"
    assert page.get_by_text("Fisher's exact test of the share").first.is_visible(), "how a claim is judged"
    page.emulate_media(media="screen")
    until(page, f"(Math.max(...({DARKEST})()) > 130) == {'true' if scheme == 'dark' else 'false'}")
    assert troubles == []
