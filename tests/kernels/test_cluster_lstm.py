"""The LSTM's loop as one launch does what the loop of plain steps does: its very source, run by threads of a CPU, and
on a GPU that has clusters."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attndyn.kernels import cluster_lstm, lstm
from attndyn.training.precision import products

EMULATED = Path(__file__).parent / "emulated" / "cluster.cpp"


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def tf32(x: Tensor) -> Tensor:
    """Rounded to ten bits of mantissa, ties away from zero."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class Case:
    """A loop with everything that goes into it."""

    def __init__(self, replicas: int, batch: int, length: int, hidden: int, table: int | None, device: str = "cpu"):
        shape = (replicas, batch, hidden)
        given = {
            "inputs": draw(replicas, table or batch * length, 4 * hidden, seed=1),
            "weight": draw(replicas, 4 * hidden, hidden, seed=2) / hidden**0.5,
            "h": draw(*shape, seed=3).tanh(),
            "c": draw(*shape, seed=4),
            "d_states": draw(replicas, batch, length, hidden, seed=5),
            "d_last": draw(*shape, seed=6),
            "d_cell": draw(*shape, seed=7),
        }
        self.inputs, self.weight, self.h, self.c, self.d_states, self.d_last, self.d_cell = (
            one.to(device) for one in given.values()
        )
        self.rows = None
        if table:
            choices = torch.randint(table, (replicas, batch, length), generator=torch.Generator().manual_seed(8))
            self.rows = choices.to(device)
        self.shape, self.length = cluster_lstm.Shape(*shape), length

    def tape(self) -> lstm.Tape:
        empty = self.h.new_full((*self.h.shape[:2], self.length, self.shape.hidden), torch.nan)
        return lstm.Tape(empty, empty.clone(), empty.repeat(1, 1, 1, 4), self.c)

    def plain(self, round: Callable[[Tensor], Tensor]) -> tuple[lstm.Tape, Tensor, Tensor, Tensor]:
        """By the steps that define it, with the operands of each product rounded."""
        tape, operand, kernel = self.tape(), self.h.clone(), round(self.weight)
        for time in range(self.length):
            lstm.plain_forward(tape, time, torch.bmm(round(operand), kernel.mT), self.inputs, self.rows, operand)
        d_gates, d_hidden, d_cells = torch.full_like(tape.gates, torch.nan), self.d_last, self.d_cell.clone()
        for time in reversed(range(self.length)):
            lstm.plain_backward(tape, time, self.d_states, d_hidden, d_cells, d_gates)
            d_hidden = torch.bmm(round(d_gates[:, :, time].contiguous()), kernel)
        return tape, d_gates, d_hidden, d_cells


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Callable[[cluster_lstm.Shape], Any]:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++ to run the kernel's source on a CPU")
    folder = tmp_path_factory.mktemp("emulated")

    def build(shape: cluster_lstm.Shape) -> Any:
        path = folder / f"{shape.hidden}-{shape.tiles}.so"
        if not path.exists():
            words = [f"-DHIDDEN={shape.hidden}", f"-DTILES={shape.tiles}", f'-DKERNEL="{cluster_lstm.SOURCE}"']
            options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
            subprocess.run([compiler, *options, *words, "-o", str(path), str(EMULATED)], check=True, timeout=120)
        return ctypes.CDLL(str(path))

    return build


def pointers(*values: Tensor | int | None) -> list[Any]:
    return [value if isinstance(value, int | None) else ctypes.c_void_p(value.data_ptr()) for value in values]


