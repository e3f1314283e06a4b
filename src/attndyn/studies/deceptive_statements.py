"""What is published on uniform and deceptive attention, and how `deceptive-attention` judges it."""

from attndyn.studies.base import Statement
from attndyn.studies.deceptive_names import EPSILONS
from attndyn.studies.exclusive import KEPT, Y_07

COSTS_NOTHING, SAME_LOSS, VARIES, CLOSE = 0.01, 0.03, 0.02, 0.1
"""Of accuracy; of loss; of JSD between seeds; of TVD."""
FREE = ("ag_news_wb", "newsgroups_sport")
"""Corpora that do not need attention, they say."""
WP, SLIDES = "Wiegreffe and Pinter", "slides"

STATEMENTS = (
    Statement(id="W-01", source=f"{WP} §3.2", statement="AG News and 20 Newsgroups do not need attention; the other "
              "corpora do", published="direction", rule="the interval, over runs, of the test accuracy under uniform "
              f"minus under learned attention: on AG News and 20 Newsgroups above −{COSTS_NOTHING}; on SST and IMDB "
              f"below 0. Differs: below −{COSTS_NOTHING}; above −{COSTS_NOTHING}"),
    Statement(id="W-02", source=f"{WP} §3.3", statement="attention varies over seeds; this is the baseline for any "
              "different attention (very large on Diabetes)", published="direction (Diabetes not testable here)",
              rule="the interval, over texts and seeds (with the jackknife, as neighbours share a seed), of the JSD of "
              "the attention of the seed before from that of each seed lies above "
              f"{VARIES}; inconclusive with two seeds"),
    Statement(id="W-03", source=f"{WP} §3.4", statement="attention of a trained LSTM helps a per-word model more than "
              "uniform attention or its own", published="direction", rule="the intervals, over runs, of the test "
              "accuracy under the base's attention minus under uniform and minus under its own lie above 0"),
    Statement(id="W-04", source=f"{WP} §4, §5.1", statement="the per-instance adversary is easy to find because it is "
              "detached from the model and the task is binary", published="direction", rule=f"at ε {EPSILONS[0]:g} its "
              "mean JSD from a base less the largest JSD of the adversaries trained as whole models, of either "
              f"direction of KL, whose own mean TVD from that base is at most {CLOSE}: the interval over the bases "
              "that have such adversaries lies above 0; inconclusive with fewer than two such bases"),
    Statement(id="W-05", source=f"{WP} §5.3", statement="trained as a whole model the adversary pays for divergence: "
              "TVD rises with JSD along λ", published="figure, values not recovered", rule="the interval, over seeds, "
              "of the rank correlation of TVD and JSD along λ lies above 0 (KL(adversary ‖ base))"),
    Statement(id="O-02", source=f"{SLIDES}, prior work", statement="uniform attention gives the same accuracy",
              published="direction (compare W-01)", rule="the interval, over runs, of the difference of test "
              f"accuracies lies within ±{COSTS_NOTHING}"),
    Statement(id="B-09", source="blog, background", statement="a classifier that attends uniformly reaches the same "
              "test loss", published="direction", rule="the interval, over runs, of the difference of the lowest "
              f"losses on the development texts lies within ±{SAME_LOSS}"),
    Statement(id="O-03", source=f"{SLIDES}, deceptive attention", statement="a model trained on TVD − λ KL attends "
              "elsewhere without losing accuracy", published="direction", rule="at some λ the mean JSD from the base "
              "is larger than that of any other seed, and Student's interval, over adversaries, of test accuracy minus "
              f"that of the own base lies above −{KEPT}; the intervals of all λ hold together at 95 % (Bonferroni), as "
              "the best one is taken. Differs if at every λ with such a JSD it lies below, or no λ has such a JSD. "
              "Measured: the largest JSD at which it holds; if it does at none, the largest JSD"),
    Statement(id="O-04", source=f"{SLIDES}, deceptive attention", statement="its attention is anti-correlated with "
              "influence", published="direction", rule="at the λ with the largest JSD among those whose mean accuracy "
              f"is within {KEPT} of the base's (if there is none, the λ with the highest mean accuracy), the interval, "
              "over seeds and texts, of τ(α, leaving out) lies below 0; undecided if another seed attends as far away"),
    Y_07,
)  # fmt: skip
