"""CuPy's device: large arrays pass by several threads, through pinned memory; graphs are captured;
how much memory the allocator has left."""

import time
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from gpuforest.compiler import objects


class There(np.ndarray):
    """An array of CuPy's, as far as the copies go."""

    def set(self, host):
        self[...] = host

    def get(self, out):
        out[...] = self


@pytest.fixture
def device():
    """The module of CuPy's device."""
    pytest.importorskip("cupy", reason="needs pip install 'gpuforest[test-cuda]'")
    from gpuforest.backends.cuda import device

    return device


@pytest.fixture
def backend(device, monkeypatch):
    pinned, waits = [], []

    def empty_pinned(shape, dtype):
        pinned.append(shape[0])
        return np.empty(shape, dtype)

    stream = SimpleNamespace(synchronize=lambda: waits.append(1))
    names = {
        "ndarray": There, "uint8": np.uint8, "ascontiguousarray": lambda a: a,
        "empty": lambda shape, dtype: np.empty(shape, dtype).view(There),
        "asarray": lambda host: np.array(host).view(There),
        "asnumpy": lambda array: np.array(array),
        "cuda": SimpleNamespace(
            Device=lambda number: nullcontext(), get_current_stream=lambda: stream
        ),
    }  # fmt: skip
    monkeypatch.setattr(device, "cupy", SimpleNamespace(**names))
    monkeypatch.setattr(device, "cupyx", SimpleNamespace(empty_pinned=empty_pinned))
    monkeypatch.setattr(device, "LEAST_BY_THREADS", 1000)
    monkeypatch.setattr(device, "PART", 300)
    backend = object.__new__(device.CupyBackend)
    backend.device_number, backend.n_threads = 0, 4
    backend.pinned, backend.waits = pinned, waits
    return backend


