"""Observing changes nothing: watched, not watched and watched twice as often, a model ends in the same bits."""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch._dynamo
from torch import Tensor, nn
from torch.nn import functional as F

import attndyn
from attndyn.watching.examples import logits_of
from attndyn.watching.tap import REGISTERED, Tap
from attndyn.watching.undisturbed import undisturbed
from tests.watching.models import Additive, Encoder, LstmClassifier, bert, padded, tokens

STEPS = 6


@pytest.fixture(autouse=True)
def _additive() -> Iterator[None]:
    attndyn.register(Additive, axes="batch key")
    yield
    REGISTERED.clear()


def classes() -> Tensor:
    return torch.tensor([0, 1, 2, 0, 1])


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[Tensor], Any], Callable[[], Tensor], dict[str, Any]]] = {
    "lstm": (LstmClassifier, lambda words: words, classes, {}),
    "encoder": (Encoder, lambda words: words, lambda: tokens().masked_fill(tokens() == 0, -100), {}),
    "bert": (bert, padded, classes, {"query": 0}),
}


def train(case: str, out: Path | None, every: int = 2) -> tuple[dict[str, Tensor], Tensor]:
    """Final weights, and the random state after training."""
    build, given, targets, options = CASES[case]
    torch.manual_seed(3)
    model = build()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    w = None
    if out is not None:
        w = attndyn.watch(
            model, given(tokens()), out=out, every=every, targets=targets(), probe=2, probes="all", **options
        )
    for step in range(STEPS):
        if w is not None:
            w.step(step)
        inputs = given(tokens(step))
        answer = logits_of(model(**inputs) if isinstance(inputs, dict) else model(inputs))
        loss = F.cross_entropy(answer.flatten(0, -2), targets().flatten())
        optimiser.zero_grad()
        loss.backward()
        if w is not None and step == 3:
            before = [parameter.grad.clone() for parameter in model.parameters()]
            w.read(step, probing=True)  # between the gradient and the update
            assert all(torch.equal(a, b.grad) for a, b in zip(before, model.parameters(), strict=True))
        optimiser.step()
    if w is not None:
        w.read(STEPS, probing=True)
    return model.state_dict(), torch.get_rng_state()


@pytest.mark.parametrize("case", CASES)
def test_the_bits_of_training_are_the_same(case: str, tmp_path: Path) -> None:
    alone, after = train(case, None)
    for name, every in (("watched", 2), ("doubled", 1)):
        weights, random_state = train(case, tmp_path / name, every)
        assert all(torch.equal(alone[key], weights[key]) for key in alone), name
        assert torch.equal(after, random_state)


def test_dropout_is_at_work_in_these_runs() -> None:
    """Otherwise the test above would not see a random state that was touched."""
    first, _ = train("encoder", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CASES, "encoder", (lambda: Encoder(dropout=0.0), *CASES["encoder"][1:]))
        second, _ = train("encoder", None)
    assert any(not torch.equal(first[key], second[key]) for key in first)


def test_flags_buffers_gradients_and_random_states_come_back() -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.register_buffer("other", torch.zeros(()))
            self.inner = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(3))
            self.frozen = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            self.other = self.other + random.random() + float(np.random.rand()) + torch.rand(())
            return self.inner(self.frozen(x))

    model = Noisy()
    model.inner[1].eval()
    model.frozen.requires_grad_(False)
    flags = [module.training for module in model.modules()]
    states = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy())
    other = model.other
    with contextlib.suppress(ZeroDivisionError), undisturbed(model):
        assert not any(module.training for module in model.modules())
        model(torch.ones(2, 3))
        assert model.calls == 1
        raise ZeroDivisionError
    assert [module.training for module in model.modules()] == flags
    assert model.calls == 0
    assert model.other is other
    assert model.other == 0
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    assert (states[2] == np.random.get_state()[1]).all()
    assert not model.frozen.weight.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_tap_leaves_no_trace_of_itself() -> None:
    model = bert()
    hooks = [(len(module._forward_hooks), len(module._forward_pre_hooks)) for module in model.modules()]
    original = F.scaled_dot_product_attention
    for fails in (False, True):
        try:
            with Tap(model):
                model(**padded(tokens()))
                if fails:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        assert model.config._attn_implementation == "sdpa"
        assert torch.backends.mha.get_fastpath_enabled()
        assert F.scaled_dot_product_attention is original
        assert hooks == [(len(module._forward_hooks), len(module._forward_pre_hooks)) for module in model.modules()]
        assert not nn.modules.module._global_forward_hooks
        assert not nn.modules.module._global_forward_pre_hooks


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # dynamo looks at inputs
@pytest.mark.parametrize(
    ("how", "backend"), [("wrapped", "eager"), ("in place", "aot_eager"), ("a part of it", "eager")]
)
def test_a_compiled_model_is_watched_and_trains_the_same(how: str, backend: str, tmp_path: Path) -> None:
    """With the same bits, and without compiling anything again. Inductor: tests/test_gpu_watch.py."""

    def run(out: Path | None) -> tuple[dict[str, Tensor], int]:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch.manual_seed(0)
        model = Encoder()
        called: Any = model
        if how == "wrapped":
            called = torch.compile(model, backend=backend)
        elif how == "in place":
            model.compile(backend=backend)
        else:
            model.encoder = torch.compile(model.encoder, backend=backend)
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        w = attndyn.watch(called, tokens(), out=out, every=1, targets=tokens(), probe=1) if out else None
        for step in range(3):
            if w:
                w.step(step)
            loss = called(tokens(step)).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if w:
            assert w.record.steps() == [0, 1, 2]
            assert [layer["module"] for layer in w.info["layers"]] == [
                f"encoder.{'_orig_mod.' if how == 'a part of it' else ''}layers.{i}.self_attn" for i in (0, 1)
            ]
        graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        assert graphs, "something was compiled"
        return model.state_dict(), graphs

    (alone, graphs), (watched, same) = run(None), run(tmp_path / "run")
    assert graphs == same
    assert all(torch.equal(alone[key], watched[key]) for key in alone)
