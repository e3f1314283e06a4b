"""The classifier against its equations, one replica and one text at a time."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from attndyn.errors import UserError
from attndyn.models import Classifier, Learned, OneHot, Uniform
from attndyn.models.classifier import ClassifierModel
from attndyn.models.layers import BiLSTM
from attndyn.models.rules import Given
from attndyn.tasks.sampler import Batch

WORDS = 11
CLOSE = {"rtol": 1e-4, "atol": 1e-6}
SMALL = Classifier(width=5, hidden=4)
specs = pytest.mark.parametrize(
    "spec",
    [
        SMALL,
        replace(SMALL, directions=1),
        replace(SMALL, scoring="linear"),
        replace(SMALL, scoring="tanh"),
        replace(SMALL, scoring="tanh", encoder="average"),
    ],
    ids=["paper", "one direction", "linear scoring", "tanh scoring", "each word for itself"],
)
classes = pytest.mark.parametrize("outputs", [2, 3])
groups = pytest.mark.parametrize("seeds", [(4,), (0, 4, 2)], ids=["one replica", "three replicas"])


def texts(lengths: list[int], replicas: int, outputs: int = 2, seed: int = 0) -> Batch:
    """Texts of these lengths, padded with words that must not matter."""
    draw = torch.Generator().manual_seed(seed)
    shape = (replicas, len(lengths))
    source = torch.randint(WORDS, (*shape, max(lengths)), generator=draw)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).expand(*source.shape)
    target = torch.randint(outputs, (*shape, 1), generator=draw)
    return Batch(source, torch.zeros_like(target), target, torch.zeros_like(target), mask)


def plain(model: ClassifierModel, spec: Classifier, replica: int, words: Tensor, alpha: Tensor | None = None):
    """(logits, α) of one text without padding, by plain PyTorch modules with the replica's weights."""

    def parameters(part: nn.Module) -> dict[str, Tensor]:
        return {name: value[replica] for name, value in part.named_parameters()}

    vectors = model.embedding.weight[replica][words]
    if spec.encoder == "average":
        states = F.linear(vectors, **parameters(model.encoder)).tanh()
    else:
        lstm = nn.LSTM(spec.width, spec.hidden, bidirectional=spec.directions == 2)
        states, _ = torch.func.functional_call(lstm, parameters(model.encoder), (vectors,))
    hidden = states
    if model.attention is not None:
        hidden = F.linear(states, **parameters(model.attention))
        hidden = hidden.tanh() if spec.scoring == "tanh" else hidden.relu()
    if alpha is None:
        alpha = F.linear(hidden, **parameters(model.score))[:, 0].softmax(dim=0)
    logits = F.linear(alpha @ states, **parameters(model.output))
    return (logits if len(logits) > 1 else torch.cat([torch.zeros(1), logits])), alpha


@specs
@classes
@groups
def test_padded_texts_follow_the_equations_one_by_one(spec, outputs: int, seeds: tuple[int, ...]) -> None:
    lengths = [3, 6, 1, 5]
    model, batch = spec.build(WORDS, seeds, outputs), texts(lengths, len(seeds), outputs)
    logits, alpha = model(batch, Learned())
    assert logits.shape == (len(seeds), 4, 1, outputs)
    assert alpha.shape == (len(seeds), 4, 1, 1, 6)
    for replica in range(len(seeds)):
        for row, length in enumerate(lengths):
            wanted, weights = plain(model, spec, replica, batch.source[replica, row, :length])
            torch.testing.assert_close(logits[replica, row, 0], wanted, **CLOSE)
            torch.testing.assert_close(alpha[replica, row, 0, 0, :length], weights, **CLOSE)
            assert not alpha[replica, row, 0, 0, length:].any()


@specs
def test_gradients_are_those_of_the_texts_one_by_one(spec) -> None:
    lengths = [3, 6, 1, 5]
    model, batch = spec.build(WORDS, (0, 1), 2), texts(lengths, 2)
    logits, _ = model(batch, Learned())
    F.cross_entropy(logits.flatten(0, 2), batch.target.flatten(), reduction="sum").backward()
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    for replica in range(2):
        for row, length in enumerate(lengths):
            one, _ = plain(model, spec, replica, batch.source[replica, row, :length])
            F.cross_entropy(one[None], batch.target[replica, row]).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-4, atol=1e-5, msg=name)


@specs
@torch.no_grad()
def test_the_stacked_encoder_is_the_one_by_one_encoder(spec) -> None:
    model, batch = spec.build(WORDS, (0, 1, 2), 2), texts([3, 6, 1, 5], 3)
    if spec.encoder == "average":
        pytest.skip("no recurrence, so no two ways to run it")
    slow = model.encode(batch).keys

    class Stacked(BiLSTM):
        one_by_one = BiLSTM.stacked

    model.encoder.__class__ = Stacked
    keep = batch.source_mask[..., None]
    torch.testing.assert_close(model.encode(batch).keys * keep, slow * keep, **CLOSE)


