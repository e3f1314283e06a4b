"""Δ of every word on every answer against a loop over the answers and against finite differences."""

import pytest
import torch
from reference.translator import SOURCES, TARGETS, WORDS, sentences

from attndyn.models import Learned, Translator, Uniform
from attndyn.models.layers import BiLSTM
from attndyn.models.translator import TranslatorModel
from attndyn.probes import influence_each
from attndyn.probes.influence import surprise

rules = pytest.mark.parametrize("rule", [Learned(), Uniform()], ids=["learned", "uniform"])
heads = pytest.mark.parametrize("head", ["hidden", "linear"])


def build(head: str) -> TranslatorModel:
    return Translator(hidden=6, head=head).build(WORDS, (0, 4)).double().eval()


def losses(model: TranslatorModel, rule, batch, embedded) -> torch.Tensor:
    states = model.encode_vectors(batch, embedded)
    return surprise(model.read(states, rule(model.scores(states), batch.source_mask)), batch.target)


@pytest.fixture
def batch():
    """The same examples for both replicas."""
    one = sentences(1)
    names = ("source", "shifted", "target", "align", "source_mask", "target_mask")
    return type(one)(**{name: getattr(one, name).expand(2, -1, -1) for name in names})


@heads
@rules
@pytest.mark.parametrize("rows", [1, 100, 1 << 20])
def test_all_answers_at_once_are_a_loop_over_them(head: str, rule, rows: int, batch, monkeypatch) -> None:
    monkeypatch.setattr(influence_each, "ROWS", rows)
    model = build(head)
    found = influence_each.influence_each(model, rule, batch)
    embedded = model.embed(batch).detach().requires_grad_()
    each = losses(model, rule, batch, embedded)
    for query in range(max(TARGETS)):
        (gradient,) = torch.autograd.grad(each[:, :, query].sum(), embedded, retain_graph=True)
        wanted = -(gradient * embedded.detach()).sum(dim=-1)
        wanted = torch.where(batch.target_mask[:, :, query, None], wanted, 0)
        torch.testing.assert_close(found[:, :, query], wanted)


@heads
def test_it_is_the_derivative_by_finite_differences(head: str, batch) -> None:
    model, rule, tiny = build(head), Learned(), 1e-6
    found = influence_each.influence_each(model, rule, batch)
    embedded = model.embed(batch).detach()
    for key in range(max(SOURCES)):
        scale = torch.ones(batch.source.shape[2], 1, dtype=torch.float64)
        ends = []
        for sign in (1, -1):
            scale[key] = 1 + sign * tiny
            ends.append(losses(model, rule, batch, embedded * scale).detach())
        wanted = -(ends[0] - ends[1]) / (2 * tiny)
        wanted = torch.where(batch.target_mask & batch.source_mask[:, :, key, None], wanted, 0)
        torch.testing.assert_close(found[..., key], wanted, rtol=1e-5, atol=1e-8)


def test_both_ways_through_the_lstm_agree(batch, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("hidden")
    found = influence_each.influence_each(model, Learned(), batch)
    monkeypatch.setattr(BiLSTM, "one_by_one", BiLSTM.stacked)  # what a GPU takes
    torch.testing.assert_close(influence_each.influence_each(model, Learned(), batch), found)


def test_a_sentence_does_not_know_its_neighbours(batch) -> None:
    model = build("hidden")
    together = influence_each.influence_each(model, Learned(), batch)
    row, keys, queries = 1, SOURCES[1], TARGETS[1]
    names = ("source", "source_mask", "shifted", "target", "align", "target_mask")
    cut = {name: keys if name.startswith("source") else queries for name in names}
    alone = type(batch)(**{name: getattr(batch, name)[:, row : row + 1, : cut[name]] for name in names})
    found = influence_each.influence_each(model, Learned(), alone)
    torch.testing.assert_close(found[:, 0], together[:, row, :queries, :keys])


def test_the_model_is_left_as_it_was(batch) -> None:
    model = build("hidden")
    model.query.weight.requires_grad_(False)
    influence_each.influence_each(model, Learned(), batch)
    assert [name for name, parameter in model.named_parameters() if not parameter.requires_grad] == ["query.weight"]
    assert all(parameter.grad is None for parameter in model.parameters())
