"""The compiled CPU backend: NumPy arrays, Numba kernels, plain threads over slots and rows.

Threads share nothing but what they read: each writes its own slots or rows, so neither
their number nor their timing can change a result.
"""

from __future__ import annotations

from collections import deque
from copy import copy
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.binning import value_dtype
from gpuforest.frontier import Frontier, Rules, Splits, Subtrees
from gpuforest.kernels.bag.numba import bag, in_bag
from gpuforest.kernels.best_split.numba import best_split
from gpuforest.kernels.edges.numba import edges as edges_of
from gpuforest.kernels.encode.numba import encode
from gpuforest.kernels.grow_subtrees.numba import grow_subtrees
from gpuforest.kernels.grow_subtrees.scratch import SPARSE, Scratch, new_scratch
from gpuforest.kernels.histogram.numba import histogram
from gpuforest.kernels.level.numba import level
from gpuforest.kernels.partition.numba import partition
from gpuforest.kernels.totals.numba import totals
from gpuforest.kernels.traverse.numba import accumulate, apply
from gpuforest.parallel import parallel_map

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.binning import BinEdges, BinnedMatrix
    from gpuforest.forest import Forest
    from gpuforest.target import Target

Array = Any

BLOCK_BYTES = 2**20  # of codes in a deep block: a core's L2; less costs wide features more levels
MAX_DEEP_ROWS = 2**20  # some seconds of work, which no interrupt can end
TASK_ROWS = 2**16  # rows of slots that one task takes: some milliseconds of work
TILE_VALUES = 2**17  # transposed at once: half of a core's L2 of float32
MIN_WORK = 2**16  # values to encode or trees to walk, a task: half a millisecond
# Codes that rows walk by take half of a core's L2 at the most. Their columns are no power of
# two apart, or they would share the sets of a cache.
MAX_CODES, MAX_WALKING = 500_000, 7936
DENSE_VALUES = 8  # of more values than these in a prediction, zeros are passed over
NONE_LEFT_OUT = np.zeros((0, 0), np.bool_)
ALL_VALUES = np.zeros(0, np.int64), np.zeros(0, np.int32)


def cut_evenly(sizes: np.ndarray, most: int) -> list[slice]:
    """Consecutive slices of items whose sizes add up to `most`, or of one item."""
    total = np.cumsum(sizes)
    slices, first = [], 0
    while first < len(sizes):
        before = total[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + most, side="right")))
        slices.append(slice(first, last))
        first = last
    return slices


