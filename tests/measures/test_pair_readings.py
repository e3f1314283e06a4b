"""What is kept of a translator against the definitions, pair by pair."""

import pytest
import torch
from reference.translator import SOURCES, TARGETS, WORDS, sentences

from attndyn.measures.pair_readings import BestAttention, PairScores, Translate
from attndyn.models import Learned, OneHot, Translator
from attndyn.models.decoding import translate
from attndyn.probes.influence_each import influence_each
from attndyn.probes.optimal import optimal_attention
from attndyn.probes.trace import Trace
from attndyn.training.precision import products

START, END = 2, 3


def trace(head: str = "hidden") -> Trace:
    one = sentences(1)
    names = ("source", "shifted", "target", "align", "source_mask", "target_mask")
    batch = type(one)(**{name: getattr(one, name).expand(2, -1, -1) for name in names})
    return Trace(Translator(hidden=6, head=head).build(WORDS, (0, 4)).eval(), Learned(), batch)


def blocks(values: torch.Tensor) -> list[torch.Tensor]:
    """[target, source] of each pair, out of what is kept of a replica."""
    sizes = [keys * queries for keys, queries in zip(SOURCES, TARGETS, strict=True)]
    parts = values.split(sizes)
    return [part.view(queries, keys) for part, keys, queries in zip(parts, SOURCES, TARGETS, strict=True)]


def test_positions_are_kept_pair_by_pair_without_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    of = trace()
    # the entropy of one position is not defined, and one of the sources has only one
    monkeypatch.setattr("attndyn.measures.focus.normalised_entropy", lambda *given: torch.zeros(2))
    kept = dict(PairScores(every=1).run(of))
    delta = influence_each(of.model, of.rule, of.batch)
    for replica in range(2):
        for row, (alpha, beta, effect) in enumerate(
            zip(*(blocks(kept[name][replica]) for name in ("alpha", "beta", "delta")), strict=True)
        ):
            queries, keys = alpha.shape
            torch.testing.assert_close(alpha, of.alpha[replica, row, 0, :queries, :keys])
            torch.testing.assert_close(effect, delta[replica, row, :queries, :keys])
            for key in range(keys):
                with torch.no_grad():
                    p = of.model(of.batch, OneHot(key))[0].softmax(dim=-1)
                right = p.gather(-1, of.batch.target[..., None])[replica, row, :queries, 0]
                torch.testing.assert_close(beta[:, key], right.logit(), rtol=1e-3, atol=1e-4)


def test_translations_are_filled_up_with_the_end_token() -> None:
    of = trace()
    (pieces,) = dict(Translate(every=1, start=START, end=END, beams=3, longest=12).run(of)).values()
    pieces = pieces[:, :, 0]
    wanted = translate(of.model, of.rule, of.batch, start=START, end=END, beams=3, longest=12).pieces
    assert pieces.shape == (2, 4, 12)
    assert torch.equal(pieces[..., : wanted.shape[2]].long(), wanted)
    assert (pieces[..., wanted.shape[2] :] == END).all()


def test_the_best_attention_is_better_than_the_models_own() -> None:
    found = dict(BestAttention(every=1).run(trace("linear")))
    assert (found["α_opt solved"] == 1).all()
    assert (found["loss above α_opt"] > 0).all()
    for name in ("A(α_opt, β)", "A(α_opt, α)", "chance"):
        assert ((found[name] > 0) & (found[name] <= 1)).all()


def test_the_best_attention_needs_a_linear_head() -> None:
    with pytest.raises(ValueError, match="linear head only"):
        list(BestAttention(every=1).run(trace("hidden")))


def test_the_best_attention_is_sought_in_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the readings are taken in: with ten bits a gap of 1e-4 cannot be proven."""
    allowed = []

    def sought(*given):
        allowed.append(torch.backends.cuda.matmul.allow_tf32)
        return optimal_attention(*given)

    monkeypatch.setattr("attndyn.probes.optimal.optimal_attention", sought)
    with products("tf32"):
        list(BestAttention(every=1).run(trace("linear")))
        assert torch.backends.cuda.matmul.allow_tf32
    assert allowed == [False]
