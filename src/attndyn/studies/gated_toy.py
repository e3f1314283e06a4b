"""The gated toy: two word weights and a gate under gradient flow, where words are learned before attention is.

Source: Snell et al., blog post, the warm-up. Nothing is trained: the post's differential equations are integrated
numerically and put beside their closed form, once with its unbounded gate and once with a real softmax gate.
Cost: under ten seconds at either scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.errors import UserError
from attndyn.report.parts import Part, Phase, Points, Table
from attndyn.studies.base import Judgement, Piece, Statement, Study

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics

EQUAL, MISTAKEN = "equal weights", "weights 10 and −10"
ABOVE, ON, BELOW = "just above the line", "on the line", "just below the line"
FREE = {EQUAL: (0.0, 3.0), ABOVE: (-0.6, 4.0), ON: (-(0.5**0.5), 4.0), BELOW: (-0.8, 4.0), MISTAKEN: (-20.0, 1.0)}
"""Trajectories of the free gate from p = ½: δ₀ and the time at which they end."""
SOFTMAX = {f"softmax gate from δ = {delta:g}": (delta, end) for delta, end in ((0.0, 12.0), (-2.0, 16.0), (-3.0, 22.0))}
GRID_FREE, GRID_SOFTMAX = "grid of starts, free gate", "grid of starts, softmax gate"
DRAWN, CLOSED, PRINTED = "drawn starts", "closed softmax gate", "the loss as printed"
DIFFERENCE = "difference of the weights δ"
ENOUGH = 12.0
"""By this time a free gate that is 1e-6 off the line is past ±10."""
LONG_ENOUGH = 1e4
"""By this time a softmax gate that starts at p ≥ .1 and δ ≥ −4 has opened."""


@dataclass(frozen=True, kw_only=True)
class GatedToy(Study):
    name: ClassVar[str] = "gated-toy"
    title: ClassVar[str] = "A gated toy: words first, attention later, and a line that decides where it ends"
    source: ClassVar[str] = "Snell et al., blog post of arXiv 2103.07601, warm-up"
    headline: ClassVar[str] = "p"

    seeds: int = 10
    """Sets of drawn starts: seeds 0, 1, 2, …"""
    starts: int = 200
    """Starts drawn for each seed and spread."""
    spreads: tuple[float, ...] = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 2.0)
    """Standard deviations σ of the drawn β₀ and β₁; 1 is PyTorch's default for a table of weights."""
    depths: tuple[float, ...] = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
    """|δ₀| from which a softmax gate has to recover."""

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise UserError(f"seeds must be at least 2, for the intervals, not {self.seeds}")
        if self.starts < 1:
            raise UserError(f"starts must be at least 1, not {self.starts}")
        for name in ("spreads", "depths"):
            if not all(0 < value < float("inf") for value in getattr(self, name)) or not getattr(self, name):
                raise UserError(f"{name} must be numbers above 0, not {getattr(self, name)}")
        if max(self.depths) > 10:
            raise UserError(f"a depth of {max(self.depths)} takes longer than can be integrated; 10 is the most")

    def pieces(self) -> Iterator[Piece]:
        for name, (delta, end) in FREE.items():
            yield Piece(condition=name, measure=partial(_free_path, delta, end))
        for name, (delta, end) in SOFTMAX.items():
            yield Piece(condition=name, measure=partial(_softmax_path, delta, end))
        yield Piece(condition=GRID_FREE, measure=partial(_grid, "free"))
        yield Piece(condition=GRID_SOFTMAX, measure=partial(_grid, "softmax"))
        for seed in range(self.seeds):
            yield Piece(condition=DRAWN, replica=seed, measure=partial(_drawn, self.spreads, self.starts, seed))
        yield Piece(condition=CLOSED, measure=partial(_recoveries, self.depths))
        yield Piece(condition=PRINTED, measure=_printed)

    # --- claims

    statements: ClassVar[tuple[Statement, ...]] = (
        Statement(
            id="B-01",
            source="blog, dynamics",
            statement="while p > 0, β₀ falls and β₁ rises",
            published="exact",
            rule="between any two neighbouring times of the integrated trajectories with p > 0 at both: holds if β₀ "
            "falls and β₁ rises each time, else differs",
        ),
        Statement(
            id="B-02",
            source="blog, dynamics",
            statement="from β₀ = β₁, p = ½: p waits, then rises past 1",
            published="direction; derived: p = 1 at t = .931",
            rule="holds if p' is 0 at the start, p never falls, and passes 1 at a time that is arccosh(2)/√2 to 1e-6; "
            "else differs",
        ),
        Statement(
            id="B-03",
            source="blog, dynamics",
            statement="from β₀ = 10, β₁ = −10: p first falls and attends the wrong token",
            published="direction; derived: crosses 0 at t = .025",
            rule="holds if p falls from the start on and passes 0; else differs",
        ),
        Statement(
            id="B-04",
            source="blog, dynamics",
            statement="under a standard start the gate ends fully on the positive token",
            published="always; derived: if and only if √2 p₀ + δ₀ > 0",
            rule="p = ½ and β₀, β₁ drawn from N(0, σ²), free gate: holds if every start ends beyond p = 1 at each σ up "
            "to 1, PyTorch's default for a table of weights; differs if the interval of the share that does not "
            "lies above .01 at one of them",
        ),
        Statement(
            id="B-05",
            source="blog, end",
            statement="β₀ = −K, β₁ = 3K, p = ½: arbitrarily low loss with uniform attention",
            published="−2K (text, exact)",
            rule="the two sequences scored at K = 1, 10, … 10⁶: holds if the loss is −2K to 1e-12 of K, else differs",
        ),
        Statement(
            id="B-06",
            source="blog, note",
            statement="bounding p by a softmax leaves the dynamics the same",
            published="the same in the end (text); derived: p → 1 from every start, after about √π exp(δ₀²/4 − 1)",
            rule="153 starts followed to t = 12 (free gate; right if p > 1 there) and t = 10⁴ (softmax; right if "
            "p > .99): holds if both gates end on the same token from every start, differs if they do not",
        ),
        Statement(
            id="B-07",
            source="blog, loss",
            statement="the printed loss s₁ − s₀ equals p (β₀ − β₁)",
            published="text; derived: it is s₀ − s₁ (and the β₁ equation names the wrong variable)",
            rule="at 1,000 drawn points: holds if the two agree to 1e-12, else differs",
        ),
    )

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        import numpy as np

        from attndyn.measures import verdicts

        def decided(holds: bool, measured: str, **more: Any) -> Judgement:
            return Judgement(measured=measured, verdict=verdicts.HOLDS if holds else verdicts.DIFFERS, **more)

        def line(condition: str, metric: str) -> np.ndarray:
            return metrics.curves(condition, metric).values[0]

        against = steps = 0
        for name in (*FREE, *SOFTMAX):
            p, b0, b1 = (line(name, metric) for metric in ("p", "b0", "b1"))
            positive = (p[:-1] > 0) & (p[1:] > 0)
            steps += int(positive.sum())
            against += int((positive & ((np.diff(b0) >= 0) | (np.diff(b1) <= 0))).sum())
        yield "B-01", decided(against == 0, f"against it {against} of {steps} steps", n=steps)

        p, passed = line(EQUAL, "p"), float(line(EQUAL, "p = 1 at")[0])
        wanted = float(np.arccosh(2) / np.sqrt(2))
        slow = float(line(EQUAL, "p' at the start")[0])
        waits = abs(slow) < 1e-12 and (np.diff(p) > 0).all() and abs(passed - wanted) < 1e-6
        yield "B-02", decided(bool(waits), f"p' = {slow:g} at the start, p = 1 at t = {passed:.4f}")

        p, crossed = line(MISTAKEN, "p"), float(line(MISTAKEN, "p = 0 at")[0])
        falls = bool((np.diff(p) < 0).all() and np.isfinite(crossed))
        end = f"p = {p[-1]:.3g} at t = {line(MISTAKEN, 't')[-1]:g} and falling; as √2 p₀ + δ₀ < 0, it never returns"
        yield "B-03", decided(falls, f"p falls at once and passes 0 at t = {crossed:.4f}", why=end)

        if min(self.spreads) <= 1:
            yield "B-04", self._standard(metrics)

        loss, factors = line(PRINTED, "low loss"), line(PRINTED, "K")
        exact = bool((np.abs(loss + 2 * factors) <= 1e-12 * factors).all())
        yield (
            "B-05",
            decided(
                exact,
                f"loss {loss[0]:g} at K = {factors[0]:g} … {loss[-1]:g} at K = {factors[-1]:g}",
                n=len(loss),
                why="gradient flow does not stay there: p' = δ = 4K",
            ),
        )

        free, soft = (line(name, "ends right") for name in (GRID_FREE, GRID_SOFTMAX))
        apart, n = int((free != soft).sum()), len(free)
        depth, time = (line(CLOSED, metric)[-1] for metric in ("depth", "recovery time"))
        why = (
            f"the softmax gate ends on the right token from {int(soft.sum())} of {n}, the free one from "
            f"{int(free.sum())}; but a gate closed by δ₀ = −{depth:g} opens only after t = {time:.3g}, so that in "
            "practice it looks as if it never did"
        )
        yield "B-06", decided(apart == 0, f"{apart} of {n} starts end on different tokens", n=n, why=why)

        printed, mended = (float(line(PRINTED, f"{which} loss error")[0]) for which in ("printed", "mended"))
        note = f"s₀ − s₁ agrees to {mended:.1g}"
        yield "B-07", decided(printed <= 1e-12, f"they differ by up to {printed:.3g}", n=1000, why=note)

    def _standard(self, metrics: Metrics) -> Judgement:
        from attndyn.measures import verdicts

        ends, spreads = metrics.curves(DRAWN, "ends right"), metrics.curves(DRAWN, "spread").values[0]
        n = self.starts * len(ends.replicas)
        wrong = [round(float((1 - share).sum() * self.starts)) for share in ends.values.T]
        usual = {spread: count for spread, count in zip(spreads.tolist(), wrong, strict=True) if spread <= 1}
        intervals = {spread: verdicts.share_interval(count, n) for spread, count in usual.items()}
        verdict = verdicts.INCONCLUSIVE
        if any(interval.low > 0.01 for interval in intervals.values()):
            verdict = verdicts.DIFFERS
        elif not any(usual.values()):
            verdict = verdicts.HOLDS
        foretold = metrics.curves(DRAWN, "as foretold").values.sum() * self.starts
        return Judgement(
            measured=f"wrong ends of {n}: {', '.join(f'{count} at σ = {spread:g}' for spread, count in usual.items())}",
            interval=intervals[max(usual)],
            of=f"the share at σ = {max(usual):g}",
            n=n,
            verdict=verdict,
            why=f"the sign of √2 p₀ + δ₀ foretells {foretold:.0f} of "
            f"{n * len(wrong)}; from β₀ = β₁ the gate does end on the positive token",
        )

    def finding(self, metrics: Metrics) -> str:
        passed = metrics.curves(EQUAL, "p = 1 at").values[0, 0]
        ends, spreads = metrics.curves(DRAWN, "ends right").values, metrics.curves(DRAWN, "spread").values[0]
        usual = int(abs(spreads - 1).argmin())
        wrong = 1 - ends[:, usual].mean()
        depth, time = (metrics.curves(CLOSED, metric).values[0, -1] for metric in ("depth", "recovery time"))
        return (
            f"From equal weights the gate waits and passes 1 at t = {passed:.3f}; with weights drawn at σ = "
            f"{spreads[usual]:g} it ends on the wrong token from {wrong:.0%} of the starts, for ever, as the line "
            f"√2 p₀ + δ₀ = 0 foretells. A softmax gate always returns, but from δ₀ = −{depth:g} only after "
            f"t = {time:.2g}."
        )

    # --- the page

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        import numpy as np

        from attndyn.theory import gated_toy as theory

        across, up = np.linspace(-1.6, 1.6, 17), np.linspace(-0.95, 1.45, 13)
        yield Phase(
            name="phase",
            title="One line decides",
            caption="The free gate. δ = β₁ − β₀; arrows: gradient flow. Above the dashed line p grows without bound, "
            "below it p falls without bound, and the loss falls to −∞ on both sides.",
            x="delta", y="p", x_title=DIFFERENCE, y_title="gate p", x_domain=(-1.7, 1.7), y_domain=(-1.05, 1.55),
            arrows=tuple((float(d), float(p), 2 * float(p), float(d)) for d in across for p in up),
            conditions=(EQUAL, ABOVE, ON, BELOW),
            boundary=((-1.7, 1.7 / theory.ROOT), (1.484, -1.484 / theory.ROOT)), boundary_label="√2 p + δ = 0",
        )  # fmt: skip
        yield Points(
            name="free",
            title="Words first, the gate later",
            caption="The free gate from p = ½. Points: integrated numerically; dashed: p₀ cosh √2t + (δ₀/√2) sinh √2t.",
            metric="p near", predicted="p near predicted", x="t", x_title="time τ", y_title="gate p",
            conditions=(EQUAL, ABOVE, ON, BELOW),
        )  # fmt: skip
        yield Points(
            name="spread",
            title="How often a drawn start ends on the right token",
            caption=f"p = ½, β₀ and β₁ from N(0, σ²); points: {self.starts} integrated starts a seed, their mean and "
            "its 95 % interval; dashed: Φ(1/2σ).",
            metric="ends right", predicted="predicted right", x="spread", x_title="spread σ of the weights",
            y_title="share that ends right", conditions=(DRAWN,), log="x",
        )  # fmt: skip
        across, up = np.linspace(-3.6, 3.6, 17), np.linspace(0.06, 0.94, 11)
        places = [(float(d), float(p)) for d in across for p in up]
        yield Phase(
            name="softmax",
            title="With a softmax gate every way leads to 1",
            caption="p = σ(a). δ always grows, so that p turns round; but the farther down the gate was driven, the "
            "slower it moves there.",
            x="delta", y="p", x_title=DIFFERENCE, y_title="gate p", x_domain=(-3.9, 3.9), y_domain=(0.0, 1.0),
            arrows=tuple((d, p, 2 * p, (p * (1 - p)) ** 2 * d) for d, p in places),
            conditions=tuple(SOFTMAX),
        )  # fmt: skip
        yield Points(
            name="recovery",
            title="Back, but when?",
            caption="Time a softmax gate takes from δ₀ < 0, p = ½ back to p = ½. Points: integrated numerically; "
            "dashed: √π exp(δ₀²/4 − 1), its limit for deep starts.",
            metric="recovery time", predicted="predicted time", x="depth", x_title="|δ| at the start", y_title="time τ",
            conditions=(CLOSED,), log="y",
        )  # fmt: skip
        yield self._times(metrics)

    def _times(self, metrics: Metrics) -> Table:
        names = ("depth", "recovery time", "exact time", "predicted time")
        columns = [metrics.curves(CLOSED, name).values[0].tolist() for name in names]
        return Table(
            name="times",
            title="Recovery in numbers",
            caption="Integral: the same time as an integral over δ, from the constant of motion a + eᵃ − δ²/4.",
            columns=("|δ₀|", "integrated", "integral", "√π exp(δ₀²/4 − 1)"),
            rows=tuple(zip(*columns, strict=True)),
        )


