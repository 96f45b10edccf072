"""The kernels' text compiled to PTX by other compilers than the installed one: those of CUDA 12 and
13.0, which refuse what later ones take. `.ci/nvrtc` installs them, and names their libraries in the
environment variable GPUFOREST_NVRTC."""

import ctypes
import os
from pathlib import Path

import nvrtc
import pytest
from cuda_on_cpu.build import kernels_in
from cuda_variants import MACROS, variants

from gpuforest.backends.cuda.source import OPTIONS, cuda_source

pytestmark = pytest.mark.deep

LIBRARIES = [path for path in os.environ.get("GPUFOREST_NVRTC", "").split(os.pathsep) if path]
OLDEST = "-arch=compute_75"  # that all of them know

on_request = pytest.mark.skipif(not LIBRARIES, reason="needs other compilers: .ci/nvrtc")


def few(operation: str) -> list[dict[str, str]]:
    """Variants that have every value of every macro."""
    found, seen = [], set()
    for macros in variants(operation):
        if not macros or macros.items() - seen:
            found.append(macros)
            seen |= macros.items()
    return found


def ptx_of(library: str, source: str, macros: dict[str, str]) -> str:
    for builtins in Path(library).parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins))  # which the compiler looks for by name
    options = [*OPTIONS, *nvrtc.CUPY_ADDS, *(f"-D{n}={v}" for n, v in macros.items()), OLDEST]
    log, ptx = nvrtc.compiled_by(library, source, options, ("ProgramLog", "PTX"))
    assert log.rstrip(b"\0") == b""
    return ptx.decode()


@on_request
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("operation", MACROS)
def test_other_compilers_take_the_text(library, operation):
    for macros in few(operation):
        ptx = ptx_of(library, cuda_source(operation), macros)
        for kernel in kernels_in(cuda_source(operation)):
            assert f".entry {kernel}(" in ptx
        assert "fma.rn.f64" not in ptx or "div." in ptx
        assert ".ftz" not in ptx


def test_every_value_of_a_macro_is_among_the_few():
    for operation, names in MACROS.items():
        every, some = ({(n, m[n]) for m in of(operation) for n in names} for of in (variants, few))
        assert every == some
        assert few(operation)
