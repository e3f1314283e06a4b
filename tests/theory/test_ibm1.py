"""IBM Model 1 against NLTK, against equation 13 written out, and against what expectation maximisation promises."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attndyn
from attndyn.errors import UserError
from attndyn.tasks import Permutations, Subsets
from attndyn.tasks.text import Pairs, drawn, pairs
from attndyn.theory import ibm1 as module
from attndyn.theory.ibm1 import count_table, ibm1, translation

Lines = list[list[str]]
corpora = st.lists(
    st.tuples(st.lists(st.sampled_from("abcd"), max_size=5), st.lists(st.sampled_from("uvwx"), max_size=5)),
    min_size=1,
    max_size=6,
)


def corpus(seed: int = 0, lines: int = 60) -> tuple[Lines, Lines]:
    """Targets repeat most of their source, in capitals, so that there is something to find."""
    random = np.random.default_rng(seed)
    sources = [[f"w{word}" for word in random.zipf(1.6, random.integers(1, 9)) % 25] for _ in range(lines)]
    targets = [[word.upper() for word in line if random.random() < 0.8] or ["EMPTY"] for line in sources]
    return sources, targets


def equation_13(both: Pairs) -> np.ndarray:
    table = np.zeros((len(both.source.words), len(both.target.words)))
    for m in range(len(both)):
        source, target = both.source.line(m), both.target.line(m)
        for word in source:
            for output in target:
                table[both.source.words.index(word), both.target.words.index(output)] += 1 / len(source)
    return table


@given(corpora)
def test_the_count_table_is_that_of_equation_13(lines: list[tuple[list[str], list[str]]]) -> None:
    both = pairs(*zip(*lines, strict=True))
    assert np.allclose(count_table(both).toarray(), equation_13(both), rtol=0, atol=1e-12)


def test_one_iteration_is_the_count_table() -> None:
    both = pairs(*corpus())
    table = ibm1(both, iterations=1, null=False)
    assert np.allclose(table.counts.toarray(), equation_13(both))
    assert np.allclose(table.trans.toarray(), translation(count_table(both)).toarray())
    rows = equation_13(both)
    assert np.allclose(table.trans.toarray(), rows / rows.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("chunk", [7, module.CHUNK])
def test_nltk_gives_the_same_table(iterations: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """NLTK adds a word's normaliser up over its repetitions in an output line, so that they count as one token; so
    its table is that of the lines without repetitions."""
    from nltk.translate import AlignedSent, IBMModel1

    monkeypatch.setattr(module, "CHUNK", chunk)
    sources, targets = corpus()
    assert any(len(set(line)) < len(line) for line in targets)
    ours = ibm1(pairs(sources, [list(dict.fromkeys(line)) for line in targets]), iterations=iterations, null=True)
    theirs = IBMModel1([AlignedSent(t, s) for s, t in zip(sources, targets, strict=True)], iterations)
    table = ours.trans.tocoo()
    names = [*ours.source_words[:-1], None]
    for i, o, value in zip(table.row, table.col, table.data, strict=True):
        assert value == pytest.approx(theirs.translation_table[ours.target_words[o]][names[i]], abs=1e-9)
    assert table.nnz == sum(map(len, theirs.translation_table.values()))


@given(corpora, st.booleans())
def test_tables_are_probabilities_and_the_perplexity_never_rises(
    lines: list[tuple[list[str], list[str]]], null: bool
) -> None:
    both = pairs(*zip(*lines, strict=True))
    if not any(source and target for source, target in lines):
        with pytest.raises(UserError, match="both sides"):
            ibm1(both, null=null)
        return
    table = ibm1(both, iterations=8, null=null)
    sums = table.trans.sum(axis=1)
    assert np.isfinite(table.trans.data).all()
    assert np.all(np.isclose(sums, 1) | (sums == 0)), "a word that only met empty outputs has an empty row"
    assert all(
        later <= before * (1 + 1e-12) for before, later in zip(table.perplexity, table.perplexity[1:], strict=False)
    )


def test_it_stops_when_nothing_is_gained() -> None:
    both = pairs(*corpus())
    table = ibm1(both, iterations=1000, tolerance=1e-4)
    assert 2 < table.iterations < 1000
    assert table.perplexity[-2] - table.perplexity[-1] < 1e-4 * table.perplexity[-2]


def test_probe_and_alignment_are_those_of_the_paper() -> None:
    both = pairs([["a", "b"], ["b", "c"]], [["A", "B"], ["B", "C"]])
    table = ibm1(both, iterations=1, null=False)
    beta, alpha = table.beta(["a", "b"], ["A", "new"]), table.alpha(["a", "b"], ["A", "new"])
    assert np.allclose(beta, [[0.5, 0.25], [0, 0]])
    assert np.allclose(alpha, [[2 / 3, 1 / 3], [0.5, 0.5]])


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("chunk", [5, module.CHUNK])
def test_align_takes_the_largest_alpha(null: bool, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    both = pairs([*corpus()[0], [], ["w1"]], [*corpus()[1], ["W1"], []])
    table = ibm1(both, iterations=3, null=null)
    found = iter(table.align(both))
    for m in range(len(both)):
        source = [*both.source.line(m), *[module.NULL] * null]
        alpha = table.alpha(source, both.target.line(m))
        for t in range(len(alpha)):
            if m == len(both) - 2:
                assert next(found) == -1, "nothing to look at"
                continue
            best = int(alpha[t].argmax())
            assert next(found) == (-1 if null and best == len(source) - 1 else best)
    assert next(found, None) is None


def test_the_public_name_reads_files(tmp_path: Path) -> None:
    folder = tmp_path
    (folder / "a").write_text("das haus\ndas buch\nein buch\n")
    (folder / "b").write_text("the house\nthe book\na book\n")
    table = attndyn.ibm1(folder / "a", folder / "b", iterations=10)
    assert table.partners("book")[0][0] == "buch"
    assert "4 input words and <NULL>, 4 output words" in repr(table)
    with pytest.raises(UserError, match="'bok'"):
        table.partners("bok")
    with pytest.raises(UserError, match="two files"):
        attndyn.ibm1(folder / "a")
    with pytest.raises(UserError, match="at least 1"):
        attndyn.ibm1(folder / "a", folder / "b", iterations=0)


def test_permutations_have_a_flat_table_and_subsets_a_diagonal() -> None:
    """Snell et al. §4.3, figure 3: where every input holds every word the alignment is uniform."""
    flat = ibm1(drawn(Permutations(5), 20), iterations=10, null=False)
    assert np.allclose(flat.trans.toarray()[:5, :5], 1 / 5)
    assert np.allclose(flat.alpha(["1", "2", "3"], ["2"]), 1 / 3)
    counts = count_table(drawn(Subsets(4, of=6), 200)).toarray()[:6, :6]
    assert (counts.argmax(axis=0) == np.arange(6)).all()
