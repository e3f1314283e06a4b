"""What is captured is the attention that the model used."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import flex_attention

import attndyn
from attndyn.models import Learned, Seq2Seq, Uniform
from attndyn.tasks import Permutations
from attndyn.tasks.sampler import CopySampler
from attndyn.watching.tap import REGISTERED, Tap
from tests.watching.models import (
    LENGTH,
    WIDTH,
    Additive,
    Encoder,
    LstmClassifier,
    LstmTranslator,
    bert,
    gpt2,
    padded,
    tokens,
)


@pytest.fixture(autouse=True)
def _registry() -> Iterator[None]:
    yield
    REGISTERED.clear()


def captured(model: nn.Module, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
    model.eval()
    with torch.no_grad(), Tap(model) as tap:
        answer = model(*args, **kwargs)
    return answer, dict(tap.calls)


@pytest.mark.parametrize(
    ("build", "attention"),
    [(bert, "sdpa"), (bert, "eager"), (bert, "flex_attention"), (gpt2, "sdpa"), (gpt2, "eager")],
)
def test_hugging_face_weights_are_those_of_eager_attention(build: Callable[..., nn.Module], attention: str) -> None:
    torch.manual_seed(0)
    model, plain = build(attention), build("eager")
    plain.load_state_dict(model.state_dict())
    inputs = padded(tokens())
    answer, calls = captured(model, **inputs)
    with torch.no_grad():
        expected = plain.eval()(**inputs, output_attentions=True)
        # flex_attention compiles for minutes on a CPU: tests/test_gpu_watch.py
        untouched = expected if attention == "flex_attention" else model(**inputs)
    real = inputs["attention_mask"].bool()
    for call, weights in zip(calls.values(), expected.attentions, strict=True):
        rows = real[:, None, :, None].expand_as(weights)
        torch.testing.assert_close(call.weights[rows], weights[rows])
        torch.testing.assert_close(call.weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
        assert not call.weights[~call.mask].any()
    where = real if answer.logits.ndim == 3 else slice(None)
    torch.testing.assert_close(answer.logits[where], untouched.logits[where])


def test_weights_times_values_are_the_layers_output() -> None:
    """BERT under sdpa, untapped, against the captured weights times the layer's own value projection."""
    torch.manual_seed(0)
    model, inputs = bert("sdpa").eval(), padded(tokens())
    _, calls = captured(model, **inputs)
    for name, call in calls.items():
        layer = model.get_submodule(name)
        seen: list[tuple[Tensor, Tensor]] = []
        handle = layer.register_forward_hook(lambda module, args, output, seen=seen: seen.append((args[0], output[0])))
        with torch.no_grad():
            model(**inputs)
        handle.remove()
        hidden, output = seen[0]
        values = layer.value(hidden).unflatten(-1, (2, -1)).transpose(1, 2)
        expected = (call.weights @ values).transpose(1, 2).flatten(2)
        torch.testing.assert_close(expected, output, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 8, "vdim": 8}]
)
@pytest.mark.parametrize("masks", ["none", "padding", "causal", "both"])
def test_multihead_attention_weights_and_output(options: dict[str, Any], masks: str) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(WIDTH, 4, batch_first=True, **options).eval()
    query = torch.randn(3, LENGTH, WIDTH)
    key = torch.randn(3, LENGTH, options.get("kdim", WIDTH))
    named: dict[str, Any] = {}
    if masks in ("padding", "both"):
        named["key_padding_mask"] = torch.arange(LENGTH).expand(3, -1) >= torch.tensor([[3], [LENGTH], [5]])
    if masks in ("causal", "both"):
        named["attn_mask"] = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    with torch.no_grad():
        output, weights = layer(query, key, key, average_attn_weights=False, **named)
    for wanted in (True, False):
        (seen, shown), calls = captured(layer, query, key, key, need_weights=wanted, **named)
        torch.testing.assert_close(calls["MultiheadAttention"].weights, weights)
        torch.testing.assert_close(seen, output)
        assert (shown is None) == (not wanted)
        if wanted:
            torch.testing.assert_close(shown, weights.mean(dim=1))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")  # of the fast path it is compared with
def test_the_encoder_does_not_hide_behind_its_fast_path() -> None:
    torch.manual_seed(0)
    model, words = Encoder().eval(), tokens()
    model.requires_grad_(False)
    fast = model(words)
    answer, calls = captured(model, words)
    assert list(calls) == ["encoder.layers.0.self_attn", "encoder.layers.1.self_attn"]
    torch.testing.assert_close(answer[words > 0], fast[words > 0], rtol=1e-4, atol=1e-5)
    assert not calls["encoder.layers.0.self_attn"].weights[0, :, :, 4:].any(), "padding gets nothing"


