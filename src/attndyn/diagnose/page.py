"""The page of a diagnosis, and what else its folder holds."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from attndyn import spec
from attndyn.diagnose.data import Data
from attndyn.diagnose.findings import GROUPS, LISTED
from attndyn.provenance import revision, versions
from attndyn.report import page
from attndyn.report.parts import Part, Scoring, Sentence, Sentences, Table
from attndyn.store import atomic
from attndyn.store.folder import INFO, Run, lock
from attndyn.verbs import check_folder

DIAGNOSIS = "diagnosis.json"

WORD_COLUMNS = (
    "output word", "occurrences", "partner", "with it", "rival", "with that", "usually", "evidence z", "singled out",
)  # fmt: skip
WORD_CAPTION = (
    "With it, with that, usually: in what share of the pairs that hold the partner, the rival, or of all pairs, the "
    "output word occurs. Evidence: how far the partner's rate stands above the rival's, in standard errors of chance, "
    "the mean over its tokens. Singled out: the share of the occurrences with enough evidence."
)


def write(data: Data, found: dict[str, Any], folder: Path, seconds: float) -> Path:
    """Leaves the page, the numbers and how they were made; a diagnosis that was there before is replaced."""
    check_folder("diagnose", folder)
    info = {
        "study": "diagnose",
        "title": data.title,
        "settings": settings(data),
        "seeds": [],
        "versions": versions(),
        "revision": revision(),
        "command": data.command,
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "status": "finished",
        "files": [DIAGNOSIS, INFO],
    }
    with lock(folder):
        atomic.write_json(folder / INFO, info)
        atomic.write_json(folder / DIAGNOSIS, found)
        return page.build(Run(folder), list(parts(found)), found["finding"])


def settings(data: Data) -> dict[str, Any]:
    values = {option.name: getattr(data, option.name) for option in fields(data)}
    return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


def default_folder(data: Data) -> Path:
    return Path("runs") / "diagnose" / spec.digest(settings(data))[:8]


def parts(found: dict[str, Any]) -> Iterator[Part]:
    yield Table(
        name="answers",
        title="In words",
        caption="docs/diagnose.md says how each number is made and what it cannot see.",
        columns=("question", "answer"),
        rows=tuple(tuple(pair) for pair in found["answers"]),
    )
    yield from _label_parts(found) if found["kind"] == "labelled" else _word_parts(found)


def _word_parts(found: dict[str, Any]) -> Iterator[Part]:
    yield Table(
        name="groups",
        title="Output words by what co-occurrence tells about them",
        caption="A clear partner: singled out in at least half of the word's occurrences; at times: in at least a "
        "twentieth. Too rare: even a word that always came with it would not be singled out in so few pairs.",
        columns=("output words with", "words", "share of the tokens"),
        rows=tuple((group["group"], group["words"], round(group["tokens"], 3)) for group in found["groups"]),
    )
    if found["learned_first"]:
        yield _word_table(
            "learned-first",
            "Predicted to be learned first",
            "The words with a clear partner, by how far the count of the two exceeds what their frequencies give. ",
            found["learned_first"],
        )
    without = [row for row in found["words"] if row["group"] in GROUPS[1:3]][:LISTED]
    if without:
        yield _word_table(
            "without",
            "The most frequent words without a clear partner",
            "The partner is the best candidate; where it is empty no input word says anything. ",
            without,
        )
    yield Sentences(
        name="examples",
        title="Some pairs",
        caption="Shaded: output words with a partner that co-occurrence singles out, which stands behind the arrow.",
        scorings=(Scoring(label="", most=1.0),),
        sentences=tuple(
            Sentence(
                title=" ".join(example["input"]),
                words=tuple(
                    word if partner is None else f"{word} ← {partner}"
                    for word, partner in zip(example["output"], example["partners"], strict=True)
                ),
                scores=([[0.0 if partner is None else 0.1 for partner in example["partners"]]],),
            )
            for example in found["examples"]
        ),
    )


def _word_table(name: str, title: str, caption: str, rows: list[dict[str, Any]]) -> Table:
    return Table(
        name=name,
        title=title,
        caption=caption + WORD_CAPTION,
        columns=WORD_COLUMNS,
        rows=tuple(
            (
                row["word"],
                row["occurrences"],
                row["partner"],
                _rounded(row["with_partner"]),
                row["rival"],
                _rounded(row["with_rival"]),
                _rounded(row["usually"]),
                _rounded(row["evidence"], 1),
                _rounded(row["share"]),
            )
            for row in rows
        ),
    )


def _rounded(value: float | None, digits: int = 2) -> float | None:
    return None if value is None else round(value, digits)


def _label_parts(found: dict[str, Any]) -> Iterator[Part]:
    yield Table(
        name="labels",
        title="Labels",
        caption="Carried: texts that hold a word which, by the counts of the other texts, speaks for their label.",
        columns=("label", "texts", "carried"),
        rows=tuple((label["label"], label["texts"], round(label["share"], 3)) for label in found["labels"]),
    )
    for number, label in enumerate(found["labels"][:LISTED], 1):
        if label["words"]:
            yield Table(
                name=f"label-{number}",
                title=f"Words that speak for the label {label['label']}",
                caption="Each carries a text at least; the first are predicted to be learned first. With it: the "
                "share of the texts with the word that have the label. Evidence: how far that stands above the usual, "
                "in standard errors of chance, by the counts of the other texts than the one that is judged.",
                columns=("word", "texts", "with it", "usually", "evidence z"),
                rows=tuple(
                    (row["word"], row["texts"], *(round(row[name], 2) for name in ("rate", "usually", "evidence")))
                    for row in label["words"]
                ),
            )
    yield Sentences(
        name="examples",
        title="Some texts",
        caption="Colour: a word's evidence z for the text's label by the counts of the other texts, full from 20 on.",
        scorings=(Scoring(label="evidence z", most=20.0),),
        sentences=tuple(
            Sentence(title=example["label"], words=tuple(example["input"]), scores=([example["evidence"]],))
            for example in found["examples"]
        ),
    )
