"""A slice of a replica layer is the plain PyTorch module."""

import pytest
import torch
from torch import Tensor, nn

from attndyn.models import layers

HIDDEN, BATCH, LENGTH = 8, 4, 5
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def plain(make, replicas: int) -> list[nn.Module]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return [make() for _ in range(replicas)]


def assert_same_gradients(stacked: nn.Module, copies: list[nn.Module]) -> None:
    for name, parameter in stacked.named_parameters():
        for replica, copy in enumerate(copies):
            torch.testing.assert_close(parameter.grad[replica], copy.get_parameter(name).grad, **CLOSE)


@pytest.mark.parametrize("make", [lambda: nn.Linear(3, 2), lambda: nn.LSTM(3, 2), lambda: nn.Embedding(4, 3)])
def test_parameters_keep_the_names_shapes_and_values_of_the_copies(make) -> None:
    copies = plain(make, 3)
    stacked = layers.Stacked(copies)
    assert list(dict(stacked.named_parameters())) == list(dict(copies[0].named_parameters()))
    for name, parameter in stacked.named_parameters():
        assert parameter.requires_grad
        for replica, copy in enumerate(copies):
            assert torch.equal(parameter[replica], copy.get_parameter(name))


def test_stacking_copies_the_values() -> None:
    copies = plain(lambda: nn.Linear(3, 2), 2)
    before = copies[0].weight.detach().clone()
    stacked = layers.Linear(copies)
    with torch.no_grad():
        stacked.weight.zero_()
    assert torch.equal(copies[0].weight, before)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("replicas", [1, 3])
def test_linear_is_the_plain_module(replicas: int, bias: bool) -> None:
    copies = plain(lambda: nn.Linear(HIDDEN, 6, bias=bias), replicas)
    stacked = layers.Linear(copies)
    x = torch.randn(replicas, BATCH, LENGTH, HIDDEN, generator=random(1), requires_grad=True)
    weights = torch.randn(replicas, BATCH, LENGTH, 6, generator=random(2))
    y = stacked(x)
    (y * weights).sum().backward()
    mine, x.grad = x.grad, None
    expected = torch.stack([copy(row) for copy, row in zip(copies, x, strict=True)])
    (expected * weights).sum().backward()
    torch.testing.assert_close(y, expected, **CLOSE)
    torch.testing.assert_close(mine, x.grad, **CLOSE)
    assert_same_gradients(stacked, copies)


@pytest.mark.parametrize("bias", [True, False])
def test_linear_of_one_replica_is_a_slice_of_linear_of_many(bias: bool) -> None:
    x = torch.randn(3, BATCH, LENGTH, HIDDEN, generator=random(1))
    weight = torch.randn(3, 6, HIDDEN, generator=random(2))
    b = torch.randn(3, 6, generator=random(3)) if bias else None
    many = layers.linear(x, weight, b)
    for replica in range(3):
        part = slice(replica, replica + 1)
        one = layers.linear(x[part], weight[part], None if b is None else b[part])
        torch.testing.assert_close(one, many[part], **CLOSE)


def run_plain_lstm(copies: list[nn.LSTM], tokens: Tensor, table: Tensor, start) -> tuple[Tensor, Tensor, Tensor]:
    """Plain LSTMs over plain embeddings, one replica after another."""
    outputs = []
    for replica, copy in enumerate(copies):
        state = None if start is None else tuple(part[replica][None].contiguous() for part in start)
        states, (h, c) = copy(table[replica][tokens[replica]].transpose(0, 1), state)
        outputs.append((states.transpose(0, 1), h[0], c[0]))
    states, h, c = (torch.stack(part) for part in zip(*outputs, strict=True))
    return states, h, c


