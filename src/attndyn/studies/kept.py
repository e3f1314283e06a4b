"""Trained models again, with the weights that a run kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attndyn.models.base import Model
    from attndyn.store.folder import Run
    from attndyn.training.condition import Condition


def model_at(condition: Condition, run: Run, seeds: Sequence[int], best: str, device: str) -> Model:
    """The models of several seeds, which need not differ, as replicas."""
    model = condition.model.build(condition.task.vocabulary, list(seeds), condition.task.outputs)
    kept = {seed: run.weights(condition.name, seed, best) for seed in seeds}
    model.fill([kept[seed] for seed in seeds])
    return model.to(device).eval()