@pytest.mark.parametrize(
    ("replicas", "batch", "length", "hidden", "table"),
    [
        (1, 3, 6, 64, None),  # each signal is given more than twice
        (2, 5, 3, 64, 7),
        (2, 19, 6, 64, None),  # two tiles, the second one not full
        (1, 33, 2, 64, 5),  # two slabs
        (1, 2, 1, 64, None),  # one position: nothing is passed on
        (1, 4, 3, 128, None),
        pytest.param(1, 2, 2, 256, None, marks=pytest.mark.slow),  # 2,048 threads
    ],
)
def test_the_source_on_a_cpu(
    replicas: int, batch: int, length: int, hidden: int, table: int | None,
    emulator: Callable[[cluster_lstm.Shape], Any],
) -> None:  # fmt: skip
    case = Case(replicas, batch, length, hidden, table)
    shape, library = case.shape, emulator(case.shape)
    expected, *backward = case.plain(tf32)
    tape = case.tape()
    library.run_forward(
        shape.clusters, shape.forward_memory // 4,
        *pointers(case.inputs, case.rows, case.weight, case.h, case.c, tape.states, tape.cells, tape.gates),
        batch, length, case.inputs.shape[1],
    )  # fmt: skip
    for one, other in zip(tape, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    d_gates, d_hidden, d_cells = (torch.full_like(one, torch.nan) for one in backward)
    library.run_backward(
        shape.clusters, shape.backward_memory // 4,
        *pointers(case.weight, expected.gates, expected.cells, case.c, case.d_states, case.d_last, case.d_cell),
        *pointers(d_gates, d_hidden, d_cells), batch, length,
    )  # fmt: skip
    for one, other in zip((d_gates, d_hidden, d_cells), backward, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


needs_clusters = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 9,
    reason="needs a GPU of compute capability 9 or more",
)


@needs_clusters
@pytest.mark.parametrize("hidden", cluster_lstm.WIDTHS)
@pytest.mark.parametrize(("replicas", "batch", "length", "table"), [(1, 1, 1, None), (14, 16, 21, None), (3, 33, 7, 9),
                                                                    (40, 128, 40, 41), (5, 32, 400, None)])  # fmt: skip
def test_on_a_gpu(replicas: int, batch: int, length: int, hidden: int, table: int | None) -> None:
    case = Case(replicas, batch, length, hidden, table, "cuda")
    with products("fp32"):
        expected, *backward = case.plain(tf32)
    with products("tf32"):
        pays = case.shape.pays(torch.cuda.get_device_properties("cuda").multi_processor_count)
        assert cluster_lstm.fits(case.weight, case.h, length) == (pays and length > 1)
    tape = case.tape()
    cluster_lstm.forward(*tape, case.inputs, case.rows, case.weight, case.h)
    for one, other in zip(tape, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
    d_gates = torch.full_like(tape.gates, torch.nan)
    given = (case.weight, case.d_states, case.d_last, case.d_cell, d_gates)
    d_hidden, d_cells = cluster_lstm.backward(expected.cells, expected.gates, case.c, *given)
    for one, other in zip((d_gates, d_hidden, d_cells), backward, strict=True):
        torch.testing.assert_close(one, other, rtol=5e-3, atol=5e-3)
    again = case.tape()
    cluster_lstm.forward(*again, case.inputs, case.rows, case.weight, case.h)
    assert all(torch.equal(one, other) for one, other in zip(tape, again, strict=True))


@needs_clusters
def test_gates_can_be_shut_and_opened_exactly() -> None:
    case = Case(1, 2, 3, 64, None, "cuda")
    case.inputs[..., :64], case.inputs[..., 64:128], case.inputs[..., 128:192] = -1e4, 1e4, -1e4
    tape = case.tape()
    cluster_lstm.forward(*tape, case.inputs, case.rows, case.weight, case.h)
    for gate, value in enumerate((0.0, 1.0, -1.0)):
        assert (tape.gates[..., 64 * gate : 64 * gate + 64] == value).all()
    assert torch.equal(tape.cells, case.c[:, :, None].expand_as(tape.cells))


@needs_clusters
def test_only_where_products_may_be_tf32() -> None:
    case = Case(1, 2, 2, 64, None, "cuda")
    with products("fp32"):
        assert not cluster_lstm.fits(case.weight, case.h, 2)
    with products("tf32"):
        assert not cluster_lstm.fits(case.weight.bfloat16(), case.h, 2)
        assert not cluster_lstm.fits(case.weight[:, :, :48], case.h[:, :, :48], 2)


def test_never_on_a_cpu() -> None:
    case = Case(1, 2, 2, 64, None)
    with products("tf32"):
        assert not cluster_lstm.fits(case.weight, case.h, 2)


@pytest.mark.parametrize(
    ("shape", "pays"),
    [((6, 16, 256), True), ((60, 128, 256), True), ((1, 200, 256), True), ((9, 455, 256), False)],
)
def test_large_batches_go_by_the_plain_loop(shape: tuple[int, int, int], pays: bool) -> None:
    assert cluster_lstm.Shape(*shape).pays(132) == pays
