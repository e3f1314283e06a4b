"""What is published on classification: the statements that `salient-words` judges, and the authors' logged values."""

from attndyn.studies.base import Statement
from attndyn.studies.salient_names import CODE, COLUMNS, TRAIN

PAPER, BLOGGED, SLIDES = "Snell et al.", "blog", "slides"
PUBLISHED_PARAMETERS = 1_274_882
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
STATEMENTS = (
    _statement("S-01", f"{PAPER} abstract, §1", "β finds the words that will be attended to before α does", "direction",
               "in more than half of the standard runs, by the interval of that share, A(α_gold, β) reaches half of "
               "its final value before A(α_gold, α) does"),
    _statement("S-02", f"{PAPER} §2.2, table 1", "α goes where β is large: A(α, β) far above Â",
               "direction here (55.2 and 60.2 in translation, log)", f"A(α, β of another seed): {ABOVE}"),
    _statement("S-03", f"{PAPER} §2.3", "attention is near uniform at the start of training", "direction",
               "the entropy of α at step 0, over that of uniform attention, is at least .95 in every run"),
    _statement("S-04", f"{PAPER} §2.4", "p(right) = σ(Σ α σ⁻¹(β))", "exact",
               "in float32, at the start and at the gold checkpoint of every run, no difference is above 1e-4"),
    _statement("S-05", f"{PAPER} §2.4", "the polarity score is β/(1−β)", "text; derived: its logarithm",
               "differs if the vote of a word is farther from the odds than 1e-3 (median)"),
    _statement("S-06", f"{PAPER} §3.1", "Â is about 5 %, off only by rounding", "IMDB 5.6, SST 8.32 (log)",
               "Â lies above 5 % by less than the mean of 1/L"),
    _statement("S-07", f"{PAPER} §3.1", "A(α, α(τ)) and performance rise together along training", "direction",
               "the interval over runs of their rank correlation lies above 0"),
    _statement("S-08", f"{PAPER} §3.2, tables 1, 4", "the dictionary is learned under uniform attention: A(α, β_uf) "
               "well above Â", "IMDB 52.55, SST 19.85 (log)", ABOVE),
    _statement("S-09", f"{PAPER} §3.2, tables 1, 4", "the bag-of-words proxy predicts it: A(β_uf, β_px) well above Â",
               "IMDB 81.60, SST 33.57 (log, as A(β_px, β_uf))", ABOVE),
    _statement("S-10", f"{PAPER} §5.1, tables 1, 4", "saliency follows it: A(Δ, β_uf) well above Â",
               "IMDB 61.55, SST 22.45 (log)", ABOVE),
    _statement("S-11", f"{PAPER} §3.2, tables 1, 4", "ξ(α, β_uf) is not trivial", "IMDB 86.81 of 89.55, SST 78.16 of "
               "83.53 (log)", "the interval over gold runs of ξ minus the accuracy at step 0 lies above 0; never "
               "counts as ξ*"),
    _statement("S-12", f"{PAPER} tables 1, 4", "ξ of the proxy is at least that of A(α, β_uf), that of saliency equal",
               "IMDB 88.88 and 86.81, SST never and 78.16 (log)", "the mean over gold runs of ξ of the proxy is not "
               "lower (never is the highest), and that of saliency lies within 5 points"),
    _statement("S-13", f"{PAPER} table 2 (A.4)", "the same conclusions with Kendall's τ", "not found",
               "the intervals of τ in the first three columns, over seeds and texts, lie above 0"),
    _statement("S-15", f"{PAPER} table 6 (A.4)", "the same on the training set", "IMDB 51.53 / 80.10 / 42.85, ξ 90.40 "
               "/ never / 90.40, ξ* 99.95 (log)", f"in the first three columns {ABOVE}"),
    _statement("S-17", f"{PAPER} A.5, table 8", "training texts and their median length", "IMDB 25,000; SMS 3,500 and "
               "13 (text)", "equal numbers, where one is published"),
    _statement("S-18", f"{PAPER} A.8", "words seen three times in the training texts", "IMDB 60,338; AG 31,065; 20NG "
               "12,488; SST 11,022; Yelp 41,368; Amazon 37,110; SMS 4,691", "equal numbers, where one is published"),
    _statement("S-19", f"{PAPER} A.8", "parameters without embeddings", "1,274,882 (text, exact)", "equal"),
    _statement("S-20", f"{PAPER} A.8", "the embeddings start from GloVe", "text; the logged runs did not use it",
               "what changes with vectors is reported (--vectors); a set-up has no verdict of its own"),
    _statement("S-27", f"{PAPER} A.6, table 9", "with β frozen at random the attention does not learn: A(α, α_fr) "
               "stays below A(α, β_uf)", "not found", "the interval of the difference, over texts, lies above 0"),
    _statement("S-36", f"{PAPER} §4.3, fig. 4", "counts give the polarity of words, which then draws attention",
               "direction", f"of A(β_count, β_uf) and of A(α, β_count) {ABOVE}"),
    _statement("S-37", f"{PAPER} §5.1", "attention correlates with saliency: A(α, Δ) above Â", "direction", ABOVE),
    _statement("S-53", f"{PAPER} A.7", "A(α, β_uf(τ)) rises, then falls", "direction",
               "it peaks after step 0, and the interval of peak minus last, over seeds and texts, lies above 0"),
    _statement("S-54", f"{PAPER} A.9", "on SMS the attention of two seeds does not agree", "A(α, β_uf) .9-1.7, A(α, β) "
               "9.4-9.7, Â 8-10 (log)", "on SMS: the interval of A(α, α of another seed) minus Â does not lie above 0"),
    _statement("S-55", f"{PAPER} A.10", "for classification the proxy is a bag-of-words logistic regression", "exact",
               "its answers are the mean of its words' votes and a constant, to 1e-3 in float32"),
    _statement("S-56", f"{PAPER} A.10", "the trained β_px approaches the logistic weights", "direction",
               "the rank correlation over words seen ten times is at least .5 in every proxy; differs if all are < 0"),
    _statement("S-57", f"{PAPER} A.10, table 10", "A(β_uf, β_log) is close to A(β_uf, β_px)", "not found; SMS 23-33 "
               "for the logistic (log)", "the interval of their difference, over texts, lies within ±.1"),
    _statement("S-58", f"{PAPER} A.8", "cost of a classifier on one GPU", "at most 45 minutes (text, context only)",
               "another machine: the time of this run stands in run.json"),
    _statement("B-08", f"{BLOGGED}, gated LSTM", "a classifier with a_l = αᵀh_l also learns β first, attention later",
               "direction", "as S-01, for the runs with linear scoring"),
    _statement("B-09", f"{BLOGGED}, background", "a classifier that attends uniformly reaches the same test loss",
               "direction", "the interval over runs of the difference of their lowest losses lies within ±.03"),
    _statement("B-14", f"{BLOGGED}, limitations", "learned attention shapes later training: A(α, β) exceeds A(α, β_uf)",
               "direction here (55.2 against 30.2 in translation, log)", "the interval of the difference, over texts, "
               "lies above 0"),
    _statement("O-02", f"{SLIDES}, prior work", "uniform attention gives the same accuracy", "direction",
               "the interval over runs of the difference of their best accuracies lies within ±.01"),
    _statement("O-05", f"{SLIDES}, output relevance", "at initialisation attention and relevance are both uniform",
               "direction", "at step 0 the entropy of α is at least .95 and the standard deviation of β at most .05"),
    _statement("O-07", f"{SLIDES}, uniform training", "relevance from uniform training correlates with influence, by "
               "gradient and by leaving out", "direction", f"of A(Δ, β_uf) and of A(Δ_loo, β_uf) {ABOVE}"),
)  # fmt: skip
