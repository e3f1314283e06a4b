"""Watching on a GPU: the same bits of training with it and without it, and the attention that the kernels used."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import attndyn
from attndyn.watching import probes
from attndyn.watching.examples import Examples, logits_of
from attndyn.watching.rules import Cell
from attndyn.watching.tap import REGISTERED, Tap
from tests.watching.models import Additive, Encoder, LstmClassifier, bert, padded, tokens

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS repeats itself to the bit
DEVICE = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

STEPS = 6
CLASSES = torch.tensor([0, 1, 2, 0, 1])


@pytest.fixture(autouse=True)
def _additive() -> Iterator[None]:
    attndyn.register(Additive, axes="batch key")
    yield
    REGISTERED.clear()


@pytest.fixture
def deterministic() -> Iterator[None]:
    """Kernels that repeat themselves; what has no such form raises, in the model as in the watching."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def whole(words: Tensor) -> dict[str, Tensor]:
    """Without padding: the flash kernel takes no mask."""
    return {"input_ids": words.clamp_min(1)}


def flash() -> Any:
    return sdpa_kernel(SDPBackend.FLASH_ATTENTION)


@dataclass
class Case:
    build: Callable[[], nn.Module]
    given: Callable[[Tensor], Any] = padded
    targets: Tensor = field(default_factory=lambda: CLASSES)
    options: dict[str, Any] = field(default_factory=lambda: {"query": 0})
    around: Callable[[], Any] = contextlib.nullcontext
    """Training happens inside it."""
    compiled: bool = False
    scatters: bool = False
    """Generated kernels: they need not repeat themselves to the bit."""


def words_of(words: Tensor) -> Tensor:
    return words


CASES = {
    "lstm": Case(LstmClassifier, words_of, options={}),
    "encoder": Case(Encoder, words_of, tokens().masked_fill(tokens() == 0, -100), {}),
    "bert under sdpa": Case(bert),
    "bert under eager": Case(lambda: bert("eager")),
    "bert under sdpa, flash kernel, bf16": Case(lambda: bert().bfloat16(), whole, around=flash),
    "bert under sdpa, autocast": Case(bert, around=lambda: torch.autocast(DEVICE, torch.bfloat16)),
    "bert under flex attention": Case(
        lambda: bert("flex_attention", attention_probs_dropout_prob=0.0, width=32), scatters=True
    ),
    "encoder, compiled": Case(
        Encoder, words_of, tokens().masked_fill(tokens() == 0, -100), {}, compiled=True, scatters=True
    ),
    "bert under sdpa, compiled": Case(bert, compiled=True, scatters=True),
}  # fmt: skip


