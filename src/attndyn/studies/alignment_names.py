"""Names that the parts of `attention-as-alignment` share: what is scored against gold links."""

ALIGNMENT = "alignment"
ALPHA, BETA, DELTA, UNIFORM_BETA = "α", "β", "Δ", "β_uf"
PROXY_BETA, COUNTS = "β_px", "the count table"
IBM_PIECES, IBM_WORDS = "IBM 1 of pieces", "IBM 1 of words"
CHANCE = "chance"
LATE, EARLY, INSIDE = "α of the next piece", "α of the piece before", "α without <s> and </s>"
