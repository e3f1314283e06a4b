"""Several heads against a loop over heads; one head against the model that has one; streams that do not mix."""

import pytest
import torch
from reference.multihead import slow_forward

from attndyn.errors import UserError
from attndyn.models import Learned, OneHot, Seq2Seq, Uniform
from attndyn.models.base import Model
from attndyn.models.gru import GRU
from attndyn.models.multihead import MultiHeadModel
from attndyn.models.specs import MultiHead, Origins
from attndyn.tasks import Permutations
from attndyn.training.condition import Adam, Condition
from attndyn.training.loop import Trainer

HIDDEN = 8
TASK = Permutations(4)
CLOSE = {"rtol": 1e-4, "atol": 1e-6}
kinds = pytest.mark.parametrize(
    ("variant", "reading"),
    [("text", "code"), ("text", "text"), ("authors", "code")],
    ids=["text", "equations", "authors"],
)


def build(heads: int, seeds, variant: str = "text", reading: str = "code") -> MultiHeadModel:
    return MultiHead(HIDDEN, reading, heads, variant).build(TASK.vocabulary, seeds)


def batch_of(count: int):
    return TASK.build(range(count)).batch(0, 3)


@kinds
@pytest.mark.parametrize("heads", [1, 3])
def test_forward_is_a_loop_over_heads(variant: str, reading: str, heads: int) -> None:
    seeds = [4, Origins(0, tuple(range(heads)), 7)]
    model, batch = build(heads, seeds, variant, reading), batch_of(2)
    logits, alpha = model(batch, Learned())
    assert alpha.shape == (2, 3, heads, 5, 5)
    for replica in range(2):
        wanted, weights = slow_forward(model, variant, reading, replica, batch.source[replica], batch.shifted[replica])
        torch.testing.assert_close(logits[replica], wanted, **CLOSE)
        torch.testing.assert_close(alpha[replica], weights, **CLOSE)


@pytest.mark.parametrize("reading", ["code", "text"])
def test_one_head_is_the_single_head_model_bit_for_bit(reading: str) -> None:
    seeds, batch = [0, 4], batch_of(2)
    several, single = build(1, seeds, reading=reading), Seq2Seq(HIDDEN, reading).build(TASK.vocabulary, seeds)
    own = dict(several.named_parameters())
    for name, parameter in single.named_parameters():
        assert torch.equal(parameter, own[name]), name
    found, wanted = several(batch, Learned()), single(batch, Learned())
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))
    for model, (logits, _) in ((several, found), (single, wanted)):
        model.zero_grad()
        logits.square().sum().backward()
    for name, parameter in single.named_parameters():
        assert torch.equal(parameter.grad, own[name].grad), name


@kinds
@torch.no_grad()
def test_reading_each_key_is_one_hot_attention_of_all_heads(variant: str, reading: str) -> None:
    model, batch = build(3, [0, 1], variant, reading), batch_of(2)
    states = model.encode(batch)
    fast = model.read_each(states)
    torch.testing.assert_close(fast, Model.read_each(model, states), **CLOSE)
    torch.testing.assert_close(fast[:, :, :, 2], model(batch, OneHot(2))[0], **CLOSE)


@kinds
def test_a_head_is_the_same_in_every_model(variant: str, reading: str) -> None:
    model = build(2, [Origins(0, (5, 9), 0), Origins(0, (9, 5), 3), Origins(1, (5, 9), 0)], variant, reading)
    first, turned, elsewhere = model.query.weight.unflatten(1, (2, HIDDEN)).unbind()
    assert torch.equal(first[0], turned[1])
    assert torch.equal(first[1], turned[0])
    assert torch.equal(first, elsewhere)
    assert not torch.equal(first[0], first[1])
    shared = model.encoder.weight_hh_l0
    assert torch.equal(shared[0], shared[1])
    assert not torch.equal(shared[0], shared[2])


