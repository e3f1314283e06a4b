"""Copying permutations: where co-occurrence carries no signal, attention often fails to learn.

Source: Snell et al. §3.3, A.3, figure 2 left and middle; their blog post and slides.
Follows the authors' program (tanh hidden layer, a map on the context, biases, mean loss; the end token counts), with
seeded data and one fixed evaluation set; `--reading text` follows the paper's equations instead.
Cost: demo 30 s on two cores; paper 25 s on an H200, about 2.5 h on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.errors import UserError
from attndyn.models.rules import NoContext, Uniform
from attndyn.report.parts import Curves, Part
from attndyn.studies.base import Judgement, Statement
from attndyn.studies.copy_study import SMALL, CopyStudy
from attndyn.tasks.synthetic import Iid, PermutationMixture, Permutations, Subsets

if TYPE_CHECKING:
    from attndyn.store.metrics import Metrics
    from attndyn.training.condition import Condition

UNIFORM, NO_CONTEXT = "permutations, uniform attention", "permutations, no context"


@dataclass(frozen=True, kw_only=True)
class Copying(CopyStudy):
    name: ClassVar[str] = "copying"
    title: ClassVar[str] = "Copying permutations: without co-occurrence, attention often fails to learn"
    source: ClassVar[str] = "Snell et al., arXiv 2103.07601, section 3.3 and figure 2"
    demo: ClassVar[dict[str, Any]] = SMALL | {"seeds": 10, "controls": False, "longer": 1}
    sizes: ClassVar[tuple[str, ...]] = (*CopyStudy.sizes, "relabel")

    longer: int = 3
    """How many times longer the permutations train, to see whether failing runs recover."""
    controls: bool = True
    """Train the mixture, the i.i.d. words, and permutations under uniform attention and without context."""
    relabel: bool = False
    """Give the outputs an alphabet of their own, so that input and output share no embedding."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longer < 1:
            raise UserError(f"longer must be at least 1, not {self.longer}")

    @property
    def permutations(self) -> str:
        return f"permutations of {self.length}"

    @property
    def control(self) -> str:
        return f"{self.length} of {self.words}"

    @property
    def mixture(self) -> str:
        return f"mixture of 2 × {self.length}"

    @property
    def iid(self) -> str:
        return f"{self.length} i.i.d. words"

    def conditions(self) -> Iterator[Condition]:
        permutations = Permutations(self.length, relabel=self.relabel)
        yield self.condition(self.permutations, permutations, steps=self.steps * self.longer)
        yield self.condition(self.control, Subsets(self.length, of=self.words, relabel=self.relabel))
        if self.controls:
            yield self.condition(self.mixture, PermutationMixture(self.length, relabel=self.relabel))
            yield self.condition(self.iid, Iid(self.length, self.length, relabel=self.relabel))
            yield self.condition(UNIFORM, permutations, rule=Uniform())
            yield self.condition(NO_CONTEXT, permutations, rule=NoContext())

    def finding(self, metrics: Metrics) -> str:
        import numpy as np

        runs = self.outcomes(metrics)
        hard, easy = runs[self.permutations], runs[self.control]
        found = (
            f"{hard.count} of {hard.n} seeds learned to copy {self.permutations}, "
            f"{easy.count} of {easy.n} learned {self.control}"
        )
        gaps = np.concatenate([hard.gaps, easy.gaps])
        if not len(gaps):
            return f"{found}."
        return (
            f"{found}; in {(gaps > 0).sum()} of the {len(gaps)} runs that learned, β had found the right word before "
            f"α looked there, by {np.median(gaps):.0f} steps in the median."
        )

    statements: ClassVar[tuple[Statement, ...]] = (
        Statement(
            id="S-01",
            source="abstract, §1, fig. 1",
            statement="in a run that learns, β singles out the right word before α does",
            published="direction",
            rule="a stage is reached when the peak is right at more than half of the target positions; holds if the "
            "interval of the share of learned runs that reach β's stage first lies above ½, differs if below",
        ),
        Statement(
            id="S-03",
            source="§2.3, fig. 1",
            statement="attention is near uniform when training starts",
            published="direction",
            rule="holds if the normalised entropy of α at step 0 is at least .95 in every run, else differs",
        ),
        Statement(
            id="S-22",
            source="§3.3, fig. 2 left; blog; slides",
            statement="copying permutations of 40 is often not learned",
            published="7-8 of 20 fail (fig.), “~50 %” (slides)",
            rule="holds if the interval of the failing share lies above .05, differs if below .2; at the published "
            "size it also differs, and does not hold, if Fisher's exact test has p < .05 against both 7 and 8 of 20",
        ),
        Statement(
            id="S-23",
            source="§3.3, fig. 2 left; blog",
            statement="copying is always learned from 40 of 60 words",
            published="20 of 20 (fig.)",
            rule="holds if every run learns, of six or more; differs if Fisher's exact test against 20 of 20 has "
            "p < .05, or if the interval of the failing share lies above .05",
        ),
        Statement(
            id="S-24",
            source="fig. 2 left",
            statement="runs that learn permutations learn later than the control",
            published="steps 55-100 against 40 (fig.)",
            rule="mean step at which accuracy passes .95: holds if the interval of the delay lies above 0",
        ),
        Statement(
            id="S-25",
            source="§3.3, fig. 2 middle, A.3",
            statement="a mixture of permutations of two disjoint sets also fails at times and is slower",
            published="direction",
            rule="holds if the interval of the failing share lies above .05 and that of the delay behind the control "
            "above 0 (a run that does not learn counts as one that learns at the last step); differs if one of the two "
            "contradicts (below .2; below 0)",
        ),
        Statement(
            id="B-10",
            source="blog, copying",
            statement="the distribution with the larger support (40 of 60) is the easier to learn",
            published="20 of 20 against 12-13 of 20 (fig.)",
            rule="Fisher's exact test between the shares of learned runs, one-sided: holds if p < .05, differs if "
            "p < .05 the other way",
        ),
        Statement(
            id="B-11",
            source="blog, copying",
            statement="under uniform attention all permutations have about the same mean encoder state",
            published="an assumption",
            rule="spread of the mean state over inputs, relative to that of single states, after uniform training: "
            "holds if below half of 1/√L (what independent states would give) in every run, differs if above in every",
        ),
        Statement(
            id="B-13",
            source="blog, limitations",
            statement="the two stages overlap in time",
            published="direction",
            rule="in a learned run α's peak is right at a quarter of the positions before β's is at three quarters; "
            "holds if the interval of the share of such runs lies above ½, differs if below",
        ),
        Statement(
            id="O-09",
            source="slides",
            statement="copying 40 i.i.d. words out of 40 is always learned",
            published="100 % (text)",
            rule="holds if every run learns, of six or more; differs if Fisher's exact test against 20 of 20 has "
            "p < .05, or if the interval of the failing share lies above .05",
        ),
    )

    def judge(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        import numpy as np

        from attndyn.measures import verdicts
        from attndyn.studies import outcomes

        runs = self.outcomes(metrics)
        hard, easy = runs[self.permutations], runs[self.control]
        gaps = np.concatenate([some.gaps for some in runs.values()])
        overlaps = np.concatenate([some.overlaps for some in runs.values()])
        yield "S-01", outcomes.share(int((gaps > 0).sum()), len(gaps), "runs that learned")
        yield "B-13", outcomes.share(int(overlaps.sum()), len(overlaps), "runs that learned")

        free = [name for name in metrics.conditions if name not in (UNIFORM, NO_CONTEXT)]
        start = np.concatenate([metrics.curves(name, "attention entropy").values[:, 0] for name in free])
        yield (
            "S-03",
            Judgement(
                measured=f"entropy {start.mean():.4f} of 1 (lowest {start.min():.4f})",
                n=len(start),
                verdict=verdicts.HOLDS if start.min() >= 0.95 else verdicts.DIFFERS,
            ),
        )

        yield (
            "S-22",
            outcomes.often_fails(hard) if self.caveat else outcomes.fails_like(hard, [(7, 20), (8, 20)]),
        )
        yield "S-23", outcomes.always_learned(easy)
        yield "S-24", outcomes.later(hard, easy)
        yield "B-10", outcomes.easier(easy, hard)
        if self.controls:
            fails, delay = outcomes.often_fails(runs[self.mixture]), outcomes.slower(runs[self.mixture], easy)
            yield "S-25", outcomes.both(fails, delay)
            yield "O-09", outcomes.always_learned(runs[self.iid])
            yield "B-11", self._alike(metrics.curves(UNIFORM, "mean state spread").last)

    def _alike(self, spread: Any) -> Judgement:
        from attndyn.measures import verdicts

        independent = (self.length + 1) ** -0.5
        verdict = verdicts.INCONCLUSIVE
        if spread.max() < independent / 2:
            verdict = verdicts.HOLDS
        elif spread.min() > independent / 2:
            verdict = verdicts.DIFFERS
        return Judgement(
            measured=f"spread {spread.min():.3f} to {spread.max():.3f}; 1/√L is {independent:.3f}",
            n=len(spread),
            verdict=verdict,
        )

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        runs = self.outcomes(metrics)
        hard, easy = runs[self.permutations], runs[self.control]
        yield self.who_learns(metrics)
        yield self.accuracy_curves()
        yield self.stage_curves(self.permutations, self.control)
        yield Curves(
            name="entropy",
            title="How spread out the attention is",
            caption="Entropy of α over the logarithm of the source length: 1 is uniform, 0 is one position.",
            metric="attention entropy",
            y_title="normalised entropy",
            conditions=tuple(name for name in metrics.conditions if name not in (UNIFORM, NO_CONTEXT)),
            y_domain=(0.0, 1.0),
        )
        yield self.where_it_sits(metrics)
        yield self.maps((hard, True), (hard, False), (easy, True))
