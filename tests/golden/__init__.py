"""The first 20 steps of every study on tiny settings, as they were when last looked at.

`python -m tests.golden` writes the files again, all of them or those of the named studies. Do that only where a number
was meant to change, and say in the pull request which and why: the difference of the files is the list of curves.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from attndyn.store.folder import Run
from attndyn.store.metrics import Metrics

FILES = Path(__file__).parent
STEPS = 20
TOLERANCE = 1e-4
"""Relative above 1 and absolute below it: what another CPU or another release of torch may change in 20 steps."""

CHANGES: dict[str, dict[str, Any]] = {
    "copying": {"steps": 20, "every": 1},
    "permuted-copying": {"steps": 20, "patience": 20},
    "probe-locality": {"steps": 20},
    "learnability": {"steps": 10},
    "head-rescue": {"steps": 20},
    "invariant": {"steps": 20, "keyword_steps": 20, "every": 1},
    "initial-derivative": {"widths": (4, 8, 12, 16, 20)},
    "salient-words": {"steps": 20, "every": 4},
    "word-translation": {"steps": 20, "every": 10},
    "attention-as-alignment": {"steps": 20, "every": 10},
    "tagger-adversary": {"epochs": 2},
    "feature-importance": {"epochs": 2},
    "counterfactual-attention": {"epochs": 2},
    "deceptive-attention": {"epochs": 2},
}
"""To the tiny settings of every study, so that there is something to read in the first 20 steps. The last three read
the same trained classifiers."""

SMOOTH = {
    "loss", "train loss", "objective", "train objective", "attention entropy", "attention mass", "mean state spread",
    "probe spread", "γ keyword", "γ mean", "attention", "knowledge", "logit", "p", "delta", "b0", "topic score",
    "topic norm", "word score", "word norm", "error", "logit slope", "probability slope", "parts apart", "KL", "JSD",
    "TVD", "JSD from the base", "TVD from the base", "JSD at ε 0.01", "JSD at ε 0.05", "median change by permuting",
}  # fmt: skip
"""Metrics without a jump: a share of right answers may move by a whole answer where two scores are all but equal."""


def curves(run: Run) -> dict[str, dict[str, dict[str, list[Any]]]]:
    """Condition → metric → steps and values of each replica: what was measured in the first steps of a run."""
    metrics, found = Metrics(run.metrics), {}
    for condition in metrics.conditions:
        chosen = {}
        for name in sorted(SMOOTH & set(metrics.curves_of(condition))):
            one = metrics.curves(condition, name)
            early = (one.steps >= 0) & (one.steps <= STEPS)
            if early.any():
                values = [[rounded(value) for value in row] for row in one.values[:, early].tolist()]
                chosen[name] = {"steps": one.steps[early].tolist(), "values": values}
        if chosen:
            found[condition] = chosen
    return found


def rounded(value: float) -> float | None:
    return None if np.isnan(value) else float(f"{value:.7g}")


def recorded(study: str) -> dict[str, Any]:
    return json.loads((FILES / f"{study}.json").read_text(encoding="utf-8"))


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Where two sets of curves are not the same, in words."""
    said = [f"{name} is new" for name in found.keys() - wanted.keys()]
    said += [f"{name} is missing" for name in wanted.keys() - found.keys()]
    for condition in found.keys() & wanted.keys():
        if found[condition].keys() != wanted[condition].keys():
            said.append(f"{condition}: other metrics: {sorted(found[condition].keys() ^ wanted[condition].keys())}")
            continue
        for name, curve in wanted[condition].items():
            mine = found[condition][name]
            ours, theirs = (np.array(one["values"], dtype=float) for one in (mine, curve))
            if mine["steps"] != curve["steps"] or ours.shape != theirs.shape:
                said.append(f"{condition}, {name}: other steps or replicas")
            elif not np.allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                said.append(f"{condition}, {name}: off by up to {np.nanmax(abs(ours - theirs)):.2g}")
    return sorted(said)
