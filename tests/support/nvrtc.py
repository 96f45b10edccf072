"""Kernels compiled by NVRTC, CUDA's compiler, for any GPU and without one."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from paths import kept

from gpuforest.backends.cuda.source import OPTIONS

# what CuPy adds to a user's options
CUPY_ADDS = ("-ftz=true", "--device-as-default-execution-space")


@dataclass(frozen=True)
class Kernel:
    name: str
    registers: int
    shared: int  # bytes of static shared memory
    threads: int  # of a block at the most, as promised by __launch_bounds__; 0: not promised
    blocks: int  # of a processor at the least, also promised
    sass: str


@dataclass(frozen=True)
class Compiled:
    """A module: its kernels, and what the compilers said."""

    log: str
    ptx: str
    kernels: list[Kernel]


def why_not() -> str | None:
    needs = "needs pip install 'gpuforest[test-cuda]'"
    if not all(find_spec(name) for name in ("cuda", "cuda.bindings", "cuda.pathfinder")):
        return needs
    from cuda import pathfinder

    try:
        pathfinder.load_nvidia_dynamic_lib("nvrtc")
    except pathfinder.DynamicLibNotFoundError:
        return needs
    return None if pathfinder.find_nvidia_binary_utility("nvdisasm") else needs


def compiled(source: str, architecture: str, macros: dict[str, str]) -> Compiled:
    """The module as the backend compiles it, for a GPU such as sm_90; the same text is compiled
    once by each release of the compiler."""
    options = [*OPTIONS, *CUPY_ADDS, *(f"-D{name}={value}" for name, value in macros.items())]
    options += [f"-arch={architecture}", "--ptxas-options=-v"]
    key = "\0".join([release(), version("nvidia-cuda-nvdisasm"), source, *options])
    file = kept("nvrtc") / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.pickle"
    if file.exists():
        result: Compiled = pickle.loads(file.read_bytes())
        return result
    result = _compiled(source, options)
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(pickle.dumps(result))
    fresh.replace(file)
    return result


@cache
def release() -> str:
    from cuda.bindings import nvrtc

    return f"{os.environ.get('GPUFOREST_NVRTC', '')} {nvrtc.nvrtcVersion()}"


def _compiled(source: str, options: list[str]) -> Compiled:
    from cuda.pathfinder import load_nvidia_dynamic_lib

    library = load_nvidia_dynamic_lib("nvrtc").abs_path
    said, ptx, cubin = compiled_by(library, source, options, ("ProgramLog", "PTX", "CUBIN"))
    log, text = (part.decode().rstrip("\0") for part in (said, ptx))
    return Compiled(log, text, kernels_of(log, text, sass_of(cubin)))


def compiled_by(
    library: str, source: str, options: list[str], wanted: tuple[str, ...]
) -> list[bytes]:
    """What a library of NVRTC makes of a text, by the names in its C interface."""
    nvrtc, program = ctypes.CDLL(library), ctypes.c_void_p()
    encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))

    def read(what: str) -> bytes:
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw

    arguments = ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None
    assert nvrtc.nvrtcCreateProgram(*arguments) == 0
    try:
        assert nvrtc.nvrtcCompileProgram(program, len(options), encoded) == 0, read("ProgramLog")
        return [read(what) for what in wanted]
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def sass_of(cubin: bytes) -> dict[str, str]:
    """Instructions by kernel, with those of the functions that it calls."""
    from cuda.pathfinder import find_nvidia_binary_utility

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(cubin)
        command = [str(find_nvidia_binary_utility("nvdisasm")), "-c", "-ndf", str(path)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    _, *parts = re.split(r"^\s*\.section\s+\.text\.(\w+),", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def kernels_of(log: str, ptx: str, sass: dict[str, str]) -> list[Kernel]:
    _, *parts = re.split(r"Compiling entry function '(\w+)'", log)
    said = dict(zip(parts[::2], parts[1::2], strict=True))
    _, *parts = re.split(r"^\.visible \.entry (\w+)\(", ptx, flags=re.MULTILINE)

    def number(pattern: str, text: str) -> int:
        match = re.search(pattern, text)
        return int(match[1]) if match else 0

    return [
        Kernel(
            name, number(r"Used (\d+) registers", info), number(r"(\d+) bytes smem", info),
            number(r"\.maxntid (\d+)", text), number(r"\.minnctapersm (\d+)", text), sass[name],
        )
        for name, text in zip(parts[::2], parts[1::2], strict=True)
        for info in [said[name]]
    ]  # fmt: skip