@pytest.mark.parametrize("shape", [(5, 30), (13, 20), (1001,), (7, 11, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_there_and_back(backend, shape, dtype):
    host = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    n_parts = -(-host.nbytes // 300) if host.nbytes >= 1000 else 0
    there = backend.asarray(host)
    assert len(backend.pinned) == n_parts
    assert (len(backend.waits) > n_parts) == (n_parts > 0)  # pinned memory is free again
    assert isinstance(there, There)
    assert np.array_equal(there, host)
    assert there.dtype == dtype
    back = backend.asnumpy(there)
    assert type(back) is np.ndarray
    assert np.array_equal(back, host)
    assert len(backend.pinned) == 2 * n_parts


def test_columns_and_one_thread(backend):
    host = np.asfortranarray(np.random.default_rng(0).random((40, 30)))
    assert np.array_equal(backend.asarray(host), host)
    backend.n_threads = 1
    backend.pinned.clear()
    assert np.array_equal(backend.asarray(host), host)
    assert backend.pinned == []  # a single thread needs none


@pytest.mark.parametrize("fails", ["never", "begin", "b", "end"])
def test_launches_are_captured(fails, device, backend, monkeypatch, caplog):
    said = []

    def say(word):
        said.append(word)
        if word == fails:
            raise RuntimeError("cudaErrorStreamCaptureUnsupported")

    class Stream:
        def __init__(self, non_blocking):
            assert non_blocking  # the default stream cannot be captured

        def __enter__(self):
            return self

        def __exit__(self, *error):
            said.append("left")

        def begin_capture(self):
            say("begin")

        def end_capture(self):
            say("end")
            return SimpleNamespace(launch=lambda: said.append("graph"))

    monkeypatch.setattr(device.cupy.cuda, "Stream", Stream, raising=False)
    caplog.set_level("INFO", "gpuforest")
    run = backend.together([lambda: say("a"), lambda: say("b")])
    captured = {"begin": ["begin"]}.get(fails, ["begin", "a", "b", "end"])
    assert said == [*captured, "left"]  # a capture that has begun is ended
    why = "each kernel is launched by itself, without a CUDA graph: cudaErrorStreamCaptureUnsupport"
    assert [m[: len(why)] for m in caplog.messages] == [why] * (fails != "never")
    said.clear()
    fails = None
    run()
    run()
    assert said == (["a", "b"] * 2 if caplog.messages else ["graph"] * 2)


@pytest.mark.parametrize("seconds", [0, 0.3])
def test_a_word_while_cupy_compiles(seconds, device, monkeypatch, caplog):
    class RawModule:
        def __init__(self, **options):
            pass

        def get_function(self, name):
            time.sleep(seconds)
            return name

    monkeypatch.setattr(device, "cupy", SimpleNamespace(RawModule=RawModule))
    monkeypatch.setattr(device, "module", device.module.__wrapped__)
    monkeypatch.setattr(device, "PATIENCE", 0.1)
    monkeypatch.setattr(objects, "_logged", set())
    for name in ("sum_spans", "sums_before"):
        assert device.function.__wrapped__("slots", name, (), 0) == name
    time.sleep(0.2 * (not seconds))
    assert caplog.messages == [device.WORD] * (seconds > 0)  # once


GB = 2**30


class Pool:
    """A pool that holds some bytes of the device, and uses a part of them."""

    def __init__(self, held, used, limit=0):
        self.held, self.used, self.limit = held, used, limit

    def malloc(self, size):
        raise AssertionError("a pool is asked, and not tried")

    def free_bytes(self):
        return self.held - self.used

    def used_bytes(self):
        return self.used

    def get_limit(self):
        return self.limit


class AsyncPool(Pool):
    pass


def no_pool(size):
    raise AssertionError("the device is asked, and not tried")


class Rmm:
    """An allocator that says nothing: RMM's, with a pool of its own that does not grow."""

    def __init__(self, left):
        self.left, self.tried = left, []

    def __call__(self, size):
        self.tried.append(size)
        if size > self.left:
            raise MemoryError("std::bad_alloc: out_of_memory: maximum pool size exceeded")


@pytest.fixture
def left(device, monkeypatch):
    """What is left of a device of 80 GB of which `free` are free, with an allocator."""

    def asked(allocator, free):
        cuda = SimpleNamespace(
            runtime=SimpleNamespace(memGetInfo=lambda: (free, 80 * GB)), alloc=allocator,
            get_allocator=lambda: allocator, memory=SimpleNamespace(_malloc=no_pool),
            MemoryPool=Pool, MemoryAsyncPool=AsyncPool,
        )  # fmt: skip
        monkeypatch.setattr(device, "cupy", SimpleNamespace(cuda=cuda))
        return device.bytes_to_give()

    return asked


def test_what_is_left(left):
    assert left(Pool(30 * GB, 10 * GB).malloc, 50 * GB) == 70 * GB
    assert left(Pool(30 * GB, 10 * GB, limit=40 * GB).malloc, 50 * GB) == 30 * GB
    assert left(Pool(0, 0, limit=90 * GB).malloc, 50 * GB) == 50 * GB
    assert left(AsyncPool(60 * GB, 20 * GB, limit=2**64 - 1).malloc, 15 * GB) == 55 * GB
    assert left(no_pool, 50 * GB) == 50 * GB
    # an allocator that says nothing is tried
    # nine tenths of the device are in its pool, so that CUDA itself has little left
    rmm = Rmm(70 * GB)
    assert 60 * GB < left(rmm, 2 * GB) <= 70 * GB
    assert len(rmm.tried) < 5
    assert 0.8 * GB < left(Rmm(GB), 70 * GB) <= GB
    assert left(Rmm(0), 0) == 0


def test_cupy_has_what_is_asked():
    cupy = pytest.importorskip("cupy", reason="needs pip install 'gpuforest[test-cuda]'")
    assert isinstance(cupy.cuda.get_allocator().__self__, cupy.cuda.MemoryPool)
    cupy.cuda.set_allocator(None)
    try:
        assert cupy.cuda.get_allocator() is cupy.cuda.memory._malloc
    finally:
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)
    for pool in (cupy.cuda.MemoryPool, cupy.cuda.MemoryAsyncPool):
        assert {"free_bytes", "used_bytes", "get_limit"} < set(dir(pool))
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
