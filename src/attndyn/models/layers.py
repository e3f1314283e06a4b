"""PyTorch's layers with a leading replica axis.

Each layer stacks the parameters of R plain PyTorch modules, under the names and shapes PyTorch gives them, so
that a slice of it *is* the plain module. The modules are made by PyTorch's own initialisers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attndyn.kernels import cluster_lstm, lstm

State = tuple[Float[Tensor, "replica batch hidden"], Float[Tensor, "replica batch hidden"]]


def drawn(make: Callable[[], dict[str, nn.Module]], seeds: Sequence[int]) -> dict[str, list[nn.Module]]:
    """The parts of a model for each seed, drawn by PyTorch's own initialisers; the random state is left alone."""
    copies = []
    with torch.random.fork_rng(devices=[]):
        for seed in seeds:
            torch.manual_seed(seed)
            copies.append(make())
    return {name: [copy[name] for copy in copies] for name in copies[0]}


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


def merged(
    outer: Float[Tensor, "replica out between"],
    bias: Float[Tensor, "replica out"],
    weight: Float[Tensor, "replica between in"],
    shift: Float[Tensor, "replica between"],
) -> tuple[Float[Tensor, "replica out in"], Float[Tensor, "replica out"]]:
    """Two maps as one: W (V x + v) + w = (W V) x + (W v + w)."""
    return outer @ weight, bias + (outer @ shift[..., None])[..., 0]


def of_classes(votes: Float[Tensor, "*rows vote"]) -> Float[Tensor, "*rows class"]:
    """One vote for each class; a single one is for the second of two, and the first stands at 0."""
    return votes if votes.shape[-1] > 1 else F.pad(votes, (1, 0))


class Embedding(Stacked):
    weight: Float[Tensor, "replica vocabulary width"]

    def forward(self, tokens: Int[Tensor, "replica batch length"]) -> Float[Tensor, "replica batch length width"]:
        return take(self.weight, tokens.flatten(1)).unflatten(1, tokens.shape[1:])


def take(
    table: Float[Tensor, "replica row width"], rows: Int[Tensor, "replica count"]
) -> Float[Tensor, "replica count width"]:
    """Rows of each replica's own table."""
    taken: Tensor = Taken.apply(table, rows)
    return taken


