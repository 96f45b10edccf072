"""What "auto" chooses, what it says when it cannot have a GPU, and when CUDA is touched."""

import ctypes
import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import fake_cupy
import numpy as np
import pytest
from engine import same_forest

from gpuforest import BackendError, RandomForestClassifier
from gpuforest.backends import gpu, registry
from gpuforest.backends.registry import get_backend

CPU = "numba"
LARGE = registry.GPU_ROWS
ASK = gpu._ask


@pytest.fixture(autouse=True)
def unasked(monkeypatch):
    """No code has asked for a GPU yet, and the environment chooses no backend."""
    monkeypatch.delenv(registry.ENVIRONMENT, raising=False)
    monkeypatch.setattr(gpu, "_answers", {})
    monkeypatch.setattr(gpu, "_said", set())


@pytest.fixture(autouse=True)
def compiled(caplog):
    """Kernels that are compiled meanwhile, and said to be, change no count of messages."""
    with caplog.filtering(lambda record: "compiling" not in record.getMessage()):
        yield


@pytest.fixture
def machine(monkeypatch):
    """A machine with a GPU, whose parts a test may break before CUDA is asked."""
    made = SimpleNamespace(
        spec=object(), status=0, devices=1, driver=13000, touched=0, allocate=None
    )

    class Driver:
        def cuInit(self, flags):
            made.touched += 1
            return made.status

        def cuDeviceGetCount(self, count):
            count._obj.value = made.devices
            return 0

        def cuDriverGetVersion(self, version):
            version._obj.value = made.driver
            return 0

    def load(name):
        if name == gpu.DRIVER and made.driver == 0:
            raise OSError("cannot open shared object file")
        return Driver()

    def ones(shape):
        if made.allocate is not None:
            raise made.allocate

    fake_cupy.install(monkeypatch)
    sys.modules["cupy"].ones = ones
    monkeypatch.setattr(gpu, "_ask", ASK)
    monkeypatch.setattr(gpu, "find_spec", lambda name: made.spec)
    # a module of its own: kernels are loaded by the real one
    monkeypatch.setattr(gpu, "ctypes", SimpleNamespace(**vars(ctypes) | {"CDLL": load}))
    return made


class CUDARuntimeError(RuntimeError):
    """What CuPy raises for CUDA."""


CUDARuntimeError.__module__ = "cupy_backends.cuda.api.runtime"

BROKEN = {
    "CuPy is not installed: pip install 'gpuforest[cuda13]'": {"spec": None},
    "no NVIDIA driver is installed (": {"driver": 0},
    "there is no CUDA device": {"status": 100},
    "no CUDA device": {"devices": 0},
    "before this process was forked": {"status": 3},
    "the NVIDIA driver does not start (error 803)": {"status": 803},
    "it runs CUDA 12.4, the installed CuPy needs 13.0; update the driver, or install "
    "'gpuforest[cuda12]'": {"driver": 12040},
    "it runs CUDA 11.8, the installed CuPy needs 13.0; update the driver": {"driver": 11080},
    **{message: {"allocate": error} for message, error in {
        "it runs CUDA 13.0": CUDARuntimeError("cudaErrorInsufficientDriver: version"),
        "no memory left: 1,000 of 2,000 bytes are free": fake_cupy.OutOfMemoryError(),
        "no memory left": CUDARuntimeError("cudaErrorMemoryAllocation: out of memory"),
        "CUDA does not start: cudaErrorUnknown: a b": CUDARuntimeError("cudaErrorUnknown: a\nb"),
        "CUDA does not start: Failed to find CUDA headers.":
            RuntimeError("Failed to find CUDA headers. Please install"),
    }.items()},
}  # fmt: skip


@pytest.mark.parametrize("message", BROKEN)
def test_a_gpu_that_cannot_be_used(machine, monkeypatch, caplog, message):
    vars(machine).update(BROKEN[message])
    monkeypatch.setitem(registry._factories, "cupy", registry._cupy)
    # 1. asked for by name: an error of one line
    with pytest.raises(BackendError, match="backend 'cupy' cannot run here: ") as caught:
        get_backend("cupy")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert message in gpu.why_not()
    # 2. auto: the CPU, and one line in the log
    caplog.set_level(logging.INFO, "gpuforest")
    for _ in range(3):
        assert get_backend("auto", n_rows=LARGE).name == CPU
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert "using the CPU" in record.message
    assert message in record.message


