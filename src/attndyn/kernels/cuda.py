"""CUDA C++ source, compiled while the program runs by the compiler that comes with PyTorch (NVRTC)."""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

SHARED_MEMORY = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""

Launch = Callable[[Sequence[int], int, int, Sequence[Tensor | int | None]], None]


class Unavailable(Exception):
    """There is no compiler, or it refuses the source."""


@cache
def compiled(path: Path, name: str, numbers: tuple[tuple[str, int], ...], capability: tuple[int, int]) -> Launch:
    """The kernel `name` of a source file, as a function of grid, threads, bytes of shared memory and arguments, which
    launches it on the current stream. `numbers` are defined in the source."""
    return _loaded(_binary(path, numbers, capability), name)


@cache
def _binary(path: Path, numbers: tuple[tuple[str, int], ...], capability: tuple[int, int]) -> bytes:
    compiler = _compiler()
    program = ctypes.c_void_p()
    source = path.read_bytes()
    if compiler.nvrtcCreateProgram(ctypes.byref(program), source, path.name.encode(), 0, None, None):
        raise Unavailable("NVRTC cannot take the source")
    try:
        words = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}", "--std=c++17"]
        words += [f"-D{key}={value}" for key, value in numbers]
        options = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        if compiler.nvrtcCompileProgram(program, len(words), options):
            size = ctypes.c_size_t()
            compiler.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            compiler.nvrtcGetProgramLog(program, log)
            raise Unavailable(log.value.decode(errors="replace"))
        size = ctypes.c_size_t()
        compiler.nvrtcGetCUBINSize(program, ctypes.byref(size))
        binary = ctypes.create_string_buffer(size.value)
        compiler.nvrtcGetCUBIN(program, binary)
        return binary.raw
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


def _compiler() -> Any:
    major = str(torch.version.cuda).split(".")[0]
    beside = Path(torch.__file__).parent.parent / "nvidia"  # where pip puts it
    found = [*beside.glob(f"cu{major}/lib/libnvrtc.so*"), *beside.glob("cuda_nvrtc/lib/libnvrtc.so*")]
    for name in (f"libnvrtc.so.{major}", "libnvrtc.so", *(str(path) for path in found)):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise Unavailable("there is no libnvrtc")


def _loaded(binary: bytes, name: str) -> Launch:
    torch.cuda.current_stream()  # makes sure that there is a context
    driver, module, kernel = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
    if driver.cuModuleLoadData(ctypes.byref(module), binary):
        raise Unavailable("the driver does not take what NVRTC compiled")
    if driver.cuModuleGetFunction(ctypes.byref(kernel), module, name.encode()):
        raise Unavailable(f"there is no kernel {name}")
    allowed = 48 * 1024

    def launch(grid: Sequence[int], threads: int, shared: int, arguments: Sequence[Tensor | int | None]) -> None:
        nonlocal allowed
        if shared > allowed:
            if driver.cuFuncSetAttribute(kernel, SHARED_MEMORY, shared):
                raise RuntimeError(f"{name} cannot have {shared} bytes of shared memory")
            allowed = shared
        values = [
            ctypes.c_int(value)
            if isinstance(value, int)
            else ctypes.c_void_p(None if value is None else value.data_ptr())
            for value in arguments
        ]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        wide = [*grid, 1, 1][:3]
        code = driver.cuLaunchKernel(kernel, *wide, threads, 1, 1, shared, stream, pointers, None)
        if code:
            raise RuntimeError(f"{name} could not be launched: CUDA error {code}")

    return launch