class Taken(torch.autograd.Function):
    """Reads a table where it lies, and adds its gradient row by row, which a GPU can record: PyTorch's own operations
    copy tables that do not lie one after the other, and copy the zeros that gradients are added to."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = table.shape
        if table.is_contiguous():
            return table.view(-1, table.shape[2]).index_select(0, in_one(rows, table.shape)).view(*rows.shape, -1)
        return table[torch.arange(len(table), device=table.device)[:, None], rows]

    @staticmethod
    def backward(ctx: Any, d_taken: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        d_table = d_taken.new_zeros(ctx.shape)
        d_table.view(-1, ctx.shape[2]).index_add_(0, in_one(rows, ctx.shape), d_taken.flatten(0, 1))
        return d_table, None


def in_one(rows: Int[Tensor, "replica count"], shape: Sequence[int]) -> Int[Tensor, " rows"]:
    """Where rows of tables lie if the tables lie one after the other."""
    return (rows + shape[1] * torch.arange(len(rows), device=rows.device)[:, None]).flatten()


class LayerNorm(Stacked):
    weight: Float[Tensor, "replica width"]
    bias: Float[Tensor, "replica width"]

    def forward(self, x: Float[Tensor, "replica batch length width"]) -> Float[Tensor, "replica batch length width"]:
        return F.layer_norm(x, x.shape[-1:]) * self.weight[:, None, None] + self.bias[:, None, None]


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
        bias = (self.bias_ih_l0 + self.bias_hh_l0)[:, None]
        if table.shape[1] < table.shape[2]:
            inputs, rows = torch.baddbmm(bias, table, self.weight_ih_l0.mT), tokens
        else:
            embedded = take(table, tokens.flatten(1))
            inputs, rows = torch.baddbmm(bias, embedded, self.weight_ih_l0.mT), None
        states, h, c = Recurrence.apply(inputs, rows, self.weight_hh_l0, *start, tokens.shape[2])
        return states, (h, c)


class BiLSTM(Stacked):
    """One layer over vectors of texts of different lengths, in one direction or in both, as the plain modules are.

    The backward direction reverses each text within its own length, so that it meets no padding before the text.
    """

    weight_ih_l0: Float[Tensor, "replica gates in"]
    weight_hh_l0: Float[Tensor, "replica gates hidden"]
    bias_ih_l0: Float[Tensor, "replica gates"]
    bias_hh_l0: Float[Tensor, "replica gates"]
    # and the same with the ending _reverse, if there are two directions

    def forward(
        self, inputs: Float[Tensor, "replica batch length in"], mask: Bool[Tensor, "replica batch length"] | None = None
    ) -> Float[Tensor, "replica batch length states"]:
        """The states of both directions side by side; what stands at padding means nothing."""
        back = backwards(inputs.shape[1:3], mask, inputs.device)
        return self._beside([states for states, _ in self._run(inputs, back)], back)

    @property
    def only_read(self) -> bool:
        """Whether a CPU computes and nobody asks for the gradient of the weights, which PyTorch's own LSTM would
        compute all the same. Then `from_gates(to_gates(…))` is as good as `forward`, and there and back it multiplies
        less than half as much."""
        weight = self.weight_hh_l0
        return not weight.is_cuda and not (torch.is_grad_enabled() and weight.requires_grad)

    def to_gates(
        self, table: Float[Tensor, "replica vocabulary in"], tokens: Int[Tensor, "replica batch length"]
    ) -> Float[Tensor, "replica batch length gates"]:
        """What words bring to the gates of all directions, biases left out: a linear map of their vectors, through
        which each word goes once, however often it stands there."""
        words, places = tokens.unique(return_inverse=True)
        maps = torch.cat(tuple(self.parameters())[::4], dim=1)
        return take(table[:, words] @ maps.mT, places.flatten(1)).unflatten(1, tokens.shape[1:])

    def from_gates(
        self,
        gates: Float[Tensor, "replica batch length gates"],
        mask: Bool[Tensor, "replica batch length"] | None = None,
    ) -> Float[Tensor, "replica batch length states"]:
        back = backwards(gates.shape[1:3], mask, gates.device)
        weights = list(self.parameters())
        start = gates.new_zeros(*gates.shape[:2], weights[1].shape[2])
        states = []
        for number, own in enumerate(gates.chunk(len(weights) // 4, dim=-1)):
            _, w_hh, b_ih, b_hh = weights[4 * number : 4 * number + 4]
            inputs = (along(own, back) if number else own).flatten(1, 2) + (b_ih + b_hh)[:, None]
            states.append(Recurrence.apply(inputs, None, w_hh, start, start, gates.shape[2])[0])
        return self._beside(states, back)

    def with_last(
        self,
        inputs: Float[Tensor, "replica batch length in"],
        mask: Bool[Tensor, "replica batch length"] | None = None,
        start: State | None = None,
    ) -> tuple[Float[Tensor, "replica batch length states"], list[State]]:
        """Also the (h, c) of each direction where the text ends. `start` is for one direction."""
        back = backwards(inputs.shape[1:3], mask, inputs.device)
        ran = self._run(inputs, back, None if mask is None else ~mask, start)
        lengths = inputs.new_full(inputs.shape[:2], inputs.shape[2]).long() if mask is None else mask.sum(dim=-1)
        last = (lengths - 1)[..., None, None].expand(-1, -1, 1, ran[0][0].shape[-1])
        ends = [(states.gather(2, last)[:, :, 0], cells) for states, cells in ran]
        return self._beside([states for states, _ in ran], back), ends

    def _run(
        self,
        inputs: Float[Tensor, "replica batch length in"],
        back: Int[Tensor, "#replica batch length"],
        padding: Bool[Tensor, "replica batch length"] | None = None,
        start: State | None = None,
    ) -> list[tuple[Tensor, Tensor]]:
        """States and last cells of each direction, in the direction's own order."""
        weights = list(self.parameters())
        if start is None:
            start = (inputs.new_zeros(*inputs.shape[:2], weights[1].shape[2]),) * 2
        directions = [inputs] if len(weights) == 4 else [inputs, along(inputs, back)]
        run = self.stacked if inputs.is_cuda else self.one_by_one
        return run(directions, [weights[:4], weights[4:]][: len(directions)], start, padding)

    @staticmethod
    def _beside(states: list[Tensor], back: Tensor) -> Tensor:
        return states[0] if len(states) == 1 else torch.cat([states[0], along(states[1], back)], dim=-1)

    def one_by_one(
        self, inputs: Sequence[Tensor], weights: Sequence[Sequence[Tensor]], start: State, padding: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor]]:
        """Each direction and replica through PyTorch's own LSTM. Padding is one more input, which holds the cells."""
        found = []
        for x, (w_ih, *rest) in zip(inputs, weights, strict=True):
            if padding is not None:
                x = torch.cat([x, padding[..., None].to(x.dtype)], dim=-1)
                w_ih = torch.cat([w_ih, holding(w_ih).expand(len(w_ih), -1)[..., None]], dim=-1)
            each = zip(
                x.unbind(), *(state.unbind() for state in start), w_ih.unbind(), *map(Tensor.unbind, rest), strict=True
            )
            ran = [
                torch.lstm(row, (h[None], c[None]), own, True, 1, 0.0, self.training, False, True)
                for row, h, c, *own in each
            ]
            found.append((torch.stack([one[0] for one in ran]), torch.cat([one[2] for one in ran])))
        return found

    def stacked(
        self, inputs: Sequence[Tensor], weights: Sequence[Sequence[Tensor]], start: State, padding: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor]]:
        """Both directions of all replicas as one batched program."""
        count = len(inputs)
        x = torch.cat(list(inputs))
        w_ih, w_hh, b_ih, b_hh = (torch.cat(parts) for parts in zip(*weights, strict=True))
        h, c = (state.repeat(count, 1, 1) for state in start)
        projected = torch.baddbmm((b_ih + b_hh)[:, None], x.flatten(1, 2), w_ih.mT)
        if padding is not None:
            projected = projected + padding.repeat(count, 1, 1).flatten(1)[..., None] * holding(w_ih)
        states, _, cells = Recurrence.apply(projected, None, w_hh, h, c, x.shape[2])
        return list(zip(states.chunk(count), cells.chunk(count), strict=True))


