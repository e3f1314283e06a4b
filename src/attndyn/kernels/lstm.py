"""One position in time of an LSTM, for all rows (replica, sequence) at once, without its matrix products.

The states of a whole sequence lie in [replica, batch, length, …] buffers; a step reads and writes the slice of its
time. Gates stand in PyTorch's order: input, forget, cell, output.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attndyn import kernels


class Tape(NamedTuple):
    """What the forward pass leaves for the backward pass."""

    states: Float[Tensor, "replica batch length hidden"]
    cells: Float[Tensor, "replica batch length hidden"]
    gates: Float[Tensor, "replica batch length gates"]
    start: Float[Tensor, "replica batch hidden"]  # the cells before the first position

    def before(self, time: int) -> Tensor:
        return self.cells[:, :, time - 1] if time else self.start


def forward(
    tape: Tape,
    time: int,
    products: Float[Tensor, "replica batch gates"],
    inputs: Float[Tensor, "replica rows gates"],
    rows: Int[Tensor, "replica batch length"] | None,
    operand: Float[Tensor, "replica batch hidden"],
) -> None:
    """Fills the tape at `time` from the recurrent products and the inputs: row `rows[…, time]` of a table, or without
    `rows` the row of this very position. The new state is also written to `operand`, in that tensor's precision."""
    step = _launch_forward if kernels.fast(products) else plain_forward
    step(tape, time, products, inputs, rows, operand)


def plain_forward(
    tape: Tape,
    time: int,
    products: Float[Tensor, "replica batch gates"],
    inputs: Float[Tensor, "replica rows gates"],
    rows: Int[Tensor, "replica batch length"] | None,
    operand: Float[Tensor, "replica batch hidden"],
) -> None:
    if rows is None:
        chosen = inputs.unflatten(1, tape.gates.shape[1:3])[:, :, time]
    else:
        chosen = inputs.gather(1, rows[:, :, time, None].expand_as(products))
    gates, cells = tape.gates[:, :, time], tape.cells[:, :, time]
    i, f, g, o = torch.add(products, chosen, out=gates).chunk(4, dim=-1)
    for gate, squash in ((i, Tensor.sigmoid_), (f, Tensor.sigmoid_), (g, Tensor.tanh_), (o, Tensor.sigmoid_)):
        squash(gate)
    torch.mul(f, tape.before(time), out=cells).addcmul_(i, g)
    states = torch.mul(o, cells.tanh(), out=tape.states[:, :, time])
    operand.copy_(states)


def backward(
    tape: Tape,
    time: int,
    d_states: Float[Tensor, "replica batch length hidden"],
    d_hidden: Float[Tensor, "replica batch hidden"],
    d_cells: Float[Tensor, "replica batch hidden"],
    d_gates: Float[Tensor, "replica batch length gates"],
) -> None:
    """Fills `d_gates` at `time`, before the squashing. `d_hidden` is what comes from the next position through the
    weights, `d_cells` what comes through the cells; the latter is replaced by what goes on to the one before."""
    step = _launch_backward if kernels.fast(d_hidden) else plain_backward
    step(tape, time, d_states, d_hidden, d_cells, d_gates)


def plain_backward(
    tape: Tape,
    time: int,
    d_states: Float[Tensor, "replica batch length hidden"],
    d_hidden: Float[Tensor, "replica batch hidden"],
    d_cells: Float[Tensor, "replica batch hidden"],
    d_gates: Float[Tensor, "replica batch length gates"],
) -> None:
    i, f, g, o = tape.gates[:, :, time].chunk(4, dim=-1)
    squashed = tape.cells[:, :, time].tanh()
    dh = d_states[:, :, time] + d_hidden
    dc = d_cells + dh * o * (1 - squashed**2)
    d_gates[:, :, time] = torch.cat(
        [
            dc * g * i * (1 - i),
            dc * tape.before(time) * f * (1 - f),
            dc * i * (1 - g**2),
            dh * squashed * o * (1 - o),
        ],
        dim=-1,
    )
    d_cells.copy_(dc * f)


def _launch_forward(
    tape: Tape, time: int, products: Tensor, inputs: Tensor, rows: Tensor | None, operand: Tensor
) -> None:
    from attndyn.kernels import triton_lstm

    replicas, batch, length, hidden = tape.states.shape
    before = tape.before(time)
    triton_lstm.forward[(replicas * batch,)](
        products, inputs, rows if rows is not None else products, before, before.stride(1),
        tape.states, tape.cells, tape.gates, operand, time, batch, length, inputs.shape[1],
        hidden=hidden, block=triton_lstm.power_of_two(hidden), gather=rows is not None,
    )  # fmt: skip


def _launch_backward(
    tape: Tape, time: int, d_states: Tensor, d_hidden: Tensor, d_cells: Tensor, d_gates: Tensor
) -> None:
    from attndyn.kernels import triton_lstm

    replicas, batch, length, hidden = tape.states.shape
    before = tape.before(time)
    triton_lstm.backward[(replicas * batch,)](
        tape.gates, tape.cells, before, before.stride(1), d_states, d_hidden, d_cells, d_gates, time, length,
        hidden=hidden, block=triton_lstm.power_of_two(hidden),
    )  # fmt: skip
