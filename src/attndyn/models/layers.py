"""PyTorch's layers with a leading replica axis.

Each layer stacks the parameters of R plain PyTorch modules, under the names and shapes PyTorch gives them, so
that a slice of it *is* the plain module. The modules are made by PyTorch's own initialisers.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

State = tuple[Float[Tensor, "replica batch hidden"], Float[Tensor, "replica batch hidden"]]


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

    On a CPU the replicas go one by one through PyTorch's own LSTM; on a GPU they are one batched program. Either way
    the embedding table of a small vocabulary goes through the input map once, not once for each token.
    """

    weight_ih_l0: Float[Tensor, "replica gates in"]
    weight_hh_l0: Float[Tensor, "replica gates hidden"]
    bias_ih_l0: Float[Tensor, "replica gates"]
    bias_hh_l0: Float[Tensor, "replica gates"]

    def forward(
        self,
        tokens: Int[Tensor, "replica batch length"],
        table: Float[Tensor, "replica vocabulary in"],
        start: State | None = None,
    ) -> tuple[Float[Tensor, "replica batch length hidden"], State]:
        """All hidden states, and the last (h, c)."""
        if start is None:
            zero = table.new_zeros(*tokens.shape[:2], self.weight_hh_l0.shape[2])
            start = (zero, zero)
        return (self.stacked if table.is_cuda else self.one_by_one)(tokens, table, start)

    def one_by_one(
        self, tokens: Int[Tensor, "replica batch length"], table: Float[Tensor, "replica vocabulary in"], start: State
    ) -> tuple[Float[Tensor, "replica batch length hidden"], State]:
        """With a small vocabulary PyTorch's LSTM reads one-hot vectors through W E^T, of shape [4H, V]."""
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

    def stacked(
        self, tokens: Int[Tensor, "replica batch length"], table: Float[Tensor, "replica vocabulary in"], start: State
    ) -> tuple[Float[Tensor, "replica batch length hidden"], State]:
        """All replicas at once: few large operations for each position in time."""
        first = len(table[0]) * torch.arange(len(table), device=table.device)
        ids = (tokens + first[:, None, None]).permute(2, 0, 1)  # [length, replica, batch], into the joined tables
        bias = self.bias_ih_l0 + self.bias_hh_l0
        if table.shape[1] < table.shape[2]:
            projected = torch.baddbmm(bias[:, None], table, self.weight_ih_l0.mT)
            inputs = F.embedding(ids, projected.flatten(0, 1))
        else:
            inputs = F.embedding(ids, table.flatten(0, 1)) @ self.weight_ih_l0.mT + bias[:, None]
        states, c = Recurrence.apply(inputs, self.weight_hh_l0, *start)
        return states.permute(1, 2, 0, 3), (states[-1], c)


class Recurrence(torch.autograd.Function):
    """The LSTM's loop over time for stacked replicas; its backward pass is written out, so that the loop leaves no
    graph of small nodes. Gates stand in PyTorch's order: input, forget, cell, output."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Float[Tensor, "length replica batch gates"],
        weight: Float[Tensor, "replica gates hidden"],
        h: Float[Tensor, "replica batch hidden"],
        c: Float[Tensor, "replica batch hidden"],
    ) -> tuple[Float[Tensor, "length replica batch hidden"], Float[Tensor, "replica batch hidden"]]:
        length, hidden = len(inputs), weight.shape[2]
        states, cells = (value.new_empty(length + 1, *value.shape) for value in (h, c))
        states[0], cells[0] = h, c
        squashed = h.new_empty(length, *h.shape)  # tanh of the cells
        gates = torch.empty_like(inputs)
        for t in range(length):
            torch.baddbmm(inputs[t], states[t], weight.mT, out=gates[t])
            gates[t, ..., : 2 * hidden].sigmoid_()
            gates[t, ..., 2 * hidden : 3 * hidden].tanh_()
            gates[t, ..., 3 * hidden :].sigmoid_()
            i, f, g, o = gates[t].chunk(4, dim=-1)
            torch.mul(f, cells[t], out=cells[t + 1]).addcmul_(i, g)
            torch.tanh(cells[t + 1], out=squashed[t])
            torch.mul(o, squashed[t], out=states[t + 1])
        ctx.save_for_backward(weight, states, cells, squashed, gates)
        return states[1:].clone(), cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, d_states: Tensor, d_cell: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        weight, states, cells, squashed, gates = ctx.saved_tensors
        d_gates, d_weight = torch.empty_like(gates), torch.zeros_like(weight)
        dh, dc = torch.zeros_like(states[0]), d_cell
        for t in reversed(range(len(gates))):
            i, f, g, o = gates[t].chunk(4, dim=-1)
            di, df, dg, do = d_gates[t].chunk(4, dim=-1)
            dh = dh + d_states[t]
            dc = dc + dh * o * (1 - squashed[t] ** 2)
            do.copy_(dh * squashed[t] * o * (1 - o))
            di.copy_(dc * g * i * (1 - i))
            df.copy_(dc * cells[t] * f * (1 - f))
            dg.copy_(dc * i * (1 - g**2))
            dc = dc * f
            dh = torch.bmm(d_gates[t], weight)
            torch.baddbmm(d_weight, d_gates[t].mT, states[t], out=d_weight)
        return d_gates, d_weight, dh, dc