def test_cross_attention_of_the_decoder_is_found() -> None:
    model = nn.Transformer(WIDTH, 2, 1, 1, 32, batch_first=True)
    _, calls = captured(model, torch.randn(2, 6, WIDTH), torch.randn(2, 4, WIDTH))
    assert {name: [*call.weights.shape] for name, call in calls.items()} == {
        "encoder.layers.0.self_attn": [2, 2, 6, 6],
        "decoder.layers.0.self_attn": [2, 2, 4, 4],
        "decoder.layers.0.multihead_attn": [2, 2, 4, 6],
    }


class Direct(nn.Module):
    """Calls the function itself, with three axes and grouped keys."""

    def __init__(self, twice: bool = False) -> None:
        super().__init__()
        self.twice = twice

    def forward(self, x: Tensor) -> Tensor:
        x = F.scaled_dot_product_attention(x, x, x, is_causal=True)
        return F.scaled_dot_product_attention(x, x, x, scale=0.1) if self.twice else x


def test_a_module_that_calls_the_function_itself() -> None:
    x = torch.randn(2, 5, 8)
    answer, calls = captured(Direct(), x)
    torch.testing.assert_close(answer, Direct()(x))
    scores = (x @ x.mT / 8**0.5).masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf)
    torch.testing.assert_close(calls["Direct"].weights[:, 0], scores.softmax(dim=-1))
    _, calls = captured(Direct(twice=True), x)
    assert list(calls) == ["Direct", "Direct (call 2)"], "a second call with queries is another layer"


def test_a_registered_module_and_its_calls_as_queries() -> None:
    attndyn.register(Additive, axes="batch key")
    words, target = tokens(), tokens(1)[:, :3]
    model = LstmTranslator().eval()
    seen: list[Tensor] = []
    handle = model.attention.register_forward_hook(lambda module, args, output: seen.append(output[1]))
    expected = model(words, target)
    handle.remove()
    answer, calls = captured(model, words, target)
    torch.testing.assert_close(answer, expected)
    torch.testing.assert_close(calls["attention"].weights, torch.stack(seen, dim=1)[:, None])
    assert calls["attention"].mask[0, 0, 0].tolist() == [True] * 4 + [False] * 3


def test_a_module_that_can_only_be_read() -> None:
    attndyn.register(Additive, axes="batch key", read=lambda module, inputs, output: output[1])
    model, words = LstmClassifier(), tokens()
    _, calls = captured(model, words)
    torch.testing.assert_close(calls["attention"].weights.sum(dim=-1), torch.ones(5, 1, 1))
    with pytest.raises(attndyn.UserError, match="can be read only"), attndyn.attention(model, attndyn.uniform()):
        model(words)


@pytest.mark.parametrize("rule", [Learned(), Uniform()])
def test_our_own_models_show_the_rule_they_were_called_with(rule: Any) -> None:
    task = Permutations(5)
    batch = CopySampler(task, [0]).evaluation(4)
    model = Seq2Seq(hidden=8).build(len(task.tokens), [0])
    (logits, alpha), calls = captured(model, batch, rule)
    torch.testing.assert_close(calls["Seq2SeqModel"].weights, alpha[0])
    torch.testing.assert_close(logits, model(batch, rule)[0])


class Flex(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        heads = x.unflatten(-1, (2, -1)).transpose(1, 2)
        return flex_attention(heads, heads, heads)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_that_is_called_directly_raises(tmp_path: Any) -> None:
    with pytest.raises(attndyn.UserError, match="no attention could be read in Flex"):
        attndyn.watch(Flex(), torch.randn(2, 4, 8), out=tmp_path / "run")


def test_nothing_captured_raises_and_says_why(tmp_path: Any) -> None:
    with pytest.raises(
        attndyn.UserError, match=r"a softmax runs in attention \(Additive\).*attndyn.register\(Additive\)"
    ):
        attndyn.watch(LstmClassifier(), tokens(), out=tmp_path / "run")
    with pytest.raises(attndyn.UserError, match="no attention could be read in Linear"):
        attndyn.watch(nn.Linear(3, 3), torch.ones(2, 3), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("kind", "axes", "said"),
    [
        (3, "batch key", "class of a module"),
        (Additive, "batch", "axes are"),
        (Additive, "batch key key", "axes are"),
        (Additive, "batch word key", "axes are"),
    ],
)
def test_a_wrong_registration_says_so(kind: Any, axes: str, said: str) -> None:
    with pytest.raises(attndyn.UserError, match=said):
        attndyn.register(kind, axes)


def test_axes_that_do_not_fit_say_so() -> None:
    attndyn.register(Additive, axes="batch key query")
    with pytest.raises(attndyn.UserError, match="registered with the axes 'batch key query'"):
        captured(LstmClassifier(), tokens())
