"""Draws the 6,000 Tatoeba pairs that ship with attndyn: 5,000 / 500 / 500 of train / valid / test, in file order.

    python docs/data/tatoeba_small.py data/tatoeba_de_en OUT

The held-out parts come from those of tatoeba_de_en, whose training pairs share no side with them. Which pairs are drawn
follows from SEED alone: those with the smallest keys of `attndyn.tasks.draws.shuffled`.
"""

import lzma
import sys
from pathlib import Path

from attndyn.store import atomic
from attndyn.tasks.draws import shuffled
from attndyn.tasks.text import read_lines

SEED = 2018
SIZES = {"train": 5000, "valid": 500, "test": 500}


def main(source: Path, out: Path) -> None:
    for split, size in SIZES.items():
        sides = {language: list(read_lines(source / f"{split}.{language}.xz")) for language in ("de", "en")}
        drawn = sorted(shuffled(len(sides["en"]), SEED)[:size])
        for language, lines in sides.items():
            text = "".join(f"{lines[n]}\n" for n in drawn)
            atomic.write_bytes(
                out / f"{split}.{language}.xz", lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
            )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
