"""Is there a GPU that this process can use, and if not, why? Asked late and, mostly, once.

Nothing here runs at import. A process that has initialised CUDA breaks the children that
it forks, so the question is put only where its answer decides something.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NamedTuple

from gpuforest.common.errors import BackendError

logger = logging.getLogger("gpuforest")

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
INSTALL = (
    "pip install 'gpuforest[cuda13]' (or 'gpuforest[cuda12]', where the driver is one of CUDA 12)"
)
LEAST_CUPY = (14, 1)  # before, numbers of repeats may not lie on the device
NOT_INITIALISED, NO_DEVICE = 3, 100  # what cuInit returns: after a fork, and without a GPU


class Reason(NamedTuple):
    """Why no GPU can be used; of each kind a process logs one."""

    kind: str
    text: str


_answers: dict[int, Reason | None] = {}  # by process, because a child's answer differs
_said: set[tuple[int, str]] = set()


def why_not() -> str | None:
    """Why this process can use no GPU, in one line; None where it can."""
    reason = _reason()
    return None if reason is None else reason.text


def require() -> None:
    """Raise BackendError, with the reason, unless a GPU can be used."""
    reason = _reason()
    if reason is not None:
        raise BackendError(f"backend 'cupy' cannot run here: {reason.text}")


def usable() -> bool:
    """Whether a GPU can be used; the first time that it cannot, the log says why."""
    reason = _reason()
    if reason is not None and (os.getpid(), reason.kind) not in _said:
        _said.add((os.getpid(), reason.kind))
        logger.info("using the CPU, because no GPU can be used: %s", reason.text)
    return reason is None


@contextmanager
def memory_errors() -> Iterator[None]:
    """Raise an allocation on the GPU that fails inside as a BackendError."""
    try:
        yield
    except Exception as error:
        if not _is_memory_error(error):
            raise
        raise BackendError(f"{_no_memory().text} ({_line(error)})") from error


def _reason() -> Reason | None:
    process = os.getpid()
    if process in _answers:
        return _answers[process]
    reason = _ask()
    if reason is None or reason.kind != "memory":  # memory may be free again later
        _answers[process] = reason
    return reason


def _ask() -> Reason | None:
    """From what costs nothing to what initialises CUDA."""
    # 1. CuPy
    if find_spec("cupy") is None:
        return Reason("cupy", f"CuPy is not installed: {INSTALL}")
    # 2. driver and device, without CuPy's slow import
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return Reason("driver", f"no NVIDIA driver is installed ({DRIVER} cannot be loaded)")
    count, version = ctypes.c_int(), ctypes.c_int()
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status == NOT_INITIALISED:
        return Reason(
            "fork",
            "CUDA was initialised before this process was forked; start it by spawning "
            "(multiprocessing.set_start_method('spawn'))",
        )
    if status == NO_DEVICE or (status == 0 and count.value == 0):
        seen = os.environ.get("CUDA_VISIBLE_DEVICES")
        why = "" if seen is None else f" (CUDA_VISIBLE_DEVICES={seen!r})"
        return Reason("device", f"there is no CUDA device{why}")
    if status:
        return Reason("driver", f"the NVIDIA driver does not start (error {status})")
    # 3. versions; from the same major number on, a driver runs every CUDA of it
    try:
        import cupy

        if tuple(map(int, cupy.__version__.split(".")[:2])) < LEAST_CUPY:
            least = ".".join(map(str, LEAST_CUPY))
            return Reason("cupy", f"CuPy {cupy.__version__} is older than {least}: {INSTALL}")
        needed = int(cupy.cuda.runtime.runtimeGetVersion()) // 1000 * 1000
    except Exception as error:  # a CuPy that cannot be imported here
        return Reason("cupy", f"CuPy cannot be used: {_line(error)}")
    driver.cuDriverGetVersion(ctypes.byref(version))
    if version.value < needed:
        return _too_old(version.value, needed)
    # 4. a little memory, which makes CUDA's context, and a kernel: CuPy comes without the
    # compiler and the headers that every kernel needs
    try:
        cupy.ones(1)
    except Exception as error:
        if _is_memory_error(error):
            return _no_memory()
        if "InsufficientDriver" in str(error):
            return _too_old(version.value, needed)
        return Reason("cuda", f"CUDA does not start: {_line(error)}")
    return None


def _too_old(version: int, needed: int) -> Reason:
    other = f", or install 'gpuforest[cuda{version // 1000}]'" if version // 1000 == 12 else ""
    return Reason(
        "version",
        f"the NVIDIA driver is too old: it runs CUDA {_dotted(version)}, the installed CuPy needs "
        f"{_dotted(needed)}; update the driver{other}",
    )


def _no_memory() -> Reason:
    """With the bytes free, where CUDA still says."""
    import cupy

    try:
        free, total = cupy.cuda.runtime.memGetInfo()
    except Exception:
        return Reason("memory", "the GPU has no memory left")
    return Reason("memory", f"the GPU has no memory left: {free:,} of {total:,} bytes are free")


def _is_memory_error(error: Exception) -> bool:
    """CuPy's own error, or what CUDA calls cudaErrorMemoryAllocation; not NumPy's."""
    if type(error).__module__.partition(".")[0] not in ("cupy", "cupy_backends"):
        return False
    return isinstance(error, MemoryError) or "out of memory" in str(error)


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
