"""Records a finished run for the repository: python docs/results/record.py RUN_FOLDER NAME

Copies settings, claims and figures (PNG) of the run to docs/results/NAME, writes what became of every seed to
seeds.csv, a README with the table of claims, and the table of all that is recorded in docs/results/README.md. With NAME
alone, only these two are written again.
"""

import csv
import json
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wider import decided

if TYPE_CHECKING:
    import numpy as np

HERE = Path(__file__).resolve().parent


def copy(run: Path, folder: Path) -> None:
    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics

    folder.mkdir(parents=True, exist_ok=True)
    info = json.loads((run / "run.json").read_text(encoding="utf-8"))
    kept = {name: value for name, value in info.items() if name not in ("replicas", "tokens", "conditions")}
    (folder / "run.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.copy(run / "claims.json", folder)
    for picture in sorted((run / "figures").glob("*.png")):
        shutil.copy(picture, folder)
    if info["seeds"]:
        last_values(Metrics(Run(run).metrics), folder / "seeds.csv")


def last_values(metrics: object, path: Path) -> None:
    """One line for each condition and seed: every metric at the last step at which that seed has it."""
    from attndyn.store.metrics import Metrics

    assert isinstance(metrics, Metrics)
    names = sorted(set(metrics.table["metric"].to_pylist()))
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["condition", "seed", *names])
        for condition in metrics.conditions:
            found = {}
            for name in names:
                try:
                    curves = metrics.curves(condition, name)
                except KeyError:
                    continue
                found[name] = {
                    seed: last(row) for seed, row in zip(curves.replicas.tolist(), curves.values, strict=True)
                }
            for seed in sorted({seed for values in found.values() for seed in values}):
                row = [found.get(name, {}).get(seed) for name in names]
                table.writerow([condition, seed, *("" if v is None or v != v else f"{v:.4g}" for v in row)])


def last(row: "np.ndarray") -> float:
    import numpy as np

    there = row[~np.isnan(row)]
    return float(there[-1]) if len(there) else float("nan")


def described(folder: Path) -> str:
    """What the README of a folder says."""
    info, claims = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("run", "claims"))
    versions = ", ".join(f"{name} {version}" for name, version in info["versions"].items())
    code = f", source {info['code']}" if "code" in info else ""
    lines = [
        f"# {info['title']}",
        "",
        info["finding"],
        "",
        f"`{info['command']}`; {info['device']}, {info['precision']}; {versions}{code}; {len(info['seeds'])} seeds; "
        f"{info['seconds']:.0f} s of training and measuring. Source: {info['source']}.",
        "",
        "| claim | published | measured | interval | verdict |",
        "| --- | --- | --- | --- | --- |",
    ]
    for claim in claims:
        interval = " to ".join(f"{end:.3g}" for end in claim["interval"]) if claim["interval"] else ""
        if interval and claim.get("of"):
            interval = f"{claim['of']} {interval}"
        cells = (f"{claim['id']}: {claim['statement']}", claim["published"], claim["measured"], interval)
        lines.append(
            "| " + " | ".join(str(cell or "–").replace("|", "\\|") for cell in cells) + f" | {claim['verdict']} |"
        )
    lines.append("")
    earlier = [claim["id"] for claim in claims if claim["rule"] != rules(info["study"])[claim["id"]]]
    if earlier:
        lines += [f"Judged by rules that have changed since: {', '.join(earlier)}.", ""]
    narrow = [claim for name, claim, stays in decided() if name == folder.name and not stays]
    if narrow:
        link = "[current intervals](../../measures.md#intervals)"
        lines += [f"With the {link} perhaps not decided: {', '.join(narrow)}.", ""]
    lines += [f"![{picture.stem}]({picture.name})" for picture in sorted(folder.glob("*.png"))]
    return "\n".join(lines) + "\n"


def rules(study: str) -> dict[str, str]:
    """Those of now."""
    from attndyn.studies import find

    return {statement.id: statement.rule for statement in find(study).statements}


def listed() -> str:
    """docs/results/README.md, its table by what is recorded now."""
    rows = ["| folder | command | device | seeds | seconds | source |", "| --- | --- | --- | --- | --- | --- |"]
    for path in sorted(HERE.glob("*/run.json")):
        info, name = json.loads(path.read_text(encoding="utf-8")), path.parent.name
        device = re.sub(r"cuda \((.*)\)", r"\1", info["device"])
        rows.append(
            f"| [{name}]({name}) | `{info['command']}` | {device}, {info['precision']} | {len(info['seeds'])} "
            f"| {info['seconds']:,.0f} | {info.get('code') or '–'} |"
        )
    before, _, rest = (HERE / "README.md").read_text(encoding="utf-8").partition("| folder |")
    return before + "\n".join(rows) + "\n\n" + rest.partition("\n\n")[2]


if __name__ == "__main__":
    *run, name = sys.argv[1:]
    if run:
        copy(Path(run[0]), HERE / name)
    (HERE / name / "README.md").write_text(described(HERE / name), encoding="utf-8")
    (HERE / "README.md").write_text(listed(), encoding="utf-8")
