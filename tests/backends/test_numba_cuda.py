"""The numba-cuda backend: in Numba's simulator, compiled to PTX, and on a GPU where one is."""

import os
import re
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest
from paths import ROOT, SUPPORT

from gpuforest.backends import get_backend, registry
from gpuforest.common.errors import BackendError

pytest.importorskip("numba_cuda", reason="the package numba-cuda is not installed")

PARITY = SUPPORT / "numba_cuda_parity.py"
SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}

# every kernel by file, and the types of its arguments: u1 for codes, or u2; y for labels i4,
# or moments i8; X for f4, or f8
KERNELS = {
    ("encode", "encode_values"): "X[:,:] f8[:] i8[:] i8 codes[:,:]",
    ("bag", "draw"): "u8[:] i8 i8[:] i4[:,:]",
    ("totals", "add_rows"): "y[:,:] i4[:] i4[:] i8[:] i8[:] i8[:,:]",
    ("totals", "compare_rows"): "i8[:,:] i4[:] i8[:] i8[:] i8[:,:] b1[:]",
    ("histogram", "add_rows"): (
        "codes[:,:] y[:,:] i4[:] i4[:] i8[:] i4[:,:] i8 b1 i8[:] i8[:,:,:,:]"
    ),
    ("best_split", "scan_features"): (
        "i8[:,:,:] i4[:,:] i8[:,:] i8[:] i4[:] i8 i8 b1 i8 u8[:] i1[:] f8[:,:] i8 "
        "i8[:,:,:] b1[:,:] f8[:,:] i4[:,:] b1[:,:]"
    ),
    ("best_split", "choose_features"): (
        "i8[:,:,:] i4[:,:] i8[:] b1 i8 b1[:,:] f8[:,:] i4[:,:] b1[:,:] "
        "f8[:] i4[:] i4[:] b1[:] i8[:,:] i8[:]"
    ),
    ("partition", "choose_sides"): (
        "codes[:,:] i4[:] i8[:] i4[:] i4[:] b1[:] i8 u8[:] i8 i8[:] i8[:]"
    ),
    ("partition", "move"): "i4[:] i4[:] i8[:] i8[:] i8[:]",
    ("traverse", "walk_rows"): "u8[:] i8[:] codes[:,:] i8 i8[:] u8[:] i8[:,:]",
    ("traverse", "add_leaves"): "u8[:] i8[:] f8[:,:] codes[:,:] i8 i8[:] u8[:] b1[:,:] f8[:,:]",
}
KINDS = {"codes": ("u1", "u2"), "y": ("i4", "i8"), "X": ("f4", "f8")}
CAPABILITIES = ((7, 5), (9, 0))


def run(script: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *script],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
        env={**os.environ, **variables},
    )


def test_it_is_the_reference_in_the_simulator():
    found = run([str(PARITY)], **SIMULATOR)
    assert found.returncode == 0, found.stderr
    assert found.stdout.endswith("the same, simulated\n")


def test_it_is_the_reference_on_a_gpu():
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    found = run([str(PARITY)])
    assert found.returncode == 0, found.stderr
    assert found.stdout.endswith("the same, on a GPU\n")


def why_not() -> str | None:
    """Why this machine cannot run the backend."""
    try:
        get_backend("numba-cuda")
    except BackendError as error:
        return str(error)
    return None


# errors


def test_without_the_package(monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"pip install 'gpuforest\[numba-cuda\]'"):
        get_backend("numba-cuda")


def test_with_a_package_that_does_not_fit(monkeypatch):
    monkeypatch.setitem(sys.modules, "gpuforest.backends.numba_cuda", None)
    with pytest.raises(BackendError, match="does not work with the installed numba"):
        get_backend("numba-cuda")


def test_without_a_gpu(monkeypatch):
    from gpuforest.backends import numba_cuda

    monkeypatch.setattr(numba_cuda.gpu, "why_not", lambda: "there is no CUDA device")
    with pytest.raises(BackendError, match="cannot run here: there is no CUDA device"):
        get_backend("numba-cuda")
    monkeypatch.setattr(numba_cuda.gpu, "why_not", lambda: None)
    monkeypatch.setattr(numba_cuda.cuda, "is_available", lambda: False)
    with pytest.raises(BackendError, match="no driver or no libNVVM"):
        get_backend("numba-cuda")


