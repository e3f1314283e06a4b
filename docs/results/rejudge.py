"""Judges finished runs again by the current rules: python docs/results/rejudge.py RUN_FOLDER …

Nothing is trained or measured: claims.json, and the finding in run.json, are written anew from metrics.parquet. A study
of a corpus reads it ($ATTNDYN_DATA), as its name and texts are part of some rules.
"""

import sys
from pathlib import Path


def rejudge(folder: Path) -> None:
    from attndyn.errors import UserError
    from attndyn.provenance import restored
    from attndyn.store import atomic
    from attndyn.store.folder import CLAIMS, INFO, Run, lock
    from attndyn.store.metrics import Metrics
    from attndyn.verbs import is_finished

    if not is_finished(folder):
        raise UserError(f"the run in {folder} is not finished")
    with lock(folder):
        run = Run(folder)
        before = {claim["id"]: claim["verdict"] for claim in run.claims}
        study, metrics = restored(run.info["study"], run.info["settings"]), Metrics(run.metrics)
        claims = [claim.as_json(run.info["scale"]) for claim in study.claims(metrics)]
        atomic.write_json(folder / CLAIMS, claims)
        atomic.write_json(folder / INFO, run.info | {"finding": study.finding(metrics)})
    for claim in claims:
        print(f"{folder} {claim['id']}: {before.get(claim['id'], '–')} → {claim['verdict']}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rejudge(Path(name))
