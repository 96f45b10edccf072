"""The GPU backend: CuPy arrays, CUDA C++ kernels compiled when first used.

CuPy keeps compiled kernels on disk. Nothing here is imported, and CUDA is not
initialised, before a user asks for this backend or "auto" finds it worthwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, cached_property
from threading import Timer
from typing import Any, cast

import array_api_compat.cupy
import cupy
import cupyx
import numpy as np

from gpuforest.backends import gpu
from gpuforest.backends.base import Array
from gpuforest.backends.cuda.forest import LEFT_OUT, CudaBackend
from gpuforest.backends.cuda.source import OPTIONS, cuda_source
from gpuforest.common.errors import BackendError
from gpuforest.common.parallel import parallel_map
from gpuforest.compiler import objects

STATIC_SHARED = 832  # bytes: the most static shared memory of any kernel, rounded up
# Bytes of an array that threads copy together, and of a part; the most threads of a copy. CuPy
# keeps the pinned memory, a part for each thread
LEAST_BY_THREADS, PART, MOST_COPYING = 2**23, 2**21, 8
LEAST_TRIED = 2**24  # bytes; an allocator that cannot give this many has no memory left
LEFT_FREE = 1 / 16  # of free memory, for other users of the device
PATIENCE = 0.25  # seconds; CuPy reads all modules of a fit from disk in 0.4
WORD = "CuPy is compiling gpuforest's kernels, once on this machine, for up to half a minute"


@cache
def module(operation: str, macros: tuple[tuple[str, str], ...], device: int) -> Any:
    """A compiled module. A loaded module belongs to its device, so each device has its own. Macros
    are lines of the source and not options, because CuPy compiles an empty source, in some 30 ms,
    for each new set of options."""
    text = "".join(f"#define {name} {value}\n" for name, value in macros) + cuda_source(operation)
    return cupy.RawModule(code=text, options=OPTIONS, backend="nvrtc")


@cache
def function(operation: str, name: str, macros: tuple[tuple[str, str], ...], device: int) -> Any:
    """A kernel of a module (see `module`), loaded once. CuPy does not say whether it has the module
    on disk: one that takes long is being compiled."""
    word = Timer(PATIENCE, objects.log_once, ("cuda", WORD))
    word.start()
    try:
        return module(operation, macros, device).get_function(name)
    finally:
        word.cancel()


def bytes_to_give() -> int:
    """Bytes that CuPy's allocator has left: free memory plus pool, up to the pool's limit. Other
    allocators, such as RMM's, report none: then the largest array that they give."""
    free, total = map(int, cupy.cuda.runtime.memGetInfo())
    allocator = cupy.cuda.get_allocator()
    pool = getattr(allocator, "__self__", None)
    if isinstance(pool, cupy.cuda.MemoryPool):
        free += int(pool.free_bytes())
        limit = int(pool.get_limit())
        return min(free, limit - int(pool.used_bytes())) if limit else free
    if isinstance(pool, cupy.cuda.MemoryAsyncPool):  # its limit is where it begins to give back
        return free + int(pool.free_bytes())
    if allocator is cupy.cuda.memory._malloc:  # no pool
        return free
    size = total
    while size >= LEAST_TRIED:
        try:
            cupy.cuda.alloc(size)  # and free it at once
        except MemoryError:
            size -= size // 8
        else:
            return size
    return 0


