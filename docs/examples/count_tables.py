"""The count tables of Snell et al., their blog and their slides, drawn again: what co-occurrence tells, and what not.

    python docs/examples/count_tables.py [FOLDER]

Writes one SVG and one PNG for each picture of docs/count-tables.md. For tables of your own, put your own pairs in place
of `tables.FIVE_PAIRS`, or give `heat_chart` any arrays and labels.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attndyn.errors import UserError
from attndyn.report.figures import save
from attndyn.report.heat import Heat, heat_chart
from attndyn.theory import tables
from attndyn.theory.ibm1 import Ibm1

LABELS = [("this movie is great", "positive"), ("this movie is bad", "negative")]
PUBLISHED_BETA = [0.04, 0.32, 0.04, 0.03]  # figure 1: Trans(movie | each word of the sentence)


def counts(table: Ibm1, title: str = "count table C") -> Heat:
    values, rows, columns = table.counts.toarray(), table.source_words, table.target_words
    return Heat(title, values, rows, columns, "input word", "output word", digits=3)


def three(table: Ibm1, source: Sequence[str], target: Sequence[str]) -> list[Heat]:
    """Count table, probe and alignment of one pair, side by side."""
    labels = (target, source, "output t", "input l")
    return [
        counts(table),
        Heat("predicted β", table.beta(source, target), *labels),
        Heat("predicted alignment α", table.alpha(source, target), *labels),
    ]


def copied(words: Sequence[str]) -> list[str]:
    return [f"{word}′" for word in words]


def pictures() -> dict[str, tuple[str, list[Heat]]]:
    """Name → title and panels."""
    one, two = tables.of_sentences(tables.SLIDES[:1]), tables.of_sentences(tables.SLIDES)
    names = (two.source_words, two.target_words, "input word", "output word")
    slides = [
        Heat("one pair", tables.co_occurrences(tables.SLIDES[:1]), one.source_words, one.target_words, *names[2:]),
        Heat("two pairs", tables.co_occurrences(tables.SLIDES), *names),
        Heat("two pairs, as the paper counts", two.counts.toarray(), *names),
    ]
    film, movie = (side.split() for side in tables.FIVE_PAIRS[0])
    beta = np.array([PUBLISHED_BETA])
    figure_1 = [
        Heat(title, values, ["movie"], film, "output", "input l")
        for title, values in (("β as published", beta), ("alignment α from it", beta / beta.sum()))
    ]
    five = tables.of_sentences(tables.FIVE_PAIRS)
    letters, four = list("CADB"), tables.of_subsets(4, 4)
    both, many = tables.of_mixture(4), tables.of_subsets(40, 60)
    blog = [
        counts(tables.of_subsets(3, 3), "permutations of 3"),
        counts(tables.of_subsets(3, 5), "3 of 5"),
        *three(tables.of_subsets(3, 5), list("BED"), copied("BED"))[1:],
    ]
    forty = [str(word) for word in range(1, 41)]
    review, labels = LABELS[0][0].split(), tables.of_sentences(LABELS)
    return {
        "slides": ("Slides: each co-occurrence adds 1; the paper adds 1/L", slides),
        "figure-1": ("Figure 1: from β to the alignment", figure_1),
        "translation": ("Five pairs: counts alone lead from movie to film", three(five, film, movie)),
        "permutations": ("Figure 3: permutations of four letters", three(four, letters, copied(letters))),
        "mixture": ("Figure 6: permutations of one of two sets", three(both, letters, copied(letters))),
        "three-of-five": ("Blog: permutations of 3 against 3 of 5", blog),
        "forty-of-sixty": ("40 of 60", three(many, forty, copied(forty))),
        "sentiment": ("Figure 4: word polarity", three(labels, review, ["positive"])),
    }  # fmt: skip


def main(folder: str = "count-tables") -> None:
    for name, (title, panels) in pictures().items():
        print(*save(heat_chart(panels, title), Path(folder), name), sep="\n")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2])
    except (UserError, OSError) as error:
        sys.exit(str(error))
