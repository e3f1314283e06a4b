"""Names that the parts of `word-translation` share: its conditions, its tables and their columns."""

STANDARD, UNIFORM, LINEAR, PROXY = "standard", "uniform attention", "linear head", "proxy"
SUMMARY, DICTIONARY = "summary", "dictionary"
TABLES = {
    ("valid", "accuracy"): "validation, token accuracy",
    ("valid", "BLEU"): "validation, BLEU",
    ("train", "accuracy"): "training pairs, token accuracy",
    ("train", "BLEU"): "training pairs, BLEU",
}
"""(part, performance) of a table: the gold checkpoint is the best by that performance on that part."""
COLUMNS = ("A(α, β_uf)", "A(β_px, β_uf)", "A(Δ, β_uf)", "A(α, β)")
RANKS = ("τ(α, β_uf)", "τ(β_px, β_uf)", "τ(Δ, β_uf)")
"""The first three columns with Kendall's τ in place of the agreement."""
INFLATED = "A(α, β_uf) at its largest minus where others choose"
RISEN, FALLEN = "rise of A(α, β_uf) to its peak", "fall of A(α, β_uf) from its peak"
SHAPED = "A(α, β) minus A(α, β_uf)"
LINEAR_APART = "BLEU of the linear head minus standard"
LINK_CHANCE = "chance of a link"