class CupyBackend(CudaBackend):
    """A CUDA device: the current one of CuPy."""

    name = "cupy"
    xp = array_api_compat.cupy

    def __init__(self, n_threads: int = 1, memory_budget: int = 0) -> None:
        try:
            device = cupy.cuda.Device()
            limits = device.attributes
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise BackendError(f"backend 'cupy' cannot use a CUDA device: {error}") from error
        self.device_number = int(device.id)
        self.shared_limit = int(limits["MaxSharedMemoryPerBlockOptin"]) - STATIC_SHARED
        self.n_processors = int(limits["MultiProcessorCount"])
        self.cache_bytes = int(limits["L2CacheSize"])
        # an eighth of free memory holds histograms of many slots at once
        super().__init__(n_threads, max(memory_budget, self.free_bytes() // 8))

    def asnumpy(self, array: Array) -> np.ndarray:
        is_large = isinstance(array, cupy.ndarray) and array.nbytes >= LEAST_BY_THREADS
        if not is_large or self.n_threads == 1:
            return np.asarray(cupy.asnumpy(array))
        host = np.empty(array.shape, array.dtype)
        self._copy(host, cupy.ascontiguousarray(array), to_host=True)
        return host

    def asarray(self, host: Any) -> Array:
        is_large = isinstance(host, np.ndarray) and host.nbytes >= LEAST_BY_THREADS
        if not is_large or self.n_threads == 1:
            return cupy.asarray(host)
        array = cupy.empty(host.shape, host.dtype)
        self._copy(np.ascontiguousarray(host), array, to_host=False)
        return array

    def _copy(self, host: np.ndarray, array: Array, to_host: bool) -> None:
        """Copy by threads, through pinned memory: one thread is slow to touch new pages of the
        host, and reaches a third of the bus's rate to the device."""
        on_host, here = host.reshape(-1).view(np.uint8), array.reshape(-1).view(cupy.uint8)
        self.synchronise()  # the threads use another stream; the memory may have been in use

        def copy(begin: int) -> None:
            part = slice(begin, begin + PART)
            with cupy.cuda.Device(self.device_number):
                pinned = cupyx.empty_pinned(on_host[part].shape, np.uint8)
                if to_host:
                    here[part].get(out=pinned)
                    on_host[part] = pinned
                else:
                    pinned[...] = on_host[part]
                    here[part].set(pinned)
                    self.synchronise()  # before `pinned` is used again

        parallel_map(copy, range(0, on_host.size, PART), min(self.n_threads, MOST_COPYING))

    def active(self) -> AbstractContextManager[Any]:
        device: AbstractContextManager[Any] = cupy.cuda.Device(self.device_number)
        return device

    def copied(self, array: Array) -> Array:
        return array.copy()  # of CuPy's, to the current device

    def address(self, array: Array) -> int:
        return int(array.data.ptr)

    def synchronise(self) -> None:
        cupy.cuda.get_current_stream().synchronize()

    def free_bytes(self) -> int:
        with self.active():
            return int(bytes_to_give() * (1 - LEFT_FREE))

    def together(self, launches: Sequence[Callable[[], None]]) -> Callable[[], None]:
        """A CUDA graph, which the host enqueues as one launch; launch by launch, logged, if CUDA
        makes none, as in an old driver or inside a capture of the user."""
        try:
            with cupy.cuda.Stream(non_blocking=True) as stream:  # the default cannot be captured
                stream.begin_capture()
                try:  # nothing runs here
                    super().together(launches)()
                finally:  # also of a capture that failed: it is left by its end alone
                    graph = stream.end_capture()
        except RuntimeError as error:  # of the runtime, of the driver, or CuPy's own
            gpu.logger.info("each kernel is launched by itself, without a CUDA graph: %s", error)
            return super().together(launches)
        return cast(Callable[[], None], graph.launch)

    def kernel(self, operation: str, name: str, macros: dict[str, str], shared: int) -> Any:
        compiled = function(operation, name, tuple(macros.items()), self.device_number)
        # the default limit is 48 KiB less the kernel's static arrays
        if shared and compiled.max_dynamic_shared_size_bytes < shared:
            compiled.max_dynamic_shared_size_bytes = shared
        return compiled


class AllGpus(CupyBackend):
    """The current device, whose peers are all other devices."""

    @cached_property
    def peers(self) -> Sequence[CudaBackend]:
        """The others that can be used, asked for where trees grow: each takes a CUDA context."""
        found = []
        for number in range(cupy.cuda.runtime.getDeviceCount()):
            if number == self.device_number:
                continue
            try:  # without `with`, which does not leave a device that it could not enter
                cupy.cuda.Device(number).use()
                found.append(CupyBackend(self.n_threads))
            except (cupy.cuda.runtime.CUDARuntimeError, BackendError) as error:
                gpu.logger.warning(LEFT_OUT, number, error)
            finally:
                cupy.cuda.Device(self.device_number).use()
        return found
