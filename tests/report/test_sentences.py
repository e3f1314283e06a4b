import base64
import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.report import page, sentences
from attndyn.report.parts import NothingToShow, Scoring, Sentence, Sentences, TracedSentences

from .conftest import EVIL, LEARNED, REVIEW_STEPS, UNIFORM, FakeRun, make_parts, make_run


def reviews(**changes) -> TracedSentences:
    part = next(part for part in make_parts() if isinstance(part, TracedSentences))
    return dataclasses.replace(part, **changes)


def plain(**changes) -> Sentences:
    sentence = Sentence(title="", words=("a", "b"), scores=([[0.5, float("inf")], [0.1, float("nan")]],))
    part = Sentences(
        name="s", title="t", caption="c", scorings=(Scoring(label="α", steps=(0, 10)),), sentences=(sentence,)
    )
    return dataclasses.replace(part, **changes)


@given(st.floats(-1, 1), st.floats(0.1, 30), st.floats(0.1, 30), st.booleans())
def test_a_level_keeps_sign_and_size(share: float, peak: float, most: float, signed: bool) -> None:
    score = peak * (share if signed else abs(share))
    (level,) = sentences.levels(np.array([score]), peak, signed).tolist()
    seen = sentences.token(level, {"peak": peak, "most": most, "signed": signed})
    shade, value = float(seen["shade"]), float(seen["number"].replace("−", "-"))
    assert level > 0
    # half a level of √(score / peak); what is below a hundredth of it has no shade
    assert shade == pytest.approx(min(1, (abs(score) / most) ** 0.5), abs=0.006 + 0.014 * (peak / most) ** 0.5)
    assert seen["below"] == (value < 0)
    assert value * score >= 0
    root = abs(share) ** 0.5
    assert abs(value - score) <= peak * ((root + 0.014) ** 2 - root**2) + 0.06 * abs(score)


def test_the_full_colour_from_a_size_on_leaves_the_numbers_alone() -> None:
    part = plain(scorings=(Scoring(label="z", most=0.4, steps=(0, 10)),))
    part = dataclasses.replace(part, sentences=(Sentence(title="", words=("a", "b"), scores=([[0, 0], [0.1, 1.6]],)),))
    shown = sentences.content(part, 1000)["sentences"][0]["rows"][0]["shown"]
    assert [(token["shade"], token["number"]) for token in shown] == [("0.50", "0.1"), ("1.00", "1.6")]


def test_an_undefined_score_has_a_level_of_its_own() -> None:
    for signed in (False, True):
        assert sentences.levels(np.array([[np.nan, 0.0]]), 1.0, signed).tolist() == [[0, 128 if signed else 1]]
    assert sentences.token(0, {"peak": 1.0, "most": 1.0, "signed": False}) == {
        "shade": 0,
        "below": False,
        "number": "undefined",
    }
    shown = sentences.content(plain(), 1000)["sentences"][0]["rows"][0]["shown"]
    assert [token["number"] for token in shown] == ["0.1", "undefined"]


def test_traces_become_words_without_their_padding(run: FakeRun) -> None:
    part = sentences.read_sentences(run, reviews())
    assert [len(sentence.words) for sentence in part.sentences] == [9, 130, 21]
    votes = run.trace(LEARNED, 0, REVIEW_STEPS[-1])["answer"]
    for sentence, label, vote in zip(part.sentences, ("positive", "negative", "positive"), votes, strict=True):
        assert sentence.title == f"labelled {label}, probability {1 / (1 + np.exp(-vote)):.2f}"
    assert part.sentences[0].words[2] == EVIL
    assert [scoring.steps for scoring in part.scorings] == [REVIEW_STEPS, REVIEW_STEPS[::3], REVIEW_STEPS]
    for sentence in part.sentences:
        assert np.asarray(sentence.scores[0]).sum(axis=1) == pytest.approx(1, abs=0.01), "all attention is shown"
    for number, (scoring, kind) in enumerate(zip(part.scorings, ("alpha", "beta", "delta"), strict=True)):
        for row, step in enumerate(scoring.steps):
            expected = run.trace(UNIFORM if number == 1 else LEARNED, 0, step)[kind][1, :130]
            assert np.array_equal(part.sentences[1].scores[number][row], expected)


