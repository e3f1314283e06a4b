"""What was published about translation, and the rules that judge it: written before the run."""

from attndyn.studies.base import Statement

FAR = 2.0
"""Far above chance: at least this many times."""
LEARNED = 10.0
"""BLEU below which two models are not compared: neither has learned to translate."""
CLOSE = 2.0
"""BLEU by which two models may differ that are as good as each other."""
LITTLE = 0.05
"""At most this much is little, of what a maximum over checkpoints adds to an agreement."""
PARAMETERS = 6_132_544, 2_048_000
"""Without embeddings, and of the embeddings of 8,000 pieces (A.8)."""
ABOVE = f"holds if the interval lies above {FAR:g} Â, differs if it lies below {FAR:g} Â, else inconclusive"
LEARNS = (
    f"a run learns if the largest shares of these links that β and α find are both at least {FAR:g} times chance, the "
    "mean of 1/L; not judged if none does"
)


def _statement(id: str, source: str, statement: str, published: str, rule: str) -> Statement:
    return Statement(id=id, source=source, statement=statement, published=published, rule=rule)


STATEMENTS = (
    _statement(
        "S-01", "abstract, §1, fig. 1",
        "in a run that learns, β singles out the right word before α does",
        "direction",
        "right are the links of IBM Model 1 to other pieces than <s> and </s>; β and α each have a step at which they "
        "are halfway from their share of them at step 0 to their largest, at the checkpoints: holds if the interval of "
        "the factor by which α's is later, its mean over the standard runs that learn, lies above 1, "
        f"differs if below, else inconclusive; {LEARNS}",
    ),
    _statement(
        "S-02", "§2.2, table 1",
        "α goes where β is large: A(α, β) far above Â",
        "IWSLT'14 55.2, En-Nl 60.2 against 6-10 (log, early runs)",
        ABOVE,
    ),
    _statement(
        "S-03", "§2.3, fig. 1",
        "attention is near uniform when training starts",
        "direction",
        "holds if the normalised entropy of α at step 0 is at least .95 in every standard run, else differs",
    ),
    _statement(
        "S-06", "§3.1",
        "Â is about 5 %, off only by rounding",
        "Multi30k 7.14 (log); derived: the mean of ⌈.05 L⌉/L",
        "holds if the interval of the agreement of twenty random orders with α holds the mean of ⌈.05 L⌉/L, else "
        "differs",
    ),
    _statement(
        "S-07", "§3.1",
        "along training A(α, α(τ)) and performance rise together",
        "direction",
        "Kendall's τ of the two curves of each standard run: holds if the interval of its mean over runs lies above 0, "
        "differs if below, else inconclusive",
    ),
    _statement(
        "S-08", "§3.2, tables 1, 4",
        "the dictionary is learned under uniform attention: A(α, β_uf) well above Â",
        "Multi30k 31.02 (log); IWSLT'14 30.2, En-Nl 34.7 (log, early)",
        ABOVE,
    ),
    _statement(
        "S-09", "§3.2, tables 1, 4",
        "the bag-of-words proxy predicts it: A(β_px, β_uf) well above Â",
        "Multi30k 34.43 (log); IWSLT'14 39.0, En-Nl 39.1 (log, early)",
        ABOVE,
    ),
    _statement(
        "S-10", "§5.1, tables 1, 4",
        "saliency follows it: A(Δ, β_uf) well above Â",
        "Multi30k 27.06 (log)",
        ABOVE,
    ),
    _statement(
        "S-11", "§3.2, tables 1, 4",
        "ξ(α, β_uf) is not trivial, and ξ*",
        "Multi30k 43.45 of 66.29 (log)",
        "holds if ξ is reached and at least half of ξ* for every gold run, differs if below half for every one, "
        "else inconclusive",
    ),
    _statement(
        "S-12", "tables 1, 4",
        "ξ of the proxy and of the saliency column",
        "Multi30k 43.45 and 43.45 of 66.29 (log)",
        "as S-11, for both columns",
    ),
    _statement(
        "S-13", "table 2 (A.4)",
        "the same conclusions with Kendall's τ",
        "not found",
        "holds if τ(α, β_uf), τ(β_px, β_uf) and τ(Δ, β_uf) all lie above 0 with their intervals, for which every "
        "second pair is judged at the checkpoint that the others choose; differs if one lies below, else inconclusive",
    ),
    _statement(
        "S-14", "tables 3, 5, 7 (A.4)",
        "the same with BLEU as performance",
        "Multi30k 30.77 / 34.43 / 27.24, Â 7.15, ξ 11.43, ξ* 37.89 (log)",
        "as S-08, S-09, S-10 and S-13 with the gold checkpoint chosen by BLEU: all have to hold",
    ),
    _statement(
        "S-15", "tables 6, 7 (A.4)",
        "the same on the training set",
        "not found for translation",
        "as S-14 on training pairs and against their Â, by token accuracy and by BLEU",
    ),
    _statement(
        "S-16", "A.4",
        "half-trained models are judged too harshly by BLEU, because errors add up in generation",
        "Multi30k ξ/ξ*: 43.45/66.29 by token accuracy, 11.43/37.89 by BLEU (log)",
        "holds if ξ(α, β_uf)/ξ* by BLEU lies below that by token accuracy for every gold run, differs if above for "
        "every one, else inconclusive",
    ),
    _statement(
        "S-17", "A.5, table 8",
        "corpora: training sizes and median lengths",
        "the table was not found",
        "not comparable: nothing to compare with; the measured sizes are given, <s> and </s> not counted",
    ),
    _statement(
        "S-19", "A.8",
        "parameters without embeddings, and embeddings of 8,000 shared pieces",
        "6,132,544 + 2,048,000 (text)",
        "holds if the model at the published size has exactly as many",
    ),
    _statement(
        "S-32", "§4.1-4.2",
        "the larger C, the larger β: β_px and β_IBM order words alike",
        "Multi30k A(β_uf, β_IBM) 18.1 against 35.0 for the proxy (log; left out of the paper)",
        f"A(β_IBM, β_px): {ABOVE}",
    ),
    _statement(
        "S-49", "A.1",
        "three-word example: the best attention is (0, ½, ½), none on the largest β",
        "exact; β ⅓ against ≈ e⁻⁵; derived p = .859",
        "holds if the solver finds these numbers to .001",
    ),
    _statement(
        "S-50", "A.1",
        "with a linear output the best attention is a convex problem that gradient descent solves",
        "exact",
        "holds if at least 99 % of the validation positions of the linear head are solved to a proven gap of 10⁻⁴, "
        "else differs",
    ),
    _statement(
        "S-51", "A.1",
        "the best attention favours large β",
        "Multi30k A(α_opt, β) = 53 (text)",
        f"of the linear head after training: holds if A(α_opt, β) is above {FAR:g} Â in every run, else differs",
    ),
    _statement(
        "S-52", "A.1",
        "the linear-output model is as good as the one with a hidden layer",
        "BLEU 38.2 against 37.9 (text)",
        "best BLEU on the validation pairs, the interval of the difference over runs and pairs: holds if it lies "
        f"within ±{CLOSE:g}, differs if the linear head is worse by more, else inconclusive; not judged if the "
        f"standard runs have less than {LEARNED:g}",
    ),
    _statement(
        "S-53", "A.7",
        "A(α, β_uf(τ)) rises, then falls; taking the maximum inflates it little",
        "direction",
        "rises and falls: at the checkpoint that every second pair chooses, the others lie above the first and above "
        "the last one; little: they agree there less than at the checkpoint that they choose themselves, and the "
        f"interval of what this adds lies below {100 * LITTLE:g} points. Holds if the intervals say all three, differs "
        "if one says the contrary or all runs under uniform attention peak at the last checkpoint, else inconclusive",
    ),
    _statement(
        "S-58", "A.8",
        "cost on one GPU",
        "Multi30k ≈ 1 h (text; context only)",
        "not comparable: other hardware; run.json has the seconds of this run",
    ),
    _statement(
        "B-13", "blog, limitations",
        "the two stages overlap in time",
        "direction",
        "α has made a quarter of its way from step 0 to its largest share of IBM Model 1's links before β has made "
        "three quarters: holds if so in every standard run that learns, differs if in none, else inconclusive; links "
        "and learning as in S-01",
    ),
    _statement(
        "B-14", "blog, limitations",
        "learned attention shapes later training: A(α, β) exceeds A(α, β_uf)",
        "IWSLT'14 55.2 against 30.2, En-Nl 60.2 against 34.7 (log, early)",
        "holds if the interval of the difference, over gold runs, other standard runs, runs under uniform attention "
        "and pairs, lies above 0, differs if below, else inconclusive",
    ),
)  # fmt: skip
