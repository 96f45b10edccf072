"""Random rows and bin edges on a CUDA device (kernels/bag, kernels/edges)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import issparse

from gpuforest.backends.base import RowSampling
from gpuforest.common import hashing
from gpuforest.engine.binning import take_rows, value_dtype
from gpuforest.kernels.shared.constants import EDGE_THREADS, SORT_THREADS, THREADS
from gpuforest.kernels.shared.structs import Columns

Array = Any


class CudaSampling(RowSampling):
    """As on the host, by kernels."""

    def bag(
        self, backend: Any, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None
    ) -> Array:
        T = keys.shape[0]
        weights = backend.zeros((T, n_rows), backend.xp.int32)
        grid = (backend.blocks(n_draws, THREADS), min(T, 65535))
        backend.launch("bag", "bag", grid, (keys, n_rows, n_draws, cumulative, T, weights))
        return weights

    def rows_below(self, backend: Any, seed: int, n_rows: int, limit: int) -> np.ndarray:
        key = hashing.hash_at(np.full(1, seed, np.uint64), hashing.ROWS)[0]
        expected = n_rows * limit >> 64
        room = min(n_rows, expected + 16 * math.isqrt(expected) + 64)
        while True:
            rows, found = backend.empty(room, backend.xp.int64), backend.zeros(1, backend.xp.uint32)
            arguments = (key, n_rows, np.uint64(limit), room, rows, found)
            backend.launch("bag", "rows_below", (backend.blocks(n_rows, THREADS),), arguments)
            n = int(backend.asnumpy(found)[0])
            if n <= room:
                return np.asarray(backend.asnumpy(backend.xp.sort(rows[:n])))
            room = n

    def column_edges(
        self,
        backend: Any,
        X: Array,
        rows: np.ndarray | None,
        weights: np.ndarray | None,
        max_bins: int,
    ) -> list[np.ndarray]:
        """As many columns at once as fit the budget; only their edges are copied to the host."""
        # the host does weighted rows, which need weights sorted too, and sparse columns
        if weights is not None or issparse(X):
            return super().column_edges(backend, X, rows, weights, max_bins)
        sample = take_rows(X, rows, backend)
        xp, (n, F), dtype = backend.xp, sample.shape, value_dtype(sample)
        most_edges = min(max_bins, n)
        # bytes of a column: three copies of it; a number and a measure of each value; edges
        each = n * (3 * np.dtype(dtype).itemsize + 12) + 8 * most_edges
        size, edges = max(1, backend.memory_budget // each), []
        for f in range(0, F, size):
            part = xp.astype(backend.asarray(sample[:, f : f + size]), dtype, copy=False)
            columns = backend.empty((part.shape[1], n), dtype)
            columns[...] = part.T  # always a copy: X itself must not be sorted
            edges += edges_of(backend, columns, max_bins, most_edges)
        return edges


def edges_of(backend: Any, columns: Array, max_bins: int, most_edges: int) -> list[np.ndarray]:
    """The edges of columns f32 or f64 [k, n], which are scratch afterwards."""
    xp, (k, n) = backend.xp, columns.shape
    spare, swapped = backend.empty((k, n), columns.dtype), backend.empty(k, xp.int32)
    first, shares = backend.empty((k, n + 1), xp.int32), backend.empty((k, n), xp.float64)
    widest, most = (backend.empty(k, xp.float64) for _ in range(2))
    edges = backend.empty((k, most_edges), xp.float64)
    n_values, n_edges = (backend.empty(k, xp.int64) for _ in range(2))
    macros = {"VALUE": "float" if columns.dtype == xp.float32 else "double"}
    sizes: dict[str, Any] = {"macros": macros, "threads": EDGE_THREADS}
    arguments: tuple[Any, ...] = columns, spare, n, swapped
    backend.launch(
        "edges", "sort_columns", (k,), arguments, macros=macros, threads=SORT_THREADS
    )  # fmt: skip
    there = Columns(columns, spare, swapped, n), max_bins
    arguments = *there, most_edges, first, widest, edges, n_values, n_edges
    backend.launch("edges", "find_gaps", (k,), arguments, **sizes)
    arguments = *there, first, widest, n_values, shares, most
    backend.launch("edges", "share_gaps", (k,), arguments, **sizes)
    arguments = *there, most_edges, first, n_values, shares, most, edges, n_edges
    backend.launch("edges", "edges", (k,), arguments, **sizes)
    counts = backend.asnumpy(n_edges).tolist()
    return [e[:c] for e, c in zip(backend.asnumpy(edges), counts, strict=True)]
