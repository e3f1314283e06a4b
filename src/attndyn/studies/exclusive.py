"""How far attention can move while the answers stay right: where `deceptive-attention` and `tagger-adversary` meet.

Both train adversaries beside base models over a range of λ. What a seed can reach is judged here by one rule for both,
so that a tagger can be compared with classifiers (Y-07); so can how far two seeds are from each other (Y-08). One study
trains only one side; the other side is what was recorded at paper scale, in data/exclusive.csv (written by
docs/data/exclusive.py out of docs/results).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from attndyn.measures.estimates import left_out
from attndyn.measures.verdicts import DIFFERS, HOLDS, INCONCLUSIVE, NOT_COMPARABLE, all_of, by_sign, welch_interval
from attndyn.studies.base import Judgement, Statement

KEPT = 0.02
"""Of accuracy or F1: an adversary that loses no more keeps its score."""
TAGGING = "conll2000"
TABLE = Path(__file__).parent / "data" / "exclusive.csv"
COLUMNS = ("corpus", "seed", "JSD", "TVD", "JSD of another seed", "TVD of another seed")

Y_07 = Statement(
    id="Y-07",
    source="Yang §1, §5",
    statement="self-attention in tagging is more exclusive than attention in classification",
    published="question",
    rule=f"of a seed's adversaries that lose at most {KEPT} of the score (a tagger's of the F1 at λ = 0, a "
    "classifier's of the accuracy of its base), the JSD from the base of the one that attends furthest, heads matched "
    "(0 if none keeps its score), less the mean JSD of another seed. Holds if the interval of classifiers less taggers "
    "lies above 0 on every corpus, differs if below on every one; the other side is what was recorded at paper scale, "
    "and other sizes are not comparable",
)


@dataclass(frozen=True)
class Reach:
    """How far from its base each seed's adversary gets that keeps the score, and how far other seeds are."""

    jsd: tuple[float, ...]
    tvd: tuple[float, ...]
    others_jsd: tuple[float, ...]
    """Of each seed: a classifier's from the seed before it, a tagger's from all others on average."""
    others_tvd: tuple[float, ...]

    @property
    def seeds_jsd(self) -> float:
        return float(np.mean(self.others_jsd))

    @property
    def seeds_tvd(self) -> float:
        return float(np.mean(self.others_tvd))

    @property
    def room(self) -> list[float]:
        """Beyond another seed."""
        return [value - self.seeds_jsd for value in self.jsd]

    def __str__(self) -> str:
        others = f"another seed {self.seeds_jsd:.3f}, {self.seeds_tvd:.3f}"
        return f"JSD {np.mean(self.jsd):.3f}, TVD {np.mean(self.tvd):.3f} ({others})"


def reach(
    jsd: np.ndarray, tvd: np.ndarray, scores: np.ndarray, wanted: np.ndarray, seeds: tuple[Sequence[float], ...]
) -> Reach:
    """Out of [seed, λ], the score that each seed has to keep, and the JSD and TVD of other seeds."""
    kept = wanted[:, None] - scores <= KEPT
    furthest = np.where(kept, jsd, -1).argmax(axis=1)
    rows, any_kept = np.arange(len(jsd)), kept.any(axis=1)
    # the base itself keeps its score, where no adversary does
    far, moved = (np.where(any_kept, values[rows, furthest], 0.0).tolist() for values in (jsd, tvd))
    return Reach(tuple(far), tuple(moved), *map(tuple, seeds))


@cache
def recorded() -> dict[str, Reach]:
    """By corpus, what was recorded at paper scale. A cell is empty where a corpus has more of one than of the other."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        own = [row for row in rows if row["corpus"] == corpus]
        found[corpus] = Reach(*(tuple(float(row[name]) for row in own if row[name]) for name in COLUMNS[2:]))
    return found


def classifiers() -> dict[str, Reach]:
    return {corpus: one for corpus, one in recorded().items() if corpus != TAGGING}


def of_seeds(pairs: Sequence[float], seeds: int) -> list[float]:
    """For each seed the mean over its pairs, out of those of all seeds in the order of `combinations`."""
    found = np.zeros(seeds)
    for pair, value in zip(combinations(range(seeds), 2), pairs, strict=True):
        found[list(pair)] += value
    return (found / (seeds - 1)).tolist()


def of_neighbours(pairs: np.ndarray) -> np.ndarray:
    """The pseudo-values of the jackknife of three seeds or more, each paired with the one before it alone, the first
    with the last: [seed, …]."""
    return left_out((pairs + np.roll(pairs, -1, axis=0)) / 2)


def stable(tagging: Reach, classification: Mapping[str, Reach], n: int, comparable: bool, why: str = "") -> Judgement:
    """Y-08; the classifiers are recorded. Of these every second one counts in the interval: neighbours share a seed."""
    told = "; ".join(f"{name} {one.seeds_jsd:.3f}" for name, one in classification.items())
    measured = f"JSD of two seeds: tagging {tagging.seeds_jsd:.3f}; {told}"
    if not comparable:
        why = f"these sizes are not those of the classifiers, which were recorded at paper scale; {why}"
        return Judgement(measured=measured, verdict=NOT_COMPARABLE, n=n, why=why)
    single = [name for name, one in classification.items() if len(one.others_jsd) < 4]
    if single or len(tagging.others_jsd) < 3:
        lacking = f"single pairs of seeds are not recorded on {', '.join(single)}" if single else "too few seeds"
        return Judgement(measured=measured, verdict=INCONCLUSIVE, n=n, why=f"{lacking}; {why}")
    own = left_out(tagging.others_jsd).tolist()
    gaps = {name: welch_interval(one.others_jsd[1::2], own) for name, one in classification.items()}
    found = {name: by_sign(gap) for name, gap in gaps.items()}
    undecided = [name for name, one in found.items() if one == INCONCLUSIVE]
    return Judgement(
        measured=measured, verdict=all_of(list(found.values())), interval=min(gaps.values()),
        of="the smallest difference", n=n,
        why=(f"seeds do not decide on {', '.join(undecided)}; " if undecided else "") + why,
    )  # fmt: skip


def judged(tagging: Reach, classification: Mapping[str, Reach], n: int, comparable: bool) -> Judgement:
    """Y-07; one of the two sides is recorded, the other has n seeds."""
    measured = f"tagging: {tagging}; " + "; ".join(f"{name}: {one}" for name, one in classification.items())
    if not comparable:
        why = "these sizes are not those of the other side, which was recorded at paper scale"
        return Judgement(measured=measured, verdict=NOT_COMPARABLE, n=n, why=why)
    if min(len(tagging.jsd), *(len(one.jsd) for one in classification.values())) < 2:
        return Judgement(measured=measured, verdict=INCONCLUSIVE, n=n, why="one seed")
    gaps = {name: welch_interval(one.room, tagging.room) for name, one in classification.items()}
    found = {name: by_sign(gap) for name, gap in gaps.items()}
    same = set(found.values())
    verdict = same.pop() if same in ({HOLDS}, {DIFFERS}) else INCONCLUSIVE
    room = ", ".join(f"{name} {np.mean(one.room):.3f}" for name, one in classification.items())
    undecided = [name for name, one in found.items() if one == INCONCLUSIVE]
    return Judgement(
        measured=measured, verdict=verdict, interval=min(gaps.values()), of="the smallest difference", n=n,
        why=f"beyond another seed: tagging {np.mean(tagging.room):.3f}, {room}"
        + (f"; seeds do not decide on {', '.join(undecided)}" if undecided else ""),
    )  # fmt: skip
