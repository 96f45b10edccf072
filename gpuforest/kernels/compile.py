"""How Numba compiles the kernels.

`error_model="numpy"` drops the zero-division check, which keeps loops from being
vectorised; no fast-math and no contraction, which would change bits. `nogil`, because
threads over slots and rows are plain threads. Compiled code is kept on disk, by cache.py.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core import event
from numba.core.registry import cpu_target

from gpuforest.kernels.cache import KernelCache

logger = logging.getLogger("gpuforest")

# Releases of Numba with the inside that helper_compiler.py knows; others compile longer
INSIDE_KNOWN = ((0, 61), (0, 68))
PATIENCE = 0.5  # seconds of a kernel's compilation without a word


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_HELPER: dict[str, Any] = {**_OPTIONS}
if numba.version_info[:2] in INSIDE_KNOWN:
    from gpuforest.kernels.helper_compiler import HelperCompiler

    _OPTIONS["no_cfunc_wrapper"] = True
    _HELPER |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    _HELPER["pipeline_class"] = HelperCompiler
# an option that Numba has, and keeps out of its documents and types
_NO_COUNTS: dict[str, Any] = {"_nrt": False, **_HELPER}


def _stamp() -> bytes:
    """A hash of all kernels' sources, because a kernel's code holds helpers from other files."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).digest()


_STAMP = _stamp()


def _helper(function: Callable[..., Any], **options: Any) -> Any:
    """A function compiled once for each type, and not for each constant: those are inlined."""
    dispatcher = numba.njit(**options)(function)
    if dispatcher is function:  # Numba compiles nothing (NUMBA_DISABLE_JIT)
        return function
    template = dispatcher.get_call_template

    def plain_template(args: Any, kwargs: dict[str, Any]) -> Any:
        plain = [types.unliteral(a) for a in args]
        return template(plain, {name: types.unliteral(a) for name, a in kwargs.items()})

    dispatcher.get_call_template = plain_template
    return dispatcher


def device(function: Callable[..., Any]) -> Any:
    """A helper that kernels call. It allocates nothing, so its arrays need no reference
    counts, and it is inlined, so they need not be passed field by field: for a node of a
    few rows either would cost more than all other work. It must not return arrays, or a record
    of arrays, to a kernel itself, which would release references that it does not own.
    """
    return _helper(function, forceinline=True, **_NO_COUNTS)


def rare(function: Callable[..., Any]) -> Any:
    """A helper of few arguments that is not inlined, to keep compilation short."""
    return _helper(function, **_NO_COUNTS)


def maker(function: Callable[..., Any]) -> Any:
    """A helper that allocates arrays for kernels."""
    return _helper(function, **_HELPER)


def kernel(function: Callable[..., Any]) -> Any:
    """A kernel called from Python; compiled at its first call, then kept on disk."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    if dispatcher is not function:  # else Numba compiles nothing (NUMBA_DISABLE_JIT)
        dispatcher._cache = KernelCache(function, _STAMP)
    _watch.kernels.add(dispatcher)
    return dispatcher


class _Watch(event.Listener):
    """Watches compilations of kernels that no cache holds. It logs one warning if they take long,
    and stops garbage collection meanwhile, which would take a tenth of the time.
    """

    def __init__(self) -> None:
        self.kernels: set[Any] = set()
        self.has_warned = self.collects = False
        self.timer = threading.Timer(0, self.warn)

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] in self.kernels:
            self.collects = gc.isenabled()
            gc.disable()
            self.timer = threading.Timer(PATIENCE, self.warn)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        if event.data["dispatcher"] in self.kernels:
            self.timer.cancel()
            if self.collects:
                gc.enable()

    def warn(self) -> None:
        if not self.has_warned:
            self.has_warned = True
            logger.warning(
                "gpuforest is compiling its kernels for this machine, which takes 10 to 30 "
                "seconds; later processes find them on disk"
            )


_watch = _Watch()
event.register("numba:compile", _watch)
# import the rest of Numba here, because an interrupt of an import on another thread can hang
cpu_target.target_context.refresh()
