"""What backends do with rows of X besides kernels: samples, columns, edges of bins, bags."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from gpuforest.backends.base import Array, Backend
from gpuforest.common import hashing, parallel
from gpuforest.core.fit import Fit
from gpuforest.kernels.bag.numpy import bag
from gpuforest.kernels.edges.numpy import edges as edges_of

BLOCK_ROWS = 65_536  # rows encoded at once, at most, but see `block_rows`


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


class RowSampling:
    """Rows drawn at random, and bin edges chosen from them. The methods are given the backend, so
    that one object serves all; here they work on the host."""

    def bag(
        self, backend: Backend, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None
    ) -> Array:
        """How often each row is drawn for each tree, i32[T, N]."""
        shares = None if cumulative is None else backend.asnumpy(cumulative)
        return backend.asarray(bag(backend.asnumpy(keys), n_rows, n_draws, shares))

    def rows_below(self, backend: Backend, seed: int, n_rows: int, limit: int) -> np.ndarray:
        """The rows whose hash is below `limit`, i64[n], ascending, on the host."""
        return rows_below(seed, n_rows, limit)

    def column_edges(
        self, backend: Backend, X: Array, rows: Array | None, weights: Array | None, max_bins: int
    ) -> list[np.ndarray]:
        """Ascending edges f64[E < max_bins] of each column of X[rows], on the host. X is a real
        array [N, F] on the host (also sparse) or the device; rows i64[n] (None: all) and weights
        i32[n] > 0 (None: all are one) are on the host."""
        sample = take_rows(X, rows, backend)
        if not on_host(sample):
            sample = backend.asnumpy(sample.T).T  # contiguous columns, because they are read so
        return column_edges(sample, weights, max_bins, backend.n_threads)

    def edge_bytes(self, backend: Backend, fit: Fit) -> int:
        """Bytes that choosing the bin edges takes for a while."""
        n_columns = min(backend.n_threads, fit.n_features)
        return n_columns * fit.sample_rows * (fit.value_bytes + 80)
