"""The bag-of-words proxy: its logits by hand, its probe by definition, and that order means nothing to it."""

import pytest
import torch

from attndyn.errors import UserError
from attndyn.models import Learned, OneHot, Proxy, Uniform
from attndyn.models.base import Model
from attndyn.models.proxy import votes_of_words
from attndyn.tasks import Subsets
from models.test_classifier import WORDS, texts

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SEEDS = (0, 4)
bias = pytest.mark.parametrize("bias", [True, False])


def build(bias: bool):
    batch = Subsets(3, of=5).build(SEEDS).batch(0, 4)
    model = Proxy(width=6, bias=bias).build(7, SEEDS)
    if bias:
        with torch.no_grad():
            model.output.bias.normal_(generator=torch.Generator().manual_seed(1))
    return model, batch


@bias
@torch.no_grad()
def test_the_logits_are_the_mean_of_the_words_votes(bias: bool) -> None:
    model, batch = build(bias)
    logits, alpha = model(batch, Uniform())
    assert torch.equal(alpha, torch.full((2, 4, 1, 4, 4), 0.25))
    for replica in range(2):
        embedding, output = model.embedding.weight[replica], model.output.weight[replica]
        for row in range(4):
            mean = embedding[batch.source[replica, row]].mean(dim=0)
            wanted = output @ mean + (model.output.bias[replica] if bias else 0)
            for query in range(4):
                torch.testing.assert_close(logits[replica, row, query], wanted, **CLOSE)
    torch.testing.assert_close(model(batch, Learned())[0], logits)


@bias
@torch.no_grad()
def test_reading_each_key_is_one_hot_attention(bias: bool) -> None:
    model, batch = build(bias)
    states = model.encode(batch)
    fast = model.read_each(states)
    assert fast.shape == (2, 4, 4, 4, 7)
    torch.testing.assert_close(fast, Model.read_each(model, states), **CLOSE)
    torch.testing.assert_close(fast[:, :, :, 2], model(batch, OneHot(2))[0], **CLOSE)


@torch.no_grad()
def test_it_does_not_see_the_order() -> None:
    from dataclasses import replace

    model, batch = build(True)
    turned = replace(batch, source=batch.source.flip(2))
    torch.testing.assert_close(model(batch, Uniform())[0], model(turned, Uniform())[0], **CLOSE)


def test_a_seed_starts_alike_in_any_company_and_as_wide_as_it_was_told() -> None:
    wide = Proxy(width=400, spread=0.05, bias=False).build(50, [3, 9])
    alone = Proxy(width=400, spread=0.05, bias=False).build(50, [9])
    for name, values in wide.named_parameters():
        assert torch.equal(values[1], alone.get_parameter(name)[0])
        assert values.std().item() == pytest.approx(0.05, rel=0.05)
    assert not hasattr(wide.output, "bias")


def test_it_starts_as_the_authors_program_does() -> None:
    """Word vectors from N(0, 1), the output map as PyTorch draws one."""
    model = Proxy(width=400).build(500, [3], outputs=7)
    assert model.embedding.weight.std().item() == pytest.approx(1, rel=0.05)
    for weight in (model.output.weight, model.output.bias):
        assert weight.abs().max() <= 400**-0.5
        assert weight.std().item() > 0


@torch.no_grad()
def test_of_two_labels_the_second_is_voted_for() -> None:
    batch = texts([3, 5], 2)
    model = Proxy(width=6).build(WORDS, (0, 1), outputs=2)
    assert model.output.weight.shape == (2, 1, 6)
    logits, _ = model(batch, Uniform())
    states = model.encode(batch)
    for replica in range(2):
        weights = {name: value[replica].numpy() for name, value in model.named_parameters()}
        votes = votes_of_words(weights)
        assert votes.shape == (WORDS, 2)
        assert not votes[:, 0].any()
        for row, length in enumerate((3, 5)):
            words = batch.source[replica, row, :length]
            wanted = votes[words].mean(dim=0) + torch.tensor([0, weights["output.bias"].item()])
            torch.testing.assert_close(logits[replica, row, 0], wanted, **CLOSE)
    torch.testing.assert_close(model.read_each(states), Model.read_each(model, states), **CLOSE)


@pytest.mark.parametrize("changes", [{"width": 0}, {"spread": 0.0}, {"spread": float("inf")}])
def test_impossible_sizes(changes: dict[str, float]) -> None:
    with pytest.raises(UserError, match="above 0"):
        Proxy(**changes)
