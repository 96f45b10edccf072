"""Slots, bags, leaf rows and bin edges on a CUDA device, in few launches."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.sparse import issparse

from gpuforest.backends.base import Array, Moved, Nodes, RowSampling, take_rows
from gpuforest.backends.cuda.launch import flags, own_targets, target_macros
from gpuforest.backends.rows import value_dtype
from gpuforest.backends.slots import distinct_sorted
from gpuforest.common import hashing
from gpuforest.compiler.types import new_arrays
from gpuforest.core.frontier import PER_SLOT, Frontier, Splits
from gpuforest.core.training import Training
from gpuforest.kernels.shared import constants, structs
from gpuforest.kernels.shared.structs import Columns, Tiles

BAG_TILE = 4096  # rows that a block of in_bag takes
TILE_SIZES = constants.MOST_TILE // constants.LEAST_TILE  # tiles have a multiple of LEAST_TILE rows


class CudaNodes(Nodes):
    """As the array-API code, by kernels."""

    def in_bag(self, backend: Any, bags: Array) -> tuple[Array, Array, Array]:
        xp, (T, N) = backend.xp, bags.shape
        bags = xp.ascontiguousarray(bags)  # without draws, one row stands for all trees
        tiles = -(-N // BAG_TILE)
        counts, n_blocks = backend.empty(T * tiles, xp.int64), backend.blocks(T * tiles)
        in_tiles = bags, N, T, BAG_TILE, tiles
        backend.launch("bag", "count_in_bag", n_blocks, *in_tiles, counts)
        first = backend.sums_before(counts)
        R = int(first[-1])
        rows, weights = backend.empty(R, xp.int32), backend.empty(R, xp.int32)
        offsets = backend.empty(T + 1, xp.int64)
        backend.launch("bag", "in_bag", n_blocks, *in_tiles, first, rows, weights, offsets)
        return rows, weights, offsets

    def roots(
        self, backend: Any, training: Training, held: tuple[Array, Array, Array], keys: Array
    ) -> Frontier:
        (rows, weights, offsets), T, C = held, keys.shape[0], training.n_channels
        sums = backend.sums(training, rows, weights, offsets[:-1], offsets[1:])
        roots = new_slots(backend, T, C, rows, weights, rows.shape[0])
        mean, compare = means(backend, training, T)
        arguments = offsets, keys, sums, T, C, roots, mean, compare
        backend.launch_each("slots", "root_slots", T, *arguments)
        if mean is not None:
            compare_rows(backend, training, roots, roots, None, 0, (mean, compare))
        return roots

    def sort_out(
        self, backend: Any, training: Training, slots: Frontier, deep_rows: int
    ) -> tuple[Array, Frontier, Frontier]:
        S, xp, rules = slots.n_slots, backend.xp, training.rules
        # few forests have bounds or a least weight
        if not S or slots.per_slot != PER_SLOT or rules.min_weight_leaf > 1:
            return super().sort_out(backend, training, slots, deep_rows)
        span, n_spans = backend.spans(S)
        counts = backend.empty((4, n_spans), xp.int64)
        tiles = backend.empty((TILE_SIZES, n_spans), xp.int64)
        kind, rank = backend.empty(S, xp.int8), backend.empty(S, xp.int64)
        C, kinds = slots.sums.shape[1], structs.Kinds(kind, rank, counts, tiles, S, span)
        backend.launch("slots", "number_kinds", n_spans, slots, kinds, rules, deep_rows)
        n_wide, n_deep, rows_wide, rows_deep = backend.asnumpy(counts).sum(axis=1).tolist()
        tile = backend.tile_size(rows_wide)
        wide, deep = (
            new_slots(backend, n, C, slots.rows, slots.weights, max_rows, slots.allowed)
            for n, max_rows in ((n_wide, rows_wide), (n_deep, rows_deep))
        )
        first = backend.empty(n_wide + 1, xp.int64)
        grid = n_spans, 1 + -(-min(span, S) // constants.THREADS)
        backend.launch("slots", "take_slots", grid, slots, kinds, C, tile, wide, deep, first)
        backend.known_tiles[wide] = Tiles(first, None, tile, n_wide), rows_wide // tile + n_wide
        return kind, wide, deep

    def children(
        self, backend: Any, training: Training, wide: Frontier, splits: Splits, moved: Moved
    ) -> Frontier:
        (rows, weights, n_left), W, C = moved, wide.n_slots, training.n_channels
        below = new_slots(backend, 2 * W, C, rows, weights, wide.max_rows, wide.allowed)
        half = rows.shape[0] // 2
        mean, compare = means(backend, training, 2 * W)
        arguments = wide, W, C, splits.feature, splits.left, n_left, half, below, mean, compare
        backend.launch_each("slots", "children", 2 * W, *arguments)
        if mean is not None and W:
            compare_rows(backend, training, wide, below, n_left, half, (mean, compare))
        return below

    def join(self, backend: Any, parts: list[Frontier], rows: Array, weights: Array) -> Frontier:
        ends = list(accumulate((part.n_slots for part in parts), initial=0))
        S, like = ends.pop(), parts[0]
        if not S or like.per_slot != PER_SLOT:
            return super().join(backend, parts, rows, weights)
        C = like.sums.shape[1]
        held = sum(part.max_rows for part in parts)
        slots = new_slots(backend, S, C, rows, weights, held, like.allowed)
        pack = structs.packer_of(Frontier, ())
        packed = [backend.struct_of(part, pack) for part in parts]
        table = backend.asarray(np.array(packed).view(np.int64))
        first = backend.asarray(np.array(ends))
        backend.launch_each("slots", "join_slots", S, table, first, len(parts), S, C, slots)
        return slots

    def row_keys(self, backend: Any, sums: Array) -> Array:
        """A hash u64[V] of each row i64[V, C]."""
        V, C = sums.shape
        keys = backend.empty(V, backend.xp.uint64)
        backend.launch_each("leaf_rows", "row_keys", V, sums, V, C, keys)
        return keys

    def distinct_rows(self, backend: Any, sums: Array) -> tuple[np.ndarray, np.ndarray]:
        (V, C), keys, xp = sums.shape, self.row_keys(backend, sums), backend.xp
        order, (span, n_blocks) = xp.argsort(keys, stable=True), backend.spans(V)
        counts, number, first = (backend.empty(n, xp.int64) for n in (n_blocks, V, V))
        in_order = keys, order, V, span, counts
        backend.launch("leaf_rows", "count_keys", n_blocks, *in_order)
        differs = backend.empty(1, xp.int32)
        backend.launch("leaf_rows", "number_keys", n_blocks, *in_order, number, first, differs)
        n = int(backend.asnumpy(counts).sum())
        table = backend.empty((n, C), xp.int64)
        arguments = sums, V, C, number, first, n, table, differs
        backend.launch_each("leaf_rows", "distinct_rows", V, *arguments)
        if int(differs[0]):
            return distinct_sorted(backend.asnumpy(sums))
        return backend.asnumpy(table), backend.asnumpy(number)


class CudaSampling(RowSampling):
    """As on the host, by kernels."""

    def bag(
        self, backend: Any, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None
    ) -> Array:
        T = keys.shape[0]
        weights = backend.zeros((T, n_rows), backend.xp.int32)
        grid = (backend.blocks(n_draws, constants.THREADS), min(T, 65535))
        backend.launch("bag", "bag", grid, keys, n_rows, n_draws, cumulative, T, weights)
        return weights

    def rows_below(self, backend: Any, seed: int, n_rows: int, limit: int) -> np.ndarray:
        key = hashing.hash_at(np.full(1, seed, np.uint64), hashing.ROWS)[0]
        expected = n_rows * limit >> 64
        room = min(n_rows, expected + 16 * math.isqrt(expected) + 64)
        while True:
            rows, count = backend.empty(room, backend.xp.int64), backend.zeros(1, backend.xp.uint32)
            arguments = key, n_rows, np.uint64(limit), room, rows, count
            backend.launch_each("bag", "rows_below", n_rows, *arguments)
            n = int(backend.asnumpy(count)[0])
            if n <= room:
                return np.asarray(backend.asnumpy(backend.xp.sort(rows[:n])))
            room = n

    def column_edges(
        self, backend: Any, X: Array, rows: Array | None, weights: Array | None, max_bins: int
    ) -> list[np.ndarray]:
        """As many columns at once as fit the budget; only their edges are copied to the host."""
        # the host does weighted rows, which need weights sorted too, and sparse columns
        if weights is not None or issparse(X):
            return super().column_edges(backend, X, rows, weights, max_bins)
        sample = take_rows(X, rows, backend)
        xp, (n, F), dtype = backend.xp, sample.shape, value_dtype(sample)
        most_edges = min(max_bins, n)
        # bytes of a column: three copies of it; a number and a measure of each value; edges
        column_bytes = n * (3 * np.dtype(dtype).itemsize + 12) + 8 * most_edges
        size, edges = max(1, backend.memory_budget // column_bytes), []
        for f in range(0, F, size):
            part = xp.astype(backend.asarray(sample[:, f : f + size]), dtype, copy=False)
            columns = backend.empty((part.shape[1], n), dtype)
            columns[...] = part.T  # always a copy: X itself must not be sorted
            edges += edges_of(backend, columns, max_bins, most_edges)
        return edges


def new_slots(
    backend: Any, S: int, C: int, rows: Array, weights: Array, max_rows: int,
    allowed: Array | None = None,
) -> Frontier:  # fmt: skip
    """S slots of C channels, whose arrays kernels fill."""
    arrays = new_arrays(Frontier, backend.empty, S=S, C=C)
    arrays["constant"] = flags(backend, S)
    return Frontier(**arrays, rows=rows, weights=weights, max_rows=max_rows, allowed=allowed)


def means(backend: Any, training: Training, S: int) -> tuple[Array | None, Array | None]:
    """Arrays for means of S slots and for marks of slots to compare with them; None for classes."""
    if training.target.coding.is_classes:
        return None, None
    mean = backend.empty((S, training.n_channels - 1), backend.xp.int64)
    return mean, backend.empty(S, backend.xp.bool)


def compare_rows(
    backend: Any, training: Training, above: Frontier, slots: Frontier, n_left: Array | None,
    half: int, means: tuple[Array, Array | None],
) -> None:  # fmt: skip
    """Mark slots with a target that differs from their mean as not constant.

    above : the slots above, whose rows have moved by `half`; or with `n_left` None, `slots`"""
    tiles, n_tiles = backend.slot_tiles(above)
    y = own_targets(training, training.target.y)
    held = above
    if slots.rows is not above.rows:
        held = replace(above, rows=slots.rows, weights=slots.weights)
    arguments = y, held, tiles, n_left, half, *means, slots.constant
    macros = target_macros(training, y)
    backend.launch("totals", "differing", backend.blocks(n_tiles), *arguments, macros=macros)


def edges_of(backend: Any, columns: Array, max_bins: int, most_edges: int) -> list[np.ndarray]:
    """The edges of columns f32 or f64 [k, n], which are scratch afterwards."""
    xp, (k, n) = backend.xp, columns.shape
    spare, swapped = backend.empty((k, n), columns.dtype), backend.empty(k, xp.int32)
    first, shares = backend.empty((k, n + 1), xp.int32), backend.empty((k, n), xp.float64)
    widest, most = (backend.empty(k, xp.float64) for _ in range(2))
    edges = backend.empty((k, most_edges), xp.float64)
    n_values, n_edges = (backend.empty(k, xp.int64) for _ in range(2))
    macros = {"VALUE": "float" if columns.dtype == xp.float32 else "double"}
    sizes: dict[str, Any] = {"macros": macros, "threads": constants.EDGE_THREADS}
    sorting = {"macros": macros, "threads": constants.SORT_THREADS}
    backend.launch("edges", "sort_columns", k, columns, spare, n, swapped, **sorting)
    data = Columns(columns, spare, swapped, n), max_bins
    made = *data, most_edges, first
    backend.launch("edges", "find_gaps", k, *made, widest, edges, n_values, n_edges, **sizes)
    backend.launch("edges", "share_gaps", k, *data, first, widest, n_values, shares, most, **sizes)
    backend.launch("edges", "edges", k, *made, n_values, shares, most, edges, n_edges, **sizes)
    counts = backend.asnumpy(n_edges).tolist()
    return [e[:c] for e, c in zip(backend.asnumpy(edges), counts, strict=True)]
