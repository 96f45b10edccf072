"""Whether this process can use a GPU, and if not, why.

Importing this module initialises no CUDA, because children that are forked afterwards could not
use it. The answer is found when it decides something, and then kept.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from textwrap import shorten
from traceback import walk_tb

from gpuforest.common.errors import BackendError

logger = logging.getLogger("gpuforest")

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
INSTALL = (
    "pip install 'gpuforest[cuda13]' (or 'gpuforest[cuda12]', where the driver is one of CUDA 12)"
)
CUDA_PACKAGES = ("cupy", "cupy_backends", "cuda")
# of CuPy, and of the package that finds its libraries
COMPILER_ERRORS = (
    "CompileException", "NVRTCError", "DynamicLibNotFoundError", "DynamicLibNotAvailableError",
)  # fmt: skip
LEAST_CUPY = (14, 1)  # before, `repeat` takes no counts on the device
NOT_INITIALISED, NO_DEVICE = 3, 100  # error codes of cuInit: after a fork, and without a GPU


Reason = tuple[str, str]  # why no GPU can be used; a process logs one reason of each kind
_answers: dict[int, Reason | None] = {}  # by process id, because a child's answer can differ
_said: set[tuple[int, str]] = set()


def why_not() -> str | None:
    """Why this process can use no GPU, in one line; None if it can."""
    reason = _reason()
    return None if reason is None else reason[1]


def require() -> None:
    """Raise BackendError with the reason if no GPU can be used."""
    reason = _reason()
    if reason is not None:
        raise BackendError(f"backend 'cupy' cannot run here: {reason[1]}")


def usable() -> bool:
    """Whether a GPU can be used; if not, the reason is logged once."""
    if (reason := _reason()) is None:
        return True
    kind, text = reason
    if (os.getpid(), kind) not in _said:
        _said.add((os.getpid(), kind))
        logger.info("using the CPU, because no GPU can be used: %s", text)
    return False


@contextmanager
def device_errors() -> Iterator[None]:
    """Turn errors of CuPy into BackendError: no memory, no compiler, a missing library or
    header."""
    try:
        yield
    except Exception as error:
        if _is_memory_error(error):
            raise BackendError(f"{_no_memory()[1]} ({_line(error)})") from error
        if _is_of_installation(error):
            text = f"CuPy or CUDA is not completely installed: {shorten(_line(error), 500)}"
            raise BackendError(f"{text}; {INSTALL}") from error
        raise


def _reason() -> Reason | None:
    process = os.getpid()
    if process in _answers:
        return _answers[process]
    reason = _ask()
    if reason is None or reason[0] != "memory":  # memory may be free again later
        _answers[process] = reason
    return reason


def _ask() -> Reason | None:
    """Check for a GPU, from what costs nothing to what initialises CUDA."""
    # 1. CuPy
    if find_spec("cupy") is None:
        return "cupy", f"CuPy is not installed: {INSTALL}"
    # 2. driver and device, without CuPy's slow import
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return "driver", f"no NVIDIA driver is installed ({DRIVER} cannot be loaded)"
    count, version = ctypes.c_int(), ctypes.c_int()
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status == NOT_INITIALISED:
        return (
            "fork",
            "CUDA was initialised before this process was forked; start it by spawning "
            "(multiprocessing.set_start_method('spawn'))",
        )
    if status == NO_DEVICE or (status == 0 and count.value == 0):
        seen = os.environ.get("CUDA_VISIBLE_DEVICES")
        why = "" if seen is None else f" (CUDA_VISIBLE_DEVICES={seen!r})"
        return "device", f"there is no CUDA device{why}"
    if status:
        return "driver", f"the NVIDIA driver does not start (error {status})"
    # 3. versions; a driver runs every CUDA release of its major version and of earlier ones
    try:
        import cupy

        if tuple(map(int, cupy.__version__.split(".")[:2])) < LEAST_CUPY:
            least = ".".join(map(str, LEAST_CUPY))
            return "cupy", f"CuPy {cupy.__version__} is older than {least}: {INSTALL}"
        needed = int(cupy.cuda.runtime.runtimeGetVersion()) // 1000 * 1000
    except Exception as error:  # a CuPy that cannot be imported here
        return "cupy", f"CuPy cannot be used: {_line(error)}"
    driver.cuDriverGetVersion(ctypes.byref(version))
    if version.value < needed:
        return _too_old(version.value, needed)
    # 4. a small allocation, which creates CUDA's context, and a kernel, because CuPy comes
    # without the compiler and the headers that every kernel needs
    try:
        cupy.ones(1)
    except Exception as error:
        if _is_memory_error(error):
            return _no_memory()
        if "InsufficientDriver" in str(error):
            return _too_old(version.value, needed)
        return "cuda", f"CUDA does not start: {_line(error)}"
    return None


def _too_old(version: int, needed: int) -> Reason:
    other = f", or install 'gpuforest[cuda{version // 1000}]'" if version // 1000 == 12 else ""
    return (
        "version",
        f"the NVIDIA driver is too old: it runs CUDA {_dotted(version)}, the installed CuPy needs "
        f"{_dotted(needed)}; update the driver{other}",
    )


def _no_memory() -> Reason:
    """The reason that memory is short, with the free bytes if CUDA can report them."""
    import cupy

    try:
        free, total = cupy.cuda.runtime.memGetInfo()
    except Exception:
        return "memory", "the GPU has no memory left"
    return "memory", f"the GPU has no memory left: {free:,} of {total:,} bytes are free"


def _is_memory_error(error: Exception) -> bool:
    """Whether it is CuPy's error, or CUDA's cudaErrorMemoryAllocation, and not NumPy's."""
    if type(error).__module__.partition(".")[0] not in ("cupy", "cupy_backends"):
        return False
    return isinstance(error, MemoryError) or "out of memory" in str(error)


def _is_of_installation(error: Exception) -> bool:
    """True if CuPy lacks a library or cannot compile; a RuntimeError counts if CuPy raised it."""
    kind = type(error)
    if kind.__name__ in COMPILER_ERRORS and kind.__module__.partition(".")[0] in CUDA_PACKAGES:
        return True
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    where = str(frames[-1].f_globals.get("__name__")) if frames else ""
    general = RuntimeError, OSError, FileNotFoundError, ImportError, ModuleNotFoundError
    return kind in general and where.partition(".")[0] in CUDA_PACKAGES


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
