"""The translator against its equations, one replica and one sentence pair at a time."""

from dataclasses import replace

import pytest
import torch
from reference.translator import SOURCES, TARGETS, WORDS, PlainTranslator, sentences

from attndyn.errors import UserError
from attndyn.models import Learned, OneHot, Translator, Uniform
from attndyn.models.base import Model
from attndyn.models.layers import BiLSTM
from attndyn.models.translator import TranslatorModel

HIDDEN = 6
CLOSE = {"rtol": 1e-4, "atol": 1e-6}
heads = pytest.mark.parametrize("head", ["hidden", "linear"])
groups = pytest.mark.parametrize("seeds", [(4,), (0, 4, 2)], ids=["one replica", "three replicas"])


@pytest.fixture(params=["one_by_one", "stacked"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways through an LSTM: what a CPU takes, and what a GPU takes."""
    monkeypatch.setattr(BiLSTM, "one_by_one", getattr(BiLSTM, request.param))
    return request.param


def build(head: str, seeds: tuple[int, ...]) -> tuple[TranslatorModel, list[PlainTranslator]]:
    model = Translator(HIDDEN, dropout=0.0, head=head).build(WORDS, seeds)
    return model, [PlainTranslator(HIDDEN, WORDS, head, seed) for seed in seeds]


def test_the_published_number_of_parameters() -> None:
    model = Translator().build(8000, [0])
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    assert sizes.pop("embedding.weight") == 2_048_000
    assert sum(sizes.values()) == 6_132_544


@heads
@groups
def test_a_seed_gives_the_initial_weights_of_plain_modules(head: str, seeds: tuple[int, ...]) -> None:
    before = torch.get_rng_state()
    model, copies = build(head, seeds)
    assert torch.equal(torch.get_rng_state(), before)
    assert set(dict(model.named_parameters())) == set(copies[0].named())
    for name, parameter in model.named_parameters():
        for replica, copy in enumerate(copies):
            assert torch.equal(parameter[replica], copy.named()[name]), name


@heads
@groups
def test_padded_pairs_follow_the_equations_one_by_one(head: str, seeds: tuple[int, ...], path: str) -> None:
    model, copies = build(head, seeds)
    batch = sentences(len(seeds))
    logits, alpha = model(batch, Learned())
    draw = torch.Generator().manual_seed(1)
    weights = torch.randn(logits.shape, generator=draw) * batch.target_mask[..., None]
    (logits * weights).sum().backward()
    for replica, copy in enumerate(copies):
        total = torch.zeros(())
        for row, (keys, queries) in enumerate(zip(SOURCES, TARGETS, strict=True)):
            wanted, attention = copy(batch.source[replica, row, :keys], batch.shifted[replica, row, :queries])
            torch.testing.assert_close(logits[replica, row, :queries], wanted, **CLOSE)
            torch.testing.assert_close(alpha[replica, row, 0, :queries, :keys], attention, **CLOSE)
            assert not alpha[replica, row, :, :, keys:].any()
            total = total + (wanted * weights[replica, row, :queries]).sum()
        total.backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(parameter.grad[replica], copy.named()[name].grad, **CLOSE)


@heads
def test_more_padding_changes_nothing(head: str, path: str) -> None:
    model, _ = build(head, (0, 4))
    tight, loose = (model(sentences(2, more), Learned()) for more in (0, 3))
    kept = sentences(2).target_mask
    torch.testing.assert_close(loose[0][:, :, :-3][kept], tight[0][kept], **CLOSE)
    torch.testing.assert_close(loose[1][..., :-3, :-3], tight[1], **CLOSE)


@heads
@torch.no_grad()
def test_any_attention_can_be_read(head: str) -> None:
    model, copies = build(head, (0, 4))
    batch = sentences(2)
    logits, alpha = model(batch, Uniform())
    for row, (keys, queries) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        torch.testing.assert_close(alpha[0, row, 0, :queries, :keys], torch.full((queries, keys), 1 / keys))
        pair = batch.source[0, row, :keys], batch.shifted[0, row, :queries]
        wanted, _ = copies[0](*pair, alpha[0, row, 0, :queries, :keys])
        torch.testing.assert_close(logits[0, row, :queries], wanted, **CLOSE)


@heads
@groups
@torch.no_grad()
def test_reading_each_key_is_one_hot_attention(head: str, seeds: tuple[int, ...]) -> None:
    model, _ = build(head, seeds)
    batch = sentences(len(seeds))
    states = model.encode(batch)
    fast = model.read_each(states)
    assert fast.shape == (len(seeds), 4, 5, 6, WORDS)
    torch.testing.assert_close(fast, Model.read_each(model, states), **CLOSE)
    for key in range(6):
        torch.testing.assert_close(fast[:, :, :, key], model(batch, OneHot(key))[0], **CLOSE)


@heads
@groups
@torch.no_grad()
def test_step_by_step_is_the_same_as_all_at_once(head: str, seeds: tuple[int, ...], path: str) -> None:
    """With the right pieces as input, whichever beam they are read in."""
    model, _ = build(head, seeds)
    batch = sentences(len(seeds))
    wanted, _ = model(batch, Learned())
    memory, state = model.begin(batch)
    beams = 3
    state = [tuple(part.repeat_interleave(beams, dim=1) for part in layer) for layer in state]
    for time in range(batch.shifted.shape[2]):
        pieces = batch.shifted[..., time, None].expand(-1, -1, beams)
        states, state = model.step(memory, state, pieces)
        logits = model.read(states, Learned()(model.scores(states), batch.source_mask))
        for beam in range(beams):
            torch.testing.assert_close(logits[:, :, beam], wanted[:, :, time], **CLOSE)


def test_the_two_heads_differ() -> None:
    hidden, linear = build("hidden", (0,))[0], build("linear", (0,))[0]
    assert hidden.hidden is not None
    assert linear.hidden is None
    assert not torch.allclose(hidden(sentences(1), Uniform())[0], linear(sentences(1), Uniform())[0])


@pytest.mark.parametrize("change", [{"hidden": 0}, {"layers": 0}, {"dropout": 1.0}, {"dropout": -0.1}])
def test_impossible_settings_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(UserError, match=next(iter(change))):
        replace(Translator(), **change)


def test_it_answers_with_its_own_pieces() -> None:
    with pytest.raises(UserError, match="13 pieces, not with 5"):
        Translator(HIDDEN).build(WORDS, [0], 5)


def test_weights_of_another_size_or_another_head() -> None:
    from attndyn.errors import UserError

    def weights(model) -> list[dict]:
        return [{name: p[row].detach().numpy() for name, p in model.named_parameters()} for row in range(2)]

    model = Translator(hidden=4).build(9, (0, 1))
    other = Translator(hidden=4).build(9, (5, 6))
    model.fill(weights(other))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters(), strict=True))
    with pytest.raises(UserError, match=r"the weights of embedding\.weight are 11 × 4, but this model has 9 × 4"):
        model.fill(weights(Translator(hidden=4).build(11, (0, 1))))
    with pytest.raises(UserError, match=r"the weights hold no hidden\.weight; there are context\.bias, "):
        model.fill(weights(Translator(hidden=4, head="linear").build(9, (0, 1))))
