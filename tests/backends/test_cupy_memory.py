"""How much memory CuPy's allocator has left, whichever it is."""

from types import SimpleNamespace

import pytest

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
def left(monkeypatch):
    """What is left of a device of 80 GB of which `free` are free, with an allocator."""
    pytest.importorskip("cupy", reason="needs pip install 'gpuforest[test-cuda]'")
    from gpuforest.backends.cuda import device as cupy

    def asked(allocator, free):
        cuda = SimpleNamespace(
            runtime=SimpleNamespace(memGetInfo=lambda: (free, 80 * GB)), alloc=allocator,
            get_allocator=lambda: allocator, memory=SimpleNamespace(_malloc=no_pool),
            MemoryPool=Pool, MemoryAsyncPool=AsyncPool,
        )  # fmt: skip
        monkeypatch.setattr(cupy, "cupy", SimpleNamespace(cuda=cuda))
        return cupy.bytes_to_give()

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
