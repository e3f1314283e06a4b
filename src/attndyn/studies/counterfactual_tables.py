"""The rows of `counterfactual-attention`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from attndyn.measures.divergence import jsd, jsd_terms
from attndyn.probes.counterfactual import most_different, permuted_answers
from attndyn.store.metrics import Row
from attndyn.studies.counterfactual_attention import EDGES, LITTLE, NEAR, PEAKED
from attndyn.studies.exclusive import of_neighbours
from attndyn.studies.explained import BEST, BILSTM, SUMMARY
from attndyn.studies.explained_read import evaluated_texts, read
from attndyn.studies.importance_tables import bounds
from attndyn.studies.kept import model_at

if TYPE_CHECKING:
    from attndyn.store.folder import Run
    from attndyn.studies.counterfactual_attention import CounterfactualAttention
    from attndyn.studies.explained_read import Reading
    from attndyn.training.condition import Condition


def tables(study: CounterfactualAttention, base: Run, device: str) -> Iterator[Row]:
    pairs = evaluated_texts(study.task, study.evaluation)
    for condition in study.bases():
        found = read(model_at(condition, base, condition.seeds, BEST, device), pairs, device)
        yield from _of_condition(study, condition, found)


def _of_condition(study: CounterfactualAttention, condition: Condition, found: Reading) -> Iterator[Row]:
    alpha, votes = found.wide(found.alpha), found.wide(found.votes)
    answers = (alpha * votes).sum(dim=2).sigmoid()
    shuffled = permuted_answers(alpha, votes, found.mask, study.permutations)
    change = np.median((shuffled - answers[..., None]).abs().cpu().numpy(), axis=2)
    peak = alpha.amax(dim=2).cpu().numpy()
    divergences: dict[float, list[np.ndarray]] = {epsilon: [] for epsilon in study.epsilons}
    for replica in range(len(alpha)):
        for epsilon in study.epsilons:
            _, divergence = most_different(alpha[replica], votes[replica], found.mask, epsilon)
            divergences[epsilon].append(divergence.cpu().numpy())
    for replica, seed in enumerate(condition.seeds):
        rows = _of_seed(change[replica], peak[replica], {e: found[replica] for e, found in divergences.items()})
        for place, name, value in rows:  # every seed is a point of its own
            yield Row(condition.name, seed, 1000 * place + replica if place else 0, name, value)
    if condition.name == BILSTM and len(alpha) > 1:
        yield from _beside_seeds(found, np.stack(divergences[study.epsilons[0]]), study.epsilons[0])


def _of_seed(
    change: np.ndarray, peak: np.ndarray, divergences: dict[float, np.ndarray]
) -> Iterator[tuple[int, str, float]]:
    smallest = min(divergences)
    yield 0, "median change by permuting", float(change.mean())
    little = change <= LITTLE
    groups = {"little change": little, f"little change, largest weight ≥ {PEAKED:g}": little[peak >= PEAKED]}
    for epsilon, divergence in divergences.items():
        yield 0, f"JSD at ε {epsilon:g}", float(divergence.mean())
        groups[f"JSD ≥ {NEAR:g} at ε {epsilon:g}"] = divergence >= NEAR
    for name, yes in groups.items():
        if len(yes):
            yield 0, name, float(yes.mean())
            yield 0, f"{name}: of", float(len(yes))
    kind = np.digitize(peak, EDGES)
    for number in np.unique(kind):
        place = 1 + int(number)
        yield place, "largest weight", float(peak[kind == number].mean())
        yield place, "median change by largest weight", float(change[kind == number].mean())
        yield place, "JSD by largest weight", float(divergences[smallest][kind == number].mean())


def _beside_seeds(found: Reading, divergence: np.ndarray, epsilon: float) -> Iterator[Row]:
    """The adversaries of every seed beside what the seed before it does."""
    others = found.texts.total(jsd_terms(found.alpha.roll(1, dims=0), found.alpha))
    moved = (found.answers.roll(1, dims=0) - found.answers).abs()
    yield Row(SUMMARY, 0, 0, "JSD of another seed", float(others.mean()))
    yield Row(SUMMARY, 0, 0, "|Δy| of another seed", float(moved.mean()))
    if len(divergence) > 2:
        apart, change = (of_neighbours(pairs.cpu().numpy()) for pairs in (others, moved))
        yield from bounds("JSD of the adversary minus that of another seed", divergence - apart)
        yield from bounds("|Δy| of another seed minus the adversary's", change - epsilon)


def with_adversary(arrays: dict[str, np.ndarray], epsilon: float) -> dict[str, np.ndarray]:
    """Padded texts as the page shows them, with their adversarial attention."""
    mask = torch.arange(arrays["source"].shape[1]) < torch.as_tensor(arrays["lengths"])[:, None]
    alpha, votes = (torch.as_tensor(arrays[name].astype(np.float32)) for name in ("alpha", "votes"))
    other, divergence = most_different(alpha, votes, mask, epsilon)
    assert torch.allclose(jsd(other, alpha, mask), divergence, atol=1e-3)
    return {**{name: value for name, value in arrays.items() if name != "votes"},
            "adversary": other.numpy().astype(np.float16)}  # fmt: skip
