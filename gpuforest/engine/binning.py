"""Binning: real values become small integer codes, once, before any tree grows.

Edges are chosen from a sample of rows, and the backend computes the codes. The code of a value x
is the number of edges below x, so that for every bin b

    x <= edge[b]   is the same as   code(x) <= b

and a training row goes the same way at prediction as in training, whatever its dtype.
The last code, the same for all features, means missing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import issparse

from gpuforest.backends.base import Array, Backend
from gpuforest.common import dtypes, hashing, parallel
from gpuforest.kernels.edges.numpy import edges as edges_of

Categories = dict[int, tuple[Any, ...]]  # of each categorical feature, see `BinEdges`


class TargetStatistic(NamedTuple):
    """The numbers that stand for a feature's categories, see data/target_statistics.py."""

    categories: tuple[Any, ...]
    values: tuple[float, ...]  # one more than categories: the last is that of all other values


Statistics = dict[int, TargetStatistic]


def categories_of(known: Any) -> tuple[Any, ...]:
    """The categories of a feature, as `BinEdges.known` has it."""
    return known.categories if isinstance(known, TargetStatistic) else known


CATEGORY_TYPES = (str, int, float, bool)  # the types that a category may have
MAX_CATEGORIES = dtypes.MAX_BINS - 2  # one more bin is for other values, and see `missing_code`
SAMPLE_ROWS = 200_000  # quantiles of a bin of 1/255 are then known to 1.5 %
# max_bins="auto" gives each value a bin if every feature has at most FEW_VALUES distinct values,
# and MANY_BINS bins otherwise. benchmarks/results/bins.jsonl has what more bins gain and cost
FEW_VALUES, MANY_BINS = 1023, 255
TINY = float(np.finfo(np.float64).tiny)
LOOK_ROWS = 2048  # values are counted in these rows first; too many there settle the question
BLOCK_ROWS = 65_536  # rows encoded at once, at most, but see `block_rows`
BLOCK_VALUES = 2**24  # values encoded at once, at most: 64 MiB of float32
# The same on a device, where few launches matter more: codes take 64 MiB, and a copy of the
# values, if their dtype or layout needs one, 256 MiB of float32
DEVICE_VALUES = 2**26


