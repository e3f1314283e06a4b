"""The page of every study in a real browser, offline: from a tiny run by the real command."""

from pathlib import Path

import pytest

from attndyn.cli import main
from attndyn.studies import STUDIES, find
from tests.report.test_browser import CHROMIUM, FLAGS, hover, on_paper
from tests.studies.tiny import TINY, make_tiny

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium; set $CHROMIUM to one"),
]
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_there_is_a_tiny_run_of_every_study() -> None:
    assert set(TINY) == set(STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_opens_without_trouble(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every claim is there, every slider moves what it belongs to, nothing is asked for, nothing is wider than the
    screen; light and dark, on a telephone and on paper; a chart says what is under the mouse."""
    playwright = pytest.importorskip("playwright.sync_api")
    make_tiny(monkeypatch)
    main(["run", name, "--out", str(tmp_path / "run")])
    path, troubles = tmp_path / "run" / "report.html", []
    with playwright.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for width, scheme in ((1300, "light"), (1300, "dark"), (375, "light")):
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, reduced_motion="reduce"
            )
            page = context.new_page()
            page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on("request", lambda request: troubles.append(request.url) if asked(request.url, path) else None)
            page.goto(path.as_uri())
            shown = page.locator("body").inner_text()
            assert [one.id for one in find(name).statements if one.id not in shown] == []
            assert page.evaluate(WIDER) <= 0, f"{width} {scheme}"
            for slider in page.locator("input[type=range]").all():
                slider.focus()
                before = slider.input_value()
                page.keyboard.press("ArrowLeft")
                assert slider.input_value() != before or slider.get_attribute("max") == "0"
            for chart in page.locator(".chart").all()[:2] if width > 1000 else ():
                assert hover(page, chart), f"no tooltip on {chart.get_attribute('aria-label')}"
            on_paper(page)
            context.close()
        browser.close()
    assert troubles == []


def asked(url: str, path: Path) -> bool:
    """Whether something is asked for beside the page itself."""
    return url != path.as_uri() and not url.startswith(("data:", "blob:"))


def test_a_word_of_ones_own_data_that_looks_like_html_is_a_word(tmp_path: Path) -> None:
    """From the user's file to the page in the browser: nothing is made of it, nothing is asked for."""
    playwright = pytest.importorskip("playwright.sync_api")
    word = "</script><img/src=x/onerror=alert(1)>"
    lines = [f"a\t{word} b", "z\tc d"] * 60
    (tmp_path / "own.tsv").write_text("\n".join(lines) + "\n")
    out = tmp_path / "page"
    main(["diagnose", "--labelled", str(tmp_path / "own.tsv"), "--tokenised", "--out", str(out)])
    path, troubles = out / "report.html", []
    with playwright.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(offline=True).new_page()
        page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: troubles.append(request.url) if asked(request.url, path) else None)
        page.goto(path.as_uri())
        page.wait_for_timeout(500)
        assert page.get_by_text(word).count() > 0
        assert page.locator("img").count() == 0
        browser.close()
    assert troubles == []
