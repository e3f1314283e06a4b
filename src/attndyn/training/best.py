"""The weights of each replica where a metric was lowest or highest, such as the loss on the evaluation examples."""

import torch
from jaxtyping import Float
from torch import Tensor


class Best:
    """`wanted` names the metric and the end that is sought: "lowest loss"."""

    def __init__(self, wanted: str, weights: Float[Tensor, "replica parameter"]) -> None:
        self.wanted = wanted
        end, self.metric = wanted.split(" ", 1)
        self.sign = {"lowest": 1, "highest": -1}[end]
        self.weights = weights.clone()
        self.value = torch.full((len(weights),), torch.inf, device=weights.device)
        self.step = torch.zeros(len(weights), dtype=torch.int64, device=weights.device)

    def update(self, value: Float[Tensor, " replica"], step: int, weights: Float[Tensor, "replica parameter"]) -> None:
        """Takes over the replicas whose value is better than before. Looks at nothing, so a GPU need not wait."""
        lower = self.sign * value < self.value
        self.value.copy_(torch.where(lower, self.sign * value, self.value))
        self.step.copy_(torch.where(lower, step, self.step))
        self.weights.copy_(torch.where(lower[:, None], weights, self.weights))

    def state(self) -> dict[str, Tensor]:
        parts = {"weights": self.weights, "value": self.value, "step": self.step}
        return {f"{self.wanted}: {name}": part for name, part in parts.items()}

    def load(self, state: dict[str, Tensor]) -> None:
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
