"""A measurement in the middle of training that training cannot notice."""

import contextlib
import random
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn


@contextlib.contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """The model is in evaluation mode inside; afterwards the training flag of every module, every buffer and the random
    states of torch (CPU and CUDA), NumPy and Python are as they were. Gradients are nobody's business here: whoever
    measures inside takes them with `torch.autograd.grad`, which leaves `.grad` alone."""
    training = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer._version, buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    cpu, cuda = torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    python, numpy = random.getstate(), np.random.get_state()
    try:
        for module, _ in training:
            module.training = False  # not eval(): a model may have its own, with other effects
        device = next((parameter.device.type for parameter in model.parameters()), "cpu")
        with torch.autocast(device, enabled=False), as_written():
            yield
    finally:
        for module, flag in training:
            module.training = flag
        for module, name, buffer, version, value in buffers:
            module._buffers[name] = buffer
            if buffer._version != version:
                with torch.no_grad():
                    buffer.copy_(value)
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        random.setstate(python)
        np.random.set_state(numpy)


@contextlib.contextmanager
def as_written() -> Iterator[None]:
    """Models run as they were written: in a compiled graph, or in the one fused kernel that `nn.TransformerEncoder`
    takes in evaluation mode, no attention can be read or replaced."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        # Without dynamo nothing is compiled, and importing it takes seconds.
        if "torch._dynamo" not in sys.modules:
            yield
            return
        with warnings.catch_warnings(), torch.compiler.set_stance("force_eager"):
            # A compiled part of a model tells a tap of itself and of what is inside; the inner one is asked.
            warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global hooks")
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def bare(model: nn.Module) -> nn.Module:
    """The module inside `torch.compile`, `DataParallel` and `DistributedDataParallel`."""
    while True:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        elif hasattr(model, "_orig_mod"):
            model = model._orig_mod  # type: ignore[assignment]
        else:
            return model
