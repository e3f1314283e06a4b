"""PyTorch's GRU with a leading replica axis: one layer, one direction."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from attndyn.models.layers import Stacked, take


class GRU(Stacked):
    """On a CPU the replicas go one by one through PyTorch's own GRU. On a GPU they are one batched program, a loop over
    time without a kernel of its own: only one variant of one study trains it."""

    weight_ih_l0: Float[Tensor, "replica gates in"]
    weight_hh_l0: Float[Tensor, "replica gates hidden"]
    bias_ih_l0: Float[Tensor, "replica gates"]
    bias_hh_l0: Float[Tensor, "replica gates"]

    def forward(
        self,
        tokens: Int[Tensor, "replica batch length"],
        table: Float[Tensor, "replica vocabulary in"],
        start: Float[Tensor, "replica batch hidden"] | None = None,
    ) -> tuple[Float[Tensor, "replica batch length hidden"], Float[Tensor, "replica batch hidden"]]:
        """All hidden states, and the last."""
        if start is None:
            start = table.new_zeros(*tokens.shape[:2], self.weight_hh_l0.shape[2])
        states = (self.stacked if table.is_cuda else self.one_by_one)(tokens, table, start)
        return states, states[:, :, -1]

    def one_by_one(
        self,
        tokens: Int[Tensor, "replica batch length"],
        table: Float[Tensor, "replica vocabulary in"],
        start: Float[Tensor, "replica batch hidden"],
    ) -> Float[Tensor, "replica batch length hidden"]:
        outputs = []
        for ids, rows, h, *weights in zip(
            tokens.unbind(),
            table.unbind(),
            start.unbind(),
            *(parameter.unbind() for parameter in self.parameters()),
            strict=True,
        ):
            # has_biases, layers, dropout, train, bidirectional, batch_first
            states, _ = torch.gru(F.embedding(ids, rows), h[None], weights, True, 1, 0.0, self.training, False, True)
            outputs.append(states)
        return torch.stack(outputs)

    def stacked(
        self,
        tokens: Int[Tensor, "replica batch length"],
        table: Float[Tensor, "replica vocabulary in"],
        start: Float[Tensor, "replica batch hidden"],
    ) -> Float[Tensor, "replica batch length hidden"]:
        projected = torch.baddbmm(self.bias_ih_l0[:, None], table, self.weight_ih_l0.mT)
        inputs = take(projected, tokens.flatten(1)).unflatten(1, tokens.shape[1:])
        kernel, bias, h, states = self.weight_hh_l0.mT, self.bias_hh_l0[:, None], start, []
        for given in inputs.unbind(2):
            reset, update, new = given.chunk(3, dim=-1)
            on_reset, on_update, on_new = torch.baddbmm(bias, h, kernel).chunk(3, dim=-1)
            candidate = torch.tanh(new + torch.sigmoid(reset + on_reset) * on_new)
            kept = torch.sigmoid(update + on_update)
            h = candidate + kept * (h - candidate)
            states.append(h)
        return torch.stack(states, dim=2)
