"""The page of a run: one HTML file that opens offline and asks nobody for anything."""

import base64
import hashlib
import importlib.util
import math
from collections.abc import Callable, Sequence
from importlib import resources
from itertools import takewhile
from pathlib import Path
from typing import Any

from attndyn.errors import NoCharts
from attndyn.report import figures, lines, theme
from attndyn.report.bundle import vega_bundle
from attndyn.report.maps import PanelFrames, read_panels
from attndyn.report.parts import (
    Cell,
    Curves,
    Maps,
    NothingToShow,
    Part,
    Phase,
    Points,
    Sentences,
    Table,
    TracedSentences,
)
from attndyn.report.sentences import content, read_sentences
from attndyn.report.source import Source
from attndyn.store.atomic import write_bytes

# Of the page's 5 MB; base64 adds a third to it, Vega takes 0.9 MB.
MAP_BYTES = 1_500_000
SENTENCE_BYTES = 500_000

VERDICTS = {
    "holds": ("holds", "✓"),
    "differs": ("differs", "✗"),
    "inconclusive": ("inconclusive", "?"),
    "not comparable": ("apart", "≠"),
    "not judged at this scale": ("unjudged", "–"),
}


CHARTS: dict[type[Part], Callable[[Any, Any], Any]] = {
    Curves: figures.chart,
    Points: lines.points_chart,
    Phase: lines.phase_chart,
}


def build(run: Source, parts: Sequence[Part], finding: str, formats: Sequence[str] = ("svg", "png")) -> Path:
    """Write the figures and report.html into the run folder; returns the page's path."""
    missing = [name for name in ("altair", "vl_convert", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        packages = " ".join(missing).replace("vl_convert", "vl-convert-python")
        raise NoCharts(f"the report needs packages that are not installed here: pip install {packages}")
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise ValueError(f"two parts share a name: {', '.join(names)}")
    map_bytes = MAP_BYTES // max(1, sum(isinstance(part, Maps) for part in parts))
    sentence_bytes = SENTENCE_BYTES // max(1, sum(isinstance(part, Sentences | TracedSentences) for part in parts))
    sections = [_section(run, part, formats, map_bytes, sentence_bytes) for part in parts]
    path = run.path / "report.html"
    write_bytes(path, _render(run, sections, finding).encode("utf-8", "replace"))
    return path


def _section(run: Source, part: Part, formats: Sequence[str], map_bytes: int, sentence_bytes: int) -> dict[str, Any]:
    """What the template needs of one part: its kind, its content, its files."""
    section: dict[str, Any] = {"part": part, "kind": type(part).__name__.lower(), "files": []}
    try:
        if type(part) in CHARTS:
            section["kind"] = "chart"
            chart = CHARTS[type(part)](part, run.metrics)
            spec = chart.to_dict(validate=False)
            del spec["config"]  # the page sets its own, light or dark
            section["content"] = spec
        elif isinstance(part, Maps):
            panels = read_panels(run, part, map_bytes)
            chart = figures.map_chart(part, panels)
            section["content"] = _map_content(part, panels)
        elif isinstance(part, Sentences | TracedSentences):
            sentences = read_sentences(run, part) if isinstance(part, TracedSentences) else part
            return section | {"kind": "sentences", "content": content(sentences, sentence_bytes)}
        elif isinstance(part, Table):
            columns = list(zip(*part.rows, strict=True))
            section["numeric"] = [_numeric(column) for column in columns]
            section["content"] = list(zip(*map(_column, columns), strict=True))
            return section
    except NothingToShow as nothing:
        return section | {"kind": "nothing", "content": str(nothing)}
    section["files"] = [path.name for path in figures.save(chart, run.path / "figures", part.name, formats)]
    return section


def _map_content(part: Maps, panels: list[PanelFrames]) -> dict[str, Any]:
    return {
        "slider": vars(part.slider),
        "steps": sorted({step for panel in panels for step in panel.steps}),
        "kinds": [label for _, label in part.kinds],
        "panels": [
            {
                "title": panel.title,
                "steps": panel.steps,
                "inputs": panel.inputs,
                "outputs": panel.outputs,
                "sure": panel.sure,
                "possible": panel.possible,
                "levels": [base64.b64encode(panel.levels[kind].tobytes()).decode() for kind, _ in part.kinds],
            }
            for panel in panels
        ],
    }


def _render(run: Source, sections: list[dict[str, Any]], finding: str) -> str:
    import jinja2

    scripts = []
    if any(section["kind"] == "chart" for section in sections):
        scripts += [vega_bundle(), _template("charts.js")]
    kinds = {section["kind"] for section in sections if section["kind"] == "maps" or _has_steps(section)}
    if kinds:
        scripts += [_template(f"{name}.js") for name in ("steps", *sorted(kinds))]
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters |= {"cell": _cell, "seconds": _seconds}
    claims, of_all = without_common(run.claims)
    return environment.from_string(_template("page.html.j2")).render(
        info=run.info,
        finding=finding,
        claims=claims,
        of_all=of_all,
        verdicts=VERDICTS,
        sections=sections,
        look={mode: _look(mode) for mode in ("light", "dark")},
        css=_template("page.css"),
        scripts=scripts,
        # Hashes instead of 'unsafe-inline': of all scripts, only ours may run.
        script_hashes=" ".join(f"'sha256-{_sha256(script)}'" for script in scripts) or "'none'",
    )


def without_common(claims: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """The claims without the notes that all judged ones end in, and these notes: they are said once."""
    notes = [claim["why"].split("; ") for claim in claims if not claim["verdict"].startswith("not judged")]
    if len(notes) < 2:
        return claims, ""
    same = len(list(takewhile(lambda column: len(set(column)) == 1, zip(*map(reversed, notes), strict=False))))
    common = "; ".join(notes[0][len(notes[0]) - same :])
    kept = [claim | {"why": claim["why"].removesuffix(common).removesuffix("; ")} for claim in claims]
    return kept, common


def _has_steps(section: dict[str, Any]) -> bool:
    return section["kind"] == "sentences" and len(section["content"]["steps"]) > 1


def _look(mode: str) -> dict[str, Any]:
    return {"config": theme.vega_config(mode, size=12), "ramp": theme.RAMPS[mode]}


def _template(name: str) -> str:
    return (resources.files("attndyn.report") / "templates" / name).read_text(encoding="utf-8")


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _numeric(column: tuple[Cell, ...]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in column)


def _column(values: tuple[Cell, ...]) -> list[str]:
    """The cells of a column; its fractions get equally many decimals, so that they line up."""
    texts = [_cell(value) for value in values]
    finite = [isinstance(value, float) and math.isfinite(value) for value in values]
    shown = [text for text, one in zip(texts, finite, strict=True) if one]
    decimals = max((len(text.partition(".")[2]) for text in shown), default=0)
    if decimals > 4 or any("e" in text for text in shown):  # very small beside large: as they are
        return texts
    return [f"{value:.{decimals}f}" if one else text for value, text, one in zip(values, texts, finite, strict=True)]


def _cell(value: Cell | list[Any] | dict[str, Any]) -> str:
    """A table's cell: four significant digits, a dash where there is nothing."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return "undefined" if math.isnan(value) else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return str(value)


def _seconds(value: float) -> str:
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{value:.3g} s"