@dataclass(frozen=True, eq=False)
class BinEdges:
    """Where each feature's bins end: host arrays, plain data."""

    values: np.ndarray  # f64[E], each feature's ascending edges, one feature after another
    offsets: np.ndarray  # i64[F + 1], feature f's edges are values[offsets[f]:offsets[f + 1]]
    # u8[F], NUMERIC or CATEGORICAL
    kinds: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    # for each categorical feature, the categories (strings, numbers or truth values) of the codes
    # 0 .. n - 1; code n stands for any other value, such as a rare one or one that training never
    # saw. So the edges are 0 .. n - 1
    categories: Categories = field(default_factory=dict)
    # features of categories that are numbers here: their edges are those of the numbers
    statistics: Statistics = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is derived from them is not pickled."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def n_features(self) -> int:
        return len(self.offsets) - 1

    @property
    def known(self) -> dict[int, Any]:
        """The categories, or the statistic, of each feature whose values are categories."""
        return {**self.categories, **self.statistics}

    @cached_property
    def n_bins(self) -> np.ndarray:
        """Bins of each feature, i32[F]: one more than its edges."""
        return (np.diff(self.offsets) + 1).astype(np.int32)

    @cached_property
    def rounded(self) -> np.ndarray:
        """The edges as f32[E], rounded down, so that any float32 has the same code by them."""
        with np.errstate(over="ignore", under="ignore"):
            near = self.values.astype(np.float32)
        lower = np.nextafter(near, np.float32(-np.inf))
        return np.where(near > self.values, lower, near)

    @cached_property
    def missing_code(self) -> int:
        """The code of a missing value, above every bin of every feature. Above the bins of a
        categorical one a bin stays free: there, missing is one more category in any order."""
        spare = self.kinds == dtypes.CATEGORICAL if len(self.kinds) else 0
        return int((self.n_bins + spare).max())

    @property
    def n_codes(self) -> int:
        """B: the bins of a histogram, including the one for missing values."""
        return self.missing_code + 1

    @property
    def code_dtype(self) -> type[np.unsignedinteger[Any]]:
        return dtypes.CODE8 if self.n_codes <= 256 else dtypes.CODE16

    @cached_property
    def set_words(self) -> np.ndarray:
        """The 64-bit words that a set of a feature's bins takes, i64[F]; 0 for numeric ones."""
        words = (self.n_bins.astype(np.int64) + 63) // 64
        return np.where(self.kinds == dtypes.CATEGORICAL, words, 0)

    @property
    def most_words(self) -> int:
        """W: the most words that a set takes; zero if no feature is categorical."""
        return int(self.set_words.max(initial=0))

    @cached_property
    def coordinates(self) -> np.ndarray:
        """Where each bin lies between the feature's first and last bin, 0 to 65,534: i32[F, B];
        of categories their codes, and 0 for missing values. A bin is at the middle of its edges,
        see `middles`; neighbours differ by one at the least."""
        coordinates = np.zeros((self.n_features, self.n_codes), np.int32)
        for f, n in enumerate(self.n_bins):
            number = np.arange(n)
            if n == 1 or self.kinds[f] == dtypes.CATEGORICAL:
                coordinates[f, :n] = number
                continue
            at, _ = self.middles(f)
            at = np.rint((at - at[0]) / max(at[-1] - at[0], TINY) * dtypes.MOST_COORDINATE)
            at = np.maximum.accumulate(at.astype(np.int64) - number) + number
            coordinates[f, :n] = np.minimum(at, dtypes.MOST_COORDINATE - number[::-1])
        return coordinates

    def middles(self, f: int) -> tuple[np.ndarray, float]:
        """The middles of a numeric feature's bins, f64[n_bins > 1], divided by the second result,
        so that their differences are finite. The first and the last bin, which have one edge, lie
        as far from it as the middle of the bin beside."""
        e = self.values[self.offsets[f] : self.offsets[f + 1]]
        unit = max(abs(float(e[0])), abs(float(e[-1])), TINY)
        e = e / unit
        if len(e) == 1:
            return np.array([e[0] - 0.5, e[0] + 0.5]), unit
        inner = (e[1:] + e[:-1]) / 2
        ends = [2 * e[0] - inner[0]], [2 * e[-1] - inner[-1]]
        return np.concatenate([ends[0], inner, ends[1]]), unit

    def threshold(self, feature: np.ndarray, bin: np.ndarray) -> np.ndarray:
        """Thresholds f64[...]: x <= threshold goes left; with +inf all but missing values do."""
        last = bin >= self.n_bins[feature] - 1
        at = np.minimum(self.offsets[feature] + bin, max(len(self.values) - 1, 0))
        values = self.values if len(self.values) else np.zeros(1)
        return np.where(last, np.inf, values[at])


@dataclass(frozen=True, eq=False)
class BinnedMatrix:
    """The training data as the engine sees them: codes u8 or u16 [N, F], in the backend's order in
    memory, which may pad rows to more than F codes."""

    codes: Array
    n_bins: Array  # i32[F], on the backend's device
    edges: BinEdges
    # what the backend keeps of each target whose trees grow from these codes
    targets: WeakKeyDictionary[Any, Any] = field(default_factory=WeakKeyDictionary)
    scratch: deque[Any] | None = None  # memory that subtrees grew in, to be used again

    @property
    def n_rows(self) -> int:
        return int(self.codes.shape[0])

    @property
    def n_features(self) -> int:
        return self.edges.n_features


