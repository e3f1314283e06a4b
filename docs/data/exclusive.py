"""Writes src/attndyn/studies/data/exclusive.csv: what adversaries reach that keep their score, out of docs/results.

    python docs/data/exclusive.py

Where a run on record does not have the JSD and TVD of another seed for each seed, there is one value: the mean in W-02.
"""

import csv
import json
import re
from itertools import zip_longest
from pathlib import Path

import numpy as np

from attndyn.studies.deceptive_names import SEEDS
from attndyn.studies.exclusive import COLUMNS, TABLE, TAGGING, Reach, of_seeds, reach

RESULTS = Path(__file__).parents[1] / "results"
FOLDERS = {"SST": "sst", "AG News": "ag", "20 Newsgroups": "20ng", "IMDB": "imdb"}


def values(folder: Path) -> dict[str, dict[int, dict[str, float]]]:
    """Condition → seed → metric → value."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    with (folder / "seeds.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            known = {name: float(value) for name, value in row.items() if value and name not in ("condition", "seed")}
            found.setdefault(row["condition"], {})[int(row["seed"])] = known
    return found


def along(found: dict[str, dict[int, dict[str, float]]], pattern: str, metric: str) -> np.ndarray:
    """[seed, λ]"""
    columns = [[one[metric] for _, one in sorted(of.items())] for name, of in found.items() if re.match(pattern, name)]
    return np.array(columns).T


def classifier(folder: Path) -> Reach:
    found = values(folder)
    jsd, tvd, accuracy = (along(found, r"adversary, KL\(adv", name) for name in ("JSD", "TVD", "test accuracy"))
    bases = np.array([found["BiLSTM"][seed]["test accuracy"] for seed in range(len(jsd))])
    return reach(jsd, tvd, accuracy, bases, others(folder, found))


def others(folder: Path, found: dict[str, dict[int, dict[str, float]]]) -> tuple[list[float], ...]:
    """JSD and TVD of each seed from the one before it, or their means alone."""
    each = found[SEEDS]
    if len(each) > 1:
        return tuple([each[seed][name] for seed in sorted(each)] for name in ("JSD", "TVD"))
    claims = {claim["id"]: claim for claim in json.loads((folder / "claims.json").read_text(encoding="utf-8"))}
    means = re.match(r"JSD ([\d.]+) .*TVD ([\d.]+)", claims["W-02"]["measured"])
    assert means is not None
    return tuple([float(value)] for value in means.groups())


def tagger(folder: Path) -> Reach:
    found = values(folder)
    jsd, tvd, f1 = (along(found, "λ ", name) for name in ("JSD matched", "TVD", "test F1 (kept)"))
    pairs = [pair for _, pair in sorted(found["two seeds"].items())]
    each = (of_seeds([pair[name] for pair in pairs], len(jsd)) for name in ("JSD matched", "TVD"))
    return reach(jsd, tvd, f1, f1[:, 0], tuple(each))


def rows() -> list[tuple[str, ...]]:
    every = {name: classifier(RESULTS / f"deceptive-attention-{folder}") for name, folder in FOLDERS.items()}
    every[TAGGING] = tagger(RESULTS / "tagger-adversary")
    return [
        (corpus, str(seed), *("" if value is None else f"{value:.4g}" for value in place))
        for corpus, one in every.items()
        for seed, place in enumerate(zip_longest(one.jsd, one.tvd, one.others_jsd, one.others_tvd))
    ]


if __name__ == "__main__":
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows()])
