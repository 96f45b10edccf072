"""The numba-cuda backend: in Numba's simulator, compiled to PTX, and on a GPU where one is."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import fake_cupy
import numpy as np
import pytest
from numba import types
from numba_cuda_types import KERNELS, is_record, numba_type, signatures
from paths import ROOT, SUPPORT
from sweeps import swept

from gpuforest.backends import registry
from gpuforest.backends.registry import get_backend
from gpuforest.common.errors import BackendError

pytest.importorskip("numba_cuda", reason="needs pip install 'gpuforest[test-cuda]'")

PARITY = SUPPORT / "numba_cuda_parity.py"
SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}

CAPABILITIES = ((7, 5), (9, 0))
PARAMETER_BYTES = 4096  # of a kernel's arguments at the most, in all releases of CUDA


def run(script: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    options = {"capture_output": True, "text": True, "timeout": 600, "cwd": ROOT}
    return subprocess.run([sys.executable, *script], env=os.environ | variables, **options)


@pytest.mark.parametrize(
    ("variables", "where"), swept(1, [({}, "on a GPU"), (SIMULATOR, "simulated")])
)
def test_it_is_the_reference(variables, where):
    if not variables and (reason := why_not()) is not None:
        pytest.skip(reason)
    found = run([str(PARITY)], **variables)
    assert found.returncode == 0, found.stderr
    assert found.stdout.endswith(f"the same, {where}\n")


def why_not() -> str | None:
    """Why this machine cannot run the backend."""
    try:
        get_backend("numba-cuda")
    except BackendError as error:
        return str(error)
    return None


class DeviceArray:
    """Numba's view of a stand-in for a CuPy array."""

    def __init__(self, array, sync):
        from numba.cuda.np.numpy_support import from_dtype

        assert not sync  # a launch does not wait for the GPU
        self.array = array
        self._numba_type_ = types.Array(from_dtype(array.dtype), array.ndim, "C")


class Kernel:
    """Keeps how it is launched."""

    def __getitem__(self, configuration):
        self.configuration = configuration
        return self

    def __call__(self, *arguments):
        self.arguments = arguments


@pytest.fixture
def backend(monkeypatch):
    """The backend as it is where a GPU is, on the default stream."""
    from gpuforest.backends import numba_cuda

    monkeypatch.setattr(numba_cuda.cuda, "as_cuda_array", DeviceArray)
    made = object.__new__(numba_cuda.NumbaCudaBackend)
    streams = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=0))
    made.xp, made.simulated = SimpleNamespace(cuda=streams), False
    return made


def value_of(word):
    """An argument of such a type, whose arrays are stand-ins for CuPy's."""
    if is_record(word):
        return type(word)(*map(value_of, word))
    dtype, bracket, dimensions = word.partition("[")
    shape = (3,) * dimensions.count(":")
    return fake_cupy.ndarray(np.zeros(shape, dtype)) if bracket else np.dtype(dtype).type(7).item()


def flat(value):
    """All that is in nested tuples."""
    return [x for part in value for x in flat(part)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", KERNELS)
def test_a_launch_passes_arrays_that_numba_can_type_also_in_records(backend, name):
    from numba.cuda.typing.typeof import typeof

    for words in signatures(name):
        kernel, given = Kernel(), tuple(map(value_of, words))
        backend.launch(kernel, 5, *given)
        pairs = zip(flat(kernel.arguments), flat(given), strict=True)
        assert all(getattr(view, "array", view) is own for view, own in pairs)
        # what Numba then compiles is what is compiled below
        assert [typeof(one) for one in kernel.arguments] == list(map(numba_type, words))


def test_a_launch_over_no_elements_is_none(backend):
    kernel = Kernel()
    backend.launch(kernel, 0)
    assert not hasattr(kernel, "arguments")


def test_what_is_lacking_is_named(monkeypatch):
    from gpuforest.backends import numba_cuda

    def refused(target, name, value):
        with monkeypatch.context() as patches:
            patches.setattr(target, name, value)
            return why_not()

    assert "pip install 'gpuforest[numba-cuda]'" in refused(
        registry, "find_spec", lambda name: None
    )
    said = refused(numba_cuda.gpu, "why_not", lambda: "there is no CUDA device")
    assert "cannot run here: there is no CUDA device" in said
    monkeypatch.setattr(numba_cuda.gpu, "why_not", lambda: None)
    assert "no driver or no libNVVM" in refused(numba_cuda.cuda, "is_available", lambda: False)
    monkeypatch.setitem(sys.modules, "gpuforest.backends.numba_cuda", None)
    assert "does not work with the installed numba" in why_not()


def test_the_simulator_without_the_variable_that_turns_the_compiler_off():
    script = "from gpuforest.backends.registry import get_backend; get_backend('numba-cuda')"
    found = run(["-c", script], NUMBA_ENABLE_CUDASIM="1", NUMBA_DISABLE_JIT="0")
    assert "BackendError" in found.stderr
    assert "NUMBA_DISABLE_JIT=1" in found.stderr


@pytest.fixture
def nvvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA's compilers, and a device to compile helpers for where there is none."""
    from cuda import pathfinder
    from numba.cuda import dispatcher

    for library in ("nvvm", "nvrtc"):
        try:
            pathfinder.load_nvidia_dynamic_lib(library)
        except pathfinder.DynamicLibNotFoundError:
            pytest.skip(f"lib{library}: needs pip install 'gpuforest[test-cuda]'")
    device = SimpleNamespace(compute_capability=CAPABILITIES[0])
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)


def all_kernels() -> dict:
    from numba.cuda.dispatcher import CUDADispatcher

    from gpuforest.kernels import numba_cuda

    return {n: value for n, value in vars(numba_cuda).items() if isinstance(value, CUDADispatcher)}


def parameter_bytes(ptx: str) -> int:
    """The size of a kernel's arguments, to which their alignment adds few bytes."""
    entry = re.findall(r"\.visible \.entry .*?\((.*?)\)\n", ptx, re.S)[0]
    bits = re.findall(r"\.param (?:\.align \d+ )?\.[a-z](\d+)", entry)
    assert len(bits) == entry.count(".param ")
    return sum(int(size) for size in bits) // 8


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
    assert all_kernels().keys() == KERNELS.keys()


@pytest.mark.deep  # a minute of compiling
@pytest.mark.usefixtures("nvvm")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile(name):
    kernel = all_kernels()[name].py_func
    for words in signatures(name):
        signature = types.void(*map(numba_type, words))
        for capability in CAPABILITIES:
            ptx = compile_ptx(kernel, signature, capability)
            assert f".target sm_{capability[0]}{capability[1]}" in ptx
            assert not joined(ptx)
            assert parameter_bytes(ptx) < PARAMETER_BYTES
            # integers add up the same in any order; and by one instruction, not in a loop
            assert not re.findall(r"\b(?:atom|red)\S*\.(?:f\d+|cas)\S*", ptx)


@pytest.mark.usefixtures("nvvm")
def test_products_that_go_into_sums_would_be_joined():
    """That is what the test above can see, and why the scores' products are told apart."""
    from gpuforest.kernels.numba_cuda import times

    def plain(x):
        x[0] = x[1] * x[2] + x[3]

    def rounded(x):
        x[0] = times(x[1], x[2]) + x[3]

    signature = types.void(types.float64[::1])
    assert joined(compile_ptx(plain, signature, CAPABILITIES[0]))
    assert not joined(compile_ptx(rounded, signature, CAPABILITIES[0]))
    assert joined("mul.f64 %fd1, %fd2, %fd3;\nadd.f64 %fd4, %fd5, %fd1;")
