"""One curve for four models: does the attention logit of real networks follow x + eˣ/m = y²/2 + c as well?

New. Three published models of learning to attend keep the same quantity (`theory/invariant.py`): Lu et al.'s topic
words, the blog's toy with a softmax gate, and Zucchet et al.'s reduced model. Here it is checked in each, and then two
networks that are none of them are put beside the curve, with one number to choose, the unit of their knowledge: the
LSTM classifier of the study `salient-words` looking for a keyword, and the translator of `copying`.
Cost: demo 40 s on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attndyn.errors import UserError
from attndyn.measures.knowledge_readings import LogitAndKnowledge
from attndyn.measures.readings import Answers
from attndyn.models.specs import Classifier, Seq2Seq
from attndyn.report.parts import Part, Phase, Table
from attndyn.studies.base import Judgement, Piece, Statement, Study
from attndyn.studies.invariant_claims import STATEMENTS, followed, follows
from attndyn.tasks.keyword import Keyword
from attndyn.tasks.synthetic import Subsets
from attndyn.training.condition import Adam, Condition

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.metrics import Metrics, Row
    from attndyn.theory.invariant import Fit

NETWORK, LINEAR, TRANSLATOR = "classifier", "classifier, linear scores", "translator"
SCORINGS: dict[str, Literal["network", "linear"]] = {NETWORK: "network", LINEAR: "linear"}
TOPIC = {kind: f"topic words, {kind}" for kind in ("FC", "TC", "TL")}
TOY = {f"toy from δ = {delta:g}": (delta, end) for delta, end in ((0.0, 12.0), (-2.0, 16.0), (-3.0, 22.0))}
TOGETHER, ATTENDED = 0.9, 0.9
"""Rank correlation of logit and knowledge, and attention in the end, from which on Lu et al.'s results hold."""
READ = 120
"""Readings of an integrated or topic run."""


