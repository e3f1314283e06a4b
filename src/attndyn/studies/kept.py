"""Models out of a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from attndyn.models.base import Model
    from attndyn.store.folder import Run
    from attndyn.training.condition import Condition


def model_at(condition: Condition, run: Run, seeds: Sequence[int], best: str, device: str) -> Model:
    """The models of several seeds with the weights that were kept, such as at the highest accuracy."""
    model = condition.model.build(condition.task.vocabulary, seeds, condition.task.outputs)
    kept = [run.weights(condition.name, seed, best) for seed in seeds]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.stack([torch.as_tensor(weights[name]) for weights in kept]))
    return model.to(device).eval()
