import dataclasses
import html
import json
import re
from html.parser import HTMLParser

import pytest

from attndyn.errors import UserError
from attndyn.report import page
from attndyn.report.parts import Curves, Maps, Table

from .conftest import EVIL, VERDICTS, FakeRun, make_parts, make_run

FINDING = "Six of eight seeds learn to look."


class Tags(HTMLParser):
    """All tags, and the text outside scripts and styles."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside = ""
        self.text = ""
        self.scripts: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts.append(data)
        elif self.inside != "style":
            self.text += data


def built(run: FakeRun, parts: list | None = None) -> str:
    return page.build(run, make_parts() if parts is None else parts, FINDING).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built(make_run(tmp_path_factory.mktemp("run")))


def test_the_page_has_everything_in_order(source: str) -> None:
    contents, body = (
        re.search(r"<nav.*?</nav>", source, re.DOTALL),
        re.sub(r"<nav.*?</nav>", "", source, flags=re.DOTALL),
    )
    text = Tags(body).text
    places = [text.index(word) for word in ("copying", FINDING, "1 replica diverged", "Claims", "Training loss",
                                            "Where one seed looks", "Attention over one sentence",
                                            "Runs that learned", "attndyn run copying --scale demo --seeds 8",
                                            "optimiser", "2.7.1")]  # fmt: skip
    assert places == sorted(places)
    assert contents is not None
    places_linked = [attrs["href"] for name, attrs in Tags(contents[0]).tags if name == "a"]
    headings = [f"#{attrs['id']}" for name, attrs in Tags(body).tags if name == "h2"]
    assert places_linked == headings
    for fact in ("1 min 14 s", "cpu, 2 cores", "3f2a9c1", "0.0319 to 0.651 (95 %)", "n = 8", "12,800,000"):
        assert fact in text


def test_every_verdict_is_a_badge_with_its_text(source: str) -> None:
    badges = re.findall(r'<span class="verdict (\w+)"><span aria-hidden="true">(.)</span> ([^<]+)</span>', source)
    tally, shown = badges[: len(VERDICTS)], badges[len(VERDICTS) :]
    assert [text for _, _, text in shown] == list(VERDICTS)
    assert [text for _, _, text in tally] == [f"{name}: 1" for name in page.VERDICTS]
    assert len({style for style, _, _ in badges}) == len({sign for _, sign, _ in badges}) == len(VERDICTS)


def test_an_evil_token_stays_text_everywhere(run: FakeRun) -> None:
    run.info |= {"title": EVIL, "command": EVIL, "device": EVIL, "settings": {EVIL: EVIL}}
    run.claims[0] |= dict.fromkeys(("statement", "source", "why", "measured", "published"), EVIL)
    parts = [dataclasses.replace(part, title=EVIL, caption=EVIL) for part in make_parts()]
    page_text = page.build(run, parts, EVIL).read_text(encoding="utf-8")
    tags = Tags(page_text)
    assert not [tag for tag, _ in tags.tags if tag == "img"]
    assert not [attributes for _, attributes in tags.tags if any(name.startswith("on") for name in attributes)]
    assert tags.text.count(EVIL) > 20
    assert EVIL not in page_text
    assert "<!--" not in page_text


def test_scripts_are_data_or_listed_by_their_hash(source: str) -> None:
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]+)"', source)[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.split("style-src")[0]
    kinds = [attributes.get("type") for tag, attributes in Tags(source).tags if tag == "script"]
    assert kinds.count(None) == policy.count("sha256-") == 5
    assert set(kinds) == {None, "application/json"}


def test_nothing_is_loaded_from_elsewhere(source: str) -> None:
    for tag, attributes in Tags(source).tags:
        assert not attributes.keys() & {"src", "srcset", "action"}
        href = attributes.get("href", "data:,")
        assert href == "data:," or (tag == "a" and href is not None and href.startswith("#"))  # of this page
    assert "@import" not in source.split("</style>")[0]


def test_embedded_data_is_strict_json(run: FakeRun) -> None:
    data = [script for script in Tags(built(run)).scripts if script.startswith("{")]
    for text in data:
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert any(EVIL in json.loads(text).get("panels", [{}])[0].get("inputs", ()) for text in data)


def test_the_same_run_gives_the_same_bytes(run: FakeRun) -> None:
    assert built(run) == built(run)


@pytest.mark.slow
def test_a_large_run_stays_below_five_megabytes(tmp_path) -> None:
    run = make_run(tmp_path, seeds=20, steps=400, every=1, length=41)
    curves = [part for part in make_parts() if isinstance(part, Curves)]
    many = [dataclasses.replace(part, name=f"{part.name}-{i}") for i in range(3) for part in curves]
    maps = next(part for part in make_parts() if isinstance(part, Maps))
    parts = [*many, maps, dataclasses.replace(maps, name="more-maps")]
    assert page.build(run, parts, FINDING, formats=()).stat().st_size < 5_000_000


def test_what_is_missing_is_said_in_its_place(run: FakeRun) -> None:
    run.kept = []
    parts = make_parts()
    parts[0] = dataclasses.replace(parts[0], metric="bleu")
    text = Tags(built(run, parts)).text
    assert "No values of bleu were recorded." in text
    assert "No traces were kept for 20 of 60 words, seed 0." in text
    assert not (run.path / "figures" / "maps.svg").exists()


def test_a_page_without_charts_holds_no_scripts(run: FakeRun) -> None:
    run.claims.clear()
    table = Table(name="t", title="t", caption="c", columns=("a",), rows=())
    source = built(run, [table])
    assert "<script" not in source
    assert "script-src 'none'" in html.unescape(source)


def test_an_unfinished_run_says_so(run: FakeRun) -> None:
    run.info["status"] = "running"
    for optional in ("seconds", "revision", "diverged"):
        del run.info[optional]
    assert "This run is not finished (running)." in Tags(built(run, [])).text


def test_missing_packages_are_named(run: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    find = page.importlib.util.find_spec
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None if name == "vl_convert" else find(name))
    with pytest.raises(UserError, match="pip install vl-convert-python"):
        page.build(run, [], FINDING)


def test_two_parts_of_one_name_are_refused(run: FakeRun) -> None:
    with pytest.raises(ValueError, match="share a name"):
        page.build(run, [make_parts()[0]] * 2, FINDING)


def test_figures_are_saved_beside_the_page(run: FakeRun) -> None:
    page.build(run, make_parts(), FINDING, formats=("svg",))
    files = sorted(path.name for path in (run.path / "figures").iterdir())
    assert files == ["agreement.svg", "loss.svg", "maps.svg", "stages.svg"]
    assert sorted(path.name for path in run.path.iterdir()) == ["figures", "report.html"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (float("nan"), "undefined"), (0.123456, "0.1235"), (7, "7"), (12_345, "12,345"), ([1, 2], "1, 2")],
)
def test_cells(value: object, text: str) -> None:
    assert page._cell(value) == text


def test_fractions_of_a_column_line_up() -> None:
    assert page._column((0.36, 0.402, 1.0, float("nan"), None, 3)) == ["0.360", "0.402", "1.000", "undefined", "–", "3"]
    assert page._column((1234.5678, 1e-6)) == ["1235", "1e-06"]
    assert page._column((1234.5678, 0.000123)) == ["1235", "0.000123"]
    assert page._column(("a", 1)) == ["a", "1"]


def judged(why: str, verdict: str = "holds") -> dict:
    return {"id": why, "why": why, "verdict": verdict}


@pytest.mark.parametrize(
    ("whys", "own", "common"),
    [
        (["few runs; small; no rows", "small; no rows"], ["few runs", ""], "small; no rows"),
        (["small", "small"], ["", ""], "small"),
        (["a; small", "b"], ["a; small", "b"], ""),
        (["very small", "small"], ["very small", "small"], ""),  # notes, not letters
        (["small"], ["small"], ""),
        (["", ""], ["", ""], ""),
    ],
)
def test_what_holds_of_all_claims_is_said_once(whys: list[str], own: list[str], common: str) -> None:
    unjudged = judged("not trained here", "not judged at this scale")
    claims, found = page.without_common([*map(judged, whys), unjudged])
    assert ([claim["why"] for claim in claims], found) == ([*own, unjudged["why"]], common)