class NumbaBackend(NumpyBackend):
    """Numba on the CPU: compiled, threaded, cached on disk."""

    name = "numba"
    n_workers = 1  # beside one another, this backend is one of them

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.kept: deque[Scratch] = deque(maxlen=0)  # to be used again; only workers keep any

    def workers(self, n_trees: int) -> tuple[int, Backend]:
        """Many trees are shared out by waves: threads that need not wait for one another."""
        worker = copy(self)
        worker.kept = deque()
        if self.n_threads == 1 or n_trees < self.n_threads:
            return 1, worker
        worker.n_threads, worker.n_workers = 1, self.n_threads
        worker.memory_budget = self.memory_budget // self.n_threads
        return self.n_threads, worker

    def new_codes(self, n_rows: int, n_features: int, dtype: type) -> Array:
        """One column after another: a node looks at few of them."""
        return np.empty((n_features, n_rows), dtype).T

    def encode(self, X: Array, edges: BinEdges) -> Array:
        codes = self.new_codes(X.shape[0], X.shape[1], edges.code_dtype)
        values = edges.rounded if X.dtype == np.float32 else edges.values

        def part(rows: slice) -> None:
            own, missing = X[rows], edges.missing_code
            encode(own, values, edges.offsets, missing, codes.T, rows.start)

        parallel_map(part, self.row_blocks(*X.shape), self.n_threads)
        return codes

    def column_edges(
        self, X: Array, rows: Array | None, weights: Array | None, max_bins: int
    ) -> list[Array]:
        """As many columns at once as the budget holds, so that X is read once, row by row."""
        if weights is not None or not isinstance(X, np.ndarray):
            return super().column_edges(X, rows, weights, max_bins)
        n = len(X) if rows is None else len(rows)
        dtype, places = np.dtype(value_dtype(X)), min(max_bins, n)
        each = n * dtype.itemsize + 8 * (places + 1)
        size = max(1, self.memory_budget // each)
        columns = np.empty((min(size, X.shape[1]), n), dtype)
        spare: SimpleQueue[Array] = SimpleQueue()  # scratch, of which each thread takes one
        for _ in range(self.n_threads):
            spare.put(np.empty((4, n + 1)))
        found = []
        for f in range(0, X.shape[1], size):
            found += self._edges_of(X[:, f : f + size], rows, max_bins, columns, spare)
        return found

    def _edges_of(
        self,
        X: Array,
        rows: Array | None,
        max_bins: int,
        columns: Array,
        spare: SimpleQueue[Array],
    ) -> list[Array]:
        F, n = X.shape[1], columns.shape[1]
        out, n_edges = np.empty((F, min(max_bins, n))), np.empty(F, np.int64)

        def transpose(r: slice) -> None:
            columns[:F, r] = (X[r] if rows is None else X[rows[r]]).T

        def choose(f: slice) -> None:
            columns[f].sort(axis=1)
            scratch = spare.get()
            for j in range(f.start, f.stop):
                n_edges[j] = edges_of(columns[j], max_bins, *scratch, out[j])
            spare.put(scratch)

        parallel_map(transpose, cut_evenly(np.full(n, F), TILE_VALUES), self.n_threads)
        tasks = cut_evenly(np.ones(F), -(-F // (4 * self.n_threads)))
        parallel_map(choose, tasks, self.n_threads)
        return [e[:count] for e, count in zip(out, n_edges, strict=True)]

    def row_blocks(self, n_rows: int, row_work: int, row_bytes: int = 0) -> list[slice]:
        """Blocks of rows for the threads, which stay in a core's cache; of few rows, one.

        row_work : values of a row to encode, or trees to walk
        """
        shared_out = max(-(-n_rows // (4 * self.n_threads)), MIN_WORK // max(row_work, 1))
        size = max(256, min(MAX_WALKING, MAX_CODES // max(row_bytes, 1), shared_out))
        return [slice(r, min(r + size, n_rows)) for r in range(0, n_rows, size)]

    def bag(self, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None) -> Array:
        weights = np.zeros((len(keys), n_rows), np.int32)
        shares = np.zeros(0, np.int64) if cumulative is None else cumulative
        parallel_map(
            lambda t: bag(keys[t], n_draws, shares, weights[t]), range(len(keys)), self.n_threads
        )
        return weights

    def in_bag(self, bags: Array) -> tuple[Array, Array, Array]:
        count = np.array(parallel_map(np.count_nonzero, bags, self.n_threads), np.int64)
        offsets = np.concatenate([[0], np.cumsum(count)])
        rows, weights = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)

        def tree(t: int) -> None:
            place = slice(offsets[t], offsets[t + 1])
            in_bag(bags[t], rows[place], weights[place])

        parallel_map(tree, range(len(bags)), self.n_threads)
        return rows, weights, offsets

    def totals(
        self, target: Target, rows: Array, weights: Array, begin: Array, end: Array
    ) -> tuple[Array, Array]:
        coding = target.coding

        S = len(begin)
        sums, constant = np.zeros((S, coding.n_channels), np.int64), np.zeros(S, np.bool_)

        def part(s: slice) -> None:
            totals(target.y, rows, weights, begin[s], end[s], sums[s], constant[s])

        parallel_map(part, cut_evenly(end - begin, TASK_ROWS), self.n_threads)
        return sums, constant

    def histogram(
        self,
        matrix: BinnedMatrix,
        target: Target,
        frontier: Frontier,
        features: Array,
        rules: Rules,
    ) -> Array:
        f, coding = frontier, target.coding
        B, C = matrix.edges.n_codes, coding.n_channels
        channels = C + rules.count_rows
        S, k = features.shape
        hist = np.zeros((S, k, B * channels), np.int64)
        # pieces of slot and features: one slot alone still gives work to every thread
        size = -(-k // (2 * self.n_threads)) if 2 * self.n_threads > S else k
        pieces = np.array([(s, j, min(j + size, k)) for s in range(S) for j in range(0, k, size)])

        def piece(p: Array) -> None:
            histogram(
                matrix.codes, target.y, f.rows, f.weights, f.begin, f.end, features, C,
                rules.count_rows, p[0:1], p[1:2], p[2:3], hist,
            )  # fmt: skip

        parallel_map(piece, pieces, self.n_threads)
        return hist.reshape(S, k, B, channels)

    def best_split(
        self,
        matrix: BinnedMatrix,
        hist: Array,
        features: Array,
        need: Array,
        frontier: Frontier,
        rules: Rules,
    ) -> Splits:
        S, k, B, _ = hist.shape
        out = self._no_splits(frontier)
        cut_keys, signs, bounds = self.special(frontier, rules)
        flat = hist.reshape(S, k, -1)

        def part(s: slice) -> None:
            best_split(
                flat[s], features[s], need[s], frontier.sums[s], frontier.n_rows[s], matrix.n_bins,
                rules.criterion, rules.min_rows_leaf, rules.count_rows, rules.min_weight_leaf,
                cut_keys[s], signs, bounds[s], B, *(a[s] for a in vars(out).values()),
            )  # fmt: skip

        parallel_map(part, cut_evenly(np.ones(S), -(-S // self.n_threads)), self.n_threads)
        return out

    @staticmethod
    def _no_splits(frontier: Frontier) -> Splits:
        S = frontier.n_slots
        return Splits(
            np.full(S, -np.inf),
            np.full(S, -1, np.int32),
            np.zeros(S, np.int32),
            np.zeros(S, np.bool_),
            np.zeros_like(frontier.sums),
            np.zeros(S, np.int64),
        )

    def level(
        self, matrix: BinnedMatrix, target: Target, frontier: Frontier, rules: Rules
    ) -> Splits:
        """Slot by slot; a few large slots are shared out by features instead."""
        f, coding = frontier, target.coding
        if f.n_slots < 2 * self.n_threads and self.n_threads > 1:
            return super().level(matrix, target, frontier, rules)
        out = self._no_splits(f)
        cut_keys, signs, bounds = self.special(f, rules)

        def part(slots: slice) -> None:
            level(
                matrix.codes, target.y, f.rows, f.weights, f.begin, f.end, f.key,
                f.sums, matrix.n_bins, rules.criterion, rules.n_tried, rules.min_rows_leaf,
                rules.count_rows, rules.min_weight_leaf, cut_keys, signs, bounds, f.tree,
                allowed_of(f), matrix.edges.n_codes, coding.n_channels,
                np.arange(slots.start, slots.stop), *vars(out).values(),
            )  # fmt: skip

        parallel_map(part, cut_evenly(f.n_rows, TASK_ROWS), self.n_threads)
        return out

    def partition(
        self,
        matrix: BinnedMatrix,
        frontier: Frontier,
        feature: Array,
        bin: Array,
        missing_left: Array,
    ) -> tuple[Array, Array, Array]:
        f = frontier
        n_left = np.zeros(f.n_slots, np.int64)

        def part(s: slice) -> None:
            partition(
                matrix.codes, f.rows, f.weights, f.begin[s], f.end[s], feature[s], bin[s],
                missing_left[s], matrix.edges.missing_code, n_left[s],
            )  # fmt: skip

        parallel_map(part, cut_evenly(f.n_rows, TASK_ROWS), self.n_threads)
        return f.rows, f.weights, n_left

    def deep_rows(self, matrix: BinnedMatrix, target: Target, n_rows: int) -> int:
        """So many that all threads have work to the end: whole trees, when many grow. But
        what is copied has to fit the memory; and no node of fewer rows than bins fills
        histograms of them, as the wide phase would."""
        each, threads = matrix.n_features * matrix.codes.itemsize, self.n_threads * self.n_workers
        shared_out = n_rows // (4 * self.n_threads) if self.n_threads > 1 else n_rows
        wanted = max(shared_out, BLOCK_BYTES // each, matrix.edges.n_codes // 4)
        wanted = min(wanted, MAX_DEEP_ROWS)
        if wanted < matrix.n_rows // SPARSE:
            wanted = min(wanted, max(self.memory_budget, matrix.codes.nbytes) // (threads * each))
        return int(max(64, wanted))

    def grow_subtrees(
        self, matrix: BinnedMatrix, target: Target, frontier: Frontier, rules: Rules
    ) -> Subtrees:
        f, C = frontier, target.coding.n_channels
        if not f.n_slots:
            return super().grow_subtrees(matrix, target, frontier, rules)
        fewest = max(rules.min_rows_split, 2 * rules.min_rows_leaf)
        columns = np.ascontiguousarray(matrix.codes.T)
        limits = (
            rules.criterion, rules.n_tried, rules.max_depth, fewest, rules.min_rows_leaf,
            float(rules.min_gain),
        )  # fmt: skip

        def part(s: slice) -> tuple[Array, ...]:
            most, total = int(f.n_rows[s].max()), int(f.n_rows[s].sum())
            try:
                scratch = self.kept.pop()
            except IndexError:
                scratch = None
            if scratch is None or not scratch.holds(most, total):
                # somewhat more, as another tree may need
                scratch = new_scratch(
                    columns, target.y, most + most // 32, total + total // 32, rules.n_tried,
                    matrix.edges.n_codes, C, C + rules.count_rows,
                )  # fmt: skip
            offsets, leaf_offsets = np.zeros((2, s.stop - s.start + 1), np.int64)
            grow_subtrees(
                columns, target.y, f.rows, f.weights, f.begin[s], f.end[s], f.key[s],
                f.depth[s], f.tree[s], allowed_of(f), matrix.n_bins, limits,
                matrix.edges.n_codes, scratch, offsets, leaf_offsets,
                True if rules.random else None,
            )  # fmt: skip
            nodes = scratch.nodes[: offsets[-1]].copy()
            leaf_sums = scratch.leaf_sums[: leaf_offsets[-1]].copy()
            self.kept.append(scratch)
            return nodes, offsets, leaf_sums, leaf_offsets

        parts = parallel_map(part, cut_evenly(f.n_rows, TASK_ROWS), self.n_threads)
        nodes, offsets, leaf_sums, leaf_offsets = zip(*parts, strict=True)
        return Subtrees(
            joined_offsets(offsets),
            np.concatenate(nodes),
            joined_offsets(leaf_offsets),
            np.concatenate(leaf_sums),
        )

    def apply(self, forest: Forest, codes: Array) -> Array:
        out = np.empty((len(codes), forest.n_trees), np.int64)

        def part(rows: slice) -> None:
            columns, missing = np.ascontiguousarray(codes[rows].T), forest.edges.missing_code
            apply(forest.nodes, forest.tree_offsets, columns, missing, out[rows])

        blocks = self.row_blocks(len(codes), forest.n_trees, codes.shape[1] * codes.itemsize)
        parallel_map(part, blocks, self.n_threads)
        return out

    def accumulate(
        self,
        forest: Forest,
        codes: Array,
        first: int,
        last: int,
        skip: Array | None,
        total: Array,
    ) -> Array:
        offsets, missing = forest.tree_offsets[first : last + 1], forest.edges.missing_code
        if forest.coding.is_classes and forest.coding.n_values > DENSE_VALUES:
            begin, column, values = forest.sparse_values
        else:
            begin, column, values = *ALL_VALUES, forest.values.reshape(-1)

        def part(rows: slice) -> None:
            columns = np.ascontiguousarray(codes[rows].T)
            left_out = NONE_LEFT_OUT if skip is None else skip[:, rows]
            accumulate(
                forest.nodes, offsets, values, columns, missing, left_out, total[rows],
                begin, column,
            )  # fmt: skip

        blocks = self.row_blocks(len(codes), last - first, codes.shape[1] * codes.itemsize)
        parallel_map(part, blocks, self.n_threads)
        return total


def joined_offsets(parts: tuple[Array, ...]) -> Array:
    """Offsets of blocks put one behind another, from each part's own."""
    return np.cumsum(np.concatenate([[0], *(np.diff(p) for p in parts)]))


def allowed_of(frontier: Frontier) -> Array:
    """Features drawn for each tree, bool[T, F]; bool[0, 0]: all."""
    return NONE_LEFT_OUT if frontier.allowed is None else frontier.allowed
