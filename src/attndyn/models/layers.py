"""PyTorch's layers with a leading replica axis.

Each layer stacks the parameters of R plain PyTorch modules, under the names and shapes PyTorch gives them, so
that a slice of it *is* the plain module. The modules are made by PyTorch's own initialisers.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F


class Stacked(nn.Module):
    """The parameters of R copies of a module, stacked on a leading axis."""

    def __init__(self, copies: Sequence[nn.Module]) -> None:
        super().__init__()
        for name, _ in copies[0].named_parameters():
            values = [copy.get_parameter(name).detach() for copy in copies]
            self.register_parameter(name, nn.Parameter(torch.stack(values)))


class Linear(Stacked):
    weight: Float[Tensor, "replica out in"]
    bias: Float[Tensor, "replica out"]  # absent if the plain modules have none

    def forward(self, x: Float[Tensor, "replica batch length in"]) -> Float[Tensor, "replica batch length out"]:
        return linear(x, self.weight, getattr(self, "bias", None))


def linear(
    x: Float[Tensor, "replica batch length in"],
    weight: Float[Tensor, "replica out in"],
    bias: Float[Tensor, "replica out"] | None = None,
) -> Float[Tensor, "replica batch length out"]:
    if len(x) == 1:
        return F.linear(x.squeeze(0), weight.squeeze(0), None if bias is None else bias.squeeze(0))[None]
    flat = x.flatten(1, 2)
    product = torch.bmm(flat, weight.mT) if bias is None else torch.baddbmm(bias[:, None], flat, weight.mT)
    return product.unflatten(1, x.shape[1:3])


class Embedding(Stacked):
    weight: Float[Tensor, "replica vocabulary width"]


class LSTM(Stacked):
    """One layer, one direction. Keeps PyTorch's two biases: merged, Adam would move their sum half as fast.

    Over tokens of a small vocabulary the embedding table goes through the input map once, W E^T of shape
    [4H, V], and PyTorch's LSTM reads one-hot vectors: its own product with V columns instead of H per token.
    """

    weight_ih_l0: Float[Tensor, "replica gates in"]
    weight_hh_l0: Float[Tensor, "replica gates hidden"]
    bias_ih_l0: Float[Tensor, "replica gates"]
    bias_hh_l0: Float[Tensor, "replica gates"]

    def forward(
        self,
        tokens: Int[Tensor, "replica batch length"],
        table: Float[Tensor, "replica vocabulary in"],
        start: tuple[Float[Tensor, "replica batch hidden"], Float[Tensor, "replica batch hidden"]] | None = None,
    ) -> tuple[
        Float[Tensor, "replica batch length hidden"],
        tuple[Float[Tensor, "replica batch hidden"], Float[Tensor, "replica batch hidden"]],
    ]:
        """All hidden states, and the last (h, c)."""
        replicas, batch, _ = tokens.shape
        if start is None:
            zero = table.new_zeros(replicas, batch, self.weight_hh_l0.shape[2])
            start = (zero, zero)
        outputs = []
        # unbind, not indexing: the gradient of an index is a full tensor of zeros for each replica
        for ids, rows, w_ih, w_hh, b_ih, b_hh, h, c in zip(
            tokens.mT.unbind(),
            table.unbind(),
            *(parameter.unbind() for parameter in self.parameters()),
            *(state.unbind() for state in start),
            strict=True,
        ):
            if len(rows) < rows.shape[1]:
                inputs, w_ih = F.one_hot(ids, len(rows)).to(rows.dtype), w_ih @ rows.T
            else:
                inputs = F.embedding(ids, rows)
            weights = [w_ih, w_hh, b_ih, b_hh]
            # has_biases, layers, dropout, train, bidirectional, batch_first
            outputs.append(torch.lstm(inputs, (h[None], c[None]), weights, True, 1, 0.0, self.training, False, False))
        states, last_h, last_c = (torch.stack(part) for part in zip(*outputs, strict=True))
        return states.transpose(1, 2), (last_h[:, 0], last_c[:, 0])
