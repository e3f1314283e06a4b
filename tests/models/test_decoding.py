"""Beam search against exhaustive search and against a beam of lists, one sentence at a time."""

from dataclasses import replace

import pytest
import torch
from reference import beam as reference
from reference.translator import sentences

from attndyn.models import Learned, Translator, Uniform, decoding
from attndyn.models.decoding import Translations, translate
from attndyn.models.translator import TranslatorModel
from attndyn.tasks.sampler import Batch

WORDS, START, END = 5, 2, 3


def build(seeds: tuple[int, ...], sharp: float = 16.0) -> tuple[TranslatorModel, Batch]:
    """A model with opinions: at the start all outputs are about equally likely."""
    model = Translator(hidden=6, dropout=0.5).build(WORDS, seeds).eval()
    with torch.no_grad():
        model.output.weight *= sharp
        model.output.bias[:, END] += 1.0  # or many would never end
    batch = sentences(len(seeds))
    return model, replace(batch, source=batch.source % WORDS)


def stepper(model: TranslatorModel, batch: Batch, rule, replica: int, row: int) -> reference.Step:
    """log p of the next piece by reading the whole prefix again, one sentence alone and without padding."""
    length = int(batch.source_mask[replica, row].sum())
    seeds = model.encoder.drops[0].seeds[replica : replica + 1].tolist()
    alone = Translator(hidden=6).build(WORDS, seeds).eval()
    alone.load_state_dict({name: value[replica : replica + 1] for name, value in model.state_dict().items()})

    @torch.no_grad()
    def step(pieces: tuple[int, ...]) -> torch.Tensor:
        shifted = torch.tensor([[[START, *pieces]]])
        one = Batch(batch.source[replica, row, :length][None, None], shifted, shifted, shifted)
        return alone(one, rule)[0][0, 0, -1].log_softmax(dim=-1)

    return step


def spelled(found: Translations, replica: int, row: int) -> tuple[int, ...]:
    """Up to the end token."""
    pieces = found.pieces[replica, row].tolist()
    return tuple(pieces[: pieces.index(END) + 1] if END in pieces else pieces)


@pytest.mark.parametrize("rule", [Learned(), Uniform()], ids=["learned", "uniform"])
def test_a_beam_that_holds_everything_is_exhaustive(rule) -> None:
    model, batch = build((0, 4))
    found = translate(model, rule, batch, start=START, end=END, beams=4**3 + 4**2 + 4 + 1, longest=3)
    for replica in range(2):
        for row in range(4):
            best, runner_up = reference.every(stepper(model, batch, rule, replica, row), END, 3)[:2]
            assert best[0] > runner_up[0] + 1e-5  # else either would do
            assert spelled(found, replica, row) == best[1]
            assert found.scores[replica, row].item() == pytest.approx(best[0], abs=1e-5)


@pytest.mark.parametrize("beams", [1, 2, 5])
def test_a_narrow_beam_is_the_beam_of_lists(beams: int) -> None:
    model, batch = build((0, 4, 9))
    found = translate(model, Learned(), batch, start=START, end=END, beams=beams, longest=7)
    lengths = set()
    for replica in range(3):
        for row in range(4):
            score, pieces = reference.beam(stepper(model, batch, Learned(), replica, row), END, 7, beams)
            assert spelled(found, replica, row) == pieces
            assert found.scores[replica, row].item() == pytest.approx(score, abs=1e-4)
            lengths.add(len(pieces))
    assert len(lengths) > 1  # some end early, and wait for the others


def test_a_wider_beam_finds_what_greedy_search_misses() -> None:
    model, batch = build(tuple(range(8)))
    greedy, wide = (translate(model, Learned(), batch, start=START, end=END, beams=k, longest=6) for k in (1, 5))
    assert (wide.scores > greedy.scores + 1e-4).any()


def test_a_sentence_does_not_know_its_neighbours() -> None:
    model, batch = build((0, 4))
    together = translate(model, Learned(), batch, start=START, end=END, beams=3, longest=6)
    part = slice(1, 2)
    names = ("source", "shifted", "target", "align", "source_mask", "target_mask")
    one = Batch(**{name: getattr(batch, name)[:, part] for name in names})
    alone = translate(model, Learned(), one, start=START, end=END, beams=3, longest=6)
    for replica in range(2):
        assert spelled(alone, replica, 0) == spelled(together, replica, 1)


def test_what_does_not_end_is_cut_off() -> None:
    model, batch = build((0,))
    with torch.no_grad():
        model.output.bias[:, END] = -50.0
    found = translate(model, Learned(), batch, start=START, end=END, beams=2, longest=9)
    assert found.pieces.shape == (1, 4, 9)
    assert (found.pieces != END).all()


def test_sentences_that_take_long_go_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most end early; what the others find does not depend on whether those are still there."""
    kept, of = [], decoding.Beams.of
    monkeypatch.setattr(decoding.Beams, "of", lambda self, rows: kept.append(len(rows)) or of(self, rows))
    model, batch = build((0, 4))
    few = translate(model, Learned(), batch, start=START, end=END, beams=3, longest=12)
    assert kept
    monkeypatch.setattr(decoding, "FEW", 10**6)
    whole = translate(model, Learned(), batch, start=START, end=END, beams=3, longest=12)
    assert torch.equal(few.pieces, whole.pieces)
    torch.testing.assert_close(few.scores, whole.scores)
