"""The kernels of `kernels/lstm.py`. One program takes one row (replica, sequence) and all hidden units.

tanh x is written 2 σ(2x) − 1, which is off by at most 1e-7. Numbers are not specialised on: each variant takes a
second to compile.
"""

import triton
import triton.language as tl

power_of_two = triton.next_power_of_2


@triton.jit(do_not_specialize=["before_stride", "time", "batch", "length", "table_rows"])
def forward(
    products, inputs, rows, before, before_stride, states, cells, gates, operand, time, batch, length, table_rows,
    hidden: tl.constexpr, block: tl.constexpr, gather: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    unit = tl.arange(0, block)
    real = unit < hidden
    place = row * length + time
    source = place
    if gather:
        source = row // batch * table_rows + tl.load(rows + place)
    recurrent = products + row * 4 * hidden + unit
    given = inputs + source * 4 * hidden + unit
    i = tl.sigmoid(tl.load(recurrent, real) + tl.load(given, real).to(tl.float32))
    f = tl.sigmoid(tl.load(recurrent + hidden, real) + tl.load(given + hidden, real).to(tl.float32))
    g = tl.load(recurrent + 2 * hidden, real) + tl.load(given + 2 * hidden, real).to(tl.float32)
    g = 2 * tl.sigmoid(2 * g) - 1
    o = tl.sigmoid(tl.load(recurrent + 3 * hidden, real) + tl.load(given + 3 * hidden, real).to(tl.float32))
    cell = f * tl.load(before + row * before_stride + unit, real) + i * g
    state = o * (2 * tl.sigmoid(2 * cell) - 1)
    kept = gates + place * 4 * hidden + unit
    tl.store(kept, i, real)
    tl.store(kept + hidden, f, real)
    tl.store(kept + 2 * hidden, g, real)
    tl.store(kept + 3 * hidden, o, real)
    tl.store(cells + place * hidden + unit, cell, real)
    tl.store(states + place * hidden + unit, state, real)
    tl.store(operand + row * hidden + unit, state, real)


@triton.jit(do_not_specialize=["before_stride", "time", "length"])
def backward(
    gates, cells, before, before_stride, d_states, d_hidden, d_cells, d_gates, time, length,
    hidden: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    unit = tl.arange(0, block)
    real = unit < hidden
    place = row * length + time
    kept = gates + place * 4 * hidden + unit
    i = tl.load(kept, real)
    f = tl.load(kept + hidden, real)
    g = tl.load(kept + 2 * hidden, real)
    o = tl.load(kept + 3 * hidden, real)
    squashed = 2 * tl.sigmoid(2 * tl.load(cells + place * hidden + unit, real)) - 1
    dh = tl.load(d_states + place * hidden + unit, real) + tl.load(d_hidden + row * hidden + unit, real)
    dc = tl.load(d_cells + row * hidden + unit, real) + dh * o * (1 - squashed * squashed)
    filled = d_gates + place * 4 * hidden + unit
    tl.store(filled, dc * g * i * (1 - i), real)
    tl.store(filled + hidden, dc * tl.load(before + row * before_stride + unit, real) * f * (1 - f), real)
    tl.store(filled + 2 * hidden, dc * i * (1 - g * g), real)
    tl.store(filled + 3 * hidden, dh * squashed * o * (1 - o), real)
    tl.store(d_cells + row * hidden + unit, dc * f, real)