# --- what is measured

Measured = Iterator[tuple[int, str, float]]


def _free_path(delta: float, end: float) -> Measured:
    import numpy as np

    from attndyn.theory import gated_toy as toy

    start = toy.State(-delta / 2, delta / 2, 0.5)
    path = toy.integrate(toy.free, start, end, points=61)
    p, predicted = path.gate, toy.closed_form(0.5, delta, path.times)[0]
    near = (abs(p) < 3) & (abs(predicted) < 3)
    for step in range(len(path.times)):
        values = {"t": path.times, "p": p, "delta": path.delta, "b0": path.b0, "b1": path.b1, "p predicted": predicted}
        yield from ((step, name, float(column[step])) for name, column in values.items())
        if near[step]:
            yield step, "p near predicted", float(predicted[step])
            if step % 4 == 0:
                yield step, "p near", float(p[step])
    yield 0, "p' at the start", float(toy.free(0.0, np.array(start))[2])
    for name, until in (("p = 1 at", lambda now: now[2] - 1), ("p = 0 at", lambda now: -now[2])):
        met = toy.integrate(toy.free, start, end, points=2, until=until)
        yield 0, name, float(met.times[-1]) if met.times[-1] < end else float("nan")


def _softmax_path(delta: float, end: float) -> Measured:
    from attndyn.theory import gated_toy as toy

    path = toy.integrate(toy.softmax, toy.State(-delta / 2, delta / 2, 0.0), end, points=121)
    columns = {"t": path.times, "p": toy.sigmoid(path.gate), "delta": path.delta, "b0": path.b0, "b1": path.b1}
    for step in range(len(path.times)):
        yield from ((step, name, float(column[step])) for name, column in columns.items())


