"""The device that is measured: a GPU, or, to try the scripts without one, the tests' emulation."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from contextlib import nullcontext
from typing import Any

import numpy as np

from benchmarks.record import ROOT
from gpuforest.backends import registry

Array = Any

COPY_BYTES = 4 * 2**30  # far more than any cache holds
HOST_BYTES = 256 * 2**20
COPIES = 10


class Gpu:
    """CuPy's current device."""

    name = "cupy"

    def __init__(self) -> None:
        import cupy

        from gpuforest.backends.cuda.device import CupyBackend

        self.cupy = self.xp = cupy
        self.backend_class = CupyBackend
        self.copy_bytes = min(COPY_BYTES, int(cupy.cuda.runtime.memGetInfo()[1]) // 16)
        self.host_bytes = HOST_BYTES
        self.put, self._used = cupy.asarray, 0

    def make_backend(self, kind: Any, n_threads: int, memory_budget: int, **_: Any) -> Any:
        return kind(n_threads, memory_budget)

    def describe(self) -> dict[str, Any]:
        runtime = self.cupy.cuda.runtime
        found = runtime.getDeviceProperties(self.cupy.cuda.Device().id)
        return {
            "name": found["name"].decode(), "compute": f"{found['major']}.{found['minor']}",
            "processors": found["multiProcessorCount"],
            "memory_gb": found["totalGlobalMem"] / 1e9,
            "driver": driver_version(), "driver_cuda": runtime.driverGetVersion(),
            "cuda": runtime.runtimeGetVersion(), "cupy": self.cupy.__version__,
            "nvrtc": ".".join(map(str, self.cupy.cuda.nvrtc.getVersion())),
        }  # fmt: skip

    def get(self, array: Array) -> np.ndarray:
        return np.asarray(self.cupy.asnumpy(array))

    def copy(self, source: Array, target: Array) -> None:
        target.data.copy_from_device_async(source.data, source.nbytes)

    def synchronize(self) -> None:
        self.cupy.cuda.get_current_stream().synchronize()

    def stream(self) -> Any:
        """A new stream, current inside the context."""
        return self.cupy.cuda.Stream(non_blocking=True)

    def event(self) -> Any:
        """The stream's own time, so that nothing need wait in between."""
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def elapsed(self, begin: Any, end: Any) -> float:
        """Seconds between two events, after `synchronize`."""
        return float(self.cupy.cuda.get_elapsed_time(begin, end)) / 1e3

    def restart_memory(self) -> None:
        """Give back what the pool holds, and count from here."""
        gc.collect()
        pool = self.cupy.get_default_memory_pool()
        pool.free_all_blocks()
        self._used = pool.used_bytes()

    def peak_bytes(self) -> int | None:
        """The most that the pool took from the device since `restart_memory`, beside what
        was in use then: it gives nothing back by itself."""
        return int(self.cupy.get_default_memory_pool().total_bytes()) - self._used


class Emulated:
    """NumPy arrays, kernels built for the CPU: its times mean nothing."""

    name = "emulated"
    xp = np
    copy_bytes = host_bytes = 2**20
    put = get = staticmethod(np.asarray)
    copy = staticmethod(lambda source, target: np.copyto(target, source))
    event = staticmethod(time.perf_counter)
    elapsed = staticmethod(lambda begin, end: end - begin)
    synchronize = peak_bytes = staticmethod(lambda: None)
    restart_memory, stream = staticmethod(gc.collect), nullcontext

    def __init__(self) -> None:
        sys.path.insert(0, str(ROOT / "tests" / "support"))
        from emulated import EmulatedBackend

        self.backend_class = EmulatedBackend
        registry.register_backend(self.name, lambda *_: self.make_backend(EmulatedBackend, *_))

    def make_backend(self, kind: Any, *_: int, deep: int | None = 40) -> Any:
        return kind(deep=deep)  # few rows, so that there are wide levels

    def describe(self) -> dict[str, Any]:
        return {"name": "emulated on the CPU"}


def open_device(name: str) -> Any:
    return {"cupy": Gpu, "emulated": Emulated}[name]()


def driver_version() -> str | None:
    """Of the kernel's driver, which CUDA does not say."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.split("\n")[0].strip() or None


def bandwidth(device: Any) -> dict[str, float]:
    """Bytes per second of copies: on the device (read plus written), and from and to the host."""
    xp, found = device.xp, {}
    source = xp.arange(device.copy_bytes // 4, dtype=xp.uint32)
    target = xp.empty_like(source)
    host = np.arange(device.host_bytes // 4, dtype=np.uint32)
    there = device.put(host)
    for name, n_bytes, call in (
        ("copy", 2 * source.nbytes, lambda: device.copy(source, target)),
        ("to_device", host.nbytes, lambda: device.put(host)),
        ("to_host", host.nbytes, lambda: device.get(there)),
    ):
        seconds = [timed(device, call)[0] for _ in range(COPIES)]
        found[name] = n_bytes / float(np.median(seconds))
    return found


def timed(device: Any, call: Any) -> tuple[float, Any]:
    """Seconds until the device has finished the call, and its result."""
    device.synchronize()
    start = time.perf_counter()
    result = call()
    device.synchronize()
    return time.perf_counter() - start, result
