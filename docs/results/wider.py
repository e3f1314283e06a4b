"""Which recorded verdicts need their interval over runs as it was: python docs/results/wider.py

The recorded intervals over runs and examples are those of a bootstrap over both, which is too narrow where runs are
few; attndyn now takes Student's over the runs (docs/measures.md). How much of a recorded interval comes from the runs
is not kept, but at most it is all of it, and of the smallest set of runs. This widens each so far, and names the
verdicts that would then no longer be decided by it. In truth the examples have a part in every interval, and fewer
would change. Named, too, is what a single run under uniform attention decided: it no longer does.
"""

import json
import math
import re
import sys
from pathlib import Path

from scipy.stats import t

from attndyn.studies import alignment_claims, salient_claims, translation_claims, translation_statements

HERE = Path(__file__).resolve().parent
SALIENT = {
    "S-02": 6, "S-08": 3, "S-09": 2, "S-10": 3, "S-13": 3, "S-15": 2, "S-27": 3, "S-36": 3, "S-37": 6, "S-53": 3,
    "S-54": 6, "S-57": 2, "B-14": 3, "O-07": 3,
}  # fmt: skip
TRANSLATION = {"S-02": 4, "S-08": 2, "S-09": 2, "S-10": 2, "S-32": 2, "S-53": 2, "B-14": 2}
ALIGNMENT = {"A-03": 2, "A-04": 3, "A-05": 2, "A-06": 2, "A-07": 3}
EXPLAINED = dict.fromkeys(("J-01", "J-02", "J-03", "O-01", "O-04", "S-37", "W-02", "W-04"), 8)
RUNS = {
    "salient-words": SALIENT, "word-translation": TRANSLATION, "attention-as-alignment": ALIGNMENT,
    "feature-importance": EXPLAINED, "counterfactual-attention": EXPLAINED, "deceptive-attention": EXPLAINED,
}  # fmt: skip
"""Study → claim → the runs in the smallest set that its interval is over."""
OF_UNIFORM = {
    "salient-words": salient_claims.OF_UNIFORM, "word-translation": translation_claims.OF_UNIFORM,
    "attention-as-alignment": alignment_claims.OF_UNIFORM,
}  # fmt: skip
"""Study → what is over the runs under uniform attention, and so is not decided by one."""
OF_PAIRS = {"salient-words": salient_claims.OF_PAIRS, "word-translation": translation_claims.OF_PAIRS}
"""Study → what compares its standard runs with each other."""
SINCE = "2026-11-19"
"""What was begun from then on has Student's."""


def factor(runs: int) -> float:
    """Student's half-width over that of a bootstrap of so many runs."""
    return float(t.ppf(0.975, runs - 1)) / 1.96 * math.sqrt(runs / (runs - 1))


def factor_of_pairs(runs: int) -> float:
    """Of the mean over their pairs: the bootstrap drew the two runs of a pair as if they had nothing to do with each
    other, or, in S-54, one of them alone; at most that was half of what the runs move."""
    return factor(runs) * 2 * (runs - 1) / (runs - 2) if runs > 2 else math.inf


def decided() -> list[tuple[str, str, bool]]:
    """(folder, claim, whether it still would be) of each decided claim whose interval leaves 0 out or that is over a
    single run under uniform attention."""
    found = []
    for path in sorted(HERE.glob("*/claims.json")):
        info = json.loads((path.parent / "run.json").read_text(encoding="utf-8"))
        if info["started"] >= SINCE:
            continue
        study, alone = info["study"], info["settings"].get("uniform") == 1
        for claim in json.loads(path.read_text(encoding="utf-8")):
            if claim["verdict"] not in ("holds", "differs"):
                continue
            low, high = claim["interval"] or (0, 0)
            runs = RUNS.get(study, {}).get(claim["id"])
            if alone and claim["id"] in OF_UNIFORM.get(study, ()):
                found.append((path.parent.name, claim["id"], False))
            elif runs is not None and (low > 0 or high < 0):
                paired = claim["id"] in OF_PAIRS.get(study, ())
                if study == "word-translation" and (chance := re.search(r"against Â ([\d.]+)", claim["measured"])):
                    low, high = (end - translation_statements.FAR * float(chance[1]) for end in (low, high))
                wider = max(factor(runs), factor_of_pairs(info["settings"]["seeds"]) if paired else 0)
                nearest = min(abs(low), abs(high))
                found.append((path.parent.name, claim["id"], nearest > (wider - 1) * (high - low) / 2))
    return found


def main() -> None:
    every = decided()
    kept = sum(stays for _, _, stays in every)
    print(f"{kept} of {len(every)} verdicts by an interval over runs would still be decided; the others:")
    for folder, claim, stays in every:
        if not stays:
            print(f"  {folder}: {claim}")


if __name__ == "__main__":
    sys.exit(main())
