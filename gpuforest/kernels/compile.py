"""How Numba compiles the kernels.

`error_model="numpy"` drops the zero-division check, which keeps loops from being
vectorised; no fast-math and no contraction, which would change bits. `nogil`, because
threads over slots and rows are plain threads. Compiled code is cached on disk under a
stamp of all kernels' sources: Numba alone does not notice an edited helper in another
file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# an option that Numba has, and keeps out of its documents and types
_NO_COUNTS: dict[str, Any] = {"_nrt": False, **_OPTIONS}


def _stamp() -> str:
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


_STAMP = _stamp()


def device(function: Callable[..., Any]) -> Any:
    """A helper that kernels call. It allocates nothing, so its arrays need no reference
    counts, and it is inlined, so they need not be passed field by field: in a node of a
    few rows either would cost more than all other work.
    """
    return numba.njit(forceinline=True, **_NO_COUNTS)(function)


def rare(function: Callable[..., Any]) -> Any:
    """A helper of few arguments that stays a call, which keeps compilation short."""
    return numba.njit(**_NO_COUNTS)(function)


def maker(function: Callable[..., Any]) -> Any:
    """A helper that allocates arrays for kernels."""
    return numba.njit(**_OPTIONS)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """A kernel called from Python; compiled at its first call, then cached on disk."""
    dispatcher = numba.njit(cache=True, **_OPTIONS)(function)
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = (cache_file._source_stamp, _STAMP)
    return dispatcher