def test_the_simulator_without_the_variable_that_turns_the_compiler_off():
    script = "from gpuforest.backends import get_backend; get_backend('numba-cuda')"
    found = run(["-c", script], NUMBA_ENABLE_CUDASIM="1", NUMBA_DISABLE_JIT="0")
    assert "BackendError" in found.stderr
    assert "NUMBA_DISABLE_JIT=1" in found.stderr


# PTX


@pytest.fixture
def nvvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA's compilers, and a device to compile helpers for where there is none."""
    from cuda import pathfinder
    from numba.cuda import dispatcher

    for library in ("nvvm", "nvrtc"):
        try:
            pathfinder.load_nvidia_dynamic_lib(library)
        except pathfinder.DynamicLibNotFoundError:
            pytest.skip(f"lib{library} is not installed: pip install 'gpuforest[numba-cuda]'")
    device = SimpleNamespace(compute_capability=CAPABILITIES[0])
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)


def kernels_of(operation: str) -> dict:
    """The kernels of an operation's file."""
    from numba.cuda.dispatcher import CUDADispatcher

    module = import_module(f"gpuforest.kernels.{operation}.numba_cuda")
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, CUDADispatcher) and value.py_func.__module__ == module.__name__
    }


def signatures(text: str) -> list:
    """Signatures with every dtype that stands for a kind."""
    from numba import types

    numba_type = {
        "u1": types.uint8, "u2": types.uint16, "i4": types.int32, "i8": types.int64,
        "u8": types.uint64, "f4": types.float32, "f8": types.float64, "b1": types.boolean,
        "i1": types.int8,
    }  # fmt: skip
    texts = [text]
    for kind, dtypes in KINDS.items():
        if re.search(rf"\b{kind}\b", text):
            texts = [re.sub(rf"\b{kind}\b", dtype, t) for t in texts for dtype in dtypes]
    found = []
    for words in texts:
        arguments = []
        for word in words.split():
            dtype, _, shape = word.partition("[")
            one = numba_type[dtype]
            arguments.append(types.Array(one, shape.count(":"), "C") if shape else one)
        found.append(types.void(*arguments))
    return found


def joined(ptx: str) -> list[str]:
    """Products and sums that are one operation, or that ptxas may make one.

    It joins a product without a rounding mode of its own and the sum that it goes into.
    """
    products = set(re.findall(r"\bmul\.f64\s+(%fd\d+)", ptx))
    sums = re.findall(r"\b(?:add|sub)(?:\.rn)?\.f64\s+%fd\d+, (\S+), (\S+);", ptx)
    return re.findall(r"\bfma\S*f64.*", ptx) + sorted(products & {r for pair in sums for r in pair})


def compile_ptx(function, signature, capability) -> str:
    from numba import cuda

    return cuda.compile_ptx(function, signature, cc=capability)[0]


def test_every_kernel_is_in_the_table():
    files = (ROOT / "gpuforest" / "kernels").glob("*/numba_cuda.py")
    operations = {path.parent.name for path in files}
    assert {(o, name) for o in operations for name in kernels_of(o)} == set(KERNELS)


@pytest.mark.usefixtures("nvvm")
@pytest.mark.parametrize(("operation", "name"), KERNELS)
def test_kernels_compile(operation, name):
    kernel = kernels_of(operation)[name].py_func
    for signature in signatures(KERNELS[operation, name]):
        for capability in CAPABILITIES:
            ptx = compile_ptx(kernel, signature, capability)
            assert f".target sm_{capability[0]}{capability[1]}" in ptx
            assert not joined(ptx)
            # integers add up the same in any order; and by one instruction, not in a loop
            assert not re.findall(r"\b(?:atom|red)\S*\.(?:f\d+|cas)\S*", ptx)


@pytest.mark.usefixtures("nvvm")
def test_products_that_go_into_sums_would_be_joined():
    """That is what the test above can see, and why the scores' products are told apart."""
    from numba import types

    from gpuforest.kernels.shared.scoring import numba_cuda  # noqa: F401
    from gpuforest.kernels.shared.scoring.numba import times

    def plain(x):
        x[0] = x[1] * x[2] + x[3]

    def rounded(x):
        x[0] = times(x[1], x[2]) + x[3]

    signature = types.void(types.float64[::1])
    assert joined(compile_ptx(plain, signature, CAPABILITIES[0]))
    assert not joined(compile_ptx(rounded, signature, CAPABILITIES[0]))
    assert joined("mul.f64 %fd1, %fd2, %fd3;\nadd.f64 %fd4, %fd5, %fd1;")
