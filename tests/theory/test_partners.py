"""Partners: against the definition written out, on tasks whose answer is known, and on data without any."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attndyn.tasks.text import Pairs, pairs
from attndyn.theory.partners import FALSE_ALARMS, PRIOR, by_word, check, forward, judge, one_word_answers, presence

Lines = list[list[str]]


def evidence(n: float, rate: float, usual: float) -> float:
    if rate <= usual:
        return 0.0
    usual = min(max(usual, 1e-12), 1 - 1e-12)
    loss = sum(p * math.log(p / q) for p, q in ((rate, usual), (1 - rate, 1 - usual)) if p > 0)
    return math.sqrt(max(0.0, 2 * n * loss))


def slow(sources: Lines, targets: Lines, m: int, output: str) -> tuple[float, float, set[str]]:
    """z, the rate and the possible partners of one output word of pair m: the definition, pair by pair. No partner, if
    no input says anything."""
    others = [k for k in range(len(sources)) if k != m]
    usual = sum(output in targets[k] for k in others) / max(1, len(others))

    def rate(word: str) -> tuple[int, float]:
        beside = [k for k in others if word in sources[k]]
        return len(beside), (sum(output in targets[k] for k in beside) + PRIOR * usual) / (len(beside) + PRIOR)

    found = {word: rate(word) for word in sources[m]}
    z = {word: evidence(n, value, usual) for word, (n, value) in found.items()}
    best = {word for word in z if z[word] > 1e-9 and z[word] == pytest.approx(max(z.values()), abs=1e-9)}
    if not best:
        return 0.0, usual, best
    first = next(word for word in sources[m] if word in best)
    rival = max([found[word][1] for word in found if word != first], default=-1.0)
    return evidence(*found[first], max(rival, usual)), found[first][1], best


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from("abc"), min_size=1, max_size=4),
            st.lists(st.sampled_from("uvw"), min_size=1, max_size=4),
        ),
        min_size=2,
        max_size=8,
    )
)
def test_the_vectorised_judgement_is_the_definition(lines: list[tuple[list[str], list[str]]]) -> None:
    sources, targets = [list(side) for side in zip(*lines, strict=True)]
    both = pairs(sources, targets)
    found = judge(both)
    assert len(found.rows) == sum(len(set(line)) for line in targets)
    assert found.repeats.sum() == sum(map(len, targets))
    for k in range(len(found.rows)):
        z, rate, best = slow(sources, targets, found.rows[k], both.target.words[found.outputs[k]])
        assert found.partner[k] == -1 if not best else both.source.words[found.partner[k]] in best
        if len(best) == 1:
            assert found.rate[k] == pytest.approx(rate)
            assert found.evidence[k] == pytest.approx(z, abs=1e-6)


def copies(draw: str, lines: int = 400, seed: int = 0) -> Pairs:
    random = np.random.default_rng(seed)
    rows = {
        "permutations": lambda: random.permutation(8),
        "subsets": lambda: random.permutation(12)[:8],
        "mixture": lambda: random.permutation(8) + 8 * random.integers(2),
        "unrelated": lambda: random.permutation(30)[:8],
    }
    sources = [[f"w{word}" for word in rows[draw]()] for _ in range(lines)]
    targets = [[f"w{word}" for word in rows[draw]()] for _ in range(lines)] if draw == "unrelated" else sources
    return pairs(sources, targets)


@pytest.mark.parametrize("draw", ["permutations", "mixture"])
def test_where_all_words_come_together_nobody_is_singled_out(draw: str) -> None:
    both = copies(draw)
    assert not judge(both).singled_out.any()
    assert check(both).stays is None


def test_where_words_come_and_go_everyone_is() -> None:
    both = copies("subsets")
    found = judge(both)
    assert found.singled_out.all()
    assert all(both.source.words[i] == both.target.words[o] for i, o in zip(found.partner, found.outputs, strict=True))
    checks = check(both)
    assert checks.stays == 1
    assert checks.chance == pytest.approx(1 / 8)
    assert forward(both, found) == 1


def test_the_order_of_the_partners_is_seen() -> None:
    both = copies("subsets")
    backwards = pairs([both.source.line(m) for m in range(400)], [both.source.line(m)[::-1] for m in range(400)])
    assert forward(backwards, judge(backwards)) == 0


def test_unrelated_pairs_give_few_false_alarms() -> None:
    found = [judge(copies("unrelated", seed=seed)).singled_out for seed in range(5)]
    rate = np.concatenate(found).mean()  # of 16,000 tokens
    assert rate <= 2 * FALSE_ALARMS
    assert check(copies("unrelated")).false_alarms <= 4 * FALSE_ALARMS


def test_several_words_may_speak_for_a_label() -> None:
    random = np.random.default_rng(1)
    texts, labels = [], []
    for k in range(300):
        good = k % 2 == 0
        texts.append((["great", "lovely"] if good else ["awful"]) + [f"w{word}" for word in random.permutation(20)[:4]])
        labels.append(["pos" if good else "neg"])
    both = pairs(texts, labels)
    # "great" and "lovely" always come together: neither beats the other, but each beats chance.
    positive = np.array([label == ["pos"] for label in labels])
    assert not judge(both).singled_out[positive].any()
    assert judge(both, rivals=False).singled_out.all()


def test_words_are_gathered() -> None:
    both = pairs(
        [["hund", "der"], ["katze", "der"]] * 20 + [["maus"]], [["dog", "the"], ["cat", "the"]] * 20 + [["mouse"]]
    )
    words = by_word(judge(both), presence(both))
    at = {word: number for number, word in enumerate(both.target.words)}
    dog = at["dog"]
    assert both.source.words[words.partner[dog]] == "hund"
    assert both.source.words[words.rival[dog]] == "der"
    assert (words.share[dog], words.with_partner[dog], words.with_rival[dog]) == (1, 1, 0.5)
    assert words.usually[dog] == pytest.approx(20 / 41)
    assert list(words.too_rare) == [False, False, False, True]
    assert words.tokens.sum() == 81
    assert np.isfinite(words.evidence).all()


@given(st.lists(st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), st.sampled_from("uv")), min_size=3))
def test_the_answer_of_one_word_is_the_definition(lines: list[tuple[list[str], str]]) -> None:
    texts, labels = [text for text, _ in lines], [label for _, label in lines]
    both = pairs(texts, [[label] for label in labels])
    found = one_word_answers(both, presence(both))
    for m, text in enumerate(texts):
        others = [k for k in range(len(texts)) if k != m]
        strength, rates = {}, {}
        for word in text:
            for label in both.target.words:
                usual = sum(labels[k] == label for k in others) / len(others)
                beside = [labels[k] == label for k in others if word in texts[k]]
                rates[word, label] = (sum(beside) + PRIOR * usual) / (len(beside) + PRIOR)
                z = evidence(len(beside), rates[word, label], usual)
                strength[word] = max(z, strength.get(word, 0.0))
        possible = {word for word in text if strength[word] == pytest.approx(max(strength.values()), abs=1e-6)}
        answer = both.target.words[found[m]]
        likeliest = {word: max(rates[word, label] for label in both.target.words) for word in possible}
        assert any(rates[word, answer] == pytest.approx(likeliest[word]) for word in possible)
