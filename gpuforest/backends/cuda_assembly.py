"""A wave's trees on a CUDA device, in a few launches: see kernels/wave_nodes."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.backends.cuda_nodes import CudaNodes
from gpuforest.engine.frontier import Subtrees
from gpuforest.engine.leaf_rows import distinct_sorted
from gpuforest.engine.levels import Level
from gpuforest.kernels.shared.constants import THREADS
from gpuforest.kernels.shared.structs import Levels, LevelSlots, Positions

if TYPE_CHECKING:
    from gpuforest.engine.target import TargetCoding

Array = Any


class CudaAssembly(CudaNodes):
    """The results of wave_nodes.py, levels.py and leaf_rows.py, by other means."""

    def wave_nodes(
        self, levels: list[Level], parts: list[Subtrees]
    ) -> tuple[Array, Array, Array, Array | None, Array]:
        sets = levels[0].sets
        if sets.shape[1]:  # few forests have sets
            return super().wave_nodes(levels, parts)
        trees, xp = parts.pop(), self.xp
        tree_sizes, size, position, below = self.positions(levels, trees.offsets)
        S, C, D = size.shape[0], levels[0].sums.shape[1], trees.first_leaf.shape[0]
        of_levels = Levels(*self.level_table(levels), len(levels), S, C)
        there = Positions(size, position, below, self.sums_before(tree_sizes))
        span, n_blocks = self.spans(S)
        counts = self.empty(n_blocks, xp.int64)
        arguments: tuple[Any, ...] = of_levels, size, span, counts
        self.launch("wave_nodes", "count_leaves", (n_blocks,), arguments)
        found = int(self.asnumpy(counts).sum())
        n_leaves, n_refused = found & 0xFFFFFFFF, found >> 32
        n_own, n_wide = n_leaves + n_refused, sum(int(level.wide.shape[0]) for level in levels)
        nodes = self.empty(n_leaves + n_wide + trees.nodes.shape[0], xp.uint64)
        leaf_sums = self.empty((n_own + trees.leaf_sums.shape[0], C), xp.int64)
        leaf_sums[n_own:, :] = trees.leaf_sums
        subtrees = self.empty((D, 3), xp.int64)
        arguments = of_levels, there, span, counts, n_leaves, nodes, leaf_sums, subtrees
        self.launch("wave_nodes", "place_slots", (n_blocks,), arguments)
        arguments = trees.nodes, trees.offsets, trees.first_leaf, D, subtrees, n_own, nodes
        grid = (self.blocks(32 * D, THREADS),)
        self.launch("wave_nodes", "place_subtrees", grid, arguments)
        return tree_sizes, nodes, leaf_sums, None, sets

    def level_table(self, levels: list[Level]) -> tuple[Array, Array]:
        """Where the arrays of levels lie, and the number of slots above each, i64[levels]."""
        slots = accumulate((int(level.kind.shape[0]) for level in levels), initial=0)
        deep = accumulate((level.n_deep for level in levels), initial=0)
        names = LevelSlots._fields[:-1]
        records = [
            LevelSlots(**{name: getattr(level, name) for name in names}, n_deep_before=before)
            for level, before in zip(levels, deep, strict=False)
        ]
        return self.table_of(records), self.asarray(np.array(list(slots)[:-1]))

    def positions(self, levels: list[Level], offsets: Array) -> tuple[Array, Array, Array, Array]:
        """The sizes of trees; and for the slots of all levels, the number of nodes at and below
        each, the position of its node, and where its descendants begin: see levels.py.

        offsets : i64[D + 1], those of the subtrees of the deep slots of all levels
        """
        ends = list(accumulate(int(level.kind.shape[0]) for level in levels))
        size, position, below = (self.empty(ends[-1], self.xp.int64) for _ in range(3))
        last, under = offsets.shape[0], size[:0]
        for level, end in zip(reversed(levels), reversed(ends), strict=True):
            S, first = level.kind.shape[0], last - level.n_deep
            own, grid = size[end - S : end], (self.blocks(S, THREADS),)
            roots = (position[:S], below[:S]) if level is levels[0] else (None, None)
            arguments: tuple[Any, ...] = (
                level.kind, level.rank, S, offsets[first - 1 : last], under, own, *roots,
            )  # fmt: skip
            self.launch("slots", "subtree_sizes", grid, arguments)
            last, under = first, own
        for i, level in enumerate(levels[:-1]):
            begin = ends[i - 1] if i else 0
            W, inside = level.wide.shape[0], slice(ends[i], ends[i + 1])
            arguments = level.wide, W, below[begin : ends[i]], size[inside], position[inside]
            arguments += (below[inside],)
            grid = (self.blocks(2 * W, THREADS),)
            self.launch("slots", "node_positions", grid, arguments)
        return size[: ends[0]], size, position, below

    def leaf_table(self, nodes: Array, sums: Array, coding: TargetCoding) -> tuple[Array, Array]:
        M, (V, C) = nodes.shape[0], sums.shape
        if coding.is_classes:
            table, number = self.distinct_rows(sums)
            grid = (self.blocks(M, THREADS),)
            self.launch("wave_nodes", "number_leaves", grid, (nodes, M, number))
            return nodes, table
        (span, n_blocks), xp = self.spans(M), self.xp
        counts = self.empty(n_blocks, xp.int64)
        self.launch("wave_nodes", "count_leaf_nodes", (n_blocks,), (nodes, M, span, counts))
        table = self.empty((V, C), xp.int64)
        arguments = nodes, M, C, span, counts, sums, table
        self.launch("wave_nodes", "order_leaves", (n_blocks,), arguments)
        return nodes, table

    def row_keys(self, sums: Array) -> Array:
        """A hash u64[V] of each row i64[V, C]."""
        V, C = sums.shape
        keys = self.empty(V, self.xp.uint64)
        self.launch("wave_nodes", "row_keys", (self.blocks(V, THREADS),), (sums, V, C, keys))
        return keys

    def distinct_rows(self, sums: Array) -> tuple[Array, Array]:
        """The distinct rows of `sums` i64[V, C] in a canonical order, and each row's number among
        them, i64[V]: see leaf_rows.py."""
        (V, C), keys, xp = sums.shape, self.row_keys(sums), self.xp
        order, (span, n_blocks) = xp.argsort(keys, stable=True), self.spans(V)
        counts, number, some = (self.empty(n, xp.int64) for n in (n_blocks, V, V))
        self.launch("wave_nodes", "count_keys", (n_blocks,), (keys, order, V, span, counts))
        other = self.empty(1, xp.int32)
        arguments: tuple[Any, ...] = keys, order, V, span, counts, number, some, other
        self.launch("wave_nodes", "number_keys", (n_blocks,), arguments)
        n = int(self.asnumpy(counts).sum())
        table = self.empty((n, C), xp.int64)
        arguments = sums, V, C, number, some, n, table, other
        grid = (self.blocks(V, THREADS),)
        self.launch("wave_nodes", "distinct_rows", grid, arguments)
        return distinct_sorted(xp, sums) if int(other[0]) else (table, number)
