"""Adam over one flat buffer: every parameter of every replica in one tensor [replica, parameter].

PyTorch's Adam takes one learning rate; here learning rate, decay, frozen parameters and stopped replicas are
tensors over the replica axis, and a step is one kernel, or a dozen plain operations, however many parameters there
are.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attndyn.kernels import adam
from attndyn.training.condition import Adam

ALIGN = 64
"""Each parameter starts at a multiple of this: matrix products on a GPU are slow where it is not one of 4 floats."""


class FlatAdam:
    """Moves the parameters of `model`, whose leading axis is the replica, into one buffer and updates it."""

    def __init__(self, model: nn.Module, spec: Adam) -> None:
        self.spec = spec
        named = list(model.named_parameters())
        self.replicas = len(named[0][1])
        self.parameters = [parameter for _, parameter in named]
        sizes = [-(-parameter[0].numel() // ALIGN) * ALIGN for parameter in self.parameters]
        self.starts = [sum(sizes[:index]) for index in range(len(sizes))]
        self.values: Float[Tensor, "replica parameter"] = named[0][1].new_zeros(self.replicas, sum(sizes))
        self.gradient = torch.zeros_like(self.values)
        for parameter, place in zip(self.parameters, self.views(self.values), strict=True):
            place.copy_(parameter.detach())
            parameter.data = place
        self.mean, self.square = torch.zeros_like(self.values), torch.zeros_like(self.values)
        self.largest = torch.zeros_like(self.values) if spec.amsgrad else None
        self.rates = adam.Rates(
            lr=self._column(spec.lr),
            decay=self._column(spec.decay) if spec.decay else None,
            moves=self._moves(named),
            betas=spec.betas,
            eps=spec.eps,
        )

    def views(self, buffer: Tensor) -> list[Tensor]:
        """The parts of a flat buffer that belong to the parameters, in their shapes."""
        return [
            buffer[:, start : start + parameter[0].numel()].view(parameter.shape)
            for start, parameter in zip(self.starts, self.parameters, strict=True)
        ]

    def _column(self, value: float | tuple[float, ...]) -> Float[Tensor, "replica 1"]:
        rows = value if isinstance(value, tuple) else (value,) * self.replicas
        if len(rows) != self.replicas:
            raise ValueError(f"{len(rows)} values for {self.replicas} replicas")
        return torch.tensor(rows, dtype=self.values.dtype, device=self.values.device)[:, None]

    def _moves(self, named: Sequence[tuple[str, nn.Parameter]]) -> Bool[Tensor, "replica parameter"] | None:
        """Which parameters may move; None: all."""
        frozen = self.spec.frozen
        if not frozen:
            return None
        rows = [(name,) if isinstance(name, str) else name for name in frozen]
        per_replica = [sum(rows, ())] * self.replicas if isinstance(frozen[0], str) else rows
        if len(per_replica) != self.replicas:
            raise ValueError(f"{len(per_replica)} rows of frozen names for {self.replicas} replicas")
        known = {name for name, _ in named}
        for name in {name for row in per_replica for name in row} - known:
            raise ValueError(f"no parameter is called {name!r}; there are {', '.join(sorted(known))}")
        moves = torch.ones_like(self.values, dtype=torch.bool)
        for (name, _), place in zip(named, self.views(moves), strict=True):
            for replica, row in enumerate(per_replica):
                place[replica] = name not in row
        return moves

    def differentiate(self, loss: Float[Tensor, ""]) -> None:
        """Fills the gradient; what the loss does not depend on has none."""
        parts = torch.autograd.grad(loss, self.parameters, allow_unused=True, materialize_grads=True)
        for place, part in zip(self.views(self.gradient), parts, strict=True):
            place.copy_(part)

    @torch.no_grad()
    def step(self, number: Int[Tensor, ""], active: Bool[Tensor, " replica"]) -> None:
        """The update number 1, 2, … by the gradient. Inactive replicas stay as they are."""
        buffers = adam.Buffers(self.values, self.mean, self.square, self.largest, self.gradient)
        rates = self.rates
        if self.spec.warmup:
            n = number.to(self.values.dtype)
            rates = rates._replace(lr=rates.lr * torch.minimum(n * self.spec.warmup**-1.5, n**-0.5))
        adam.update(buffers, rates, number, active)

    def state(self) -> dict[str, Tensor]:
        """Everything a resumed run needs, by name."""
        state = {"values": self.values, "mean": self.mean, "square": self.square}
        return state if self.largest is None else {**state, "largest": self.largest}

    def load(self, state: dict[str, Tensor]) -> None:
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
