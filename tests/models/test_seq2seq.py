"""The translator against its equations, one replica at a time."""

import pytest
import torch
from reference.seq2seq import PlainTranslator

from attndyn.errors import UserError
from attndyn.models import Learned, NoContext, OneHot, Seq2Seq, Uniform
from attndyn.models.base import Model
from attndyn.models.seq2seq import Seq2SeqModel
from attndyn.tasks import Iid
from attndyn.tasks.sampler import Batch

HIDDEN = 8
CLOSE = {"rtol": 1e-4, "atol": 1e-6}
readings = pytest.mark.parametrize("reading", ["code", "text"])
# 5 + 2 tokens: the one-hot path; 12 + 2: the embedding path
vocabularies = pytest.mark.parametrize("words", [5, 12], ids=["one-hot", "embedding"])
groups = pytest.mark.parametrize("seeds", [(4,), (0, 4, 2)], ids=["one replica", "three replicas"])


def build(reading: str, words: int, seeds: tuple[int, ...]) -> tuple[Seq2SeqModel, list[PlainTranslator], Batch]:
    task = Iid(4, words)
    model = Seq2Seq(HIDDEN, reading).build(task.vocabulary, seeds)
    copies = [PlainTranslator(HIDDEN, task.vocabulary, reading, seed) for seed in seeds]
    return model, copies, task.build(seeds).batch(0, 4)


@readings
@groups
def test_a_seed_gives_the_initial_weights_of_plain_modules(reading: str, seeds: tuple[int, ...]) -> None:
    model, copies, _ = build(reading, 5, seeds)
    names = dict(copies[0].named_parameters())
    assert set(dict(model.named_parameters())) == set(names)
    for name, parameter in model.named_parameters():
        for replica, copy in enumerate(copies):
            assert torch.equal(parameter[replica], copy.get_parameter(name)), name


def test_making_a_model_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    build("code", 5, (0, 1))
    assert torch.equal(torch.get_rng_state(), before)


@readings
@vocabularies
@groups
def test_forward_and_gradients_follow_the_equations(reading: str, words: int, seeds: tuple[int, ...]) -> None:
    model, copies, batch = build(reading, words, seeds)
    logits, alpha = model(batch, Learned())
    on_logits = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1))
    on_alpha = torch.randn(alpha.shape, generator=torch.Generator().manual_seed(2))
    ((logits * on_logits).sum() + (alpha * on_alpha).sum()).backward()
    assert alpha.shape == (len(seeds), 4, 1, 5, 5)
    for replica, copy in enumerate(copies):
        wanted, weights = copy(batch.source[replica], batch.shifted[replica])
        torch.testing.assert_close(logits[replica], wanted, **CLOSE)
        torch.testing.assert_close(alpha[replica, :, 0], weights, **CLOSE)
        ((wanted * on_logits[replica]).sum() + (weights * on_alpha[replica, :, 0]).sum()).backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(parameter.grad[replica], copy.get_parameter(name).grad, **CLOSE)


@readings
@pytest.mark.parametrize("rule", [Uniform(), NoContext(), OneHot(2)])
def test_read_takes_any_attention(reading: str, rule) -> None:
    model, copies, batch = build(reading, 5, (0, 4))
    logits, alpha = model(batch, rule)
    for replica, copy in enumerate(copies):
        wanted = copy.logits(batch.source[replica], batch.shifted[replica], alpha[replica, :, 0])
        torch.testing.assert_close(logits[replica], wanted, **CLOSE)


@readings
@groups
@torch.no_grad()
def test_reading_each_key_is_one_hot_attention(reading: str, seeds: tuple[int, ...]) -> None:
    model, _, batch = build(reading, 5, seeds)
    states = model.encode(batch)
    fast = model.read_each(states)
    assert fast.shape == (len(seeds), 4, 5, 5, 7)
    torch.testing.assert_close(fast, Model.read_each(model, states), **CLOSE)
    for key in range(5):
        logits, _ = model(batch, OneHot(key))
        torch.testing.assert_close(fast[:, :, :, key], logits, **CLOSE)


def test_the_two_readings_differ() -> None:
    code, _, batch = build("code", 5, (0,))
    text, _, _ = build("text", 5, (0,))
    assert code.context is not None
    assert code.query.bias is not None
    assert text.context is None
    assert getattr(text.query, "bias", None) is None
    assert not torch.allclose(code(batch, Uniform())[0], text(batch, Uniform())[0])


def test_a_padded_batch_gives_padding_no_attention() -> None:
    model, _, batch = build("code", 5, (0, 4))
    mask = torch.ones_like(batch.source, dtype=torch.bool)
    mask[0, 1, 3:] = False
    _, alpha = model(Batch(batch.source, batch.shifted, batch.target, batch.align, source_mask=mask), Learned())
    _, whole = model(batch, Learned())
    assert (alpha[0, 1, :, :, 3:] == 0).all()
    torch.testing.assert_close(alpha[1], whole[1])
    torch.testing.assert_close(alpha[0, 1, :, :, :3], whole[0, 1, :, :, :3] / whole[0, 1, :, :, :3].sum(-1, True))


@pytest.mark.parametrize("hidden", [0, -1])
def test_an_impossible_width_is_refused(hidden: int) -> None:
    with pytest.raises(UserError, match="hidden must be at least 1"):
        Seq2Seq(hidden)