def test_relative_scores_are_shares_of_the_largest_in_their_sentence(run: FakeRun) -> None:
    part = reviews()
    *others, delta = part.scorings
    assert delta.kind == "delta"
    found = sentences.read_sentences(run, reviews(scorings=(*others, dataclasses.replace(delta, relative=True))))
    for sentence, absolute in zip(found.sentences, sentences.read_sentences(run, part).sentences, strict=True):
        whole, share = (np.asarray(one.scores[2], dtype=float) for one in (absolute, sentence))
        largest = np.abs(whole).max(axis=1, keepdims=True)
        np.testing.assert_allclose(share * largest, whole, rtol=1e-6)
        np.testing.assert_allclose(np.abs(share).max(axis=1), largest[:, 0] > 0)
    np.testing.assert_array_equal(sentences.shares(np.array([[0.0, 0.0], [-2.0, 1.0]])), [[0, 0], [-1, 0.5]])


def test_the_page_holds_every_level_and_folds_long_texts(run: FakeRun) -> None:
    part = sentences.read_sentences(run, reviews(examples=(1,)))
    found = sentences.content(part, 10**6)
    assert found["steps"] == list(REVIEW_STEPS)
    levels = np.frombuffer(base64.b64decode(found["levels"][0][1]), dtype=np.uint8).reshape(-1, 130)
    beta = np.asarray(part.sentences[0].scores[1])
    assert found["scorings"][1]["peak"] == pytest.approx(np.abs(beta).max())
    assert len(levels) == len(part.scorings[1].steps)
    assert ((levels > 128) <= (beta > 0)).all()
    assert ((levels < 128) <= (beta < 0)).all()
    assert (levels[0] == 128).all()
    row = found["sentences"][0]["rows"][0]
    assert (len(row["shown"]), len(row["folded"])) == (sentences.SHOWN, 130 - sentences.SHOWN)
    barely = Sentence(title="", words=("w",) * (sentences.SHOWN + 20), scores=(np.zeros((2, sentences.SHOWN + 20)),))
    assert not sentences.content(plain(sentences=(barely,)), 1000)["sentences"][0]["rows"][0]["folded"]


def test_what_the_traces_do_not_hold_is_said(run: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = reviews().scorings
    with pytest.raises(NothingToShow, match="hold no gamma"):
        sentences.read_sentences(run, reviews(scorings=(dataclasses.replace(first, kind="gamma"),)))
    with pytest.raises(NothingToShow, match="hold 3 examples, not 8"):
        sentences.read_sentences(run, reviews(examples=(0, 7)))
    original = FakeRun.trace

    def other(self: FakeRun, condition: str, replica: int, step: int) -> dict[str, np.ndarray]:
        trace = original(self, condition, replica, step)
        return trace | {"source": trace["source"] + 1} if condition == UNIFORM else trace

    monkeypatch.setattr(FakeRun, "trace", other)
    with pytest.raises(NothingToShow, match="reviews, uniform kept other examples than reviews, learned"):
        sentences.read_sentences(run, reviews(scorings=(first, second, third)))
    run.kept = []
    with pytest.raises(NothingToShow, match="No traces were kept for reviews, learned, seed 0"):
        sentences.read_sentences(run, reviews())
    with pytest.raises(NothingToShow, match="no sentences"):
        sentences.content(plain(sentences=()), 1000)
    negative = Sentence(title="", words=("a",), scores=([[-1.0], [0.0]],))
    with pytest.raises(ValueError, match="'α' is not signed"):
        sentences.content(plain(sentences=(negative,)), 1000)


def long_part(steps: int) -> Sentences:
    random = np.random.default_rng(0)
    scorings = tuple(Scoring(label=label, signed=label != "α", steps=tuple(range(steps))) for label in ("α", "β", "Δ"))
    texts = tuple(
        Sentence(title="t", words=("marvellous",) * 300, scores=tuple(random.random((3, steps, 300))))
        for _ in range(16)
    )
    return Sentences(name="long", title="t", caption="c", scorings=scorings, sentences=texts)


def test_sixteen_long_reviews_stay_below_a_megabyte(tmp_path) -> None:
    run = make_run(tmp_path)
    assert page.build(run, [long_part(22)], "f", formats=()).stat().st_size < 1_000_000
    assert page.build(run, [long_part(200)], "f", formats=()).stat().st_size < 2_000_000, "steps are thinned"


def test_one_step_needs_no_slider_and_no_script(run: FakeRun) -> None:
    still = next(part for part in make_parts() if isinstance(part, Sentences))
    source = page.build(run, [still], "f").read_text(encoding="utf-8")
    assert "<script" not in source
    assert 'class="controls"' not in source
    assert 'style="--s:0.79" data-n="0.62">agreement<' in source
