"""Δ and β of foreign models against their definitions, one example and one position at a time."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attndyn
from attndyn.models import Classifier, Learned, Seq2Seq
from attndyn.probes.lexical import lexical_probe
from attndyn.tasks import Permutations
from attndyn.tasks.sampler import Batch, CopySampler
from attndyn.watching import probes
from attndyn.watching.examples import Examples
from attndyn.watching.rules import Cell, only
from attndyn.watching.tap import REGISTERED, Tap
from tests.watching.models import (
    BATCH,
    LENGTH,
    Additive,
    Encoder,
    LstmClassifier,
    LstmTranslator,
    bert,
    gpt2,
    padded,
    tokens,
)

CLASSES = torch.tensor([0, 1, 2, 0, 1])


@pytest.fixture(autouse=True)
def _additive() -> Iterator[None]:
    attndyn.register(Additive, axes="batch key")
    yield
    REGISTERED.clear()


def calls_of(model: nn.Module, examples: Examples) -> dict[str, Any]:
    with torch.no_grad(), Tap(model) as tap:
        examples.run(model)
    return dict(tap.calls)


@pytest.mark.parametrize("reading", ["code", "text"])
def test_beta_by_intervention_is_the_closed_form_of_our_own_model(reading: Any) -> None:
    task = Permutations(6)
    batch = CopySampler(task, [0]).evaluation(5)
    model = Seq2Seq(hidden=8, reading=reading).build(len(task.tokens), [0]).eval()
    closed = lexical_probe(model, model.encode(batch), batch.target)[0]
    examples = Examples((batch, Learned()), batch.target, batch_axis=1)
    beta = probes.lexical(model, examples, Cell(0), calls_of(model, examples))
    torch.testing.assert_close(beta, closed)


@pytest.mark.parametrize("scoring", ["network", "linear"])
@pytest.mark.parametrize("outputs", [2, 3])
def test_beta_by_intervention_is_the_closed_form_of_our_own_classifier(scoring: Any, outputs: int) -> None:
    """Texts of different lengths: β is softmax(γ_l) at the right class, and there is none at padding."""
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(9, (1, 4, 6), generator=generator)
    mask = torch.arange(6) < torch.tensor([6, 3, 1, 5])[:, None]
    target = torch.randint(outputs, (1, 4, 1), generator=generator)
    batch = Batch(source, torch.zeros_like(target), target, torch.zeros_like(target), mask[None])
    model = Classifier(width=5, hidden=4, scoring=scoring).build(9, (0,), outputs).eval()
    with torch.no_grad():
        closed = lexical_probe(model, model.encode(batch), target)[0]
    examples = Examples((batch, Learned()), target, batch_axis=1)
    beta = probes.lexical(model, examples, Cell(0), calls_of(model, examples))
    torch.testing.assert_close(beta, closed.masked_fill(~mask[:, None], torch.nan), equal_nan=True)


def test_beta_of_bert_is_the_layer_with_one_hot_attention() -> None:
    """Against a hook that replaces the layer's output at the first query by the value of one word."""
    torch.manual_seed(0)
    model, words = bert().eval(), tokens()
    examples = Examples(padded(words), CLASSES)
    beta = probes.lexical(model, examples, Cell(1, None, 0), calls_of(model, examples))
    layer = model.bert.encoder.layer[1].attention.self
    for example, position in ((0, 1), (2, 6), (4, 0)):

        def hook(module: nn.Module, args: Any, output: Any, position: int = position) -> Any:
            mixed = output[0].clone()
            mixed[:, 0] = module.value(args[0])[:, position]
            return mixed, output[1]

        handle = layer.register_forward_hook(hook)
        with torch.no_grad():
            one = model(**padded(words[example : example + 1])).logits.softmax(dim=-1)
        handle.remove()
        torch.testing.assert_close(beta[example, 0, position], one[0, CLASSES[example]])
    assert beta[0, 0].isnan().tolist() == [False] * 4 + [True] * 3, "no probe at padding"


def test_beta_of_one_head_leaves_the_other_alone() -> None:
    torch.manual_seed(0)
    model, examples = bert().eval(), Examples(padded(tokens()), CLASSES)
    calls = calls_of(model, examples)
    heads = [probes.lexical(model, examples, Cell(1, head, 0), calls) for head in (0, 1)]
    whole = probes.lexical(model, examples, Cell(1, None, 0), calls)
    assert not torch.allclose(heads[0], heads[1], equal_nan=True)
    layer = model.bert.encoder.layer[1].attention.self

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        mixed = output[0].clone()
        mixed[:, 0, 8:] = module.value(args[0])[:, 2, 8:]  # the second of two heads of width 8
        return mixed, output[1]

    handle = layer.register_forward_hook(hook)
    with torch.no_grad():
        right = examples.right(model(**padded(tokens())))
    handle.remove()
    torch.testing.assert_close(heads[1][:, :, 2], right)
    assert not torch.allclose(heads[1], whole, equal_nan=True)


