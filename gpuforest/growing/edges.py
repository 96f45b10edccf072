"""Binning: real values become small integer codes, once, before any tree grows.

Edges are chosen from a sample of rows, and the backend computes the codes. The code of a value x
is the number of edges below x, so that for every bin b

    x <= edge[b]   is the same as   code(x) <= b

and a training row goes the same way at prediction as in training, whatever its dtype.
The last code, the same for all features, means missing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from functools import partial

import numpy as np
from scipy.sparse import issparse

from gpuforest.backends.base import Array, Backend, new_codes
from gpuforest.backends.numpy import HOST
from gpuforest.backends.rows import BLOCK_ROWS, on_host, row_hashes, value_dtype
from gpuforest.core.bins import SAMPLE_ROWS, BinEdges, BinnedMatrix, Categories

# max_bins="auto" gives each value a bin if every feature has at most FEW_VALUES distinct values,
# and MANY_BINS bins otherwise. benchmarks/results/bins.jsonl has what more bins gain and cost
FEW_VALUES, MANY_BINS = 1023, 255
LOOK_ROWS = 2048  # values are counted in these rows first; too many there settle the question
BLOCK_VALUES = 2**24  # values encoded at once, at most: 64 MiB of float32
# The same on a device, where few launches matter more: codes take 64 MiB, and a copy of the
# values, if their dtype or layout needs one, 256 MiB of float32
DEVICE_VALUES = 2**26


def encode_blocks(
    X: Array, edges: BinEdges, backend: Backend, host_rows: int | None = None
) -> Iterator[tuple[int, int, Array]]:
    """Blocks of rows as (begin, end, codes [end - begin, F]), BLOCK_ROWS or `host_rows` on the
    host.

    X : real [N, F] of any layout and dtype, host or device, or sparse by rows, or codes already.
    One block at a time becomes dense, row-major and of `value_dtype`."""
    if hasattr(X, "code_blocks"):
        yield from X.code_blocks(backend)
        return
    N, F = X.shape
    dtype = value_dtype(X)
    if on_host(X):
        xp, size = np, host_rows or max(1, min(BLOCK_ROWS, BLOCK_VALUES // max(F, 1)))
    else:
        xp, size = backend.xp, max(1, DEVICE_VALUES // max(F, 1))
    for begin in range(0, N, size):
        end = min(begin + size, N)
        rows = X[begin:end]
        block = xp.ascontiguousarray(rows.toarray() if issparse(rows) else rows, dtype=dtype)
        yield begin, end, backend.encode(block, edges)


def block_rows(n_features: int, backend: Backend) -> int:
    """Rows that `bin_matrix` encodes at once; devices copy large blocks faster."""
    most = max(1, BLOCK_VALUES // max(n_features, 1))
    return min(most, BLOCK_ROWS) if backend.on_host else most


def encode_column(x: np.ndarray, edges: BinEdges, f: int) -> np.ndarray:
    """The codes u8 or u16 [N] of a numeric feature's values f32[N], as backends encode them."""
    codes = np.searchsorted(edges.values[edges.offsets[f] : edges.offsets[f + 1]], x)
    return np.where(np.isnan(x), edges.missing_code, codes).astype(edges.code_dtype)


def bin_matrix(
    X: Array, edges: BinEdges, backend: Backend, judged: dict[int, np.ndarray] | None = None
) -> BinnedMatrix:
    """Encode X [N, F] on the backend, by blocks of rows into one array of codes.

    judged : numbers f32[N] of some features by which rows are judged out of bag"""
    codes = None
    host_rows = block_rows(edges.n_features, backend)
    for begin, end, block in encode_blocks(X, edges, backend, host_rows):
        if codes is None and end == X.shape[0]:
            codes = block
            break
        if codes is None:
            codes = new_codes(X.shape[0], block.shape[1], block.dtype, backend)
        codes[begin:end, :] = block
    columns = {f: encode_column(x, edges, f) for f, x in (judged or {}).items()}
    columns |= getattr(X, "judged", {})
    columns = {f: backend.asarray(column) for f, column in columns.items()}
    return BinnedMatrix(codes, backend.asarray(edges.n_bins), edges, judged=columns)


