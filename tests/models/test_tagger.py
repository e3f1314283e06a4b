"""The tagger against one sentence at a time, under given attention, beside other replicas, and with padding."""

from dataclasses import replace

import pytest
import torch
from reference.tagger import tag

from attndyn.errors import UserError
from attndyn.models.rules import Beside, Given, Learned, Scattered, Uniform, Weights
from attndyn.models.specs import ContextTagger, Tagger
from attndyn.tasks.sampler import Batch

SPEC = Tagger(width=6, hidden=16, heads=2)
LENGTHS = (5, 3, 1)


def make_batch(width: int = 5, replicas: int = 2, masked: bool = True) -> Batch:
    """Texts of five, three and one words, the same for all replicas."""
    random = torch.Generator().manual_seed(3)
    words = torch.randint(1, 11, (3, 5), generator=random)
    source = torch.zeros(replicas, 3, width, dtype=torch.int64)
    mask = (torch.arange(width) < torch.tensor(LENGTHS)[:, None]).expand(replicas, -1, -1)
    source[..., :5] = words
    source = source * mask
    zero = torch.zeros_like(source)
    masks = {"source_mask": mask, "target_mask": mask} if masked else {}
    return Batch(source=source, shifted=zero, target=zero, align=zero, **masks)


def make(spec: Tagger = SPEC, seeds: tuple[int, ...] = (0, 1)):
    return spec.build(11, seeds, 7).eval()


def test_the_published_number_of_parameters() -> None:
    model = Tagger().build(50, (0,), 25)
    trained = sum(parameter[0].numel() for name, parameter in model.named_parameters() if name != "embedding.weight")
    assert trained == 140_953


def test_a_batch_is_its_sentences_one_by_one() -> None:
    model, batch = make().double(), make_batch()
    logits, alpha = model(batch, Learned())
    for replica in range(2):
        for n, length in enumerate(LENGTHS):
            expected, weights = tag(model, replica, batch.source[replica, n, :length])
            # the sines and cosines of the positions are float32 in both
            torch.testing.assert_close(logits[replica, n, :length], expected, rtol=1e-6, atol=1e-6)
            torch.testing.assert_close(alpha[replica, n, :, :length, :length], weights, rtol=1e-6, atol=1e-6)


def test_padding_is_invisible() -> None:
    model = make()
    (narrow, small), (wide, large) = (model(make_batch(width), Learned()) for width in (5, 9))
    for n, length in enumerate(LENGTHS):
        torch.testing.assert_close(wide[:, n, :length], narrow[:, n, :length])
        torch.testing.assert_close(large[:, n, :, :length, :length], small[:, n, :, :length, :length])
    assert (large[..., 5:] == 0).all()
    seen, _ = model(make_batch(9, masked=False), Learned())  # the author's variant does see it
    assert not torch.allclose(seen[:, 1, :3], narrow[:, 1, :3], atol=1e-3)


@pytest.mark.parametrize("spec", [SPEC, ContextTagger(width=6, hidden=16, heads=2)])
def test_given_its_own_attention_a_model_answers_exactly_the_same(spec: Tagger) -> None:
    model, batch = make(spec), make_batch()
    logits, alpha = model(batch, Learned())
    again, same = model(replace(batch, given=alpha), Given())
    assert torch.equal(again, logits)
    assert torch.equal(same, alpha)


def test_a_replica_does_not_know_its_neighbours() -> None:
    together, _ = make(seeds=(4, 9))(make_batch(), Learned())
    alone, _ = make(seeds=(9,))(make_batch(replicas=1), Learned())
    torch.testing.assert_close(together[1:], alone)


def test_rules_stand_beside_each_other() -> None:
    model, batch = make(), make_batch()
    _, learned = model(batch, Learned())
    batch = replace(batch, given=learned.flip(-2))
    logits, alpha = model(batch, Beside(((Given(), 1), (Uniform(), 1))))
    assert torch.equal(alpha[0], learned.flip(-2)[0])
    torch.testing.assert_close(alpha[1, 1, :, :, :3], torch.full((2, 5, 3), 1 / 3))
    torch.testing.assert_close(logits[:1], model(batch, Given())[0][:1])


def test_without_attention_to_other_words_the_feed_forward_probe_knows_its_own_alone() -> None:
    model, batch = make(ContextTagger(width=6, hidden=16, heads=2)), make_batch()
    own = torch.eye(5).expand(2, 3, 2, 5, 5)
    before, _ = model(batch, Weights(own))
    source = batch.source.clone()
    source[:, 0, 2] = source[:, 0, 2] % 10 + 1
    after, _ = model(replace(batch, source=source), Weights(own))
    assert torch.equal(before[:, 0, [0, 1, 3, 4]], after[:, 0, [0, 1, 3, 4]])
    assert not torch.equal(before[:, 0, 2], after[:, 0, 2])


def test_dropout_reaches_the_attention_that_is_returned_and_repeats_itself() -> None:
    model = make().train()
    batch = replace(make_batch(), step=torch.tensor(7))
    (first, alpha), (second, again) = model(batch, Uniform()), model(batch, Uniform())
    assert torch.equal(first, second)
    assert torch.equal(alpha, again)
    real = alpha[:, 0]
    assert 0 < (real == 0).double().mean() < 0.5
    other, _ = model(replace(batch, step=torch.tensor(8)), Uniform())
    assert not torch.equal(other, first)


def test_scattered_weights_are_the_same_ones_elsewhere_and_always_there() -> None:
    weights = torch.rand(2, 3, 2, 5, 5, generator=torch.Generator().manual_seed(0))
    batch = make_batch()
    weights = weights * batch.source_mask[:, :, None, None]
    scattered = Scattered().of(replace(batch, given=weights)).values
    assert torch.equal(scattered.sort(dim=-1).values, weights.sort(dim=-1).values)
    assert not torch.equal(scattered[:, 0], weights[:, 0])
    assert (scattered[:, 1, :, :, 3:] == 0).all()
    # in another order of the texts, with more padding
    moved = make_batch(8)
    wide = torch.zeros(2, 3, 2, 8, 8)
    wide[..., :5, :5] = weights
    back = [2, 0, 1]
    moved = replace(moved, source=moved.source[:, back], source_mask=moved.source_mask[:, back], given=wide[:, back])
    again = Scattered().of(moved).values
    assert torch.equal(again[:, 1, :, :5, :5], scattered[:, 0])
    assert torch.equal(again[:, 2, :, :5, :3], scattered[:, 1, :, :, :3])


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((2, 3, 2, 4, 4), "3 × 2 × 4 × 4 weights .* where 3 × 2 × 5 × 5 are needed"),
        ((2, 3, 4, 5, 5), "for other texts or another model"),
    ],
)
def test_attention_of_other_texts_is_refused(shape: tuple[int, ...], sentence: str) -> None:
    model, batch = make(), make_batch()
    with pytest.raises(UserError, match=sentence):
        model(batch, Weights(torch.zeros(shape)))
    with pytest.raises(UserError, match="nothing brings the weights"):
        model(batch, Given())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"hidden": 6}, "multiple of twice the heads"), ({"heads": 0}, "at least 1"), ({"dropout": 1.0}, "dropout lies")],
)
def test_impossible_sizes_are_refused(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Tagger(**settings)
    with pytest.raises(UserError, match="at least two tags"):
        Tagger().build(10, (0,))
