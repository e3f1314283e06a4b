"""What makes a GPU fast: kernels (Triton), each beside the plain PyTorch function that defines it and that runs
everywhere else, and graphs (`graph.py`) that record many launches as one."""

from importlib.util import find_spec

import torch
from torch import Tensor


def fast(tensor: Tensor) -> bool:
    """Whether the kernels can work on this tensor."""
    return tensor.is_cuda and tensor.dtype == torch.float32 and find_spec("triton") is not None
