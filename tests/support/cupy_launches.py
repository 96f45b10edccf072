"""What CuPy 14 launches for a function of arrays, and what it compiles for it at run time.

`launched` counts by name; memsets and copies on the device count as launches, for the host spends
as long on them. `compiled` holds a kernel for each function, set of dtypes and number of
dimensions: CuPy writes the text of an elementwise kernel or a reduction anew for each
(cupy/_core/_kernel.pyx, _reduction.pyx; dimensions that lie one after another count as one). What
CuPy brings compiled has no entry there: memset, copies, Thrust's sorts.

Files are those of cupy/_core, if none is named. Numbers hold for up to 2**18 elements.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

launched: Counter[str] = Counter()
compiled: set[tuple[Any, ...]] = set()

CHUNK = 512  # elements that a block of a scan takes
READY = None  # in place of a kernel: CuPy has it compiled


def dimensions(arrays: list[np.ndarray]) -> int:
    """The dimensions of arrays of one shape that are left if those are joined that lie one after
    another in all of them."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    strides = [np.broadcast_to(a, shape).strides for a in arrays]
    axes = [i for i, n in enumerate(shape) if n > 1]
    joined = sum(all(s[i] == s[j] * shape[j] for s in strides) for i, j in pairwise(axes))
    return max(1, len(axes) - joined)


def kernel(name: str, *arrays: Any) -> tuple[Any, ...]:
    """The elementwise kernel of these arrays; numbers among them are parameters."""
    some = [a for a in arrays if isinstance(a, np.ndarray)]
    types = tuple(str(a.dtype) if isinstance(a, np.ndarray) else type(a).__name__ for a in arrays)
    return name, *types, dimensions(some)


def copy(source: np.ndarray, target: np.ndarray) -> list[Any]:
    """elementwise_copy; core.pyx: an array as it lies is copied without a kernel."""
    same = source.dtype == target.dtype and source.shape == target.shape
    if same and source.flags.c_contiguous and target.flags.c_contiguous:
        return [READY]
    return [kernel("copy", source, target)]


def converted(source: np.ndarray, target: np.ndarray) -> list[Any]:
    """astype, core.pyx."""
    return [READY] if source.dtype == target.dtype else [kernel("copy", source, target)]


