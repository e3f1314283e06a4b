"""The weights of each replica where a reading was lowest, such as the loss on the evaluation examples."""

import torch
from jaxtyping import Float
from torch import Tensor


class Best:
    def __init__(self, weights: Float[Tensor, "replica parameter"]) -> None:
        self.weights = weights.clone()
        self.value = torch.full((len(weights),), torch.inf, device=weights.device)
        self.step = torch.zeros(len(weights), dtype=torch.int64, device=weights.device)

    def update(self, value: Float[Tensor, " replica"], step: int, weights: Float[Tensor, "replica parameter"]) -> None:
        """Takes over the replicas whose value is lower than before. Looks at nothing, so a GPU need not wait."""
        lower = value < self.value
        self.value.copy_(torch.where(lower, value, self.value))
        self.step.copy_(torch.where(lower, step, self.step))
        self.weights.copy_(torch.where(lower[:, None], weights, self.weights))

    def state(self) -> dict[str, Tensor]:
        return {"best weights": self.weights, "best value": self.value, "best step": self.step}

    def load(self, state: dict[str, Tensor]) -> None:
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