def train(case: Case, out: Path | None, every: int = 2) -> tuple[dict[str, Tensor], Tensor]:
    """Final weights, and the random state of the GPU after training."""
    if case.compiled:
        torch._dynamo.reset()
    torch.manual_seed(3)
    model = case.build().to(DEVICE)
    called: Any = torch.compile(model) if case.compiled else model
    targets = case.targets.to(DEVICE)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    w = None
    if out is not None:
        given = case.given(tokens())
        w = attndyn.watch(
            called, given, out=out, every=every, targets=case.targets, probe=2, probes="all", **case.options
        )
    with case.around():
        for step in range(STEPS):
            if w is not None:
                w.step(step)
            inputs = case.given(tokens(step).to(DEVICE))
            answer = logits_of(called(**inputs) if isinstance(inputs, dict) else called(inputs))
            loss = F.cross_entropy(answer.flatten(0, -2).float(), targets.flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    if w is not None:
        w.read(STEPS, probing=True)
        assert w.record.steps() == [*range(0, STEPS, every), STEPS]
        assert len(w.info["layers"]) == (1 if isinstance(model, LstmClassifier) else 2)
    state = torch.cuda.get_rng_state() if DEVICE == "cuda" else torch.get_rng_state()
    return {name: value.detach().clone() for name, value in model.state_dict().items()}, state


@pytest.mark.filterwarnings("ignore")  # of the compiler
@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("name", CASES)
def test_the_bits_of_training_are_the_same(name: str, tmp_path: Path) -> None:
    """Where training repeats itself to the bit; otherwise within what it scatters by."""
    case = CASES[name]
    try:
        alone, after = train(case, None)
    except RuntimeError as error:
        if "No available kernel" in str(error):
            pytest.skip(f"this GPU has no such attention kernel: {error}")
        raise
    again, _ = train(case, None)
    repeats = all(torch.equal(alone[key], again[key]) for key in alone)
    assert repeats or case.scatters, "plain PyTorch should repeat itself here"
    for folder, every in (("watched", 2), ("doubled", 1)):
        weights, random_state = train(case, tmp_path / folder, every)
        assert torch.equal(after, random_state), folder
        for key in alone:
            if repeats:
                assert torch.equal(alone[key], weights[key]), (folder, key)
            else:
                torch.testing.assert_close(alone[key], weights[key], rtol=1e-3, atol=1e-4)


@pytest.mark.filterwarnings("ignore")  # flex attention compiles
@pytest.mark.parametrize(
    ("attention", "dtype", "around", "close"),
    [
        ("sdpa", torch.float32, contextlib.nullcontext, {"rtol": 1e-4, "atol": 1e-5}),
        ("sdpa", torch.bfloat16, flash, {"rtol": 2e-2, "atol": 2e-2}),
        ("flex_attention", torch.float32, contextlib.nullcontext, {"rtol": 5e-3, "atol": 5e-3}),
    ],
    ids=["sdpa", "flash", "flex"],
)
def test_weights_times_values_are_what_the_kernel_gave(
    attention: str, dtype: torch.dtype, around: Any, close: dict[str, float]
) -> None:
    """The layer's own output, untapped, against the captured weights times its value projection. Flex computes in
    TF32."""
    torch.manual_seed(0)
    model = bert(attention, width=32).to(DEVICE, dtype).eval()  # on a GPU flex takes heads of 16 and more
    inputs = whole(tokens().to(DEVICE))
    with torch.no_grad(), Tap(model) as tap:
        model(**inputs)
    assert len(tap.calls) == 2
    for name, call in tap.calls.items():
        layer = model.get_submodule(name)
        seen: list[tuple[Tensor, Tensor]] = []
        handle = layer.register_forward_hook(lambda module, args, output, seen=seen: seen.append((args[0], output[0])))
        try:
            with torch.no_grad(), around():
                model(**inputs)
        except RuntimeError as error:
            if "No available kernel" in str(error):
                pytest.skip(f"this GPU has no such attention kernel: {error}")
            raise
        finally:
            handle.remove()
        hidden, output = seen[0]
        values = layer.value(hidden).unflatten(-1, (2, -1)).transpose(1, 2).float()
        expected = (call.weights @ values).transpose(1, 2).flatten(2)
        torch.testing.assert_close(output.float(), expected, **close)
        torch.testing.assert_close(call.weights.sum(dim=-1), torch.ones_like(call.weights[..., 0]))


def test_the_gpu_reads_what_the_cpu_reads(tmp_path: Path) -> None:
    """Every number of a reading: α, Δ, β and how they agree."""
    found = []
    for device in ("cpu", DEVICE):
        torch.manual_seed(0)
        model = bert().to(device).eval()  # no dropout: `read` is called without what `watch` puts around it
        w = attndyn.watch(
            model, padded(tokens()), out=tmp_path / device.replace(":", ""), targets=CLASSES, query=0, probe=3
        )
        rows, tensors = w.reader.read(0, probing=True)
        found.append(({row[:4]: row.value for row in rows}, tensors))
        w._open.close()
    (here, maps), (there, others) = found
    assert here.keys() == there.keys()
    for key, tensor in maps.items():
        # the words' map has leave-one-out as a share of the largest: losses near 1.1 that differ by 1e-3 at most, and
        # so 1e-4 of it are single bits of fp32
        torch.testing.assert_close(
            tensor.cpu(),
            others[key].cpu(),
            rtol=1e-3,
            atol=1e-4 if key != "2.alpha" else 2e-3,
            equal_nan=True,
            msg=lambda said, key=key: f"{key}: {said}",
        )
    for key in here:
        if key[3] in ("entropy", "sharpness", "distance", "β highest", "probability of the right output"):
            assert there[key] == pytest.approx(here[key], rel=1e-3), key


def test_beta_is_the_intervention_by_a_context_manager() -> None:
    """An intervention at one layer, on the GPU, is the intervention by a context manager."""
    torch.manual_seed(0)
    model = bert().to(DEVICE).eval()
    words = tokens(1)
    examples = Examples(padded(words), CLASSES)
    with torch.no_grad(), Tap(model) as tap:
        examples.run(model)
    calls = dict(tap.calls)
    beta = probes.lexical(model, examples, Cell(1, None, 0), calls)
    one_hot = torch.eye(words.shape[1])[2]
    with torch.no_grad(), attndyn.attention(model, attndyn.given(one_hot), layer=list(calls)[1], query=0):
        expected = examples.right(examples.run(model))
    torch.testing.assert_close(beta[1:, :, 2], expected[1:], rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore:no page yet")  # where altair is not installed
@pytest.mark.usefixtures("deterministic")
def test_the_trainer_ends_in_the_same_bits(tmp_path: Path) -> None:
    from transformers import Trainer, TrainingArguments, set_seed

    def collate(rows: list[int]) -> dict[str, Tensor]:
        return {**padded(tokens(sum(rows))[: len(rows)]), "labels": CLASSES[: len(rows)]}

    def run(callback: Any) -> dict[str, Tensor]:
        set_seed(1)
        model = bert()
        arguments = TrainingArguments(
            str(tmp_path / "trainer"), max_steps=6, per_device_train_batch_size=4, report_to=[], save_strategy="no",
            disable_tqdm=True, dataloader_pin_memory=False, logging_strategy="no", learning_rate=1e-2,
            use_cpu=DEVICE == "cpu",
        )  # fmt: skip
        trainer = Trainer(model, arguments, train_dataset=list(range(24)), data_collator=collate)
        if callback is not None:
            trainer.add_callback(callback)
        trainer.train()
        return model.state_dict()

    alone = run(None)
    watched = run(
        attndyn.hf.WatchCallback(padded(tokens()), tmp_path / "run", 2, targets=CLASSES, query=0, probe=2, probes="all")
    )
    assert next(iter(alone.values())).device.type == DEVICE
    assert all(torch.equal(alone[key], watched[key]) for key in alone)
    assert attndyn.Run(tmp_path / "run").info["status"] == "finished"