def test_base_and_head_of_one_number_share_no_numbers() -> None:
    model = build(1, [Origins(3, (3,), 0)])
    rest = torch.cat([parameter.flatten() for name, parameter in model.named_parameters() if "query" not in name])
    assert not torch.isin(model.query.weight.flatten(), rest).any()


def test_making_a_model_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    build(2, [0, Origins(0, (1, 2), 0)])
    assert torch.equal(torch.get_rng_state(), before)


@kinds
def test_a_replica_does_not_know_its_neighbours(variant: str, reading: str) -> None:
    """Bit for bit, where a chunk of a CPU has one replica a program; here three are one program."""
    condition = Condition(
        name="heads",
        task=TASK,
        model=MultiHead(HIDDEN, reading, 2, variant),
        seeds=(0,),
        steps=3,
        batch=4,
        optimiser=Adam(lr=0.01),
    )
    origins = [Origins(0, (0, 1), 0), Origins(0, (2, 1), 1), Origins(1, (0, 1), 1)]
    together, alone = Trainer(condition, origins), Trainer(condition, origins[1:2])
    for _ in range(3):
        together.advance()
        alone.advance()
    for (name, one), other in zip(alone.model.named_parameters(), together.model.parameters(), strict=True):
        torch.testing.assert_close(one[0], other[1], msg=name, **CLOSE)


def test_data_come_from_their_own_seed() -> None:
    condition = Condition(name="x", task=TASK, model=MultiHead(HIDDEN, heads=1), seeds=(0,), steps=1, batch=2)
    trainer = Trainer(condition, [Origins(0, (0,), 5), Origins(9, (9,), 5), Origins(0, (0,), 6)])
    source = trainer.task.batch(0, 2).source
    assert torch.equal(source[0], source[1])
    assert torch.equal(source[0], TASK.build([5]).batch(0, 2).source[0])
    assert not torch.equal(source[0], source[2])


@pytest.mark.parametrize("length", [1, 5])
def test_the_stacked_gru_is_pytorchs(length: int) -> None:
    copies = [torch.nn.GRU(HIDDEN, HIDDEN) for _ in range(3)]
    gru, table = GRU(copies), torch.randn(3, 6, HIDDEN)
    tokens, start = torch.randint(6, (3, 4, length)), torch.randn(3, 4, HIDDEN)
    slow, fast = gru.one_by_one(tokens, table, start), gru.stacked(tokens, table, start)
    torch.testing.assert_close(fast, slow, **CLOSE)
    wanted = torch.autograd.grad(slow.square().sum(), list(gru.parameters()))
    found = torch.autograd.grad(fast.square().sum(), list(gru.parameters()))
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    for replica, copy in enumerate(copies):
        plain, _ = copy(table[replica][tokens[replica]].transpose(0, 1), start[replica][None])
        torch.testing.assert_close(slow[replica], plain.transpose(0, 1), **CLOSE)


def test_all_heads_alike_are_one_head_counted_often() -> None:
    model, batch = build(4, [Origins(0, (7, 7, 7, 7), 0)]), batch_of(1)
    alone = build(1, [Origins(0, (7,), 0)])
    states = alone.encode(batch)
    alpha = alone.scores(states).softmax(dim=-1)
    torch.testing.assert_close(model(batch, Learned())[0], alone.read(states, 4 * alpha), **CLOSE)
    assert not torch.allclose(model(batch, Learned())[0], model(batch, Uniform())[0])


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(UserError, match="heads must be at least 1, not 0"):
        MultiHead(heads=0)
    with pytest.raises(UserError, match="hidden must be at least 1, not 0"):
        MultiHead(hidden=0)
    with pytest.raises(UserError, match="no reading by the paper's equations"):
        MultiHead(variant="authors", reading="text")
    with pytest.raises(ValueError, match="a model of 2 heads was given 1"):
        build(2, [Origins(0, (1,), 0)])
    with pytest.raises(UserError, match="1 seeds was given 2 origins"):
        Condition(name="x", task=TASK, model=MultiHead(), seeds=(0,), steps=1, origins=(Origins(0, (1,), 0),) * 2)
