"""Do two watched runs look at the same places? Two seeds, or two moments of training, on the same examples."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from attndyn.errors import UserError
from attndyn.store.folder import Run
from attndyn.watching.numbers import agree
from attndyn.watching.page import heads_of, layers_of


def between(folders: Sequence[Path | str], step: int | None = None) -> list[dict[str, Any]]:
    """Agreement of attention between each two runs, head by head, at `step`, or at the last reading of each.

    Each entry holds `where` (layer and head), `first` and `second` (the folders), A of the first's attention with the
    second's, `chance` (Â), a 95 % interval from resampling examples (`low`, `high`) and `n`, the outputs compared.
    """
    runs = [Run(folder) for folder in folders]
    if len(runs) < 2:
        raise UserError("a comparison needs two runs or more")
    for run in runs:
        if run.info["study"] != "watch" or not run.info["scored"]:
            raise UserError(f"{run.path} is not a run that was watched with targets= or score=")
        for what, name in (("examples", "content"), ("query", "query")):
            if run.info["settings"][name] != runs[0].info["settings"][name]:
                raise UserError(f"{runs[0].path} and {run.path} were watched with other {what}")
        if layers_of(run) != layers_of(runs[0]):
            raise UserError(f"{runs[0].path} and {run.path} have other attention layers")
    found = []
    for first, second in combinations(runs, 2):
        labels = iter(heads_of(first))
        for index, layer in enumerate(layers_of(first)):
            one, other = (_trace(run, index, step) for run in (first, second))
            for head in range(layer["heads"]):
                seen = torch.from_numpy(one["seen"]).bool()
                (agreed,) = agree([(torch.from_numpy(one["rows"][head]), torch.from_numpy(other["rows"][head]), seen)])
                found.append(
                    {
                        "where": next(labels), "first": str(first.path), "second": str(second.path), "A": agreed.mean,
                        "chance": agreed.chance, "low": agreed.low, "high": agreed.high, "n": agreed.n,
                    }
                )  # fmt: skip
    return found


def _trace(run: Run, layer: int, step: int | None) -> dict[str, Any]:
    seed = run.info["seed"]
    steps = run.trace_steps(f"layer {layer}", seed)
    if step is not None and step not in steps:
        raise UserError(f"{run.path} has no reading at step {step}; there are: {', '.join(map(str, steps))}")
    return run.trace(f"layer {layer}", seed, steps[-1] if step is None else step)
