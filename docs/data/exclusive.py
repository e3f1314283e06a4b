"""Writes src/attndyn/studies/data/exclusive.csv: what adversaries reach that keep their score, out of docs/results.

    python docs/data/exclusive.py

The runs that are recorded keep the JSD and TVD of another seed as means alone, in the claim W-02.
"""

import csv
import json
import re
from pathlib import Path

import numpy as np

from attndyn.studies.exclusive import COLUMNS, TABLE, TAGGING, Reach, reach

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
    claims = {claim["id"]: claim for claim in json.loads((folder / "claims.json").read_text(encoding="utf-8"))}
    other = re.match(r"JSD ([\d.]+) .*TVD ([\d.]+)", claims["W-02"]["measured"])
    assert other is not None
    return reach(jsd, tvd, accuracy, bases, tuple([float(value)] for value in other.groups()))


def tagger(folder: Path) -> Reach:
    found = values(folder)
    jsd, tvd, f1 = (along(found, "λ ", name) for name in ("JSD matched", "TVD", "test F1 (kept)"))
    pairs = found["two seeds"].values()
    return reach(jsd, tvd, f1, f1[:, 0], tuple([pair[name] for pair in pairs] for name in ("JSD matched", "TVD")))


def rows() -> list[tuple[str, ...]]:
    every = {name: classifier(RESULTS / f"deceptive-attention-{folder}") for name, folder in FOLDERS.items()}
    every[TAGGING] = tagger(RESULTS / "tagger-adversary")
    return [
        (corpus, str(seed), *(f"{value:.4g}" for value in (*place, one.seeds_jsd, one.seeds_tvd)))
        for corpus, one in every.items()
        for seed, place in enumerate(zip(one.jsd, one.tvd, strict=True))
    ]


if __name__ == "__main__":
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows()])