def test_each_reason_has_one_line(machine, caplog):
    caplog.set_level(logging.INFO, "gpuforest")
    for broken in ({"status": 100}, {"devices": 0}, {"spec": None}, {"status": 100}):
        gpu._answers.clear()
        vars(machine).update({"spec": object(), "status": 0, "devices": 1} | broken)
        assert get_backend("auto", n_rows=LARGE).name == CPU
    assert ["device" in r.message for r in caplog.records] == [True, False]


def test_what_cupy_itself_says(machine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    machine.devices = 0
    assert gpu.why_not() == "there is no CUDA device (CUDA_VISIBLE_DEVICES='')"
    cupy, machine.devices = sys.modules["cupy"], 1
    for version in ("14.0.1", "13.6.0", "9.10.1", "14.1.0", "14.10.0rc1", "15.0.0a1"):
        gpu._answers.clear()
        monkeypatch.setattr(cupy, "__version__", version)
        old, reason = version < "14.1" or version[0] == "9", gpu.why_not()
        assert f"CuPy {version} is older than 14.1: pip install" in reason if old else not reason
    gpu._answers.clear()
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert "CuPy cannot be used: import of cupy halted" in gpu.why_not()


def test_memory_may_be_free_again_later(machine):
    machine.allocate = fake_cupy.OutOfMemoryError()
    assert "no memory left" in gpu.why_not()
    machine.allocate = None
    assert gpu.why_not() is None
    machine.status = 100
    assert gpu.why_not() is None  # an answer that stays is not asked for again
    assert machine.touched == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_asks_for_itself(machine, monkeypatch):
    assert gpu.why_not() is None
    machine.status = gpu.NOT_INITIALISED
    monkeypatch.setattr(gpu.os, "getpid", lambda: -1)
    assert "forked" in gpu.why_not()


def test_auto_looks_at_the_data(machine):
    X = np.zeros((LARGE, 2), np.float32)
    y = np.arange(LARGE) % 2
    assert get_backend().name == CPU
    assert get_backend(n_rows=LARGE - 1).name == CPU
    assert machine.touched == 0  # small data ask nothing of CUDA
    assert get_backend(n_rows=LARGE).name == "cupy"
    assert get_backend(n_rows=1, on_device=True).name == "cupy"
    model = RandomForestClassifier(1, max_depth=1)
    assert model.fit(X[1:], y[1:]).backend_ == CPU
    assert model.fit(X.tolist(), y).backend_ == "cupy"
    assert model.fit(fake_cupy.asarray(X[:9]), y[:9]).backend_ == "cupy"
    assert model.set_params(backend="numpy").fit(fake_cupy.asarray(X), y).backend_ == "numpy"


def test_the_environment_comes_first(machine, monkeypatch):
    monkeypatch.setenv(registry.ENVIRONMENT, "numpy")
    assert get_backend(n_rows=LARGE, on_device=True).name == "numpy"
    assert machine.touched == 0
    monkeypatch.setenv(registry.ENVIRONMENT, "cupy")
    assert get_backend(n_rows=1).name == "cupy"


class TestMemory:
    """A GPU that gives up in the middle of the work."""

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.arange(60) % 3

    @pytest.fixture(params=[
        BackendError("one tree needs 12 bytes, 3 are free"),
        fake_cupy.OutOfMemoryError("Out of memory allocating 12 bytes"),
        CUDARuntimeError("cudaErrorMemoryAllocation: out of memory"),
    ], ids=lambda error: type(error).__name__)  # fmt: skip
    def full(self, request, machine, monkeypatch):
        """The backend's kernels for trees and predictions fail; what they fail with."""

        def fail(self, *args):
            raise request.param

        for kernel in ("totals", "accumulate"):
            monkeypatch.setattr(fake_cupy.FakeCupyBackend, kernel, fail)
        return request.param

    def test_auto_goes_on_on_the_cpu(self, full, caplog):
        there = fake_cupy.asarray(self.X)
        for state in (0, np.random.RandomState(7)):
            caplog.clear()
            params = {"n_estimators": 2, "oob_score": False}
            model = RandomForestClassifier(**params, random_state=state).fit(there, self.y)
            (record,) = caplog.records
            assert record.levelno == logging.WARNING
            assert str(full) in record.message
            assert "starting again on the CPU" in record.message
            assert model.backend_ == CPU
            again = 0 if state == 0 else np.random.RandomState(7)
            reference = RandomForestClassifier(**params, random_state=again, backend="numpy")
            assert same_forest(model.forest_, reference.fit(self.X, self.y).forest_)
            caplog.clear()
            found = model.predict(there)
            assert len(caplog.records) == 1
            assert np.array_equal(found.get(), reference.predict(self.X))

    def test_a_backend_that_was_named_fails(self, full, caplog, monkeypatch):
        with pytest.raises(BackendError) as caught:
            RandomForestClassifier(2, backend="cupy").fit(self.X, self.y)
        assert str(full) in str(caught.value)
        if not isinstance(full, BackendError):
            assert "1,000 of 2,000 bytes are free" in str(caught.value)
        model = RandomForestClassifier(2, backend="numpy").fit(self.X, self.y)
        monkeypatch.setenv(registry.ENVIRONMENT, "cupy")
        with pytest.raises(BackendError):
            model.set_params(backend="auto").predict(self.X)
        assert not caplog.records


class CompileException(Exception):
    """What CuPy raises where NVRTC does not compile a kernel."""


CompileException.__module__ = "cupy.cuda.compiler"


def raised_by(module: str, error: str):
    """A function of that module, which raises the error."""
    own = {"__name__": module}
    exec(f"def fail(*args):\n    raise {error}", own)
    return own["fail"]


def compiler(*args):
    raise CompileException("cannot open source file 'cuda_fp16.h'\n1 error " + 999 * "and more ")


@pytest.mark.parametrize("fail", [
    compiler,
    raised_by("cupy_backends.cuda._softlink", "RuntimeError('CuPy failed to load libnvrtc.so')"),
    raised_by("cupy.cuda", "ImportError('libcublas.so.13: cannot open shared object file')"),
])  # fmt: skip
def test_what_cuda_lacks_is_found_out_late(fail, machine, monkeypatch, caplog):
    monkeypatch.setattr(fake_cupy.FakeCupyBackend, "totals", fail)
    X, y = fake_cupy.asarray(TestMemory.X), TestMemory.y
    with pytest.raises(BackendError, match=r"not completely installed: .*pip install") as caught:
        RandomForestClassifier(2, backend="cupy").fit(X, y)
    assert len(str(caught.value)) < 700
    assert RandomForestClassifier(2).fit(X, y).backend_ == CPU
    (record,) = caplog.records
    assert "starting again on the CPU" in record.message


@pytest.mark.parametrize("fail", [
    raised_by("cupy._core.core", "ValueError('shapes do not fit')"),
    raised_by("gpuforest.growing.grow", "RuntimeError('our own')"),
    raised_by("gpuforest.growing.grow", "MemoryError('our own')"),
])  # fmt: skip
def test_our_own_mistakes_stay_what_they_are(fail, machine, monkeypatch):
    monkeypatch.setattr(fake_cupy.FakeCupyBackend, "totals", fail)
    errors = (ValueError, RuntimeError, MemoryError)
    with pytest.raises(errors, match=r"do not fit|our own") as caught:
        RandomForestClassifier(2).fit(fake_cupy.asarray(TestMemory.X), TestMemory.y)
    assert not isinstance(caught.value, BackendError)


def test_data_on_a_gpu_without_cupy(monkeypatch, caplog):
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    monkeypatch.setattr("gpuforest.data.arrays.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "torch", fake_cupy.torch_module())
    X, y = TestMemory.X, TestMemory.y
    caplog.set_level(logging.INFO, "gpuforest")
    model = RandomForestClassifier(2, random_state=0).fit(fake_cupy.Tensor(X), y)
    assert len(caplog.records) == 1
    assert model.backend_ == CPU
    assert isinstance(model.predict(fake_cupy.Tensor(X)), fake_cupy.Tensor)
    with pytest.raises(BackendError, match=r"X is on a GPU, and reading.*pip install"):
        model.fit(fake_cupy.Bare(fake_cupy.asarray(X)), y)


def test_small_data_never_touch_cuda():
    script = """
import ctypes, sys
import numpy as np
init = ctypes.CDLL.__init__
def watched(self, name, *args, **kwargs):
    assert name is None or "cuda" not in str(name), name
    init(self, name, *args, **kwargs)
ctypes.CDLL.__init__ = watched
import gpuforest
from gpuforest import *
X = np.random.default_rng(0).normal(size=(300, 3))
model = gpuforest.RandomForestClassifier(2).fit(X, X[:, 0] > 0)
model.predict(X), model.score(X, X[:, 0] > 0), model.apply(X.tolist())
print(model.backend_, [m for m in sys.modules if m.startswith(("cupy", "numba.cuda", "torch"))])
"""
    command = [sys.executable, "-c", script]
    assert subprocess.check_output(command, text=True, timeout=120) == f"{CPU} []\n"
