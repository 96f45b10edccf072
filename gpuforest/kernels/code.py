"""Loads compiled kernels. Where there is no file of one, a process of Numba's compiles it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm

from gpuforest.common.errors import BackendError
from gpuforest.common.parallel import check_wanted
from gpuforest.kernels import objects

if TYPE_CHECKING:
    from gpuforest.kernels.decorators import Kernel
    from gpuforest.kernels.types import Choice

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
_engine: Any = None
_ready = False  # whether all kernels are on disk
_background: Any = None  # the process that compiles them


def function_of(kernel: Kernel, choice: Choice) -> Callable[[bytes], int]:
    """The machine code of a kernel for some types; it takes the numbers as bytes."""
    with _lock:
        name = kernel.name_of(choice)
        code = objects.read(name)
        if code is None:
            code = compiled(name)
        engine = _engine_of_process()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return FUNCTION(engine.get_function_address(symbol_of(name)))


def symbol_of(name: str) -> str:
    """The name of a kernel's function in its object code."""
    return "gpuforest_" + name.replace(".", "_").replace("-", "_")


def _engine_of_process() -> Any:
    global _engine
    if _engine is None:
        machine = target_machine(objects.native())
        _engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    return _engine


def target_machine(target: objects.Target) -> Any:
    """What LLVM makes code with, set as Numba sets it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=3,
        reloc="static",
        codemodel="jitdefault",
        jit=True,
    )


def compiled(name: str) -> bytes:
    """The object code of a kernel, compiled by a process of its own and kept on disk.

    An interrupt ends that process too.

    Raises
    ------
    BackendError : it cannot be compiled here
    """
    process, began = build_process("native", name), time.monotonic()
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
    code = objects.unpacked(content)
    if code is None:
        raise BackendError("gpuforest's files have changed: start Python again")
    objects.write(name, code)
    return code


def build_process(
    *arguments: str, module: str = "gpuforest.kernels.build", output: int = subprocess.PIPE
) -> Any:
    """Start a process that compiles kernels."""
    path = [str(objects.KERNELS.parents[1]), *sys.path]
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
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
