"""The Triton kernels do what their plain twins do: on a GPU, or on a CPU in Triton's interpreter."""

import os

import pytest
import torch
from torch import Tensor

from attndyn.kernels import adam, dropout, lstm

pytest.importorskip("triton", reason="needs Triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = pytest.mark.skipif(
    DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1", reason="needs a CUDA device, or TRITON_INTERPRET=1"
)
REPLICAS, BATCH, LENGTH, HIDDEN, WORDS = 2, 3, 4, 5, 6  # hidden is no power of two: the last units are masked


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def tape() -> lstm.Tape:
    poison = torch.full((REPLICAS, BATCH, LENGTH, HIDDEN), torch.nan, device=DEVICE)
    return lstm.Tape(poison.clone(), poison.clone(), poison.repeat(1, 1, 1, 4), draw(REPLICAS, BATCH, HIDDEN, seed=0))


def filled(gather: bool, plain: bool, dtype: torch.dtype = torch.float32) -> tuple[lstm.Tape, Tensor]:
    """A whole forward pass, with fresh products at each time, and the last operand."""
    step = lstm.plain_forward if plain else lstm._launch_forward
    made, operand = tape(), torch.full((REPLICAS, BATCH, HIDDEN), torch.nan, dtype=dtype, device=DEVICE)
    inputs = draw(REPLICAS, WORDS if gather else BATCH * LENGTH, 4 * HIDDEN, seed=1)
    rows = torch.arange(REPLICAS * BATCH * LENGTH, device=DEVICE).view(REPLICAS, BATCH, LENGTH) * 5 % WORDS
    for time in range(LENGTH):
        step(
            made, time, 3 * draw(REPLICAS, BATCH, 4 * HIDDEN, seed=2 + time), inputs, rows if gather else None, operand
        )
    return made, operand


@pytest.mark.parametrize("gather", [True, False])
def test_the_forward_step(gather: bool) -> None:
    fast, slow = filled(gather, plain=False), filled(gather, plain=True)
    for one, other in zip((*fast[0], fast[1]), (*slow[0], slow[1]), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_the_operand_has_its_own_precision() -> None:
    made, operand = filled(True, plain=False, dtype=torch.bfloat16)
    # the interpreter cuts the last bits off where a GPU rounds
    torch.testing.assert_close(operand.float(), made.states[:, :, -1], rtol=2**-7, atol=0)


@pytest.mark.parametrize("time", range(LENGTH))
def test_the_backward_step(time: int) -> None:
    made, _ = filled(True, plain=True)
    found = []
    for step in (lstm._launch_backward, lstm.plain_backward):
        d_cells = draw(REPLICAS, BATCH, HIDDEN, seed=11)
        d_gates = torch.zeros(REPLICAS, BATCH, LENGTH, 4 * HIDDEN, device=DEVICE)
        d_states, d_hidden = draw(REPLICAS, BATCH, LENGTH, HIDDEN, seed=12), draw(REPLICAS, BATCH, HIDDEN, seed=13)
        step(made, time, d_states, d_hidden, d_cells, d_gates)
        found.append((d_cells, d_gates))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    others = [position for position in range(LENGTH) if position != time]
    assert found[0][1][:, :, others].abs().max() == 0
    assert found[0][1][:, :, time].abs().min() > 0


@pytest.mark.parametrize("amsgrad", [True, False])
@pytest.mark.parametrize("decay", [True, False])
@pytest.mark.parametrize("freeze", [True, False])
def test_adam(amsgrad: bool, decay: bool, freeze: bool) -> None:
    shape = (3, 1500)  # two blocks, the second one not full
    found = []
    for step in (adam._launch, adam.plain):
        buffers = adam.Buffers(
            draw(*shape, seed=1),
            draw(*shape, seed=2),
            draw(*shape, seed=3).square(),
            draw(*shape, seed=4).square() if amsgrad else None,
            draw(*shape, seed=5),
        )
        rates = adam.Rates(
            lr=torch.tensor([[1e-3], [1e-2], [1e-1]], device=DEVICE),
            decay=torch.tensor([[0.0], [0.1], [0.2]], device=DEVICE) if decay else None,
            moves=draw(*shape, seed=6) > 0 if freeze else None,
            betas=(0.9, 0.999),
            eps=1e-8,
        )
        corrections = torch.tensor([0.1, 0.001], device=DEVICE)
        step(buffers, rates, corrections, torch.tensor([True, True, False], device=DEVICE))
        found.append(buffers)
    for one, other in zip(*found, strict=True):
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)
    start = draw(*shape, seed=1)
    assert torch.equal(found[0].values[2], start[2])
    assert not torch.equal(found[0].values[0], start[0])


@pytest.mark.parametrize("width", [30, 32])  # 16 units share a draw, also across a row's end
@pytest.mark.parametrize("dropped", [1, 128, 255])
def test_dropout(width: int, dropped: int) -> None:
    """The same bits: the streams are integers."""
    x, seeds = draw(2, 3, 17, width, seed=1), torch.tensor([5, 2**32 - 1], device=DEVICE)
    step = torch.tensor(36_259, device=DEVICE)
    drawn = seeds, step, 6, 3, dropped
    fast, slow = dropout.drop(x, *drawn), dropout.masked(x, dropout.kept(x, *drawn), dropped)
    torch.testing.assert_close(fast, slow, rtol=1e-6, atol=0)
    assert torch.equal(fast == 0, slow == 0)
    assert 0 < (fast == 0).sum() < fast.numel()