def test_beta_under_a_causal_mask_does_not_look_ahead() -> None:
    torch.manual_seed(0)
    words = tokens(1).clamp_min(1)
    words[0] = 3
    targets = torch.cat([words[:, 1:], torch.full((BATCH, 1), -100)], dim=1)
    model, examples = gpt2().eval(), Examples(padded(words), targets)
    beta = probes.lexical(model, examples, Cell(1), calls_of(model, examples))
    ahead = torch.ones(LENGTH, LENGTH).triu(1).bool()
    assert beta[:, ahead].isnan().all()
    assert beta[:, -1].isnan().all(), "the last position has no target"
    assert beta[:, :-1][:, ~ahead[:-1]].isfinite().all()


def test_beta_of_a_module_that_is_called_for_each_query() -> None:
    torch.manual_seed(0)
    words, target = tokens(), tokens(1)[:, :3]
    model = LstmTranslator().eval()
    examples = Examples((words, target), target)
    beta = probes.lexical(model, examples, Cell(0), calls_of(model, examples))
    with torch.no_grad(), attndyn.attention(model, attndyn.given(torch.eye(LENGTH)[2])):
        expected = model(words, target).softmax(dim=-1).gather(-1, target[..., None])[..., 0]
    torch.testing.assert_close(beta[1:, :, 2], expected[1:])
    at_one = probes.lexical(model, examples, Cell(0, None, 1), calls_of(model, examples))
    with torch.no_grad():
        untouched = examples.right(model(words, target))
    torch.testing.assert_close(at_one[:, 0, 0], untouched[:, 0])
    assert not torch.allclose(at_one[:, 1, 0], untouched[:, 1])


def test_a_rule_at_one_query_or_head_leaves_the_others_alone() -> None:
    torch.manual_seed(0)
    words, target = tokens(1), tokens(1)[:, :3]
    cases: list[tuple[nn.Module, Any, tuple[Any, ...]]] = [
        (LstmTranslator(), (words, target), (BATCH, 1, 3, LENGTH)),  # calls its attention once for each query
        (bert(), padded(words), (BATCH, 2, LENGTH, LENGTH)),
    ]
    for model, inputs, shape in cases:
        examples = Examples(inputs)
        learned = calls_of(model.eval(), examples)
        layer = list(learned)[-1]
        weights = torch.softmax(torch.randn(shape), dim=-1)
        for head, query in ((None, 1), (shape[1] - 1, None), (0, 2)):
            with torch.no_grad(), Tap(model, only(attndyn.given(weights), Cell(layer, head, query))) as tap:
                examples.run(model)
            expected = learned[layer].weights.clone()
            at = (slice(None), slice(None) if head is None else head, slice(None) if query is None else query)
            expected[at] = weights[at]
            torch.testing.assert_close(tap.calls[layer].weights, expected)


def test_the_gradient_against_finite_differences() -> None:
    torch.manual_seed(0)
    model, words = LstmClassifier().double().eval(), tokens()
    examples = Examples(words, CLASSES)
    delta = probes.gradient(model, examples, model.embedding)
    step = 1e-5

    def moved(example: int, position: int, axis: int, by: float) -> float:
        def change(vectors: Tensor) -> Tensor:
            vectors = vectors.clone()
            vectors[example, position, axis] += by
            return vectors

        with torch.no_grad(), probes.embedded(model.embedding, change):
            return examples.right(model(words))[example, 0].item()

    for example, position in ((1, 0), (3, 5)):
        slope = [
            (moved(example, position, axis, step) - moved(example, position, axis, -step)) / (2 * step)
            for axis in range(model.embedding.weight.shape[1])
        ]
        assert delta[example, 0, position].item() == pytest.approx(torch.tensor(slope).norm().item(), rel=1e-4)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")  # the fast path of evaluation mode
@pytest.mark.parametrize("batch_first", [True, False])
def test_leaving_out_is_a_zero_vector_one_at_a_time(batch_first: bool) -> None:
    torch.manual_seed(0)
    model, words = Encoder(batch_first=batch_first).eval(), tokens(2).clamp_min(1)
    given, targets = (words, words) if batch_first else (words.T, words.T)
    examples = Examples(given, targets, batch_axis=0 if batch_first else 1)
    with torch.no_grad():
        right = model(given).softmax(dim=-1)
        delta = probes.leave_one_out(model, examples, model.embedding, words > 0, examples.right(model(given)))
        for position in (0, 4):

            def change(vectors: Tensor, position: int = position) -> Tensor:
                vectors = vectors.clone()
                (vectors if batch_first else vectors.transpose(0, 1))[:, position] = 0
                return vectors

            with probes.embedded(model.embedding, change):
                without = model(given).softmax(dim=-1)
            change_of_p = (right - without).abs().gather(-1, targets[..., None])[..., 0]
            expected = change_of_p if batch_first else change_of_p.T
            torch.testing.assert_close(delta[:, :, position], expected, rtol=1e-4, atol=1e-6)