def holding(weight: Float[Tensor, "replica gates in"]) -> Float[Tensor, " gates"]:
    """What is added to the gates where nothing is read, so that the cells stay as they are: the input gate is shut and
    the forget gate open, exactly (σ of ∓10⁴ is 0 and 1)."""
    hidden = weight.shape[1] // 4
    return torch.cat([weight.new_full((hidden,), value) for value in (-1e4, 1e4, 0.0, 0.0)])


def backwards(
    shape: Sequence[int], mask: Bool[Tensor, "replica batch length"] | None, device: torch.device
) -> Int[Tensor, "replica batch length"]:
    """For each position of a text, the one as far from its end; padding, which comes last, stays where it is."""
    position = torch.arange(shape[1], device=device)
    if mask is None:
        return position.flip(0).expand(1, *shape)
    length = mask.sum(dim=-1, keepdim=True)
    return torch.where(position < length, length - 1 - position, position)


def along(
    x: Float[Tensor, "replica batch length width"], order: Int[Tensor, "#replica batch length"]
) -> Float[Tensor, "replica batch length width"]:
    """The positions of each text in another order, which undoes itself, as `backwards` does."""
    ordered: Tensor = Ordered.apply(x, order)
    return ordered


class Ordered(torch.autograd.Function):
    """The gradient of an order that undoes itself is that order again: nothing needs to be added up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor) -> Tensor:
        ctx.save_for_backward(order)
        return ordered(x, order)

    @staticmethod
    def backward(ctx: Any, d_ordered: Tensor) -> tuple[Tensor, None]:
        return ordered(d_ordered, *ctx.saved_tensors), None


def ordered(
    x: Float[Tensor, "replica batch length width"], order: Int[Tensor, "#replica batch length"]
) -> Float[Tensor, "replica batch length width"]:
    first = x.shape[2] * torch.arange(x.shape[1], device=x.device)[:, None]
    places = in_one((order + first).flatten(1).expand(len(x), -1), (len(x), x.shape[1] * x.shape[2]))
    return x.flatten(0, 2).index_select(0, places).view_as(x)


class Recurrence(torch.autograd.Function):
    """The LSTM's loop over time for stacked replicas; its backward pass is written out, so that the loop leaves no
    graph of small nodes, and the gradients of weights and inputs are one product each over all positions. Under
    autocast the products take bf16 operands; everything else stays in fp32."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Float[Tensor, "replica rows gates"],
        rows: Int[Tensor, "replica batch length"] | None,
        weight: Float[Tensor, "replica gates hidden"],
        h: Float[Tensor, "replica batch hidden"],
        c: Float[Tensor, "replica batch hidden"],
        length: int,
    ) -> tuple[
        Float[Tensor, "replica batch length hidden"],
        Float[Tensor, "replica batch hidden"],
        Float[Tensor, "replica batch hidden"],
    ]:
        device = h.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        with torch.autocast(device, enabled=False):
            replicas, batch, hidden = h.shape
            tape = lstm.Tape(
                states=weight.new_empty(replicas, batch, length, hidden),
                cells=weight.new_empty(replicas, batch, length, hidden),
                gates=weight.new_empty(replicas, batch, length, 4 * hidden),
                start=c.contiguous(),
            )
            kernel, operand = weight.to(dtype), h.to(dtype, copy=True, memory_format=torch.contiguous_format)
            whole = cluster_lstm.fits(kernel, h, length)
            if whole:
                cluster_lstm.forward(*tape, inputs.contiguous(), rows, kernel.contiguous(), operand)
            else:
                for time in range(length):
                    lstm.forward(tape, time, product(operand, kernel.mT), inputs, rows, operand)
        ctx.save_for_backward(*tape, kernel, h)
        ctx.rows, ctx.count, ctx.whole = rows, inputs.shape[1], whole
        return tape.states, tape.states[:, :, -1].clone(), tape.cells[:, :, -1].clone()

    @staticmethod
    def backward(
        ctx: Any, d_states: Tensor, d_last: Tensor, d_cell: Tensor
    ) -> tuple[Tensor, None, Tensor | None, Tensor, Tensor, None]:
        *kept, weight, h = ctx.saved_tensors
        tape = lstm.Tape(*kept)
        d_states, d_cells, d_hidden = d_states.contiguous(), d_cell.contiguous(), d_last.contiguous()
        d_gates = torch.empty_like(tape.gates, dtype=weight.dtype)
        if ctx.whole:
            d_hidden, d_cells = cluster_lstm.backward(
                tape.cells, tape.gates, tape.start, weight.contiguous(), d_states, d_hidden, d_cells, d_gates
            )
        else:
            d_cells = d_cells.clone()
            for time in reversed(range(d_gates.shape[2])):
                lstm.backward(tape, time, d_states, d_hidden, d_cells, d_gates)
                d_hidden = product(d_gates[:, :, time], weight)
        d_weight = None
        if ctx.needs_input_grad[2]:
            before = torch.empty_like(tape.states, dtype=weight.dtype)
            before[:, :, 0], before[:, :, 1:] = h, tape.states[:, :, :-1]
            d_weight = product(d_gates.flatten(1, 2).mT, before.flatten(1, 2))
        if ctx.rows is None:
            d_inputs = d_gates.flatten(1, 2).to(d_hidden.dtype)
        else:
            every = torch.arange(-(-ctx.count // 8) * 8, device=h.device)  # GPUs are slow where rows are not aligned
            one_hot = (ctx.rows.flatten(1)[..., None] == every).to(weight.dtype)
            d_inputs = product(one_hot.mT, d_gates.flatten(1, 2))[:, : ctx.count]
        return d_inputs, None, d_weight, d_hidden, d_cells, None


def product(
    left: Float[Tensor, "replica rows inner"], right: Float[Tensor, "replica inner columns"]
) -> Float[Tensor, "replica rows columns"]:
    """In at least fp32, whatever the operands are."""
    if left.dtype == torch.bfloat16:
        return torch.bmm(left, right, out_dtype=torch.float32)
    return torch.bmm(left, right)
