"""Deceptive attention: can a whole model attend elsewhere and still answer as it did?

Source: Wiegreffe and Pinter 2019 and their program; the slides of Snell et al. Beside the BiLSTM classifiers of
`feature-importance`, whose run this study needs: the same under uniform attention; other seeds; adversaries, trained as
whole models on TVD − λ KL for several λ, side by side; and models that read each word for itself under the frozen
attention of the base and of an adversary. These last ones need the adversaries to be trained: a run with `--guided`
needs one without.
Cost: demo 100 s on two cores, with all that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from attndyn.errors import UserError
from attndyn.measures.deceit import Apart, Deceive, Direction
from attndyn.measures.readings import Answers, Objective
from attndyn.models.rules import Given, Uniform
from attndyn.report.parts import Curves, Part, Points, Slider, TracedScoring, TracedSentences
from attndyn.studies.base import Judgement, Study
from attndyn.studies.deceptive_names import (
    ADVERSARIES,
    ADVERSARY_BEST,
    BY_ADVERSARY,
    BY_BASE,
    BY_UNIFORM,
    EPSILONS,
    LAMBDA_UNIT,
    SEEDS,
    UNIFORM,
    adversary,
    instance,
)
from attndyn.studies.deceptive_statements import STATEMENTS
from attndyn.studies.explained import AVERAGE, BILSTM, Explained
from attndyn.studies.feature_importance import FeatureImportance
from attndyn.studies.strengths import as_step, check_apart

if TYPE_CHECKING:
    import numpy as np

    from attndyn.store.folder import Run
    from attndyn.store.metrics import Metrics, Row
    from attndyn.training.condition import Condition

SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class DeceptiveAttention(Explained):
    name: ClassVar[str] = "deceptive-attention"
    title: ClassVar[str] = "Deceptive attention: models that attend elsewhere"
    source: ClassVar[str] = "Wiegreffe and Pinter 2019, Attention is not not Explanation, sections 3 to 5"
    statements = STATEMENTS
    weights_stay: ClassVar[bool] = True
    demo: ClassVar[dict[str, Any]] = FeatureImportance.demo | {
        "lambdas": (0.001, 0.01, 0.1), "adversaries": 4, "reversed": 1, "adversary_epochs": 4, "guides": 2,
    }  # fmt: skip

    lambdas: tuple[float, ...] = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
    """What the divergence of attention counts beside that of the answers; at least 0."""
    adversaries: int = 8
    """Adversaries for each λ: the first of the first base model, the second of the second."""
    reversed: int = 3
    """Adversaries for each λ that maximise KL(base ‖ adversary), as on the slides; 0: none. The others maximise
    KL(adversary ‖ base), as the authors' program does."""
    adversary_epochs: int = 80
    """Most epochs of an adversary; the weights with the lowest objective on training texts are kept."""
    adversary_steps: int = 6000
    """Most steps of an adversary."""
    guided: bool = True
    """Also train models that read each word for itself under given attention."""
    guides: int = 8
    """Of these, for each kind of attention; not used without `guided`."""
    guide: float = 0.01
    """λ of the adversary whose attention is given; not used without `guided`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.guided:  # the adversaries are the same whatever they guide: equal settings, so one run
            for name in ("guides", "guide"):
                object.__setattr__(self, name, getattr(DeceptiveAttention, name))
        self.at_least_one("adversaries", "adversary_epochs", "adversary_steps", "guides")
        if self.reversed < 0:
            raise UserError(f"reversed must be at least 0, not {self.reversed}")
        for lam in self.lambdas:
            Deceive(lam)
        check_apart(self.lambdas, LAMBDA_UNIT)
        if self.guided and self.guide not in self.lambdas:
            raise UserError(f"guide must be one of the lambdas ({', '.join(f'{one:g}' for one in self.lambdas)}), not "
                            f"{self.guide:g}")  # fmt: skip

    def needs(self) -> Iterator[Study]:
        yield FeatureImportance(**self.common())
        if self.guided:
            yield self.alone

    @property
    def alone(self) -> DeceptiveAttention:
        """Without guided models: the run that trains the adversaries, once, whatever these guide."""
        return replace(self, guided=False)

    # --- what is trained

    def conditions(self) -> Iterator[Condition]:
        self.task.epoch(self.batch)  # a corpus that cannot be used is refused here
        if not self.guided:
            yield self.uniform()
            yield from self.deceivers()
        else:
            model = self.model(encoder="average")
            for number, name in enumerate((BY_BASE, BY_ADVERSARY)):
                task = replace(self.task, reference=self.reference(name))
                yield self.condition(
                    name, self.following(4000 + 100 * number, self.guides), model=model, task=task, rule=Given()
                )
            yield self.condition(BY_UNIFORM, range(4200, 4200 + self.guides), model=model, rule=Uniform())

    def uniform(self) -> Condition:
        return self.condition(UNIFORM, range(2000, 2000 + self.seeds), rule=Uniform())

    @property
    def directions(self) -> list[tuple[Direction, int]]:
        """How KL is read, and how many adversaries of each λ read it so."""
        every: list[tuple[Direction, int]] = [("adversary-base", self.adversaries), ("base-adversary", self.reversed)]
        return [(direction, count) for direction, count in every if count]

    @property
    def followed(self) -> int:
        """The base models that adversaries follow, one by one: what they do depends on how long theirs was trained."""
        return min(self.adversaries, self.seeds)

    def following(self, first: int, count: int) -> range:
        """Seeds from about `first` on, of which the first follows the first base, the second the second."""
        first -= first % self.followed
        return range(first, first + count)

    def base_of(self, name: str, seed: int) -> int:
        """Beside which base a guided model stands: that of its guide, or the next in turn."""
        guides = {BY_ADVERSARY: self.adversaries}.get(name, self.followed)
        return seed % guides % self.followed

    def deceivers(self) -> Iterator[Condition]:
        task = replace(self.task, reference=self.reference(BILSTM))
        steps = min(self.adversary_epochs * self.epoch, self.adversary_steps)
        every: dict[str, Any] = {"every": self.epoch}
        readings = (Answers(**every), Apart(**every), Objective(**every, on="train"))
        for direction, count in self.directions:
            for number, lam in enumerate(self.lambdas):
                first = (3000 if direction == "adversary-base" else 3500) + 10 * number
                yield self.condition(
                    adversary(direction, lam), self.following(first, count), task=task, steps=steps,
                    objective=Deceive(lam, direction), readings=readings, best=(ADVERSARY_BEST,),
                )  # fmt: skip

    def reference(self, name: str) -> str:
        """Under which name the attention of a model is known to the task: equal settings, equal name."""
        from attndyn.spec import digest

        which = f" of λ {self.guide!r}" if name == BY_ADVERSARY else ""
        return f"{name}{which} of {digest(self.alone)[:16]}"

    def guiding(self) -> Condition:
        return next(one for one in self.deceivers() if one.name == adversary("adversary-base", self.guide))

    def borrowed(self) -> Iterator[Condition]:
        yield next(self.bases())

    def prepare(self, needed: Sequence[Run], device: str) -> None:
        from attndyn.studies.deceptive_tables import remember

        remember(self, needed, device)

    def from_traces(self, metrics: Metrics, run: Run, device: str) -> Iterator[Row]:
        from attndyn.studies.deceptive_tables import guided_tables, tables

        return guided_tables(self, run, device) if self.guided else tables(self, run, device)

    def shown(self, run: Run, metrics: Metrics) -> Iterator[tuple[str, int, int, dict[str, np.ndarray]]]:
        """A few texts under the base and, for each λ in place of a step, under its adversary."""
        from attndyn.studies.explained_read import shown_texts

        here = run.needed[1] if self.guided else run
        base = next(self.bases())
        arrays = shown_texts(self, base, run.needed[0], 0, base.best[0], SHOWN)
        for condition in self.deceivers():
            objective = condition.objective
            if objective.direction == "adversary-base":
                other = shown_texts(self, condition, here, condition.seeds[0], ADVERSARY_BEST, SHOWN)
                kept = {name: value for name, value in arrays.items() if name != "votes"}
                yield BILSTM, 0, as_step(objective.lam, LAMBDA_UNIT), kept | {"adversary": other["alpha"]}

    # --- what was found

    def decide(self, metrics: Metrics) -> Iterator[tuple[str, Judgement]]:
        from attndyn.studies.deceptive_claims import judge

        return judge(self, metrics)

    def finding(self, metrics: Metrics) -> str:
        from attndyn.studies.deceptive_claims import ACCURACY, Found

        found = Found(self, metrics)
        best = found.best_deceiver()
        seed = f"; another seed {found.mean(SEEDS, 'JSD'):.2f}" if SEEDS in metrics else ""
        return (
            f"On {self.corpus_name} uniform attention reaches an accuracy of {found.mean(UNIFORM, ACCURACY):.3f}, "
            f"learned attention {found.mean(BILSTM, ACCURACY):.3f}. At λ {best:g} a model that attends elsewhere (JSD "
            f"{found.at(best, 'JSD'):.2f}{seed}) answers as the base does up to {found.at(best, 'TVD'):.3f} and is "
            f"right in {found.at(best, ACCURACY):.3f} of the texts."
        )

    def figures(self, metrics: Metrics) -> Iterator[Part]:
        from attndyn.studies.deceptive_claims import Found

        found = Found(self, metrics)
        yield found.table()
        kinds = [ADVERSARIES[direction] for direction, _ in self.directions]
        yield Points(
            name="plane",
            title="How far from the base: attention and answers",
            caption="Mean over test texts of the divergence of attention (JSD, at most .693) and of the answers (total "
            "variation, 0 to 1). Every adversary is a point, which tells its λ; beside them the BiLSTMs, each from the "
            "one before it, the runs under uniform attention, the models that read each word for itself, each from one "
            "of the bases (under a base's attention JSD is 0), and the adversaries of each text alone.",
            metric="TVD",
            x="JSD",
            each=True,
            x_title="JSD of attention from the base",
            y_title="total variation of answers",
            conditions=(*kinds, SEEDS, UNIFORM, *map(instance, EPSILONS), AVERAGE, BY_UNIFORM, BY_BASE, BY_ADVERSARY),
            told="λ",
        )
        for name, title, y in (
            ("accuracy-by-lambda", "Accuracy along λ", "test accuracy"),
            ("influence-by-lambda", "Attention and influence along λ", "τ(α, leaving out)"),
        ):
            yield Points(
                name=name, title=title, metric=y, y_title=y, x="λ", x_title="λ", log="x", conditions=tuple(kinds),
                caption="On test texts; a point is an adversary. τ: with the influence on its own answers."
            )  # fmt: skip
        yield TracedSentences(
            name="sentences",
            title="Base and adversary side by side",
            caption="Test texts of middling length: the attention of the base, and of the first adversary of the λ on "
            "the slider, trained on TVD − λ KL(adversary ‖ base).",
            slider=Slider("λ", as_step(1.0, LAMBDA_UNIT)),
            scorings=(
                TracedScoring(label="base", condition=BILSTM, replica=0, kind="alpha"),
                TracedScoring(label="adversary", condition=BILSTM, replica=0, kind="adversary"),
            ),
            classes=tuple(self.task.data.classes),
        )
        yield Curves(
            name="accuracy", title="Accuracy on the development texts", metric="accuracy", y_title="accuracy",
            caption="Learned and uniform attention, and models that read each word for itself under given attention.",
            conditions=(BILSTM, UNIFORM, AVERAGE, BY_BASE, BY_ADVERSARY, BY_UNIFORM),
        )  # fmt: skip
