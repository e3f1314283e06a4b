"""The closed form of β against its definition."""

import pytest
import torch

from attndyn.models import OneHot, Seq2Seq
from attndyn.models.seq2seq import Seq2SeqModel
from attndyn.probes import lexical
from attndyn.probes.lexical import lexical_probe
from attndyn.tasks import Iid, PermutedCopy
from attndyn.tasks.sampler import Batch

SEEDS = (0, 3, 9)


def build(reading: str = "code", words: int = 5) -> tuple[Seq2SeqModel, Batch]:
    task = PermutedCopy(4, of=words, relabel=True)
    return Seq2Seq(8, reading).build(task.vocabulary, SEEDS).eval(), task.build(SEEDS).evaluation(5)


@pytest.mark.parametrize("reading", ["code", "text"])
def test_beta_is_the_probability_of_the_right_output_under_one_hot_attention(reading: str) -> None:
    model, batch = build(reading)
    beta = lexical_probe(model, model.encode(batch), batch.target)
    assert beta.shape == (3, 5, 5, 5)
    assert not beta.requires_grad
    for key in range(5):
        probabilities = model(batch, OneHot(key))[0].detach().softmax(dim=-1)
        right = probabilities.gather(-1, batch.target[..., None])[..., 0]
        torch.testing.assert_close(beta[..., key], right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("examples", "wanted"), [(0, [1] * 5), (2, [2, 2, 1]), (5, [5])])
def test_slices_do_not_show(monkeypatch: pytest.MonkeyPatch, examples: int, wanted: list[int]) -> None:
    """One example a slice, however small the limit; two, so that the last slice is shorter; all at once."""
    model, batch = build()
    widest = max(8, model.output.weight.shape[1])
    states = model.encode(batch)
    whole = lexical_probe(model, states, batch.target)
    sizes = []
    original = model.read_each
    monkeypatch.setattr(model, "read_each", lambda part: (sizes.append(part.keys.shape[1]), original(part))[1])
    monkeypatch.setattr(lexical, "SLICE", examples * 3 * 5 * 5 * widest)
    sliced = lexical_probe(model, states, batch.target)
    assert sizes == wanted
    torch.testing.assert_close(sliced, whole, rtol=1e-6, atol=1e-7)


def test_the_encoder_does_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = build()
    states = model.encode(batch)
    monkeypatch.setattr(model, "encode", lambda batch: pytest.fail("encoded again"))
    lexical_probe(model, states, batch.target)


def test_beta_does_not_overflow() -> None:
    model, batch = build()
    with torch.no_grad():
        model.output.weight.mul_(1e4)
    beta = lexical_probe(model, model.encode(batch), batch.target)
    assert beta.isfinite().all()
    assert beta.min() >= 0
    assert beta.max() <= 1


def test_beta_of_one_position_depends_on_that_word_alone() -> None:
    """With a decoder that ignores its input and an encoder without memory, β at a key is a function of its word."""
    task = Iid(4, 3)
    model, batch = Seq2Seq(8).build(task.vocabulary, (1,)).eval(), task.build((1,)).evaluation(6)
    with torch.no_grad():
        model.encoder.weight_hh_l0.zero_()
        for gate in (0, 1):  # shut the forget gate, so that nothing is carried on
            model.encoder.bias_ih_l0[:, 8 * gate : 8 * (gate + 1)] = 100.0 if gate == 0 else -100.0
        model.hidden.weight[:, :, :8] = 0  # the hidden layer does not see the decoder
    beta = lexical_probe(model, model.encode(batch), batch.target)
    seen: dict[tuple[int, int], float] = {}
    for example in range(6):
        for query in range(5):
            for key in range(5):
                pair = int(batch.target[0, example, query]), int(batch.source[0, example, key])
                value = float(beta[0, example, query, key])
                assert seen.setdefault(pair, value) == pytest.approx(value, rel=1e-4)
    assert len(set(seen.values())) > 4
