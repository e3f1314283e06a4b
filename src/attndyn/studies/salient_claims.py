"""What is published on classification, and how `salient-words` decides on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attndyn.measures.verdicts import (
    DIFFERS,
    HOLDS,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    Interval,
    by_majority,
    by_margin,
    by_sign,
    difference_interval,
    mean_interval,
    share_interval,
)  # fmt: skip
from attndyn.report.parts import Table
from attndyn.studies.base import Judgement, Statement
from attndyn.studies.salient_names import (
    BLOG,
    CODE,
    COLUMNS,
    KENDALL,
    PROXY,
    STANDARD,
    SUMMARY,
    TEXT,
    TRAIN,
    UNIFORM,
)  # fmt: skip

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics
    from attndyn.studies.salient_words import SalientWords

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


class Judge:
    """Reads the tables of a run, for the claims and for the page."""

    def __init__(self, study: SalientWords, metrics: Metrics) -> None:
        self.study, self.metrics = study, metrics
        self.corpus = study.task.data.name

    def value(self, condition: str, metric: str) -> float:
        return float(self.metrics.curves(condition, metric).values[0, 0])

    def above(self, condition: str, metric: str) -> Interval:
        return Interval(*(self.value(condition, f"{metric} above {end}") for end in ("low", "high")))

    def between(self, condition: str, metric: str) -> Interval:
        return Interval(*(self.value(condition, f"{metric} {end}") for end in ("low", "high")))

    def each(self, condition: str, metric: str) -> list[float]:
        """One value for each run, whatever the step; NaN: never."""
        import numpy as np

        rows = self.metrics.curves(condition, metric).values
        return [float(row[~np.isnan(row)][0]) if (~np.isnan(row)).any() else float("nan") for row in rows]

    def percent(self, condition: str, metric: str) -> str:
        spread = self.between(condition, metric)
        value = 100 * self.value(condition, metric)
        return f"{value:.2f} [{100 * spread.low:.2f}, {100 * spread.high:.2f}]"

    def all(self) -> Iterator[tuple[str, Judgement]]:
        yield from self._stages("S-01", STANDARD)
        if BLOG in self.metrics:
            yield from self._stages("B-08", BLOG)
        yield from self._exact()
        yield from self._agreement()
        yield from self._thresholds()
        yield from self._sizes()
        yield from self._training()

    def _stages(self, id: str, condition: str) -> Iterator[tuple[str, Judgement]]:
        beta, alpha = (self.each(condition, f"half of {name} at") for name in ("A(α, β)", "A(α, α)"))
        before = sum(b < a for b, a in zip(beta, alpha, strict=True))
        interval = share_interval(before, len(beta))
        steps = f"β at steps {_range(beta)}, α at {_range(alpha)}"
        yield id, Judgement(measured=f"{before} of {len(beta)} runs; {steps}", verdict=by_majority(interval),
                            interval=interval, n=len(beta))  # fmt: skip

    def _exact(self) -> Iterator[tuple[str, Judgement]]:
        entropy = self.each(STANDARD, "attention entropy, start")
        even = min(entropy) >= 0.95
        yield "S-03", Judgement(measured=f"entropy {_range(entropy, '.4f')} of 1", verdict=HOLDS if even else DIFFERS,
                                n=len(entropy))  # fmt: skip
        spread = self.each(STANDARD, "probe spread, start")
        flat = even and max(spread) <= 0.05
        yield "O-05", Judgement(
            measured=f"entropy {_range(entropy, '.4f')}; β varies by {_range(spread, '.3f')}",
            verdict=HOLDS if flat else DIFFERS, n=len(spread),
        )  # fmt: skip
        worst = self.value(SUMMARY, "answer minus combined votes")
        yield "S-04", Judgement(measured=f"largest difference {worst:.1e}", verdict=HOLDS if worst < 1e-4 else DIFFERS)
        apart = self.value(SUMMARY, "odds minus log-odds")
        yield "S-05", Judgement(measured=f"the vote is the log-odds; from the odds it is {apart:.2g} away (median)",
                                verdict=DIFFERS if apart > 1e-3 else HOLDS)  # fmt: skip
        chance = 100 * self.value(SUMMARY, "chance")
        yield (
            "S-06",
            Judgement(measured=f"{chance:.2f} %", verdict=HOLDS if 5 <= chance <= 5 + self._rounding() else DIFFERS),
        )
        bag = max(self.each(PROXY, "answer minus bag of words"))
        yield "S-55", Judgement(measured=f"largest difference {bag:.1e}", verdict=HOLDS if bag < 1e-3 else DIFFERS)
        rank = self.each(PROXY, "rank correlation with the logistic")
        verdict = HOLDS if min(rank) >= 0.5 else DIFFERS if max(rank) < 0 else INCONCLUSIVE
        yield "S-56", Judgement(measured=f"ρ = {_range(rank, '.2f')}", verdict=verdict, n=len(rank))

    def _rounding(self) -> float:
        from attndyn.tasks.ragged import examined

        data = self.study.task.data
        lengths = examined(data.train, data.valid, self.study.evaluation, "valid").source.lengths
        return float(100 * (1 / lengths).mean())

    def _agreement(self) -> Iterator[tuple[str, Judgement]]:
        chance = f"Â {100 * self.value(SUMMARY, 'chance'):.2f}"

        def one(id: str, condition: str, *metrics: str) -> tuple[str, Judgement]:
            intervals = [self.above(condition, metric) for metric in metrics]
            lowest = min(intervals)
            named = "; ".join(f"{metric} {self.percent(condition, metric)}" for metric in metrics)
            return id, Judgement(measured=f"{named}; {chance}", verdict=by_sign(lowest), interval=lowest)

        if len(self.study.seeds_of(STANDARD)) > 1:
            yield one("S-02", CODE, COLUMNS[3])
            if self.corpus == "sms_spam":
                yield self._outlier()
            gap = self.between(SUMMARY, "A(α, β) minus A(α, β_uf)")
            measured = f"{self.percent(CODE, COLUMNS[3])} against {self.percent(CODE, COLUMNS[0])}"
            yield "B-14", Judgement(measured=measured, verdict=by_sign(gap), interval=gap)
        yield one("S-08", CODE, COLUMNS[0])
        yield one("S-09", CODE, COLUMNS[1])
        yield one("S-10", CODE, COLUMNS[2])
        yield one("S-15", TRAIN, *COLUMNS[:3])
        yield one("S-36", SUMMARY, "A(β_count, β_uf)", "A(α, β_count)")
        yield one("S-37", SUMMARY, "A(α, Δ)")
        low = min(self.between(KENDALL, metric) for metric in COLUMNS[:3])
        ranked = [f"{metric.replace('A(', 'τ(')} {self.value(KENDALL, metric):.3f}" for metric in COLUMNS[:3]]
        yield "S-13", Judgement(measured="; ".join(ranked), verdict=by_sign(low), interval=low)
        gradient, left_out = self.above(CODE, COLUMNS[2]), self.above(SUMMARY, "A(Δ_loo, β_uf)")
        yield "O-07", Judgement(
            measured=f"by gradient {self.percent(CODE, COLUMNS[2])}, by leaving out "
            f"{self.percent(SUMMARY, 'A(Δ_loo, β_uf)')}; {chance}",
            verdict=by_sign(min(gradient, left_out)), interval=min(gradient, left_out),
        )  # fmt: skip
        gap = self.between(SUMMARY, "A(α, β_uf) minus A(α, α_fr)")
        yield "S-27", Judgement(
            measured=f"{self.percent(SUMMARY, 'A(α, α_fr)')} against {self.percent(CODE, COLUMNS[0])}; {chance}",
            verdict=by_sign(gap), interval=gap,
        )  # fmt: skip
        gap = self.between(SUMMARY, "A(β_log, β_uf) minus A(β_px, β_uf)")
        yield "S-57", Judgement(
            measured=f"{self.percent(SUMMARY, 'A(β_log, β_uf)')} against {self.percent(CODE, COLUMNS[1])}",
            verdict=by_margin(gap, 0.1), interval=gap,
        )  # fmt: skip
        fall = self.between(SUMMARY, "fall of A(α, β_uf)")
        peak = self.value(SUMMARY, "peak step of A(α, β_uf)")
        ends = [100 * self.value(SUMMARY, f"{which} of A(α, β_uf)") for which in ("peak", "last")]
        yield "S-53", Judgement(
            measured=f"{ends[0]:.1f} at step {peak:.0f}, {ends[1]:.1f} in the end",
            verdict=by_sign(fall) if peak > 0 else DIFFERS, interval=fall,
        )  # fmt: skip

    def _outlier(self) -> tuple[str, Judgement]:
        apart = self.above(SUMMARY, "A(α, α of another seed)")
        measured = "; ".join(
            f"{name} {self.percent(where, name)}"
            for where, name in ((SUMMARY, "A(α, α of another seed)"), (CODE, COLUMNS[0]), (CODE, COLUMNS[3]))
        )
        verdict = DIFFERS if apart.low > 0 else HOLDS if apart.high < 0.02 else INCONCLUSIVE
        return "S-54", Judgement(measured=f"{measured}; Â {100 * self.value(SUMMARY, 'chance'):.2f}", verdict=verdict,
                                 interval=apart)  # fmt: skip

    def _thresholds(self) -> Iterator[tuple[str, Judgement]]:
        import numpy as np

        if len(self.study.seeds_of(STANDARD)) < 2:
            return
        star = np.array(self.each(CODE, "ξ*"))
        first, proxy, saliency = (np.array(self.each(CODE, f"ξ of {name}")) for name in COLUMNS[:3])
        start = self.metrics.curves(STANDARD, "accuracy").values[:, 0]
        reached = np.where(np.isnan(first), star, first) - start
        interval = mean_interval(reached.tolist())
        shown = [_never(values) for values in (first, proxy, saliency)]
        yield "S-11", Judgement(measured=f"{shown[0]} of {100 * star.mean():.2f}; at step 0 {100 * start.mean():.2f}",
                                verdict=by_sign(interval), interval=interval, n=len(first))  # fmt: skip
        a, b, c = (np.where(np.isnan(values), 1.0, values).mean() for values in (first, proxy, saliency))
        verdict = HOLDS if b >= a and abs(c - a) <= 0.05 else DIFFERS
        yield (
            "S-12",
            Judgement(measured=f"proxy {shown[1]}, saliency {shown[2]}, A(α, β_uf) {shown[0]}", verdict=verdict),
        )

    def _sizes(self) -> Iterator[tuple[str, Judgement]]:
        data, spec = self.study.task.data, self.study.task.data.corpus
        known = spec.published_train if spec else None
        train, median = len(data.train), self.value(SUMMARY, "median length")
        measured = f"{train:,} texts, median length {median:g}"
        same = train == known and (spec is None or spec.published_median in (None, median))
        verdict = NOT_COMPARABLE if known is None else HOLDS if same else DIFFERS
        yield "S-17", Judgement(measured=measured, verdict=verdict, why=f"published {known:,}" if known else "")
        words = int(self.value(SUMMARY, "vocabulary"))
        published_words = spec.published_vocabulary if spec else None
        unlike = published_words is None or known not in (None, train)
        yield (
            "S-18",
            Judgement(
                measured=f"{words:,} words ({self.study.vocabulary})",
                verdict=NOT_COMPARABLE if unlike else HOLDS if words == published_words else DIFFERS,
                why=f"published {published_words:,}" if published_words else "",
            ),
        )
        parameters = int(self.value(SUMMARY, "parameters"))
        if (self.study.width, self.study.hidden) == (300, 256) and self.study.task.outputs == 2:
            verdict = HOLDS if parameters == PUBLISHED_PARAMETERS else DIFFERS
            yield "S-19", Judgement(measured=f"{parameters:,}", verdict=verdict)
        yield "S-58", Judgement(measured="see run.json", verdict=NOT_COMPARABLE, why="another machine and program")

    def _training(self) -> Iterator[tuple[str, Judgement]]:
        import numpy as np
        from scipy.stats import spearmanr

        accuracy = self.metrics.curves(STANDARD, "accuracy").values
        agreement = self.metrics.curves(STANDARD, "A(α, α)").values
        moving = [(a, b) for a, b in zip(agreement, accuracy, strict=True) if np.ptp(a) > 0 and np.ptp(b) > 0]
        rank = [float(spearmanr(a, b).statistic) for a, b in moving]
        if len(rank) > 1:
            interval = mean_interval(rank)
            yield "S-07", Judgement(measured=f"ρ = {_range(rank, '.2f')}", verdict=by_sign(interval),
                                    interval=interval, n=len(rank))  # fmt: skip
        for id, metric, best, margin in (("B-09", "loss", np.min, 0.03), ("O-02", "accuracy", np.max, 0.01)):
            ours, even = (best(self.metrics.curves(name, metric).values, axis=1) for name in (STANDARD, UNIFORM))
            if min(len(ours), len(even)) > 1:
                gap = difference_interval(even.tolist(), ours.tolist())
                measured = f"{even.mean():.4f} against {ours.mean():.4f}"
                n = len(ours) + len(even)
                yield id, Judgement(measured=measured, verdict=by_margin(gap, margin), interval=gap, n=n)
        arms = [name for name in ("random vectors", "given vectors") if name in self.metrics]
        if len(arms) == 2:
            found = [self.metrics.curves(name, "accuracy").values.max(axis=1).mean() for name in arms]
            early = [self.metrics.curves(name, "accuracy").values[:, 3].mean() for name in arms]
            step = self.metrics.curves(arms[0], "accuracy").steps[3]
            yield "S-20", Judgement(
                measured=f"best accuracy {found[1]:.3f} with vectors, {found[0]:.3f} without; at step {step} "
                f"{early[1]:.3f} and {early[0]:.3f}",
                verdict=NOT_COMPARABLE, why="a set-up has no verdict of its own",
            )  # fmt: skip

    # --- tables of the page

    def _row(self, table: str) -> list[float | None]:
        """The ten columns of table 1, in %."""
        import numpy as np

        def mean(metric: str) -> float:
            values = np.array(self.each(table, metric))
            return float(np.nan if np.isnan(values).all() else np.nanmean(values))

        several = len(self.study.seeds_of(STANDARD)) > 1
        agreements = [self.value(table, name) if several or name != COLUMNS[3] else None for name in COLUMNS]
        thresholds = [mean(f"ξ of {name}") for name in COLUMNS]
        row = [*agreements, self.value(SUMMARY, "chance"), *thresholds, mean("ξ*")]
        return [None if value is None else 100 * value for value in row]

    def table_one(self) -> Table:
        rows = []
        for table in (CODE, TEXT, TRAIN):
            rows.append((table, *(_cell(value) for value in self._row(table))))
            known = published(self.corpus, table)
            if known is not None:
                rows.append((f"published: {table}", *(_cell(value) for value in known)))
        return Table(
            name="agreement-columns",
            title="Do attention, votes and influence agree?",
            caption="In %: how often the peak of the first is among the top 5 % of the second; means over gold runs "
            "and seeds. ξ: the accuracy at which the attention of another run agrees with the gold attention as well "
            "as that; ξ*: the accuracy of the gold run. How the code and the text are read: docs/salient-words.md.",
            columns=("", *HEADS),
            rows=tuple(rows),
        )

    def more_tables(self) -> Iterator[Table]:
        seeds = self.study.seeds_of(STANDARD)
        columns = COLUMNS if len(seeds) > 1 else COLUMNS[:3]
        runs = [
            (f"gold run {chr(65 + g)}", _cell(100 * self.each(f"{CODE}, by gold run", COLUMNS[0])[g]),
             _cell(100 * self.each(CODE, f"ξ of {COLUMNS[0]}")[g]), _cell(100 * self.each(CODE, "ξ*")[g]),
             *(self.each(STANDARD, f"half of {name} at")[g] for name in ("A(α, β)", "A(α, α)")))
            for g in range(len(seeds))
        ]  # fmt: skip
        yield Table(
            name="gold-runs",
            title="Each standard run as gold",
            caption="The first column of table 1 with each run as gold in turn; and the steps at which A(α_gold, β) "
            "and A(α_gold, α) of that run, against the gold of the others, reach half of their final value.",
            columns=("", COLUMNS[0], f"ξ of {COLUMNS[0]}", "ξ*", "half of β at", "half of α at"),
            rows=tuple(runs),
        )
        yield Table(
            name="kendall",
            title="The same with Kendall's τ",
            caption=f"Mean τ over {self.value(KENDALL, 'texts'):.0f} texts, the first standard run as gold; texts in "
            "which it is undefined (one of the two is constant) are left out and counted.",
            columns=("", "τ", "low", "high", "undefined"),
            rows=tuple(
                (name.replace("A(", "τ("),
                 *(round(self.value(KENDALL, name + end), 4) for end in ("", " low", " high", " undefined")))
                for name in columns
            ),
        )  # fmt: skip
        others = [
            "A(α, α of another seed)", "A(α, β of the same run)", "A(α, α_fr)", "A(β_log, β_uf)", "A(β_uf, β_log)",
            "A(β_count, β_uf)", "A(α, β_count)", "A(α, Δ)", "A(α, Δ_loo)", "A(Δ, Δ_loo)", "A(Δ_loo, β_uf)",
        ]  # fmt: skip
        known = set(self.metrics.curves_of(SUMMARY))
        yield Table(
            name="other-measures",
            title="Other agreements",
            caption="In %, with 95 % intervals over seeds and texts. α_fr: attention trained while all else stays at "
            "random (table 9). β_log: logistic regression (table 10); β_count: polarity by counting words; Δ_loo: "
            f"influence by leaving a word out, in {self.value(SUMMARY, 'texts with words left out'):.0f} texts.",
            columns=("", "%", "low", "high"),
            rows=tuple(
                (name, *(_cell(100 * self.value(SUMMARY, name + end)) for end in ("", " low", " high")))
                for name in others
                if name in known
            ),
        )
        data = self.study.task.data
        spec = data.corpus
        yield Table(
            name="corpus",
            title="The corpus",
            caption="Table 8 and A.8, beside what is published. Words: those seen three times, <bos>, <eos>, <unk> and "
            "padding included.",
            columns=("", "measured", "published"),
            rows=(
                ("training texts", len(data.train), spec.published_train if spec else None),
                ("median length", self.value(SUMMARY, "median length"), spec.published_median if spec else None),
                ("words", int(self.value(SUMMARY, "vocabulary")), spec.published_vocabulary if spec else None),
                ("parameters without embeddings", int(self.value(SUMMARY, "parameters")), PUBLISHED_PARAMETERS),
                ("texts cut", int(self.value(SUMMARY, "texts cut")), None),
            ),
        )


def _range(values: list[float], form: str = "g") -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low}-{high}"


def _never(values: object) -> str:
    """The mean of those that are reached, in %, and how many never are."""
    import numpy as np

    array = np.asarray(values, dtype=float)
    missing = int(np.isnan(array).sum())
    if missing == len(array):
        return "never"
    mean = f"{100 * np.nanmean(array):.2f}"
    return f"{mean} ({missing} of {len(array)} never)" if missing else mean


def _cell(value: float | None) -> str | float | None:
    if value is None:
        return None
    return "never" if value != value else round(value, 2)
