"""Writes src/attndyn/studies/data/exclusive.csv: what adversaries reach that keep their score, out of docs/results.

    python docs/data/exclusive.py

Each study compares its own side with the other one as it is in this table (Y-07, Y-08). So these claims of the recorded
runs are judged again, too, from their seeds.csv; `python docs/results/record.py NAME` then writes their READMEs anew.
"""

import csv
import json
import re
from itertools import zip_longest
from pathlib import Path

import numpy as np

from attndyn.provenance import restored
from attndyn.store.atomic import write_json
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies.deceptive_names import SEEDS
from attndyn.studies.exclusive import COLUMNS, TABLE, TAGGING, Reach, of_seeds, reach, recorded

RESULTS = Path(__file__).parents[1] / "results"
CLASSIFIERS = {
    name: RESULTS / f"deceptive-attention-{corpus}"
    for name, corpus in {"SST": "sst", "AG News": "ag", "20 Newsgroups": "20ng", "IMDB": "imdb"}.items()
}
TAGGER = RESULTS / "tagger-adversary"
COMPARED = ("Y-07", "Y-08")


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
    every = {name: classifier(folder) for name, folder in CLASSIFIERS.items()} | {TAGGING: tagger(TAGGER)}
    return [
        (corpus, str(seed), *("" if value is None else f"{value:.4g}" for value in place))
        for corpus, one in every.items()
        for seed, place in enumerate(zip_longest(one.jsd, one.tvd, one.others_jsd, one.others_tvd))
    ]


def judged_again(folder: Path) -> list[dict[str, object]]:
    """The claims on record, those that compare with the table as they are by the table of now. A run of the time when
    nothing was kept of single pairs of seeds stands as it was recorded."""
    info, claims = (json.loads((folder / name).read_text(encoding="utf-8")) for name in ("run.json", "claims.json"))
    found = values(folder)
    if len(found.get(SEEDS, ())) == 1:
        return claims
    last = [
        Row(condition, seed, 0, metric, value)
        for condition, of in found.items()
        for seed, known in of.items()
        for metric, value in known.items()
    ]
    judged = restored(info["study"], info["settings"]).claims(Metrics(to_table(last)))
    now = {claim.statement.id: claim.as_json(info["scale"]) for claim in judged}
    return [now[claim["id"]] if claim["id"] in COMPARED else claim for claim in claims]


if __name__ == "__main__":
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows()])
    recorded.cache_clear()
    for folder in (*CLASSIFIERS.values(), TAGGER):
        write_json(folder / "claims.json", judged_again(folder))
