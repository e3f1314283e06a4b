"""Δ by gradient against finite differences, Δ by leaving out against a loop, both in float64."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from models.test_classifier import SMALL, WORDS, classes, specs, texts
from torch.nn import functional as F

from attndyn.models import Learned, Uniform
from attndyn.probes.influence import (
    answer_influence,
    doubt,
    each_again,
    gradient_influence,
    leave_one_out,
    shared,
    surprise,
)
from attndyn.probes.lexical import log_odds
from attndyn.probes.trace import Trace
from attndyn.tasks.sampler import Batch

LENGTHS = [3, 6, 2, 5]
rules = pytest.mark.parametrize("rule", [Learned(), Uniform()])


@rules
@torch.no_grad()
def test_the_gradient_is_the_slope_of_the_loss_as_a_word_fades(rule) -> None:
    model, batch = SMALL.build(WORDS, (0, 1), 3).double(), texts(LENGTHS, 2, 3)
    delta, *_ = gradient_influence(model, rule, batch)
    embedded, small = model.embed(batch), 1e-5
    for row, length in enumerate(LENGTHS):
        for place in range(length):
            losses = []
            for factor in (1 - small, 1 + small):
                faded = embedded.clone()
                faded[:, row, place] *= factor
                states = model.encode_vectors(batch, faded)
                logits = model.read(states, rule(model.scores(states), batch.source_mask))
                losses.append(surprise(logits, batch.target)[:, row, 0])
            slope = (losses[0] - losses[1]) / (2 * small)
            torch.testing.assert_close(delta[:, row, place], slope, rtol=1e-6, atol=1e-8)
        assert not delta[:, row, length:].any()


@specs
@classes
@rules
@torch.no_grad()
def test_leaving_out_is_running_the_shorter_text(spec, outputs: int, rule) -> None:
    model, batch = spec.build(WORDS, (0, 1), outputs).double(), texts(LENGTHS, 2, outputs)
    found = leave_one_out(model, rule, batch, tokens=20)  # several slices
    for row, length in enumerate(LENGTHS):
        target = batch.target[:, [row]]
        whole = Batch(batch.source[:, [row], :length], target, target, torch.zeros_like(target))
        before = surprise(model(whole, rule)[0], whole.target)[:, 0, 0]
        for place in range(length):
            rest = torch.cat([whole.source[..., :place], whole.source[..., place + 1 :]], dim=-1)
            after = surprise(model(replace(whole, source=rest), rule)[0], whole.target)[:, 0, 0]
            torch.testing.assert_close(found[:, row, place], after - before)
        assert not found[:, row, length:].any()


@rules
@torch.no_grad()
def test_the_influence_on_the_answer_is_its_slope_with_the_attention_held_still(rule) -> None:
    model, batch = SMALL.build(WORDS, (0, 1), 2).double(), texts(LENGTHS, 2)
    found, alpha, logits = answer_influence(model, rule, batch)
    embedded, small = model.embed(batch), 1e-5
    for row, length in enumerate(LENGTHS):
        for place in range(length):
            answers = []
            for factor in (1 - small, 1 + small):
                faded = embedded.clone()
                faded[:, row, place] *= factor
                answers.append(model.read(model.encode_vectors(batch, faded), alpha).softmax(dim=-1)[:, row, 0, 1])
            slope = ((answers[1] - answers[0]) / (2 * small)).abs()
            torch.testing.assert_close(found[:, row, place], slope, rtol=1e-5, atol=1e-8)
        assert not found[:, row, length:].any()
    torch.testing.assert_close(logits, model(batch, rule)[0])


@specs
@settings(max_examples=15)
@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=5).filter(lambda found: max(found) > 1),
       tokens=st.integers(1, 200), seed=st.integers(0, 9))  # fmt: skip
@torch.no_grad()
def test_what_is_shared_between_shorter_texts_changes_nothing(spec, lengths: list[int], tokens: int, seed: int) -> None:
    """Also where a text of one word is left with none."""
    model, batch = spec.build(WORDS, (seed, seed + 1), 2).double(), texts(lengths, 2, seed=seed)
    same = replace(batch, source=batch.source[:1].expand(2, -1, -1), target=batch.target[:1].expand(2, -1, -1))
    found, wanted = (
        {(int(r), int(p)): logits[:, n] for row, place, _, logits in read(model, Learned(), same, tokens)
         for n, (r, p) in enumerate(zip(row, place, strict=True))}
        for read in (shared, each_again)
    )  # fmt: skip
    assert sorted(found) == sorted(wanted) == [(row, n) for row, length in enumerate(lengths) for n in range(length)]
    for at, logits in wanted.items():
        torch.testing.assert_close(found[at], logits)


@torch.no_grad()
def test_leaving_out_can_look_at_the_answer() -> None:
    model, batch = SMALL.build(WORDS, (0, 1), 2).double(), texts(LENGTHS, 2)
    in_loss = leave_one_out(model, Learned(), batch, tokens=50)
    in_doubt = leave_one_out(model, Learned(), batch, tokens=50, of=doubt)
    p = model(batch, Learned())[0].softmax(dim=-1).gather(-1, batch.target[..., None])[..., 0]
    torch.testing.assert_close(-in_doubt, p * torch.expm1(-in_loss))


def test_a_single_word_cannot_be_left_out() -> None:
    model, batch = SMALL.build(WORDS, (0,), 2), texts([1, 1], 1)
    with pytest.raises(ValueError, match="nothing to leave out"):
        leave_one_out(model, Learned(), batch, tokens=20)


def test_a_trace_gives_the_same_with_and_without_the_influence() -> None:
    model, batch = SMALL.build(WORDS, (0, 1), 2).eval(), texts(LENGTHS, 2)
    plain, with_influence = Trace(model, Learned(), batch), Trace(model, Learned(), batch)
    assert with_influence.influence.shape == batch.source.shape
    for name in ("alpha", "logits", "beta", "log_odds"):
        assert torch.equal(getattr(plain, name), getattr(with_influence, name))
        assert not getattr(with_influence, name).requires_grad


def test_log_odds_do_not_saturate() -> None:
    logits = torch.tensor([[0.0, 90.0], [0.0, -90.0]])
    assert log_odds(logits, torch.tensor([1, 1])).tolist() == [90.0, -90.0]
    three = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    right = torch.tensor([0, 1, 2, 0, 1])
    p = three.softmax(dim=-1).gather(-1, right[:, None])[:, 0]
    torch.testing.assert_close(log_odds(three, right), p.logit())


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("rule", [Learned(), Uniform()])
def test_the_words_of_a_text_that_is_certain_keep_their_influence(rule, label: int) -> None:
    """In float32 p is exactly 1 there; what the words do to the loss and to the answer is as in float64."""
    model, batch = SMALL.build(WORDS, (0,), 2), texts([6], 1)
    batch = replace(batch, target=torch.full_like(batch.target, label))
    with torch.no_grad():
        model.output.bias += 30.0 if label else -30.0
    logits = model(batch, rule)[0]
    assert logits.softmax(dim=-1)[0, 0, 0, label] == 1
    exact = SMALL.build(WORDS, (0,), 2).double()
    exact.load_state_dict(model.state_dict())
    close = {"rtol": 1e-3, "atol": 0.0, "check_dtype": False}
    for influence in (gradient_influence, answer_influence):
        found, wanted = influence(model, rule, batch)[0], influence(exact, rule, batch)[0]
        assert found.abs().min() > 0
        torch.testing.assert_close(found, wanted, **close)
    for of in (surprise, doubt):
        found, wanted = (leave_one_out(each, rule, batch, 100, of) for each in (model, exact))
        torch.testing.assert_close(found, wanted, rtol=1e-2, atol=1e-16, check_dtype=False)


def test_surprise_is_the_cross_entropy() -> None:
    logits = torch.randn(2, 3, 1, 4, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([[[0], [3], [1]], [[2], [2], [0]]])
    wanted = F.cross_entropy(logits.flatten(0, 2), target.flatten(), reduction="none").view(2, 3, 1)
    torch.testing.assert_close(surprise(logits, target), wanted)