@pytest.mark.parametrize("path", ["one_by_one", "stacked"])
@pytest.mark.parametrize("vocabulary", [HIDDEN - 3, HIDDEN, HIDDEN + 3], ids=["one-hot", "equal", "embedding"])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("replicas", [1, 3])
def test_lstm_is_the_plain_module(
    replicas: int, started: bool, vocabulary: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = plain(lambda: nn.LSTM(HIDDEN, HIDDEN), replicas)
    stacked = layers.LSTM(copies)
    monkeypatch.setattr(stacked, "one_by_one", getattr(stacked, path))  # what a CPU takes
    tokens = torch.randint(vocabulary, (replicas, BATCH, LENGTH), generator=random(1))
    table = torch.randn(replicas, vocabulary, HIDDEN, generator=random(2), requires_grad=True)
    start = None
    inputs = [table]
    if started:
        start = tuple(
            torch.randn(replicas, BATCH, HIDDEN, generator=random(3 + part), requires_grad=True) for part in range(2)
        )
        inputs += start
    # Every output has its own random weight, so that no gradient cancels.
    weights = [torch.randn(replicas, BATCH, LENGTH, HIDDEN, generator=random(5))]
    weights += [torch.randn(replicas, BATCH, HIDDEN, generator=random(6 + part)) for part in range(2)]

    states, (h, c) = stacked(tokens, table, start)
    sum((value * weight).sum() for value, weight in zip((states, h, c), weights, strict=True)).backward()
    mine = [tensor.grad.clone() for tensor in inputs]
    for tensor in inputs:
        tensor.grad = None
    expected = run_plain_lstm(copies, tokens, table, start)
    sum((value * weight).sum() for value, weight in zip(expected, weights, strict=True)).backward()

    for value, wanted in zip((states, h, c), expected, strict=True):
        torch.testing.assert_close(value, wanted, **CLOSE)
    for gradient, tensor in zip(mine, inputs, strict=True):
        torch.testing.assert_close(gradient, tensor.grad, **CLOSE)
    assert_same_gradients(stacked, copies)


def test_lstm_keeps_both_biases() -> None:
    """Merged, Adam would move their sum half as fast."""
    stacked = layers.LSTM(plain(lambda: nn.LSTM(HIDDEN, HIDDEN), 2))
    tokens = torch.randint(4, (2, BATCH, LENGTH), generator=random(1))
    states, _ = stacked(tokens, torch.randn(2, 4, HIDDEN, generator=random(2)))
    states.sum().backward()
    assert stacked.bias_ih_l0.grad.abs().max() > 0
    torch.testing.assert_close(stacked.bias_ih_l0.grad, stacked.bias_hh_l0.grad)


@pytest.mark.parametrize("vocabulary", [HIDDEN - 3, HIDDEN + 3], ids=["one-hot", "embedding"])
def test_lstm_replicas_are_bitwise_their_own(vocabulary: int) -> None:
    copies = plain(lambda: nn.LSTM(HIDDEN, HIDDEN), 3)
    tokens = torch.randint(vocabulary, (3, BATCH, LENGTH), generator=random(1))
    table = torch.randn(3, vocabulary, HIDDEN, generator=random(2))
    together, _ = layers.LSTM(copies)(tokens, table)
    alone, _ = layers.LSTM(copies[1:2])(tokens[1:2], table[1:2])
    assert torch.equal(together[1], alone[0])


@pytest.mark.parametrize("lies_apart", [False, True])
def test_rows_are_taken_as_indices_take_them(lies_apart: bool) -> None:
    """Also where the tables of replicas lie apart, as the parameters in one buffer do."""
    buffer = torch.randn(3, 7 * 4 + 5, generator=random(0), dtype=torch.float64, requires_grad=True)
    table = buffer[:, 3 : 3 + 28].view(3, 7, 4)
    table = table if lies_apart else table.contiguous()
    assert table.is_contiguous() != lies_apart
    rows = torch.randint(7, (3, 9), generator=random(1))  # some of them more than once
    weights = torch.randn(3, 9, 4, generator=random(2), dtype=torch.float64)
    found, wanted = layers.take(table, rows), table[torch.arange(3)[:, None], rows]
    assert torch.equal(found, wanted)
    gradients = [torch.autograd.grad((each * weights).sum(), buffer, retain_graph=True)[0] for each in (found, wanted)]
    torch.testing.assert_close(*gradients)


def test_texts_backwards() -> None:
    lengths = torch.tensor([[4, 1, 3], [2, 4, 4]])
    mask = torch.arange(4) < lengths[..., None]
    order = layers.backwards((3, 4), mask, torch.device("cpu"))
    x = torch.randn(2, 3, 4, 5, generator=random(0), dtype=torch.float64, requires_grad=True)
    found = layers.along(x, order)
    for replica, text in ((0, 0), (0, 1), (1, 2)):
        length = lengths[replica, text]
        assert torch.equal(found[replica, text, :length], x[replica, text, :length].flip(0))
        assert torch.equal(found[replica, text, length:], x[replica, text, length:])
    assert torch.autograd.gradcheck(lambda given: layers.along(given, order), x)
    same_for_all = layers.backwards((3, 4), None, torch.device("cpu"))
    assert torch.equal(layers.along(x, same_for_all), x.flip(2))