def fit_edges(
    X: Array, *, max_bins: int | str = 255, weights: np.ndarray | None = None, seed: int = 0,
    sample_rows: int = SAMPLE_ROWS, backend: Backend = HOST,
    categories: Categories | None = None,
) -> BinEdges:  # fmt: skip
    """Bin edges of every feature of real X [N, F], NaN ignored.

    max_bins : limit for numeric features, without the missing bin; "auto": a bin for each value of
    the sample if no feature has more than FEW_VALUES, else MANY_BINS. A row of weight two equals
    the row twice. `seed` chooses the sample of rows."""
    rows, categories = _sample(seed, X.shape[0], sample_rows, weights, backend), categories or {}
    if rows is not None and weights is not None:
        weights = weights[rows]
    columns_of = partial(backend.sampling.column_edges, backend, X, rows, weights)
    if max_bins != "auto":
        columns = columns_of(int(max_bins))
    else:
        # one more bin tells whether a feature has more than FEW_VALUES values
        columns = columns_of(FEW_VALUES + 1)
        if has_many_values(columns, categories):
            columns = columns_of(MANY_BINS)
    return BinEdges.of(columns, categories)


def most_bins(
    X: Array, max_bins: int | str, weights: np.ndarray | None, categories: Collection[int],
    backend: Backend,
) -> int | str:  # fmt: skip
    """Resolve max_bins="auto" by LOOK_ROWS rows: FEW_VALUES, MANY_BINS, or "auto" if undecided."""
    if max_bins != "auto":
        return max_bins
    rows = _weighing_rows(weights)
    rows = np.arange(X.shape[0]) if rows is None else rows
    if len(rows) > FEW_VALUES:
        columns = backend.sampling.column_edges(backend, X, rows[:LOOK_ROWS], None, FEW_VALUES + 1)
        if has_many_values(columns, categories):
            return MANY_BINS
    return FEW_VALUES if len(rows) <= LOOK_ROWS else max_bins


def has_many_values(columns: list[np.ndarray], categories: Collection[int]) -> bool:
    """True if a numeric feature has over FEW_VALUES values, by edges for FEW_VALUES + 1 bins."""
    return any(len(c) >= FEW_VALUES for f, c in enumerate(columns) if f not in categories)


def _weighing_rows(weights: np.ndarray | None) -> np.ndarray | None:
    """The rows of positive weight, i64[n]; None if all rows are."""
    return None if weights is None or weights.all() else np.flatnonzero(weights)


def _sample(
    seed: int, n_rows: int, count: int, weights: np.ndarray | None, backend: Backend
) -> np.ndarray | None:
    """The `count` rows of positive weight with the lowest hashes i64[count], ascending; None: all.
    A hash depends on the seed and the row's number, so blocks can be sampled in any order."""
    rows = _weighing_rows(weights)
    n = n_rows if rows is None else len(rows)
    if n <= count:
        return rows
    for limit in (hash_limit(count, n), 2**64 - 1):
        drawn = backend.sampling.rows_below(backend, seed, n_rows, limit)
        if weights is not None:
            drawn = drawn[weights[drawn] > 0]
        if len(drawn) >= count:
            break
    return np.asarray(drawn[lowest(row_hashes(seed, drawn), count)])


def hash_limit(count: int, n_rows: int) -> int:
    """A limit with at least `count` hashes of n_rows below it; fails with a chance of 10**-15."""
    return min(2**64 * (count + 8 * math.isqrt(count) + 8) // n_rows, 2**64 - 1)


def lowest(hashes: np.ndarray, count: int) -> np.ndarray:
    """The positions of the `count` lowest hashes, i64[count], ascending."""
    return np.sort(np.argpartition(hashes, count - 1)[:count])
