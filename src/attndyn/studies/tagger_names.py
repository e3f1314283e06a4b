"""What the conditions of `tagger-adversary` are called, and the families of points on its page."""

BASE, RECOMPUTED, UNIFORM, TRAINED, UNMASKED = (
    "base",
    "recomputed attention",
    "uniform",
    "trained vectors",
    "padding seen",
)
GIVEN, SCATTERED = "given", "given scattered"
FORWARD = "feed-forward, "
SWEEP, SEEDS, RUNS = "adversaries", "two seeds", "each adversary"
"""Rows by λ, of pairs of base runs, and by run."""
UNIT = 1e-3
"""λ is a whole number of these where it takes the place of a step."""
READ = "test sentences read"
BEST, LOWEST = "highest F1", "lowest objective"


def adversary(strength: float) -> str:
    return f"λ {strength:g}"


def given(of: str) -> str:
    return f"{GIVEN} {of}"
