"""The derivative against autograd and finite differences, its limit, and the law of its error."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attndyn.errors import UserError
from attndyn.tasks.pairs import labelled, translation
from attndyn.tasks.text import Pairs, Text
from attndyn.theory import initial_derivative as theory

Lines = list[tuple[list[int], list[int]]]


def text(lines: list[list[int]], words: int) -> Text:
    ids = np.array([word for line in lines for word in line], np.int32)
    return Text(ids, np.cumsum([0, *map(len, lines)]), [str(word) for word in range(words)])


def corpus(lines: Lines, inputs: int = 4, outputs: int = 3) -> Pairs:
    return Pairs(text([source for source, _ in lines], inputs), text([target for _, target in lines], outputs))


def summed_loss(embeddings: torch.Tensor, weights: torch.Tensor, lines: Lines) -> torch.Tensor:
    """The loss of section 4.1, word by word."""
    total = torch.zeros((), dtype=torch.float64)
    for source, target in lines:
        if source and target:
            mean = sum(embeddings[word] for word in source) / len(source)
            logs = torch.log_softmax(weights @ mean, dim=0)
            for word in target:
                total = total - logs[word]
    return total


some_lines = st.lists(
    st.tuples(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(0, 2), max_size=3)), min_size=1, max_size=5
).filter(lambda lines: any(source and target for source, target in lines))


@given(lines=some_lines, seed=st.integers(0, 99))
def test_the_flow_is_that_of_autograd_and_of_finite_differences(lines: Lines, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(4, 5, dtype=torch.float64, generator=random, requires_grad=True)
    weights = torch.randn(3, 5, dtype=torch.float64, generator=random, requires_grad=True)
    move_e, move_w = torch.autograd.grad(-summed_loss(embeddings, weights, lines), (embeddings, weights))
    e, w = embeddings.detach(), weights.detach()
    start = theory.Start((e @ e.T).numpy(), (w @ w.T).numpy(), (e @ w.T).numpy())

    found = theory.flow(start, theory.bags(corpus(lines)))
    np.testing.assert_allclose(found.through_embeddings, (move_e @ w.T).numpy(), atol=1e-10)
    np.testing.assert_allclose(found.through_output, (e @ move_w.T).numpy(), atol=1e-10)

    h = 1e-5
    logits = [(e + sign * h * move_e) @ (w + sign * h * move_w).T for sign in (1, -1)]
    np.testing.assert_allclose(found.logits, ((logits[0] - logits[1]) / (2 * h)).numpy(), atol=1e-6)
    thetas = [value.softmax(dim=1) for value in logits]
    np.testing.assert_allclose(found.probabilities, ((thetas[0] - thetas[1]) / (2 * h)).numpy(), atol=1e-6)


@given(lines=some_lines)
def test_the_count_table_is_one_pass_of_ibm_model_1(lines: Lines) -> None:
    counts = theory.bags(corpus(lines)).counts
    np.testing.assert_allclose(counts, theory.first_pass(corpus(lines), np.full((4, 3), 1 / 3)), atol=1e-12)
    np.testing.assert_allclose(theory.centred(counts).sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(counts.sum(), sum(len(target) for source, target in lines if source))


def test_a_pass_follows_the_table_it_is_given() -> None:
    table = np.array([[0.9, 0.1, 0.0], [0.3, 0.3, 0.4], [0.2, 0.2, 0.6], [1.0, 0.0, 0.0]])
    counts = theory.first_pass(corpus([([0, 1, 1], [0, 2])]), table)
    assert counts[0].tolist() == pytest.approx([0.9 / 1.5, 0, 0])
    assert counts[1].tolist() == pytest.approx([2 * 0.3 / 1.5, 0, 1.0])


@pytest.mark.parametrize("made", [translation(20, 15, 100, skew=0.0), labelled(30, 100)])
def test_the_limit_has_2_for_the_logit_and_2_over_o_for_the_probability(made: Pairs) -> None:
    bags = theory.bags(made)
    direction = theory.centred(bags.counts)
    inputs, outputs = direction.shape
    found = theory.flow(theory.start(inputs, outputs, 100_000, seed=0), bags)
    assert theory.slope(found.logits, direction) == pytest.approx(2, rel=0.02)
    assert theory.slope(found.probabilities, direction) == pytest.approx(2 / outputs, rel=0.02)
    assert theory.relative_error(found.probabilities, 2 / outputs * direction) < 0.03
    for part in (found.through_output, found.through_embeddings):
        assert theory.slope(part, direction) == pytest.approx(1, rel=0.02)


def test_the_laws_of_the_error_hold_for_any_table() -> None:
    """Root mean square over draws, for a table with one dominant row; 5 standard errors at 2,000 draws."""
    inputs, outputs, width, draws = 6, 4, 32, 2000
    counts = np.random.default_rng(0).random((inputs, outputs)) * np.array([9, 1, 1, 1, 1, 1])[:, None]
    table = theory.centred(counts)
    whole, row = [], []
    for seed in range(draws):
        start = theory.start(inputs, outputs, width, seed=seed)
        moved = start.inputs @ table + table @ start.outputs
        whole.append(theory.relative_error(moved, 2 * table) ** 2)
        row.append(theory.relative_error(moved[0], 2 * table[0]) ** 2)
    for squares, law in ((whole, theory.width_law(inputs, outputs, width)), (row, theory.row_law(counts, 0, width))):
        assert abs(np.mean(squares) - law**2) < 5 * np.std(squares) / np.sqrt(draws)
        assert np.std(squares) / np.sqrt(draws) < 0.03 * law**2


def test_pytorchs_start_is_pytorchs() -> None:
    width = 3000  # more than one block
    start = theory.start(40, 30, width, seed=1, init="pytorch")
    torch.manual_seed(0)
    embeddings = torch.nn.Embedding(40, width).weight.detach()
    weights = torch.nn.Linear(width, 30).weight.detach()
    assert start.inputs.diagonal().mean() == pytest.approx(float((embeddings**2).sum(1).mean()), rel=0.03)
    assert start.outputs.diagonal().mean() == pytest.approx(float((weights**2).sum(1).mean()), rel=0.03)
    assert start.logits.std() == pytest.approx(float((embeddings @ weights.T).std()), rel=0.1)
    assert start.outputs.diagonal().mean() == pytest.approx(1 / 3, rel=0.03)


def test_a_start_depends_on_its_seed_and_width_alone() -> None:
    one, same = theory.start(5, 4, 64, seed=3), theory.start(5, 4, 64, seed=3)
    assert all((a == b).all() for a, b in zip(one, same, strict=True))
    assert (one.logits != theory.start(5, 4, 64, seed=4).logits).all()
    assert one.inputs.diagonal().mean() == pytest.approx(1, abs=0.3)


def test_sentences_are_predicted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    bags = theory.bags(translation(10, 8, 50, skew=1.0))
    logits = theory.start(10, 8, 16, seed=0).logits
    whole = theory.pull(bags, logits)
    monkeypatch.setattr(theory, "SENTENCES", 7)
    np.testing.assert_allclose(theory.pull(bags, logits), whole, atol=1e-12)


def test_pairs_with_an_empty_side_say_nothing() -> None:
    full = [([0, 1], [2]), ([3], [0, 1])]
    with_gaps = [full[0], ([], [1]), full[1], ([2], [])]
    np.testing.assert_array_equal(theory.bags(corpus(full)).counts, theory.bags(corpus(with_gaps)).counts)
    with pytest.raises(UserError, match="no pair with words on both sides"):
        theory.bags(corpus([([], [1]), ([2], [])]))