def _grid(kind: str) -> Measured:
    """Where a gate ends from a grid of starts: 1 on the right token, 0 on the wrong one."""
    import numpy as np

    from attndyn.theory import gated_toy as toy

    p, delta = (axis.ravel() for axis in np.meshgrid(np.linspace(0.1, 0.9, 9), np.linspace(-4, 4, 17)))
    if kind == "free":
        right = toy.ends(toy.free, np.vstack([-delta / 2, delta / 2, p]), ENOUGH)[2] > 1
    else:
        end = toy.ends(toy.softmax, np.vstack([-delta / 2, delta / 2, np.log(p / (1 - p))]), LONG_ENOUGH)
        right = toy.sigmoid(end[2]) > 0.99
    for step in range(len(p)):
        yield step, "p start", float(p[step])
        yield step, "delta start", float(delta[step])
        yield step, "ends right", float(right[step])


def _drawn(spreads: tuple[float, ...], starts: int, seed: int) -> Measured:
    """The share of drawn starts from which the free gate ends beyond p = 1."""
    import numpy as np

    from attndyn.theory import gated_toy as toy

    for step, spread in enumerate(spreads):
        drawn = np.random.Generator(np.random.PCG64([seed, step])).normal(0.0, spread, (2, starts))
        ends = toy.ends(toy.free, np.vstack([drawn, np.full(starts, 0.5)]), ENOUGH)
        foretold = toy.side(0.5, drawn[1] - drawn[0]) > 0
        yield step, "spread", spread
        yield step, "ends right", float((ends[2] > 1).mean())
        yield step, "predicted right", toy.share_right(spread)
        yield step, "as foretold", float(((ends[2] > 1) == foretold).mean())


def _recoveries(depths: tuple[float, ...]) -> Measured:
    from attndyn.theory import gated_toy as toy

    for step, depth in enumerate(sorted(depths)):
        law = toy.recovery_law(depth)
        path = toy.integrate(
            toy.softmax, toy.State(depth / 2, -depth / 2, 0.0), 100 + 10 * law, points=2, until=lambda now: now[2]
        )
        values = {"depth": depth, "recovery time": path.times[-1], "exact time": toy.recovery_time(-depth)}
        yield from ((step, name, float(value)) for name, value in {**values, "predicted time": law}.items())


def _printed() -> Measured:
    """The loss at the post's own example, and its printed form at drawn points."""
    import numpy as np

    from attndyn.theory import gated_toy as toy

    for step in range(7):
        yield step, "K", 10.0**step
        yield step, "low loss", toy.loss(-(10.0**step), 3 * 10.0**step, 0.5)
    b0, b1, p = np.random.Generator(np.random.PCG64(0)).normal(size=(3, 1000))
    negative, positive = toy.scores(b0, b1, p)
    yield 0, "printed loss error", float(np.abs(positive - negative - p * (b0 - b1)).max())
    yield 0, "mended loss error", float(np.abs(negative - positive - p * (b0 - b1)).max())