def scan(a: np.ndarray, dtype: Any) -> list[Any]:
    """_routines_math.pyx, scan: sums of blocks, their scan, and all."""
    own = ("scan", str(a.dtype), str(np.dtype(dtype)))
    if a.size <= CHUNK:
        return [own]
    blocks = -(-a.size // CHUNK)
    return [("scan's sums", *own[1:]), *scan(np.empty(blocks, dtype), dtype), own]


def batch_scan(a: np.ndarray, axis: int) -> list[Any]:
    """_routines_math.pyx, scan_core with an axis: in place, then for the ends of blocks."""
    own, found = str(a.dtype), [("batch scan", str(a.dtype))]
    n = a.shape[axis]
    while n > CHUNK:
        n //= CHUNK
        found += [("batch scan of ends", own), ("batch scan's sums", own)]
    return found


def cumulative_sum(out: Any, a: Any, *, axis: Any = None, include_initial: bool = False) -> list:
    """array_api_compat: cumsum along an axis, and a concatenation."""
    sums = np.empty(a.shape, out.dtype)
    found = [*converted(a, sums), *batch_scan(sums, axis or 0)]
    if include_initial:
        found += [READY, *concat(out, [sums[:1], sums])]
    return found


def concat(out: np.ndarray, arrays: Any, axis: int = 0) -> list[Any]:
    """_routines_manipulation.pyx, _concatenate: up to eight are copied one by one; a table of more
    is copied from the host."""
    if len(arrays) <= 8:
        parts = (out[tuple(map(slice, a.shape))] for a in arrays)
        return [kernel("copy", a, part) for a, part in zip(arrays, parts, strict=True) if a.size]
    alike = len({a.shape for a in arrays}) == 1
    return [READY] * (1 if alike else 3) + [("concatenate", alike, str(out.dtype), out.ndim)]


def stack(out: np.ndarray, arrays: Any, *, axis: int = 0) -> list[Any]:
    return [kernel("copy", a, out.take(0, axis)) for a in arrays if a.size]


def nonzero(out: Any, a: np.ndarray) -> list[Any]:
    """_routines_indexing.pyx, _ndarray_argwhere: sums of blocks suffice if there are several."""
    mask = [] if a.dtype == bool else [kernel("!=", a, a)]
    scanned = scan(a, np.int32)
    scanned = scanned[:-1] if a.size > CHUNK else scanned
    return [*mask, *scanned, ("nonzero", a.size > CHUNK, a.ndim)]


def mask(out: np.ndarray, a: np.ndarray, where: np.ndarray) -> list[Any]:
    """_routines_indexing.pyx, _getitem_mask_single."""
    again = 1 if where.ndim == a.ndim else 2
    return [*scan(where, np.int32) * again, kernel("mask", a)]


def set_mask(target: np.ndarray, where: np.ndarray, value: Any) -> list[Any]:
    return [*scan(where, np.int32), kernel("set mask", target)]


def take(out: np.ndarray, a: np.ndarray, at: np.ndarray, **_: Any) -> list[Any]:
    """_routines_indexing.pyx, _take."""
    return [kernel("take", a.reshape(-1)[:1], at.reshape(-1)[:1])]


def search(out: Any, among: np.ndarray, values: np.ndarray, **_: Any) -> list[Any]:
    """cupy/_sorting/search.py."""
    return [kernel("searchsorted", among[:1], values[:1])]


def repeat(out: np.ndarray, a: np.ndarray, times: Any, axis: int = 0) -> list[Any]:
    """_routines_manipulation.pyx: the least of them, a cumsum, arange, searchsorted, take."""
    if not isinstance(times, np.ndarray):
        return [kernel("copy", a, a)]
    found = [READY, *scan(times, np.int64), ("arange", "int64"), ("searchsorted", "int64", "int64")]
    return [*found, *take(out, a, times)]


def sort(out: Any, a: np.ndarray, **_: Any) -> list[Any]:
    """_routines_sorting.pyx: a copy, and Thrust's launches, which count as one here."""
    return [READY, READY]


def unique(out: Any, a: np.ndarray) -> list[Any]:
    """cupy/_manipulation/add_remove.py, _unique_1d, with the inverse."""
    n, where = a.reshape(-1), np.empty(a.size, bool)
    at = np.empty(a.size, np.int64)
    return [
        READY, *sort(out, n), *take(n, n, at), ("fill", "bool"),  # sorted; mask[:1] = True
        kernel("!=", n, n), kernel("copy", where, where),  # mask[1:] = aux[1:] != aux[:-1]
        *mask(n, n, where), *scan(where, np.int64), kernel("-", at, 1), kernel("scatter", at, at),
    ]  # fmt: skip


def unique_all(out: Any, a: np.ndarray) -> list[Any]:
    """With indices and counts."""
    where, at = np.empty(a.size, bool), np.empty(a.size, np.int64)
    more = [*mask(at, at, where), *nonzero(out, where), READY, ("fill", "int64")]
    return [*unique(out, a), *more, kernel("-", at, at)]


def reduced(name: str) -> Any:
    """_reduction.pyx: one launch. CUB has sums and extrema of all elements compiled."""

    def call(out: Any, a: np.ndarray, axis: Any = None, **_: Any) -> list[Any]:
        cub = axis is None and name in ("sum", "max", "min") and a.dtype != bool
        return [READY if cub else (name, str(a.dtype), str(out.dtype), a.ndim, axis)]

    return call


def filled(out: np.ndarray, *_: Any, **__: Any) -> list[Any]:
    return [("fill", str(out.dtype))]


def arange(out: np.ndarray, *_: Any, **__: Any) -> list[Any]:
    return [("arange", str(out.dtype))]


def memset(*_: Any, **__: Any) -> list[Any]:
    return [READY]


REDUCTIONS = "all", "any", "argmax", "count_nonzero", "max", "min", "sum"
TABLE: dict[str, Any] = {
    "arange": arange,
    "argsort": sort,
    "ascontiguousarray": lambda out, a, **_: [] if a.flags.c_contiguous else copy(a, out),
    "asarray": lambda out, a, **_: copy(a, out) if isinstance(a, np.ndarray) else [READY],
    "astype": lambda out, a, *_, copy=True: converted(a, out) if copy or out is not a else [],
    "concat": concat,
    "cumulative_sum": cumulative_sum,
    "full": filled,
    "mask": mask,
    "nonzero": nonzero,
    "ones": filled,
    "ones_like": filled,
    "repeat": repeat,
    "reshape": lambda out, a, *_: [] if np.shares_memory(out, a) else [kernel("copy", a, a)],
    "searchsorted": search,
    "set": lambda out, a: copy(a, out) if isinstance(a, np.ndarray) else filled(out),
    "set mask": set_mask,
    "sort": sort,
    "stack": stack,
    "take": take,
    "unique_all": unique_all,
    "unique_inverse": unique,
    "zeros": memset,
    "zeros_like": memset,
    **{name: reduced(name) for name in REDUCTIONS},
}
VIEWS = {"broadcast_to", "empty", "empty_like", "expand_dims", "permute_dims"}


def count(name: str, out: Any, *arguments: Any, **rest: Any) -> None:
    """Count what a function of the array API, or an operator, launches for these arguments."""
    sizes = [a.size for a in (out if isinstance(out, tuple) else (out,)) if hasattr(a, "size")]
    if name in VIEWS or (not any(sizes) and name != "nonzero"):
        return
    if name in TABLE:
        found = TABLE[name](out, *arguments, **rest)
    else:  # elementwise
        found = [kernel(name, *arguments, out)]
    launched[name] += len(found)
    compiled.update(each for each in found if each is not READY)