@specs
def test_what_is_only_read_goes_another_way_with_the_same_states_and_slopes(spec) -> None:
    model, batch = spec.build(WORDS, (0, 1, 2), 2).double(), texts([3, 6, 1, 5], 3)
    if spec.encoder == "average":
        pytest.skip("no recurrence, so no two ways to run it")
    found = []
    for fixed in (False, True):
        model.requires_grad_(not fixed)
        assert model.encoder.only_read is fixed
        embedded = model.embed(batch).detach().requires_grad_()
        keys = model.encode_vectors(batch, embedded).keys * batch.source_mask[..., None]
        (slope,) = torch.autograd.grad(keys.sin().sum(), embedded)
        found.append((keys, (slope * embedded).sum(dim=-1)))
    for trained, read in zip(*found, strict=True):
        torch.testing.assert_close(read, trained)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.integers(0, 5), st.integers(2, 3), st.integers(0, 99))
@torch.no_grad()
def test_padding_is_invisible(lengths: list[int], more: int, outputs: int, seed: int) -> None:
    model, batch = SMALL.build(WORDS, (seed,), outputs), texts(lengths, 1, outputs, seed)
    padded = replace(
        batch, source=F.pad(batch.source, (0, more), value=3), source_mask=F.pad(batch.source_mask, (0, more))
    )
    torch.testing.assert_close(model(padded, Learned())[0], model(batch, Learned())[0], **CLOSE)
    torch.testing.assert_close(model(padded, Uniform())[0], model(batch, Uniform())[0], **CLOSE)


@specs
@classes
@torch.no_grad()
def test_reading_each_key_is_one_hot_attention(spec, outputs: int) -> None:
    model, batch = spec.build(WORDS, (0, 1), outputs), texts([6, 6], 2, outputs)
    states = model.encode(batch)
    each = model.read_each(states)
    for key in range(6):
        torch.testing.assert_close(each[:, :, :, key], model.read(states, OneHot(key)(model.scores(states))), **CLOSE)


@torch.no_grad()
def test_the_answer_is_the_mean_of_the_votes_on_the_scale_of_logits() -> None:
    """p(right) = σ(Σ α σ⁻¹(β)), Snell et al. §2.4, to 1e-6 in float64."""
    from attndyn.probes.trace import Trace

    model, batch = SMALL.build(WORDS, (0, 1), 2).double(), texts([3, 6, 1, 5], 2)
    trace = Trace(model, Learned(), batch)
    right = trace.logits.softmax(dim=-1).gather(-1, batch.target[..., None])[..., 0, 0]
    combined = (trace.alpha[:, :, 0, 0] * trace.beta[:, :, 0].logit()).sum(dim=-1).sigmoid()
    assert (right - combined).abs().max() < 1e-6
    assert right.std() > 1e-3


def test_the_classifier_of_jain_and_wallace() -> None:
    """BiLSTM 128 a direction, Linear(256, 128) with tanh, Linear(128, 1) without bias, one sigmoid."""
    model = Classifier(hidden=128, scoring="tanh").build(17, (0,), 2)
    shapes = {name: [*parameter.shape[1:]] for name, parameter in model.named_parameters()}
    assert shapes["attention.weight"] == [128, 256]
    assert shapes["score.weight"] == [1, 128]
    assert "score.bias" not in shapes
    assert shapes["output.weight"] == [1, 256]
    assert shapes["encoder.weight_hh_l0_reverse"] == [512, 128]


@specs
@torch.no_grad()
def test_given_its_own_attention_a_model_answers_as_before(spec) -> None:
    """Exactly: α goes the same way into the same reading."""
    model, batch = spec.build(WORDS, (0, 1), 2), texts([3, 6, 2, 5], 2)
    logits, alpha = model(batch, Learned())
    again, same = model(replace(batch, given=alpha), Given())
    assert torch.equal(again, logits)
    assert torch.equal(same, alpha)


def test_parameters_are_as_many_as_published() -> None:
    """Snell et al. A.8: 1,274,882 and 300 for each word."""
    model = Classifier().build(17, (0,), 2)
    assert sum(parameter.numel() for parameter in model.parameters()) == 1_274_882 + 300 * 17


def test_embeddings_start_from_a_normal_distribution() -> None:
    weights = Classifier().build(500, (0,), 2).embedding.weight.detach()
    assert abs(float(weights.std()) - 1) < 0.01


@pytest.mark.parametrize("change", [{"width": 0}, {"hidden": 0}, {"directions": 3}])
def test_impossible_sizes_are_refused(change) -> None:
    with pytest.raises(UserError):
        replace(SMALL, **change)


def test_one_class_is_none() -> None:
    with pytest.raises(UserError, match="at least two classes, not 1"):
        SMALL.build(WORDS, (0,), 1)
