"""What is published on classification: the statements that `salient-words` judges, and the authors' logged values."""

from attndyn.studies.base import Statement
from attndyn.studies.salient_names import CODE, COLUMNS, TRAIN

PAPER, BLOGGED, SLIDES = "Snell et al.", "blog", "slides"
PUBLISHED_PARAMETERS = 1_274_882
DECIDING = 6
"""Runs of which all have to agree for the interval of a share to leave one half out: of five it does not."""
FALLS, INFLATED = 0.01, 0.02
"""What A(α, β_uf) has to fall by, and what a maximum over checkpoints may add to it."""
AGREED = 0.02
"""Above Â, what two seeds that do not agree stay below."""
EARLY = 100
"""The step near which runs with and without word vectors are compared early."""
LOGGED: dict[str, dict[str, tuple[float | None, ...]]] = {
    # A(α, β_uf), A(β_px, β_uf), A(Δ, β_uf), A(α, β), Â, ξ of each, ξ*; None: not logged, nan: never
    "imdb": {
        CODE: (52.55, 81.60, 61.55, None, 5.6, 86.81, 88.88, 86.81, None, 89.55),
        TRAIN: (51.53, 80.10, 42.85, None, None, 90.40, float("nan"), 90.40, None, 99.95),
    },
    "sst5": {CODE: (19.85, 33.57, 22.45, None, 8.32, 78.16, float("nan"), 78.16, None, 83.53)},
}
"""The authors' own logged values, in %; the tables of the paper itself were not found."""

HEADS = (*COLUMNS, "Â", *(f"ξ of {name}" for name in COLUMNS), "ξ*")


def published(corpus: str, table: str) -> tuple[float | None, ...] | None:
    return LOGGED.get(corpus, {}).get(table)


def _statement(id: str, source: str, statement: str, value: str, rule: str) -> Statement:
    return Statement(id=id, source=source, statement=statement, published=value, rule=rule)