@dataclass(frozen=True, kw_only=True)
class Invariant(Study):
    name: ClassVar[str] = "invariant"
    title: ClassVar[str] = "One curve: attention logit against knowledge, in theory and in trained networks"
    source: ClassVar[str] = (
        "new; Lu et al., arXiv 2011.10036; Zucchet et al., arXiv 2505.17863; Snell et al., blog post"
    )
    statements: ClassVar[tuple[Statement, ...]] = STATEMENTS
    demo: ClassVar[dict[str, Any]] = {
        "seeds": 4, "keyword_length": 20, "width": 32, "keyword_hidden": 32, "keyword_steps": 400, "length": 12,
        "words": 18, "hidden": 64, "batch": 64, "lr": 2e-3, "steps": 120, "every": 4, "evaluation": 48,
        "epochs": 1500, "rate": 0.25, "sentences": 1250, "topic_seeds": 2, "lengths": (8, 64), "widths": (64,),
    }  # fmt: skip
    seeds: int = 5
    """Training runs of each network: seeds 0, 1, 2, …"""
    keyword_length: int = 40
    """Words in a sequence of the classifiers, and different words, the keyword among them."""
    width: int = 300
    """Of the classifiers' word vectors."""
    keyword_hidden: int = 256
    """Of their LSTM, in each direction."""
    keyword_batch: int = 32
    """Sequences in a training step of theirs."""
    keyword_lr: float = 1e-3
    """Their learning rate (Adam)."""
    keyword_steps: int = 600
    """Their training steps."""
    length: int = 40
    """Words in a sequence of the translator."""
    words: int = 60
    """Different words there."""
    hidden: int = 256
    """Of its LSTMs."""
    batch: int = 128
    """Sequences in a training step of it."""
    lr: float = 1e-3
    """Its learning rate (Adam)."""
    steps: int = 200
    """Its training steps."""
    every: int = 5
    """Steps between two readings."""
    evaluation: int = 50
    """Fixed evaluation sequences."""
    topic_seeds: int = 4
    """Runs of each topic model."""
    epochs: int = 5000
    """Steps of gradient descent of the topic models."""
    rate: float = 0.1
    """Their step size."""
    sentences: int = 5000
    """Their sentences."""
    lengths: tuple[int, ...] = (8, 64, 512)
    """Sequence lengths T of the reduced model."""
    widths: tuple[int, ...] = (64, 1024)
    """Widths d of the reduced model."""

    def __post_init__(self) -> None:
        self.at_least_one("seeds", "topic_seeds", "every", "evaluation")
        if self.epochs < READ or min(self.keyword_steps, self.steps) < 2 * self.every:
            raise UserError(
                f"epochs must be at least {READ}, and a network be read twice on its way, not {self.epochs} epochs, "
                f"{self.keyword_steps} and {self.steps} steps with a reading every {self.every}"
            )
        for name in ("lr", "keyword_lr", "rate"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UserError(f"{name.replace('_', '-')} must be a number above 0, not {getattr(self, name)}")
        if min(self.lengths, default=0) < 2 or min(self.widths, default=0) < 1:
            raise UserError(f"lengths must be at least 2 and widths 1, not {self.lengths} and {self.widths}")
        for _ in (*self.conditions(), *self.pieces()):  # impossible sizes are refused before anything runs
            pass

    # --- what is trained and integrated

    def conditions(self) -> Iterator[Condition]:
        keyword = Keyword(self.keyword_length, self.keyword_length)
        for name, scoring in SCORINGS.items():
            model = Classifier(width=self.width, hidden=self.keyword_hidden, scoring=scoring)
            rates: tuple[int, float, int] = (self.keyword_batch, self.keyword_lr, self.keyword_steps)
            yield self.condition(name, keyword, model, *rates)
        copying = Subsets(self.length, of=self.words)
        yield self.condition(TRANSLATOR, copying, Seq2Seq(self.hidden), self.batch, self.lr, self.steps)

    def condition(self, name: str, task: Any, model: Any, batch: int, lr: float, steps: int) -> Condition:
        return Condition(
            name=name,
            task=task,
            model=model,
            seeds=tuple(range(self.seeds)),
            steps=steps,
            batch=batch,
            optimiser=Adam(lr=lr),
            evaluation=self.evaluation,
            readings=(Answers(every=self.every), LogitAndKnowledge(every=self.every)),
        )

    def pieces(self) -> Iterator[Piece]:
        from attndyn.tasks.topics import TopicWords

        task = TopicWords(sentences=self.sentences)
        for kind, name in TOPIC.items():
            for seed in range(self.topic_seeds):
                measure = partial(_topic, task, kind, self.rate, self.epochs, seed)
                yield Piece(condition=name, replica=seed, measure=measure, cost=30.0)
        for name, (delta, end) in TOY.items():
            yield Piece(condition=name, measure=partial(_toy, delta, end))
        for length, width in self.reduced_sizes:
            yield Piece(condition=reduced_name(length, width), measure=partial(_reduced, length, width))

    @property
    def reduced_sizes(self) -> list[tuple[int, int]]:
        return [(length, width) for length in self.lengths for width in self.widths]

    @property
    def others(self) -> dict[str, int]:
        """m of each network; the translator also reads an end token."""
        return {NETWORK: self.keyword_length - 1, LINEAR: self.keyword_length - 1, TRANSLATOR: self.length}

    # --- what was found

    def fits(self, metrics: Metrics, name: str) -> list[Fit]:
        from attndyn.theory.invariant import fitted

        x, k = (metrics.curves(name, of).values for of in ("logit", "knowledge"))
        return [fitted(*run, float(self.others[name])) for run in zip(x, k, strict=True)]

    def analyse(self, metrics: Metrics) -> Iterator[Row]:
        from attndyn.store.metrics import Row

        for name in self.others:
            x, k = (metrics.curves(name, of) for of in ("logit", "knowledge"))
            for row, (seed, fit) in enumerate(zip(x.replicas.tolist(), self.fits(metrics, name), strict=True)):
                for of, value in fit._asdict().items():
                    yield Row(name, seed, int(x.steps[-1]), f"fit: {of}", value)
                for step, logit, known in zip(x.steps.tolist(), x.values[row], k.values[row], strict=True):
                    yield Row(name, seed, step, "x", float(logit))
                    yield Row(name, seed, step, "y", float(fit.scale * known))

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        from attndyn.measures import verdicts

        def decided(worst: float, most: float, measured: str, n: int) -> Judgement:
            return Judgement(measured=measured, n=n, verdict=verdicts.HOLDS if worst <= most else verdicts.DIFFERS)

        off = {kind: metrics.curves(name, "off").last for kind, name in TOPIC.items()}
        worst = max(values.max() for values in off.values())
        each = ", ".join(f"{kind} {values.max():.2%}" for kind, values in off.items())
        yield "I-01", decided(worst, 0.05, f"at most {each}", sum(map(len, off.values())))
        for id, names in (("I-02", list(TOY)), ("I-03", [reduced_name(*sizes) for sizes in self.reduced_sizes])):
            drift = max(metrics.curves(name, "drift").last.max() for name in names)
            yield id, decided(drift, 1e-6, f"changes by {drift:.1g} in {len(names)} trajectories", len(names))
        yield "I-04", followed([fit for name in (NETWORK, LINEAR) for fit in self.fits(metrics, name)])
        yield "I-05", followed(self.fits(metrics, TRANSLATOR))
        yield "L-11", self._convenience(metrics)

    def _convenience(self, metrics: Metrics) -> Judgement:
        import numpy as np
        from scipy.stats import spearmanr

        from attndyn.measures import verdicts

        results = []
        for name in (NETWORK, LINEAR):
            x, k = (metrics.curves(name, of).values for of in ("logit", "knowledge"))
            ends = metrics.curves(name, "attention").last
            for row, fit in enumerate(self.fits(metrics, name)):
                together = float(spearmanr(x[row], k[row]).statistic) >= TOGETHER
                results.append((together, ends[row] >= ATTENDED, follows(fit)))
        held = np.array(results)
        verdict = verdicts.INCONCLUSIVE
        if (held.sum(axis=1) >= 2).all():
            verdict = verdicts.HOLDS
        elif (held.sum(axis=1) <= 1).all():
            verdict = verdicts.DIFFERS
        grown, attended, closed = (int(count) for count in held.sum(axis=0))
        return Judgement(
            measured=f"of {len(held)} runs: grow together {grown}, attention ends on the keyword {attended}, closed "
            f"form {closed}",
            n=len(held),
            verdict=verdict,
        )

    def finding(self, metrics: Metrics) -> str:
        parts = []
        for name in self.others:
            fits = self.fits(metrics, name)
            count, mean = sum(map(follows, fits)), sum(fit.error for fit in fits) / len(fits)
            parts.append(f"{count} of {len(fits)} runs of the {name} (off by {mean:.0%} of the range in the mean)")
        return f"The curve x + eˣ/m = y²/2 + c is followed by {', '.join(parts)}."

    # --- the page

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        m = dict.fromkeys(TOPIC.values(), 20) | self.others
        yield self._phase(
            metrics,
            "networks",
            "Trained networks",
            "The classifiers on a keyword, one line a seed. y is the knowledge k of the keyword's position in the unit "
            "that fits best, run by run.",
            (NETWORK, LINEAR),
            m[NETWORK],
        )
        yield self._phase(
            metrics,
            "translator",
            "The copying translator",
            "The same for the word that is copied.",
            (TRANSLATOR,),
            m[TRANSLATOR],
        )
        yield self._table(metrics)
        yield self._phase(
            metrics,
            "topic",
            "Lu et al.'s topic words",
            "Score of a topic word against |q||ν|, nothing fitted; one line a seed.",
            tuple(TOPIC.values()),
            20,
        )
        yield self._phase(
            metrics,
            "toy",
            "The toy with a softmax gate",
            "Integrated trajectories; y = δ/√2. The dashed curve is that of the start at δ = 0; the others begin at "
            "y < 0 and keep constants of their own.",
            tuple(TOY),
            1,
        )
        length, width = max(self.lengths), self.widths[0]
        name = reduced_name(length, width)
        yield self._phase(
            metrics, "reduced", "Zucchet et al.'s reduced model", "Integrated; y = w.", (name,), length - 1
        )
        yield self._drifts(metrics)

    def _phase(
        self, metrics: Metrics, name: str, title: str, caption: str, conditions: tuple[str, ...], others: int
    ) -> Phase:
        import numpy as np

        from attndyn.theory.invariant import logit_at

        x, y = (np.concatenate([metrics.curves(one, of).values.ravel() for one in conditions]) for of in ("x", "y"))
        x, y = x[np.isfinite(x)], y[np.isfinite(y)]
        first = float(metrics.curves(conditions[0], "x").values[:, 0].mean())
        along = np.linspace(0.0, float(y.max()), 60)
        predicted = logit_at(along, float(others), first)
        margin = 0.05 * float(max(x.max(), predicted.max()) - x.min())
        return Phase(
            name=name,
            title=title,
            caption=f"{caption} Dashed: x + eˣ/m = y²/2 + c with m = {others}.",
            x="y",
            y="x",
            x_title="strength y of the knowledge",
            y_title="attention logit x",
            x_domain=(min(0.0, float(y.min())) - 0.03 * float(y.max()), float(1.03 * y.max())),
            y_domain=(min(0.0, float(x.min())) - margin, float(max(x.max(), predicted.max())) + margin),
            arrows=(),
            conditions=conditions,
            boundary=tuple(zip(along.tolist(), predicted.tolist(), strict=True)),
        )

    def _table(self, metrics: Metrics) -> Table:
        rows = []
        for name in self.others:
            for seed, fit in enumerate(self.fits(metrics, name)):
                errors = (fit.error, fit.linear, fit.quadratic, fit.logarithmic)
                shown = (float(f"{error:.3f}") for error in errors)
                rows.append((name, seed, float(f"{fit.scale:.3g}"), *shown, "yes" if follows(fit) else "no"))
        return Table(
            name="fits",
            title="How far off, beside rivals",
            caption="Root mean square distance of the logit from each one-number curve, as a share of its range. A run "
            "follows if the first is below .1 and the smallest.",
            columns=("network", "seed", "unit of k", "x + eˣ/m = y²/2 + c", "linear in k", "linear in k²",
                     "ln (1 + b k²)", "follows"),
            rows=tuple(rows),
        )  # fmt: skip

    def _drifts(self, metrics: Metrics) -> Table:
        rows: list[tuple[str, int, float]] = []
        exact = [*((name, 1) for name in TOY), *((reduced_name(*sizes), sizes[0] - 1) for sizes in self.reduced_sizes)]
        for name, others in exact:
            rows.append((name, others, float(f"{metrics.curves(name, 'drift').last.max():.2g}")))
        for name in TOPIC.values():
            rows.append((name, 20, float(f"{metrics.curves(name, 'off').last.max():.2g}")))
        return Table(
            name="drifts",
            title="Where it is derived",
            caption="Largest change of x + eˣ/m − y²/2 along an integrated trajectory; for topic words, which train in "
            "steps and among words that are not quite silent, the largest distance from the curve as a share of the "
            "final |q||ν|.",
            columns=("model", "m", "off by"),
            rows=tuple(rows),
        )


def reduced_name(length: int, width: int) -> str:
    return f"reduced model, T = {length}, d = {width}"


# --- what is integrated

Measured = Iterator[tuple[int, str, float]]


def _along(x: np.ndarray, y: np.ndarray, others: int) -> Measured:
    import numpy as np

    from attndyn.theory.invariant import constant

    for step in range(len(x)):
        yield step, "x", float(x[step])
        yield step, "y", float(y[step])
    kept = constant(x, y, float(others))
    yield len(x) - 1, "drift", float(np.abs(kept - kept[0]).max())


def _toy(delta: float, end: float) -> Measured:
    import numpy as np

    from attndyn.theory import gated_toy as toy

    path = toy.integrate(toy.softmax, toy.State(-delta / 2, delta / 2, 0.0), end, points=READ)
    yield from _along(path.gate, path.delta / np.sqrt(2), 1)


def _reduced(length: int, width: int) -> Measured:
    from attndyn.theory.invariant import reduced_path

    _, w, gap = reduced_path(length, width, READ)
    yield from _along(gap, w, length - 1)


def _topic(task: Any, kind: Any, rate: float, epochs: int, seed: int) -> Measured:
    """Score and scaled norm of the first topic word; "off" is the worst of all of them."""
    import numpy as np

    from attndyn.models.topic import Topic
    from attndyn.studies.topic_runs import foretold, train

    readings = sorted({round(epochs * part / READ) for part in range(READ + 1)})
    path = train(task, Topic(kind), rate, readings, seed)
    n = task.topic_words
    simple, _ = foretold(path, n, task.others)
    for step, epoch in enumerate(path.epochs.tolist()):
        yield epoch, "x", float(path.scores[step, 0])
        yield epoch, "y", float(path.norms[step, 0])
    off = np.abs(simple - path.norms[:, :n]) / path.norms[-1, :n]
    yield int(path.epochs[-1]), "off", float(off.max())
