"""A made-up finished run: smooth curves, some seeds that fail, maps that turn from uniform to aligned."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attndyn.report.parts import (
    Curves,
    Maps,
    Panel,
    Part,
    Scoring,
    Sentence,
    Sentences,
    Table,
    TracedScoring,
    TracedSentences,
)

EVIL = "</script><img src=x onerror=alert(1)>"
VERDICTS = ("holds", "differs", "inconclusive", "not comparable", "not judged at this scale")
LEARNED, UNIFORM = "reviews, learned", "reviews, uniform"
REVIEW_STEPS = tuple(range(0, 22))
PAIR = "a pair of sentences"
CONDITIONS = ("permutations of 20", "20 of 60 words")


@dataclass
class FakeRun:
    path: Path
    info: dict[str, Any]
    metrics: pa.Table
    claims: list[dict[str, Any]]
    length: int = 21
    kept: list[int] = field(default_factory=list)
    token_texts: list[str] = field(default_factory=list)

    def trace_steps(self, condition: str, replica: int) -> list[int]:
        if condition in (LEARNED, UNIFORM) and self.kept:
            return list(REVIEW_STEPS[:: 1 if condition == LEARNED else 3])
        return self.kept

    def trace(self, condition: str, replica: int, step: int) -> dict[str, np.ndarray]:
        if condition in (LEARNED, UNIFORM):
            return review_trace(step, len(self.token_texts))
        if condition == PAIR:
            return pair_trace(step)
        n, heads = self.length, 1
        random = np.random.default_rng(7)
        source = np.stack([random.permutation(len(self.token_texts))[:n] for _ in range(2)]).astype(np.int32)
        align = np.tile(np.arange(n, dtype=np.int32), (2, 1))
        fails = condition == CONDITIONS[0] and replica % 4 == 3
        sharp = 0.0 if fails else 9.0 * learned(step, start=90, width=14)
        lexical = learned(step, start=50, width=10)
        noise = 0.4 * random.standard_normal((2, n, n))
        return {
            "alpha": softmax(noise + sharp * np.eye(n))[:, None].repeat(heads, 1).astype(np.float16),
            "beta": (softmax(noise) + lexical * np.eye(n)).clip(0, 1).astype(np.float16),
            "source": source,
            "target": source.copy(),
            "align": align,
        }

    def tokens(self, condition: str) -> list[str]:
        return self.token_texts


def review_trace(step: int, vocabulary: int, lengths: tuple[int, ...] = (9, 130, 21)) -> dict[str, np.ndarray]:
    """Texts of different lengths, padded; some words speak for a class, and attention finds them. Token 0 is one."""
    random = np.random.default_rng(3)
    shape = (len(lengths), max(lengths))
    source = random.integers(0, vocabulary, shape).astype(np.int32)
    source[:, 2] = 0
    polarity = random.standard_normal(vocabulary) ** 3
    polarity[0] = 6.0
    share = step / REVIEW_STEPS[-1]
    beta = share * polarity[source]
    scores = np.where(np.arange(shape[1]) < np.array(lengths)[:, None], 2 * share**2 * abs(polarity[source]), -np.inf)
    alpha = softmax(scores)
    return {
        "alpha": alpha.astype(np.float16),
        "beta": beta.astype(np.float16),
        "delta": (alpha * beta).astype(np.float16),
        "source": source,
        "lengths": np.array(lengths, dtype=np.int32),
        "target": np.array([1, 0, 1][: len(lengths)], dtype=np.int32),
        "answer": (np.array([1, -1, 1][: len(lengths)]) * (alpha * beta).sum(1)).astype(np.float32),
    }


def pair_trace(step: int) -> dict[str, np.ndarray]:
    """Two pairs, padded, with sure and possible links; token 0 is one of the source."""
    random = np.random.default_rng(step)
    align = np.zeros((2, 4, 5), np.uint8)
    align[0, [0, 1, 1, 2], [1, 2, 3, 4]] = [2, 2, 1, 2]
    return {
        "alpha": random.random((2, 1, 4, 5)).astype(np.float16),
        "beta": random.random((2, 4, 5)).astype(np.float16),
        "delta": random.random((2, 4, 5)).astype(np.float16),
        "source": np.array([[1, 0, 2, 3, 4], [1, 2, 3, -1, -1]], np.int32),
        "target": np.array([[5, 6, 7, -1], [5, 6, 7, 8]], np.int32),
        "align": align,
    }


def pair_part(example: int = 0) -> Maps:
    kinds = (("alpha", "attention α"), ("beta", "probe β"), ("delta", "influence Δ"))
    panel = Panel(title="pair 1", condition=PAIR, replica=0, example=example)
    return Maps(
        name="pair", title="A pair", caption="Watch.", panels=(panel,), kinds=kinds, across=True,
        outlined="outline the gold links",
    )  # fmt: skip


def learned(step: float, start: float, width: float) -> float:
    return float(1 / (1 + np.exp(-(step - start) / width)))


def softmax(scores: np.ndarray) -> np.ndarray:
    exponents = np.exp(scores - scores.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


def make_metrics(conditions: tuple[str, ...], seeds: range, steps: range) -> pa.Table:
    random = np.random.default_rng(0)
    rows = []
    for c, condition in enumerate(conditions):
        for seed in seeds:
            start, fails = 60 + 25 * c + 20 * random.standard_normal(), c == 0 and seed % 4 == 3
            for step in steps:
                alpha = 0.05 if fails else 0.05 + 0.93 * learned(step, start + 35, 9)
                beta = 0.05 + 0.9 * learned(step, start, 12)
                values = {
                    "agreement": alpha,
                    "probe": beta,
                    "loss": 3.7 * (1.01 - alpha * beta),
                    **{f"other {i}": random.random() for i in range(7)},
                }
                for metric, value in values.items():
                    noisy = value + 0.012 * random.standard_normal()
                    noisy = noisy if metric == "loss" else min(1.0, noisy)
                    rows.append((condition, seed, step, metric, noisy))
    names = ("condition", "replica", "step", "metric", "value")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def make_claims() -> list[dict[str, Any]]:
    return [
        {
            "id": f"copying.{i}",
            "source": "Snell et al. 2021, section 3.3, figure 2",
            "statement": "Where co-occurrence carries no signal, attention often fails to learn.",
            "rule": "Fisher's exact test of the share of failed runs against the published count, at .05.",
            "published": "5 of 20 runs failed",
            "measured": "2 of 8 runs failed",
            "interval": [0.0319, 0.6509] if i % 2 == 0 else None,
            "n": 8,
            "scale": "demo",
            "verdict": verdict,
            "why": "The published share lies inside the interval." if i < 3 else "",
        }
        for i, verdict in enumerate(VERDICTS)
    ]


def make_run(path: Path, *, seeds: int = 8, steps: int = 200, every: int = 2, length: int = 21) -> FakeRun:
    return FakeRun(
        path=path,
        info={
            "study": "copying",
            "title": "Copying permutations: without co-occurrence, attention often fails to learn.",
            "scale": "demo",
            "settings": {"seeds": seeds, "steps": steps, "length": length, "lr": 0.003, "optimiser": "adam"},
            "seeds": list(range(seeds)),
            "versions": {"attndyn": "0.1.0", "torch": "2.7.1", "python": "3.11.2"},
            "device": "cpu, 2 cores",
            "precision": "fp32",
            "revision": "3f2a9c1",
            "started": "2025-01-01T12:00:00Z",
            "seconds": 74.2,
            "status": "finished",
            "command": f"attndyn run copying --scale demo --seeds {seeds}",
            "diverged": [{"condition": CONDITIONS[1], "replica": 5, "step": 180}],
        },
        metrics=make_metrics(CONDITIONS, range(seeds), range(0, steps, every)),
        claims=make_claims(),
        length=length,
        kept=list(range(0, steps, every)),
        token_texts=[EVIL, *(f"w{i}" for i in range(length + 10))],
    )


def make_parts() -> list[Part]:
    first, second = CONDITIONS
    return [
        Curves(
            name="agreement",
            title="Agreement of attention with the right position",
            caption="Thin: one seed each. Thick: the median over seeds.",
            metric="agreement",
            y_title="share of positions",
            y_domain=(0.0, 1.0),
            reference=1 / 21,
            reference_label="chance",
        ),
        Curves(name="loss", title="Training loss", caption="Nats per position.", metric="loss", y_title="loss"),
        Curves(
            name="stages",
            title="The probe learns first, attention follows",
            caption="The lexical probe β rises before attention α does; where β is flat, α never moves.",
            metric=(("agreement", "attention α"), ("probe", "probe β")),
            y_title="weight on the right position",
            y_domain=(0.0, 1.0),
        ),
        Maps(
            name="maps",
            title="Where one seed looks",
            caption="The same example through two replicas: one that learns and one that does not.",
            panels=(
                Panel(title=f"{second}, seed 0", condition=second, replica=0),
                Panel(title=f"{first}, seed 3 (fails)", condition=first, replica=3),
            ),
        ),
        Sentences(
            name="sentences",
            title="Attention over one sentence",
            caption="Weights of the last step.",
            scorings=(Scoring(label="weight", most=1.0),),
            sentences=(
                Sentence(
                    title="learned",
                    words=("the", "agreement", "was", "signed", "in", EVIL, "1992", "."),
                    scores=([[0.01, 0.62, 0.03, 0.2, 0.0, 0.04, 0.09, 0.01]],),
                ),
                Sentence(title="uniform", words=tuple("abcdefgh"), scores=(np.full((1, 8), 0.125),)),
                Sentence(title="one position", words=("x", "y", "z"), scores=([[0.0, 1.0, float("nan")]],)),
            ),
        ),
        TracedSentences(
            name="reviews",
            title="Words, their polarity, their influence",
            caption="β under uniform attention; α and Δ under learned attention.",
            scorings=(
                TracedScoring(label="attention α", condition=LEARNED, replica=0, kind="alpha"),
                TracedScoring(label="probe β", condition=UNIFORM, replica=0, kind="beta", signed=True),
                TracedScoring(label="influence Δ", condition=LEARNED, replica=0, kind="delta", signed=True),
            ),
            classes=("negative", "positive"),
        ),
        Table(
            name="counts",
            title="Runs that learned",
            caption="A run has learned when its agreement passes .9.",
            columns=("condition", "runs", "learned", "median step", "note"),
            rows=(
                (first, 8, 6, 113.5, "two never start"),
                (second, 8, 8, 124.0, EVIL),
                ("both", 16, 14, None, "–"),
                ("tokens seen", 16, 12_800_000, float("nan"), None),
            ),
        ),
    ]


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def run(tmp_path: Path) -> FakeRun:
    return make_run(tmp_path)
