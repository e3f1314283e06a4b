"""α_IBM as a word alignment, against gold links: AER, precision and recall, for `docs/results/ibm1`.

    attndyn bench alignment                     needs $ATTNDYN_DATA; three minutes
    python benchmarks/alignment.py table.csv    the same, also as CSV

German-English is trained on the 21,079 pairs of europarl_de_en/train and on the 228 gold pairs themselves, without
their links, as is usual for aligners; all lower-cased, since one gold set is. Hansards is trained on its own 447 pairs,
which is far less than such aligners get. Each output token links to the first input position with the largest α, or to
none if that is the empty word. The intersection keeps the links that both directions find. eflomal (an outside program,
GPL) is scored beside it, model 1 with its own settings, where `eflomal-align` is installed. "Singled out" is
`theory.partners`, the rule of `attndyn diagnose`: it links only what it is sure of.
"""

import csv
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from attndyn.measures.alignment import links, score
from attndyn.tasks.gold import Gold, Links, read_gold
from attndyn.tasks.text import Pairs, pairs, read_lines
from attndyn.theory.ibm1 import ibm1
from attndyn.theory.partners import judge

COLUMNS = ("gold", "trained on", "method", "direction", "precision", "recall", "AER", "links")
MANY = 50
Row = tuple[str | float | int, ...]


def lines(path: Path) -> list[list[str]]:
    return [line.lower().split() for line in read_lines(path)]


def singled_out(both: Pairs) -> np.ndarray:
    """The first position of the partner of each output token, where it is singled out; −1 elsewhere."""
    judged = judge(both)
    partner = {
        (int(m), int(o)): int(i)
        for m, o, i, kept in zip(judged.rows, judged.outputs, judged.partner, judged.singled_out, strict=True)
        if kept
    }
    chosen = np.full(len(both.target.ids), -1)
    for k, (m, o) in enumerate(zip(both.target.rows, both.target.ids, strict=True)):
        if (i := partner.get((int(m), int(o)))) is not None:
            line = both.source.ids[both.source.offsets[m] : both.source.offsets[m + 1]]
            chosen[k] = int((line == i).argmax())
    return chosen


def methods(both: Pairs) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Each method with its choices in both directions."""
    directions = (both, both.swapped())
    for null, iterations in itertools.product((False, True), (1, 2, 5, MANY)):
        name = "count table" if iterations == 1 else f"EM, {iterations} iterations"
        tables = [ibm1(side, iterations=iterations, null=null) for side in directions]
        yield (
            name + (", with NULL" if null else ""),
            [t.align(side) for t, side in zip(tables, directions, strict=True)],
        )
    yield "singled out (diagnose)", [singled_out(side) for side in directions]


def eflomal(both: Pairs) -> tuple[list[Links], list[Links]] | None:
    program = shutil.which("eflomal-align")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name) / part for part in ("source", "target", "forward", "reverse")]
        for path, text in zip(files, (both.source, both.target), strict=False):
            path.write_text("".join(" ".join(text.line(m)) + "\n" for m in range(len(text))), encoding="utf-8")
        flags = ("-s", "-t", "-f", "-r")
        command = [
            program,
            "-m",
            "1",
            "--overwrite",
            *(str(word) for pair in zip(flags, files, strict=True) for word in pair),
        ]
        subprocess.run(command, check=True, capture_output=True)
        forward, reverse = (
            [
                frozenset((int(i), int(j)) for i, j in (word.split("-") for word in line.split()))
                for line in read_lines(path)
            ]
            for path in files[2:]
        )
    return forward, reverse


def rows(data: Path) -> Iterator[Row]:
    europarl = [lines(data / "europarl_de_en" / f"train.{language}.xz") for language in ("de", "en")]
    gold_folder = data / "align_gold"
    names = ("europarl_de_en", "europarl_de_en_lc")
    texts = [[lines(gold_folder / f"{name}.{language}.xz") for language in ("de", "en")] for name in names]
    german = pairs(*(europarl[side] + texts[0][side] + texts[1][side] for side in (0, 1)))
    begin = len(europarl[0])
    golds = {}
    for name, text in zip(names, texts, strict=True):
        golds[name] = (begin, read_gold(gold_folder / f"{name}.gold.xz", pairs(*text)))
        begin += len(text[0])
    yield from scored(german, golds, f"{len(german):,} pairs", ("de → en", "en → de"))
    hansards = pairs(*(lines(gold_folder / f"hansards_en_fr.{language}.xz") for language in ("en", "fr")))
    gold = {"hansards_en_fr": (0, read_gold(gold_folder / "hansards_en_fr.gold.xz", hansards))}
    yield from scored(hansards, gold, f"its own {len(hansards)} pairs", ("en → fr", "fr → en"))


def scored(
    both: Pairs, golds: dict[str, tuple[int, list[Gold]]], trained: str, directions: tuple[str, str]
) -> Iterator[Row]:
    found = [
        (name, links(both, one), links(both.swapped(), other, swapped=True)) for name, (one, other) in methods(both)
    ]
    sampled = eflomal(both)
    if sampled is not None:
        found.append(("eflomal, model 1", *sampled))
    for gold, (first, right) in golds.items():
        for name, one, other in found:
            sides = [side[first : first + len(right)] for side in (one, other)]
            both_ways = [a & b for a, b in zip(*sides, strict=True)]
            for direction, some in zip((*directions, "intersection"), (*sides, both_ways), strict=True):
                result = score(some, right)
                numbers = (round(value, 3) for value in (result.precision, result.recall, result.aer))
                yield gold, trained, name, direction, *numbers, sum(map(len, some))


def main() -> None:
    data = Path(os.environ.get("ATTNDYN_DATA", ""))
    if not (data / "align_gold").is_dir():
        print("alignment: skipped, it needs the gold sets: set ATTNDYN_DATA to the folder that holds align_gold")
        return
    table = list(rows(data))
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for row in table:
        print(f"| {' | '.join(f'{cell:.3f}' if isinstance(cell, float) else str(cell) for cell in row)} |")
    if sys.argv[1:] and sys.argv[1].endswith(".csv"):
        with open(sys.argv[1], "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *table])


if __name__ == "__main__":
    main()