def encode_blocks(
    X: Array, edges: BinEdges, backend: Backend, host_rows: int | None = None
) -> Iterator[tuple[int, int, Array]]:
    """Blocks of rows as (begin, end, codes [end - begin, F]), one after another; of rows on the
    host BLOCK_ROWS at most, or `host_rows`.

    X is a real array [N, F] of any layout and dtype, on the host or the device, or a sparse one in
    rows: a block at a time becomes row-major, dense and of `value_dtype`. Or it has codes already.
    """
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
    """Rows on the host, at most, that `bin_matrix` encodes at once. Devices take more, because
    their threads copy large blocks faster."""
    most = max(1, BLOCK_VALUES // max(n_features, 1))
    return min(most, BLOCK_ROWS) if backend.on_host else most


def new_codes(n_rows: int, n_features: int, dtype: Any, backend: Backend) -> Array:
    """An uninitialised array for codes [N, F]; on the host its columns are contiguous, because a
    node reads few of them."""
    if backend.on_host:
        return np.empty((n_features, n_rows), dtype).T
    return backend.xp.empty((n_rows, n_features), dtype=dtype)


def take_rows(X: Array, rows: np.ndarray | None, backend: Backend) -> Array:
    """X[rows] where X is; rows : i64[n] on the host, or None: all."""
    if rows is None:
        return X
    if on_host(X):
        return X[rows]
    return backend.xp.take(X, backend.asarray(rows), axis=0)


def bin_matrix(X: Array, edges: BinEdges, backend: Backend) -> BinnedMatrix:
    """Encode X [N, F] on the backend, by blocks of rows into one array of codes."""
    codes = None
    host_rows = block_rows(edges.n_features, backend)
    for begin, end, block in encode_blocks(X, edges, backend, host_rows):
        if codes is None and end == X.shape[0]:
            codes = block
            break
        if codes is None:
            codes = new_codes(X.shape[0], block.shape[1], block.dtype, backend)
        codes[begin:end, :] = block
    return BinnedMatrix(codes, backend.asarray(edges.n_bins), edges)


def fit_edges(
    X: Array, *, max_bins: int | str = 255, weights: np.ndarray | None = None, seed: int = 0,
    sample_rows: int = SAMPLE_ROWS, backend: Backend | None = None,
    categories: Categories | None = None,
) -> BinEdges:  # fmt: skip
    """The bin edges of every feature of a real array X [N, F], whose NaN are ignored; on the device
    of `backend` or on the host, where a backend chooses the same edges faster.

    A feature has `max_bins` at most, without the one for missing values and if it is not
    categorical; "auto": a bin for each value of the sample if no feature has more than FEW_VALUES,
    else MANY_BINS. A row of weight two equals the row twice. `seed` chooses the sample of rows.
    """
    rows, categories = _sample(seed, X.shape[0], sample_rows, weights, backend), categories or {}
    if rows is not None and weights is not None:
        weights = weights[rows]

    def columns_of(max_bins: int) -> list[np.ndarray]:
        if backend is not None:
            return backend.sampling.column_edges(backend, X, rows, weights, max_bins)
        return column_edges(X if rows is None else X[rows], weights, max_bins, 1)

    if max_bins != "auto":
        columns = columns_of(int(max_bins))
    else:
        # one more bin distinguishes features of FEW_VALUES values from those of more
        columns = columns_of(FEW_VALUES + 1)
        if has_many_values(columns, categories):
            columns = columns_of(MANY_BINS)
    kinds = np.zeros(len(columns), np.uint8)
    for f, values in categories.items():
        columns[f], kinds[f] = np.arange(len(values), dtype=np.float64), dtypes.CATEGORICAL
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(dtypes.OFFSET)
    return BinEdges(np.concatenate(columns), offsets, kinds, categories)


def most_bins(
    X: Array, max_bins: int | str, weights: np.ndarray | None, categories: Collection[int],
    backend: Backend,
) -> int | str:  # fmt: skip
    """What max_bins="auto" of `fit_edges` means for X, as far as LOOK_ROWS rows show: FEW_VALUES,
    MANY_BINS, or still "auto". A number stays as it is."""
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
    """Whether a numeric feature has more than FEW_VALUES values, by its edges for at most
    FEW_VALUES + 1 bins."""
    return any(len(c) >= FEW_VALUES for f, c in enumerate(columns) if f not in categories)


def _weighing_rows(weights: np.ndarray | None) -> np.ndarray | None:
    """The rows of positive weight, i64[n]; None if all rows are."""
    return None if weights is None or weights.all() else np.flatnonzero(weights)


def _sample(
    seed: int, n_rows: int, count: int, weights: np.ndarray | None, backend: Backend | None
) -> np.ndarray | None:
    """The `count` rows of positive weight that have the lowest hashes, i64[count], ascending; None
    if all rows are. A row's hash depends on the seed and its number alone, so the sample can be
    found block by block, in any order."""
    rows = _weighing_rows(weights)
    n = n_rows if rows is None else len(rows)
    if n <= count:
        return rows
    for limit in (hash_limit(count, n), 2**64 - 1):
        if backend is None:
            drawn = rows_below(seed, n_rows, limit)
        else:
            drawn = backend.sampling.rows_below(backend, seed, n_rows, limit)
        if weights is not None:
            drawn = drawn[weights[drawn] > 0]
        if len(drawn) >= count:
            break
    return np.asarray(drawn[lowest(row_hashes(seed, drawn), count)])


def hash_limit(count: int, n_rows: int) -> int:
    """A number below which lie the hashes of at least `count` of n_rows rows, but for a chance of
    10**-15."""
    return min(2**64 * (count + 8 * math.isqrt(count) + 8) // n_rows, 2**64 - 1)


def row_hashes(seed: int, rows: np.ndarray) -> np.ndarray:
    """The hashes u64[n] of rows i64[n], all different, by which a sample is chosen."""
    key = hashing.hash_at(np.full(1, seed, np.uint64), hashing.ROWS)
    return np.asarray(hashing.hash_at(key, rows.astype(np.uint64)))


def rows_below(seed: int, n_rows: int, limit: int) -> np.ndarray:
    """The rows whose hash is below `limit`, i64[n], ascending."""
    parts = []
    for begin in range(0, n_rows, BLOCK_ROWS):
        rows = np.arange(begin, min(begin + BLOCK_ROWS, n_rows))
        parts.append(rows[row_hashes(seed, rows) < np.uint64(limit)])
    return np.concatenate(parts)


def lowest(hashes: np.ndarray, count: int) -> np.ndarray:
    """The positions of the `count` lowest hashes, i64[count], ascending."""
    return np.sort(np.argpartition(hashes, count - 1)[:count])


def draw_rows(seed: int, n_rows: int, count: int) -> np.ndarray:
    """A random sample of `count` of n_rows rows, i64[count], ascending."""
    key = np.full((1, 1), seed, dtype=np.uint64)
    rows = hashing.permute(np, key, np.arange(count, dtype=np.uint64)[None], n_rows)[0]
    return np.sort(rows.astype(np.int64))


def column_edges(
    sample: Array, weights: np.ndarray | None, max_bins: int, n_threads: int
) -> list[np.ndarray]:
    """Ascending edges f64[E < max_bins] of each column of `sample` [n, F], dense or sparse."""
    dtype = value_dtype(sample)
    sparse = sample.tocsc() if issparse(sample) else None

    def edges(f: int) -> np.ndarray:
        if sparse is None:
            return edges_of(np.asarray(sample[:, f], dtype), weights, max_bins)
        stored, dense = slice(*sparse.indptr[f : f + 2]), np.zeros(sparse.shape[0], dtype)
        dense[sparse.indices[stored]] = sparse.data[stored]
        return edges_of(dense, weights, max_bins)

    return parallel.parallel_map(edges, range(sample.shape[1]), n_threads)


def on_host(X: Array) -> bool:
    """Whether X is on the host: a NumPy array or a sparse SciPy array."""
    return isinstance(X, np.ndarray) or issparse(X)


def value_dtype(X: Array) -> type[np.floating[Any]]:
    """float32, or float64 where float32 would not hold the values of X exactly."""
    small = np.result_type(X.dtype, np.float32) == np.float32
    return np.float32 if small else np.float64