def test_padding_is_invisible_to_the_probes() -> None:
    """The padded first example alone, without its padding, has the same β and Δ."""
    torch.manual_seed(0)
    model, words = bert().eval(), tokens()
    alone = words[:1, :4]
    both = []
    for some, targets in ((words, CLASSES), (alone, CLASSES[:1])):
        examples = Examples(padded(some), targets)
        embedding = model.get_input_embeddings()
        beta = probes.lexical(model, examples, Cell(0, None, 0), calls_of(model, examples))
        left = probes.leave_one_out(model, examples, embedding, some > 0, examples.right(examples.run(model)).detach())
        slope = probes.gradient(model, examples, embedding)
        both.append([each[0, 0, :4] for each in (beta, left, slope)])
    for padded_one, plain in zip(*both, strict=True):
        torch.testing.assert_close(padded_one, plain, rtol=1e-3, atol=1e-6)


def test_the_embedding_is_one_that_runs() -> None:
    """BART names the weights that its encoder and decoder share, in a module that nobody calls."""
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(
        vocab_size=20, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=16, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None,
    )  # fmt: skip
    model, words = BartForConditionalGeneration(config).eval(), tokens(1)
    examples = Examples({"input_ids": words, "decoder_input_ids": words[:, :3]}, words[:, :3])
    embedding = probes.find_embedding(model, examples)
    assert embedding is model.model.encoder.embed_tokens
    assert probes.gradient(model, examples, embedding).shape == (BATCH, 3, LENGTH)
    with pytest.raises(attndyn.UserError, match="does not run when the model does"):
        probes.find_embedding(model, examples, "model.shared")


@pytest.mark.parametrize("wrong", [-0.5, float("nan"), float("inf")])
def test_given_attention_is_no_weight_below_0_and_finite(wrong: float) -> None:
    with pytest.raises(attndyn.UserError, match="weights of at least 0, and finite"):
        attndyn.given(torch.tensor([[0.5, wrong]]))


def test_uniform_and_given_attention() -> None:
    torch.manual_seed(0)
    model, words = bert().train(), tokens()
    weights = torch.softmax(torch.randn(BATCH, 1, LENGTH, LENGTH), dim=-1)
    for rule, name, expected in (
        (attndyn.uniform(), None, None),
        (attndyn.given(weights), "bert.encoder.layer.1.attention.self", weights),
    ):
        with attndyn.attention(model, rule, layer=name), Tap(model) as outer:
            model(**padded(words)).logits.sum().backward()
        assert outer.calls, "an inner tap still sees the layers"
        with attndyn.attention(model, rule, layer=name):
            seen = model(**padded(words), output_attentions=True).attentions
        if expected is None:
            counts = (words > 0).sum(dim=1)
            want = ((words > 0) / counts[:, None])[:, None, None].expand(BATCH, 2, LENGTH, LENGTH)
            torch.testing.assert_close(seen[0], want)
            torch.testing.assert_close(seen[1], want)
        else:
            torch.testing.assert_close(seen[1], expected.expand(BATCH, 2, LENGTH, LENGTH))
            assert not torch.allclose(seen[0], seen[1])
    assert all(parameter.grad is not None for parameter in model.bert.encoder.layer[1].output.parameters())


def test_training_under_uniform_attention_moves_no_query() -> None:
    torch.manual_seed(0)
    model = bert().train()
    with attndyn.attention(model, attndyn.uniform()):
        model(**padded(tokens()), labels=CLASSES).loss.backward()
    attention = model.bert.encoder.layer[0].attention.self
    assert attention.query.weight.grad is None or not attention.query.weight.grad.any()
    assert attention.value.weight.grad.any()


def test_mistakes_in_an_intervention_say_so() -> None:
    def under(rule: Any, **where: Any) -> None:
        model = bert().eval()
        with attndyn.attention(model, rule, **where):
            model(**padded(tokens()))

    with pytest.raises(attndyn.UserError, match=r"did you mean 'bert\.encoder\.layer\.1\.attention\.self'"):
        under(attndyn.uniform(), layer="bert.encoder.layer.1.attention.slef")
    with pytest.raises(attndyn.UserError, match=r"shape \[3, 3\] does not fit"):
        under(attndyn.given(torch.eye(3)))
    with pytest.raises(attndyn.UserError, match=r"no attention ran in 'classifier'"):
        under(attndyn.uniform(), layer="classifier")
    with pytest.raises(attndyn.UserError, match="there are 7 queries, so there is no query 9"):
        under(attndyn.uniform(), query=9)
    plain = nn.Linear(2, 2)
    with (
        pytest.raises(attndyn.UserError, match="no attention ran in Linear"),
        attndyn.attention(plain, attndyn.uniform()),
    ):
        plain(torch.ones(1, 2))
    with pytest.raises(attndyn.UserError, match="has 2 heads, so there is no head 7"):
        under(attndyn.uniform(), head=7)
