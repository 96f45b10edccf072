"""Rows of X on the host: samples of them by hashes, and edges of bins of their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from gpuforest.common import hashing, parallel
from gpuforest.common.dtypes import Array
from gpuforest.kernels.edges.numpy import edges as edges_of

# A fit with Poisson bags learns edges and fixed points from this number of rows, up to twice it, so
# that one row hardly ever moves them; docs/row_ids.md has what more rows would gain
LEARNED_FROM = 2400
BLOCK_ROWS = 65_536  # rows encoded at once, at most, but see `block_rows`


def row_hashes(seed: int, rows: np.ndarray) -> np.ndarray:
    """The hashes u64[n] of rows i64[n], all different, by which a sample is chosen."""
    key = hashing.hash_at(np.full(1, seed, np.uint64), hashing.ROWS)
    return np.asarray(hashing.hash_at(key, rows.astype(np.uint64)))


def n_halvings(n_rows: int) -> int:
    """How often hashes are halved so that LEARNED_FROM rows of a table, up to twice as many, are
    expected below."""
    return max(0, (n_rows // LEARNED_FROM).bit_length() - 1)


def chosen(seed: int, ids: np.ndarray, n_rows: int) -> np.ndarray:
    """Which rows, by ids u64[n], a fit with Poisson bags to a table of `n_rows` rows learns edges
    and fixed points from, bool[n]: their hash is below the least power of two that lets expect
    LEARNED_FROM rows. All rows of a small table are chosen."""
    return np.asarray(row_hashes(seed, ids) <= np.uint64((2**64 - 1) >> n_halvings(n_rows)))


def rows_below(seed: int, n_rows: int, limit: int) -> np.ndarray:
    """The rows whose hash is below `limit`, i64[n], ascending."""
    begins = range(0, n_rows, BLOCK_ROWS)
    blocks = (np.arange(i, min(i + BLOCK_ROWS, n_rows)) for i in begins)
    return np.concatenate([b[row_hashes(seed, b) < np.uint64(limit)] for b in blocks])


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
