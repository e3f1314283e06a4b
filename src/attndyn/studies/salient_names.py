"""Names that the parts of `salient-words` share: its conditions, its tables and their columns."""

STANDARD, UNIFORM, FROZEN, PROXY, BLOG = "standard", "uniform attention", "frozen β", "proxy", "linear scoring"
CODE, TEXT = "validation, by the code", "validation, by the text"
TRAIN, KENDALL, SUMMARY = "training examples", "Kendall's τ", "other measures"
VECTORS = ("random vectors", "given vectors")
UNIFORM_OF = {name: f"{name}, {UNIFORM}" for name in VECTORS}
COLUMNS = ("A(α, β_uf)", "A(β_px, β_uf)", "A(Δ, β_uf)", "A(α, β)")
LAST = ", last checkpoint"
"""Ends the name of an agreement at the last checkpoint, where the entry is the largest over checkpoints."""
WITHOUT = {STANDARD: ", one standard run left out", UNIFORM: ", one run under uniform attention left out"}
"""Ends the name of a ξ, whose step is then the place of that run."""
