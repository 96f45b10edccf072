"""Loads compiled kernels. Where there is no file of one, a process of Numba's compiles it.

The system loads shared libraries. LLVM's library, which takes 40 MB of memory, is needed only
where kernels could not be linked, or where the system loads no library from the folder of files.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuforest.common.errors import BackendError
from gpuforest.common.parallel import check_wanted
from gpuforest.compiler import objects

if TYPE_CHECKING:
    from gpuforest.compiler.decorators import Kernel
    from gpuforest.compiler.types import Choice

EXTRA = "pip install 'gpuforest[compile]'"  # Numba, which compiles kernels
PATIENCE = 0.5  # seconds of compilation without a word
POLL = 0.02  # seconds between looks at the process that compiles
WORD = (
    "gpuforest is compiling its kernels for this machine, which takes some seconds for each "
    "(`gpuforest warmup` compiles all); later processes find them on disk"
)
IN_BACKGROUND = (
    "gpuforest is compiling its kernels for this machine in the background, which takes some "
    "minutes; meanwhile NumPy does small work, with the same results"
)
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)

_lock = threading.RLock()
_ready = False  # whether all kernels are on disk
_background: Any = None  # the process that compiles them


def function_of(kernel: Kernel, choice: Choice) -> Callable[[bytes], int]:
    """The machine code of a kernel for some types; it takes the numbers as bytes."""
    with _lock:
        name = kernel.name_of(choice)
        for path, code in objects.usable(name):
            if (function := loaded(name, code, path)) is not None:
                return function
        if not has_compiler():
            raise BackendError(f"the kernel {name} is not compiled for this machine: {EXTRA}")
        code = compiled(name)
        function = loaded(name, code, objects.write(name, code))
        if function is None:
            code = compiled(name, "--object")
            objects.write(name, code)
            function = loaded_object(name, code)
        return function


@functools.cache  # a prediction of one row would notice the time of asking again
def has_compiler() -> bool:
    """Whether Numba is installed, which compiles kernels."""
    return find_spec("numba") is not None and find_spec("llvmlite") is not None


@functools.cache
def can_run() -> bool:
    """Whether the compiled kernels are on disk, ready for the system to load, or Numba is
    installed, which compiles and loads them."""
    return has_compiler() or objects.all_linked()


def loaded(name: str, code: bytes, path: Path | None) -> Callable[[bytes], int] | None:
    """The function in the machine code of a kernel, which a file may hold; None if the code is a
    shared library that the system does not load, as where the folder may hold no programs."""
    if not objects.is_library(code):
        return loaded_object(name, code)
    if path is None:
        return None
    try:
        return FUNCTION((symbol_of(name), ctypes.CDLL(str(path.absolute()))))
    except OSError as error:
        objects.logger.info("LLVM loads compiled kernels, because the system does not: %s", error)
        return None


def loaded_object(name: str, code: bytes) -> Callable[[bytes], int]:
    """The function in a kernel's object code, which LLVM loads."""
    if not has_compiler():
        raise BackendError(f"the kernel {name} is not linked, and only llvmlite loads it: {EXTRA}")
    from gpuforest.compiler.processors import address_of

    return FUNCTION(address_of(symbol_of(name), code))


def symbol_of(name: str) -> str:
    """The name of a kernel's function in its machine code."""
    return "gpuforest_" + name.replace(".", "_").replace("-", "_")


def compiled(name: str, *options: str) -> bytes:
    """The machine code of a kernel, compiled by a process of its own, which takes some options.

    An interrupt ends that process too.

    Raises
    ------
    BackendError : it cannot be compiled here
    """
    process, began = build_process("native", name, *options), time.monotonic()
    try:
        while True:
            check_wanted()
            with contextlib.suppress(subprocess.TimeoutExpired):
                content, said = process.communicate(timeout=POLL)
                break
            if time.monotonic() - began > PATIENCE:
                objects.log_once("compiling", WORD)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise BackendError(
            "backend 'numba' cannot compile its kernels here (backend='numpy' needs none): "
            + said.decode(errors="replace")[-2000:]
        )
    code = objects.unpacked(name, content)
    if code is None:
        raise BackendError("gpuforest's files have changed: start Python again")
    return code


def build_process(
    *arguments: str, module: str = "gpuforest.compiler.build", output: int = subprocess.PIPE
) -> Any:
    """Start a process that compiles kernels."""
    path = [str(objects.PACKAGED.parents[2]), *sys.path]
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],  # not what lies in the current folder
        env={**env, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


def ready_or_begun() -> bool:
    """Whether all kernels are on disk. If not, a process begins to compile them."""
    global _ready, _background
    with _lock:
        _ready = _ready or objects.all_on_disk()
        if not _ready and _background is None:
            objects.log_once("compiling", IN_BACKGROUND)
            _background = build_process(
                "warmup", "--n-jobs", "1", module="gpuforest.cli", output=subprocess.DEVNULL
            )
        return _ready