ABOVE = "the 95 % interval, over seeds and texts, of its distance from Â lies above 0"
LARGEST = (
    f"{ABOVE}. A is the largest over checkpoints, as in the authors' program, Â is not: the value at the last "
    "checkpoint stands beside it"
)
STATEMENTS = (
    _statement("S-01", f"{PAPER} abstract, §1", "β finds the words that will be attended to before α does", "direction",
               "of the standard runs in which A(α_gold, β) and A(α_gold, α) reach half of their final values at "
               "different checkpoints, neither of them step 0, in more than half β is first, by the interval of that "
               "share; fewer than six such runs cannot decide"),
    _statement("S-02", f"{PAPER} §2.2, table 1", "α goes where β is large: A(α, β) far above Â",
               "direction here (55.2 and 60.2 in translation, log)", f"A(α, β of another seed): {LARGEST}"),
    _statement("S-03", f"{PAPER} §2.3", "attention is near uniform at the start of training", "direction",
               "the entropy of α at step 0, over that of uniform attention, is at least .95 in every run"),
    _statement("S-04", f"{PAPER} §2.4", "p(right) = σ(Σ α σ⁻¹(β))", "exact",
               "in float32, at the start and at the gold checkpoint of every run, no difference is above 1e-4; not "
               "comparable with more than two classes"),
    _statement("S-05", f"{PAPER} §2.4", "the polarity score is β/(1−β)", "text; derived: its logarithm",
               "derived, not measured: in σ(Σ α σ⁻¹(β)) a word votes with x = log(β/(1−β)), and eˣ is x nowhere. "
               "Beside it: the largest of all runs, at the start and at gold, of the median over words of |eˣ − x|"),
    _statement("S-06", f"{PAPER} §3.1", "Â is about 5 %, off only by rounding", "IMDB 5.6, SST 8.32 (log)",
               "the interval, over orders and texts, of the agreement of twenty random orders with the gold α of the "
               "first run holds the mean of ⌈.05 L⌉/L; else differs"),
    _statement("S-07", f"{PAPER} §3.1", "A(α, α(τ)) and performance rise together along training", "direction",
               "the interval over runs of their rank correlation lies above 0"),
    _statement("S-08", f"{PAPER} §3.2, tables 1, 4", "the dictionary is learned under uniform attention: A(α, β_uf) "
               "well above Â", "IMDB 52.55, SST 19.85 (log)", LARGEST),
    _statement("S-09", f"{PAPER} §3.2, tables 1, 4", "the bag-of-words proxy predicts it: A(β_uf, β_px) well above Â",
               "IMDB 81.60, SST 33.57 (log, as A(β_px, β_uf))", LARGEST),
    _statement("S-10", f"{PAPER} §5.1, tables 1, 4", "saliency follows it: A(Δ, β_uf) well above Â",
               "IMDB 61.55, SST 22.45 (log)", LARGEST),
    _statement("S-11", f"{PAPER} §3.2, tables 1, 4", "ξ(α, β_uf) is not trivial", "IMDB 86.81 of 89.55, SST 78.16 of "
               "83.53 (log)", "over the gold runs for which ξ is reached, the interval of the mean of ξ minus the "
               "larger of two accuracies lies above 0: of the same runs at step 0, and of always answering the most "
               "frequent class; differs if it does not reach above 0; never is reported and not counted, and with "
               "fewer than two runs nothing is decided. The interval is over standard runs, each left out as gold run "
               "and as one of the others, and over runs under uniform attention"),
    _statement("S-12", f"{PAPER} tables 1, 4", "ξ of the proxy is at least that of A(α, β_uf), that of saliency equal",
               "IMDB 88.88 and 86.81, SST never and 78.16 (log)", "with never as the highest: the interval, over runs "
               "as in S-11, of ξ of the proxy minus ξ(α, β_uf) does not begin below 0, and that of saliency minus it "
               "lies within ±5 points; differs if the first ends below 0 or the second lies outside; where ξ(α, β_uf) "
               "is never reached nothing is decided"),
    _statement("S-13", f"{PAPER} table 2 (A.4)", "the same conclusions with Kendall's τ", "not found",
               "the intervals of τ in the first three columns, over seeds and texts, lie above 0; every second text is "
               "judged at the checkpoint that the others choose"),
    _statement("S-15", f"{PAPER} table 6 (A.4)", "the same on the training set", "IMDB 51.53 / 80.10 / 42.85, ξ 90.40 "
               "/ never / 90.40, ξ* 99.95 (log)", f"in the first three columns {LARGEST}"),
    _statement("S-17", f"{PAPER} A.5, table 8", "training texts and their median length", "IMDB 25,000; SMS 3,500 and "
               "13 (text)", "equal numbers, where one is published and the corpus at hand is "
               "the published one; else not comparable"),
    _statement("S-18", f"{PAPER} A.8", "words seen three times in the training texts", "IMDB 60,338; AG 31,065; 20NG "
               "12,488; SST 11,022; Yelp 41,368; Amazon 37,110; SMS 4,691", "as S-17"),
    _statement("S-19", f"{PAPER} A.8", "parameters without embeddings", "1,274,882 (text, exact)", "equal"),
    _statement("S-20", f"{PAPER} A.8", "the embeddings start from GloVe", "text; the logged runs did not use it",
               "what changes with vectors is reported (--vectors); a set-up has no verdict of its own"),
    _statement("S-27", f"{PAPER} A.6, table 9", "with β frozen at random the attention does not learn: A(α, α_fr) "
               "stays below A(α, β_uf)", "not found", "the interval of the difference, over gold runs, runs under "
               "uniform attention and texts, lies above 0; both are the largest over checkpoints, and their values at "
               "the last stand beside them"),
    _statement("S-36", f"{PAPER} §4.3, fig. 4", "counts give the polarity of words, which then draws attention",
               "direction", f"of A(β_count, β_uf) and of A(α, β_count) {ABOVE}; Â of the second counts "
               "equal words, which have one count"),
    _statement("S-37", f"{PAPER} §5.1", "attention correlates with saliency: A(α, Δ) above Â", "direction", ABOVE),
    _statement("S-53", f"{PAPER} A.7", "A(α, β_uf(τ)) rises, then falls; taking the maximum inflates it little",
               "direction", "the largest between the first and the last checkpoint is chosen on every second text and "
               "judged on the others, by intervals over gold runs, seeds and texts: it rises if largest minus first "
               f"lies above 0, not if below; it falls if largest minus last lies above {FALLS:g}, not if below that. "
               "The maximum inflates little if, on the same texts, the largest over checkpoints is above the value at "
               f"the step that the others choose by less than {INFLATED:g}, by the interval. Holds if all three hold, "
               "differs if one does not"),
    _statement("S-54", f"{PAPER} A.9", "on SMS the attention of two seeds does not agree", "A(α, β_uf) .9-1.7, A(α, β) "
               "9.4-9.7, Â 8-10 (log)", f"on SMS: the interval of A(α, α of another seed) minus Â, over gold runs "
               f"and texts: differs if it lies above 0; else holds if it ends below {AGREED:g}"),
    _statement("S-55", f"{PAPER} A.10", "for classification the proxy is a bag-of-words logistic regression", "exact",
               "its answers are the mean of its words' votes and a constant, to 1e-3 in float32"),
    _statement("S-56", f"{PAPER} A.10", "the trained β_px approaches the logistic weights", "direction",
               "the rank correlation over words seen ten times is at least .5 in every proxy; differs if all are < 0"),
    _statement("S-57", f"{PAPER} A.10, table 10", "A(β_uf, β_log) is close to A(β_uf, β_px)", "not found; SMS 23-33 "
               "for the logistic (log)", "the interval of their difference, over proxies, runs under uniform attention "
               "and texts, lies within ±.1"),
    _statement("S-58", f"{PAPER} A.8", "cost of a classifier on one GPU", "at most 45 minutes (text, context only)",
               "another machine: the time of this run stands in run.json"),
    _statement("B-08", f"{BLOGGED}, gated LSTM", "a classifier with a_l = αᵀh_l also learns β first, attention later",
               "direction", "as S-01, for the runs with linear scoring"),
    _statement("B-09", f"{BLOGGED}, background", "a classifier that attends uniformly reaches the same test loss",
               "direction", "the interval over runs of the difference of their lowest losses lies within ±.03"),
    _statement("B-14", f"{BLOGGED}, limitations", "learned attention shapes later training: A(α, β) exceeds A(α, β_uf)",
               "direction here (55.2 against 30.2 in translation, log)", "the interval of the difference, over gold "
               "runs, other seeds, runs under uniform attention and texts, lies above 0"),
    _statement("O-02", f"{SLIDES}, prior work", "uniform attention gives the same accuracy", "direction",
               "the interval over runs of the difference of their best accuracies lies within ±.01"),
    _statement("O-05", f"{SLIDES}, output relevance", "at initialisation attention and relevance are both uniform",
               "direction", "at step 0 the entropy of α is at least .95 and the standard deviation of β at most .05"),
    _statement("O-07", f"{SLIDES}, uniform training", "relevance from uniform training correlates with influence, by "
               "gradient and by leaving out", "direction", f"of A(Δ, β_uf) and of A(Δ_loo, β_uf) {LARGEST}"),
)  # fmt: skip
