"""Takes the pictures of docs/pages/README.md: python docs/pages/make.py [RUNS]

RUNS is a folder with demo runs under their studies' names (default: runs/pages); what is missing there is run first, a
few minutes each. Needs the development tools and Chromium, at $CHROMIUM or on the path.
"""

import os
import shutil
import sys
from pathlib import Path

import attndyn

HERE = Path(__file__).resolve().parent
PARTS = {
    "copying": ("stages", "maps"),
    "salient-words": ("agreement", "sentences"),
    "word-translation": ("stages", "maps"),
}
"""The parts of each page that are shown."""
WIDTH = 1000
TALLEST = {"copying": 1420, "salient-words": 1200, "word-translation": 1420}
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def main(runs: Path) -> None:
    from playwright.sync_api import sync_playwright

    pages = {study: attndyn.run(study, scale="demo", out=runs / study).report() for study in PARTS}
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for study, path in pages.items():
            for scheme in ("light", "dark"):
                size = {"width": WIDTH, "height": 900}
                page = browser.new_context(viewport=size, color_scheme=scheme, offline=True).new_page()
                page.goto(path.resolve().as_uri())
                page.wait_for_selector(".chart svg")
                page.wait_for_timeout(1000)  # all charts
                page.add_style_tag(content="header, footer, main > * { display: none }")
                parts = [page.locator(f"section[aria-labelledby=part-{name}]") for name in PARTS[study]]
                for part in parts:
                    part.evaluate("part => part.style.display = 'block'")
                first, last = parts[0].bounding_box(), parts[-1].bounding_box()
                top, end = first["y"] - 20, last["y"] + last["height"] + 20
                clip = {"x": 0, "y": top, "width": WIDTH, "height": min(TALLEST[study], end - top)}
                page.screenshot(path=HERE / f"{study}-{scheme}.png", clip=clip, full_page=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/pages"))
