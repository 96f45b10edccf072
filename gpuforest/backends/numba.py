"""The compiled CPU backend: NumPy arrays, Numba kernels, plain threads over slots and rows.

Each thread writes results of its own slots or rows alone, so neither the number of threads nor
their timing can change a result.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.backends import boosters, numpy
from gpuforest.backends.base import Array, Backend, Moved, Nodes, RowSampling, SplitKind, new_codes
from gpuforest.backends.booster import Boosting
from gpuforest.backends.rows import value_dtype
from gpuforest.common.parallel import cut_evenly, cut_pieces, parallel_map
from gpuforest.compiler.decorators import Kernel
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits, Subtrees
from gpuforest.core.rules import Sampling
from gpuforest.core.training import Training
from gpuforest.kernels.bag.numba import bag, in_bag, in_part, once, poisson
from gpuforest.kernels.best_split.cuts import Scan, scan_arrays
from gpuforest.kernels.best_split.numba import HIST_BYTES, level
from gpuforest.kernels.edges.numba import edges as choose_edges
from gpuforest.kernels.encode.numba import COARSE, ROWS, encode
from gpuforest.kernels.gradients import numba as gradients
from gpuforest.kernels.gradients.losses import Loss, exact_mean
from gpuforest.kernels.grow_subtrees.scratch import SPARSE, Scratch, new_scratch
from gpuforest.kernels.partition.numba import partition
from gpuforest.kernels.project.numba import project
from gpuforest.kernels.sets.numba import Sets, new_sets
from gpuforest.kernels.totals.numba import totals
from gpuforest.kernels.traverse import numba as by_codes
from gpuforest.kernels.traverse import oblique as by_sums
from gpuforest.kernels.traverse.numba import new_group

BLOCK_BYTES = 2**20  # codes of a deep block: a core's L2; fewer cost wide data more levels
MAX_DEEP_ROWS = 2**20  # some seconds of work, which no interrupt can end
TASK_ROWS = 2**16  # rows of slots that one task takes: some milliseconds of work
TILE_VALUES = 2**17  # values transposed at once: half of a core's L2, as float32
SORTED_VALUES = 2**14  # the fewest values that a task sorts: some 0.3 ms
MIN_WORK = 2**16  # the least work of a task, in values to encode or trees to walk: 0.5 ms
# Bytes of codes and rows of a block that walks down trees: the codes take at most half of a core's
# L2. The distance of their columns is no power of two, or they would share the sets of a cache.
MAX_CODES, MAX_WALKING = 500_000, 7936
DENSE_VALUES = 8  # a prediction of more values than these skips zeros
NO_LABELS = np.zeros((0, 1), np.int32)
NONE_LEFT_OUT = np.zeros((0, 0), np.bool_)
ALL_VALUES = np.zeros(0, np.int64), np.zeros(0, np.int32)
NO_VALUES, NO_SUMS = np.zeros(0), (NONE_LEFT_OUT, np.zeros((0, 0)), *ALL_VALUES)
NO_LEAVES = np.zeros((0, 0), np.int64)

# scratch of all kinds of split, for sets, and of the kind alone; and the kernel that takes it
Scratches = tuple[Scratch, Sets | None, tuple[Any, ...], Kernel]


class NumbaNodes(Nodes):
    """Bags are read by compiled code, on threads."""

    def in_bag(self, backend: Backend, bags: Array) -> tuple[Array, Array, Array]:
        count = np.array(parallel_map(np.count_nonzero, bags, backend.n_threads), np.int64)
        offsets = np.concatenate([[0], np.cumsum(count)])
        rows, weights = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)

        def tree(t: int) -> None:
            inside = slice(offsets[t], offsets[t + 1])
            in_bag(bags[t], rows[inside], weights[inside])

        parallel_map(tree, range(len(bags)), backend.n_threads)
        return rows, weights, offsets


class NumbaSampling(RowSampling):
    """Bags and edges by compiled code, on threads."""

    def bag(
        self, backend: Backend, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None
    ) -> Array:
        weights = np.zeros((len(keys), n_rows), np.int32)
        shares = np.zeros(0, np.int64) if cumulative is None else cumulative
        parallel_map(
            lambda t: bag(keys[t], n_draws, shares, weights[t]), range(len(keys)), backend.n_threads
        )
        return weights

    def once(self, backend: Backend, keys: Array, count: int, n: int) -> Array:
        drawn = np.empty((len(keys), n), np.bool_)
        parallel_map(lambda t: once(keys[t], count, drawn[t]), range(len(keys)), backend.n_threads)
        return drawn

    def poisson(self, backend: Backend, keys: Array, ids: Array, steps: Array) -> Array:
        counts = np.empty((len(keys), len(ids)), np.int32)
        parallel_map(
            lambda t: poisson(keys[t], ids, steps, counts[t]), range(len(keys)), backend.n_threads
        )
        return counts

    def in_part(
        self, backend: Backend, keys: Array, numbers: Array, bags: Array, part: tuple[int, int]
    ) -> Array:
        weights = np.empty(bags.shape, np.int32)
        parallel_map(
            lambda t: in_part(keys[t], *part, numbers, bags[t], weights[t]),
            range(len(bags)), backend.n_threads,
        )  # fmt: skip
        return weights

    def column_edges(
        self, backend: Backend, X: Array, rows: Array | None, weights: Array | None, max_bins: int
    ) -> list[Array]:
        """As many columns at once as fit the budget, so that X is read row by row, and once."""
        if weights is not None or not isinstance(X, np.ndarray):
            return super().column_edges(backend, X, rows, weights, max_bins)
        n = len(X) if rows is None else len(rows)
        dtype, most_edges = np.dtype(value_dtype(X)), min(max_bins, n)
        column_bytes = n * dtype.itemsize + 8 * (most_edges + 1)
        size = max(1, backend.memory_budget // column_bytes)
        columns = np.empty((min(size, X.shape[1]), n), dtype)
        edges = []
        for f in range(0, X.shape[1], size):
            part = X[:, f : f + size]
            edges += edges_of(part, rows, max_bins, columns, backend.n_threads)
        return edges


def edges_of(
    X: Array, rows: Array | None, max_bins: int, columns: Array, n_threads: int
) -> list[Array]:
    """The edges of the columns of X[rows]; columns [F, n] are scratch."""
    F, n = X.shape[1], columns.shape[1]
    out, n_edges = np.empty((F, min(max_bins, n))), np.empty(F, np.int64)

    def transpose(r: slice) -> None:
        columns[:F, r] = (X[r] if rows is None else X[rows[r]]).T

    def choose(f: slice) -> None:
        columns[f].sort(axis=1)
        values, *scratch = np.empty((4, n + 1))
        number = np.empty(1, np.int64)
        call = choose_edges.prepared(values, max_bins, *scratch, out, n_edges, number)
        for i in range(F)[f]:
            values[:n], number[0] = columns[i], i
            call()

    parallel_map(transpose, cut_evenly(np.full(n, F), TILE_VALUES), n_threads)
    at_once = max(-(-F // (4 * n_threads)), SORTED_VALUES // n)
    parallel_map(choose, cut_evenly(np.ones(F), at_once), n_threads)
    return [e[:count] for e, count in zip(out, n_edges, strict=True)]


class NumbaBackend(numpy.NumpyBackend):
    """Numba on the CPU: compiled, threaded, cached on disk."""

    name = "numba"
    n_workers = 1  # how many backends, this one included, work at the same time
    nodes, sampling = NumbaNodes(), NumbaSampling()

    def booster(self, boosting: Boosting) -> boosters.NumbaBooster:
        on_host = boosting.loss.on_host
        kind = boosters.HostLossBooster if on_host else boosters.NumbaBooster
        return kind(boosting, self.n_threads)

    def mean_loss(
        self, loss: Loss, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None
    ) -> float:
        if loss.on_host or not (loss.is_log or loss.is_logit):
            return super().mean_loss(loss, y, raw, weight)
        of_rows, found = loss.of_rows(np.asarray(y, np.float64), None, raw, None), np.empty(len(y))

        def part(rows: slice) -> None:
            scratch = np.empty((3 + len(raw), gradients.BLOCK))
            gradients.losses(of_rows, rows.start, rows.stop, found, scratch)

        parallel_map(part, self.row_blocks(len(y), 16 * len(raw)), self.n_threads)
        return exact_mean(found, weight)

    def waves(
        self, sampling: Sampling, C: int, n_trees: int, n_words: int = 0, bounded: bool = False
    ) -> tuple[int, Backend, int]:
        """Many trees are divided into waves, one for each thread, so that no thread waits."""
        worker = copy(self)
        if 1 < self.n_threads <= n_trees:
            worker.n_threads, worker.n_workers = 1, self.n_threads
            worker.memory_budget = self.memory_budget // self.n_threads
        n_workers = worker.n_workers
        size = super(NumbaBackend, worker).waves(sampling, C, -(-n_trees // n_workers))[2]
        return n_workers, worker, size

    def encode(self, X: Array, edges: BinEdges) -> Array:
        codes = new_codes(X.shape[0], X.shape[1], edges.code_dtype, self)
        values = edges.rounded if X.dtype == np.float32 else edges.values

        def part(rows: slice) -> None:
            block, missing = np.ascontiguousarray(X[rows]), edges.missing_code
            x, coarse = np.empty(ROWS, X.dtype), np.empty(COARSE, X.dtype)
            code = np.empty(ROWS, np.int32)
            encode(block, values, edges.offsets, missing, codes.T, rows.start, x, coarse, code)

        parallel_map(part, self.row_blocks(*X.shape), self.n_threads)
        return codes

    def row_blocks(self, n_rows: int, row_work: int, row_bytes: int = 0) -> list[slice]:
        """Blocks of rows for the threads; a block fits a core's cache.

        row_work : values to encode or trees to walk for a row. row_bytes : of its codes"""
        shared_out = max(-(-n_rows // (4 * self.n_threads)), MIN_WORK // max(row_work, 1))
        size = max(256, min(MAX_WALKING, MAX_CODES // max(row_bytes, 1), shared_out))
        return [slice(r, min(r + size, n_rows)) for r in range(0, n_rows, size)]

    def totals(
        self, training: Training, rows: Array, weights: Array, begin: Array, end: Array,
        sums: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        y, S = training.target.y, len(begin)
        if sums is None:
            sums = new = np.zeros((S, training.n_channels), np.int64)

            def add(s: slice) -> None:
                totals(y, rows, weights, begin[s], end[s], new[s])

            parallel_map(add, cut_evenly(end - begin, TASK_ROWS), self.n_threads)
        return super().totals(training, rows, weights, begin, end, sums)

    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        data, width, (S, k) = training.columns, training.hist_channels, features.shape
        features = np.ascontiguousarray(features)
        hist = np.zeros((S, k, data.n_codes * width), np.int64)
        none, scratch = Splits.none_yet(0, data.n_channels, 0), search_scratch(training)

        def piece(p: tuple[int, ...]) -> None:
            first, last, *some = p
            of_slots = slots, training.rules, first, last, none, hist, features, ALL_VALUES[0]
            level(data, *of_slots, *some, *scratch)

        pieces = [(s, s + 1, *some) for s, *some in cut_pieces(S, k, self.n_threads).tolist()]
        if 4 * self.n_threads <= S:
            pieces = [(s.start, s.stop, 0, k) for s in cut_evenly(slots.local_rows, TASK_ROWS)]
        parallel_map(piece, pieces, self.n_threads)
        return hist.reshape(S, k, data.n_codes, width)

    def best_split(
        self, training: Training, slots: Frontier, hist: Array, features: Array, need: Array
    ) -> Splits:
        S, k, _, _ = hist.shape
        features, need = np.ascontiguousarray(features), np.ascontiguousarray(need)
        data = replace(training.data, codes=np.zeros((0, 0), training.matrix.codes.dtype))
        splits = Splits.none_yet(slots.n_slots, training.n_channels, 0)
        flat = np.ascontiguousarray(hist.reshape(S, k, -1))

        def part(s: slice) -> None:
            of_slots = slots, training.rules, s.start, s.stop, splits, flat, features, need
            level(data, *of_slots, 0, 0, *search_scratch(training))

        parallel_map(part, cut_evenly(np.ones(S), -(-S // self.n_threads)), self.n_threads)
        return splits

    def level(self, training: Training, slots: Frontier) -> Splits | None:
        """Slot by slot; but chunks are searched, by features, if there are a few large slots."""
        if slots.n_slots < 2 * self.n_threads and self.n_threads > 1:
            return None
        data, rules = training.columns, training.rules
        splits = Splits.none_yet(slots.n_slots, training.n_channels, training.n_words)
        size = data.n_codes * training.hist_channels
        batch = max(1, min(rules.n_tried, HIST_BYTES // (8 * size)))

        def part(s: slice) -> None:
            hist, features = np.empty((1, batch, size), np.int64), np.empty((1, batch), np.int32)
            of_slots = slots, rules, s.start, s.stop, splits, hist, features, ALL_VALUES[0]
            level(data, *of_slots, 0, 0, *search_scratch(training, training.matrix.edges.kinds))

        parallel_map(part, cut_evenly(slots.n_rows, TASK_ROWS), self.n_threads)
        return splits

    def partition(self, training: Training, slots: Frontier, splits: Splits) -> Moved:
        n_left = np.zeros(slots.n_slots, np.int64)
        data = replace(training.columns, y=NO_LABELS)

        def part(s: slice) -> None:
            partition(data, slots, splits, s.start, s.stop, n_left)

        parallel_map(part, cut_evenly(slots.n_rows, TASK_ROWS), self.n_threads)
        return slots.rows, slots.weights, n_left

    def project(
        self, training: Training, slots: Frontier, features: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        """A task takes a slot and a combination."""
        combining, (S, k, L) = training.combining, features.shape
        data = replace(training.columns, y=NO_LABELS)
        count = slots.local_rows
        first = np.cumsum(count) - count
        codes = np.empty((k, int(count.sum())), data.codes.dtype)
        low, shift = np.zeros((S, k), np.int64), np.zeros((S, k), np.int64)
        features = np.ascontiguousarray(features, np.int64)
        weights = np.ascontiguousarray(weights, np.int64)
        pieces = np.array([(s, j, first[s]) for j in range(k) for s in range(S)], np.int64)

        def part(some: Array) -> None:
            sums = np.empty(int(count[some[:, 0]].max(initial=0)), np.int32)
            project(
                data, slots, features, weights, combining.coordinates, combining.n_bins, some,
                sums, np.zeros((2, L), np.int64), codes, low, shift,
            )  # fmt: skip

        parallel_map(part, np.array_split(pieces, 4 * self.n_threads), self.n_threads)
        return codes.T, low, shift

    def deep_rows(self, training: Training, n_rows: int) -> int:
        """The most rows with which all threads are busy to the end: whole trees, if many grow.
        Copied codes must fit the memory. Nodes of fewer rows than bins are always deep, because the
        wide phase would fill all bins."""
        if training.rules.limited:
            return 0
        matrix = training.matrix
        row_bytes = matrix.n_features * matrix.codes.itemsize
        threads = self.n_threads * self.n_workers
        shared_out = n_rows // (4 * self.n_threads) if self.n_threads > 1 else n_rows
        most = max(shared_out, BLOCK_BYTES // row_bytes, matrix.edges.n_codes // 4)
        most = min(most, MAX_DEEP_ROWS)
        if most < matrix.n_rows // SPARSE:
            most = min(most, max(self.memory_budget, matrix.codes.nbytes) // (threads * row_bytes))
        return int(max(64, most))

    def grow_subtrees(self, training: Training, slots: Frontier, kind: SplitKind) -> Subtrees:
        """Each task of a thread takes some slots, and scratch that another one used."""
        rules, data = training.rules, training.columns
        n_rows, n_codes, grow = slots.local_rows, training.grown_codes, kind.cpu_kernel(training)
        ready = deque(maxlen=0) if training.matrix.scratch is None else training.matrix.scratch

        def scratch_for(most: int, total: int) -> Scratches:
            with suppress(IndexError):
                last: Scratches = ready.pop()
                if last[3] is grow and last[0].holds(most, total):
                    return last
            # somewhat more, because another tree may need it
            more, width = (most + most // 32, total + total // 32), training.hist_channels
            scratch = new_scratch(data, *more, rules.n_tried, width, n_codes, kind.columns)
            kinds, C, n_words = training.matrix.edges.kinds, data.n_channels, training.node_words
            sets = None  # if splits have no words
            if n_words or kind.has_sets:
                sets = new_sets(kinds, C, width, n_words, n_codes, len(scratch.nodes))
            return scratch, sets, kind.cpu_scratch(training, scratch, data), grow

        def part(s: slice) -> tuple[Array, ...]:
            scratches = scratch_for(int(n_rows[s].max()), int(n_rows[s].sum()))
            scratch, sets, of_kind, _ = scratches
            offsets, written = np.zeros(s.stop - s.start + 1, np.int64), np.zeros(2, np.int64)
            grow(
                data,
                slots.part(s),
                rules,
                scratch,
                offsets,
                written,
                sets,
                *of_kind,
                *kind.given(data),
            )
            kind.written(slots.part(s), of_kind)
            n_leaves, n_words = written
            nodes = scratch.nodes[: offsets[-1]].copy()
            leaf_sums = scratch.leaf_sums[:n_leaves].copy()
            set_at = words = None
            if sets is not None and training.node_words:
                set_at, words = sets.at[: offsets[-1]].copy(), sets.words[:n_words].copy()
            ready.append(scratches)
            return offsets, nodes, leaf_sums, set_at, words

        tasks = cut_evenly(slots.n_rows, TASK_ROWS)
        return joined(parallel_map(part, tasks, self.n_threads))

    def apply(self, forest: Forest, codes: Array) -> Array:
        out = np.empty((len(codes), forest.n_trees), np.int64)
        trees = forest.walked()

        def part(rows: slice) -> None:
            walk, columns, memory = compiled_walk(forest, codes[rows])
            walk(trees, NO_VALUES, columns, *NO_SUMS, out[rows], new_group(), *memory)

        blocks = self.row_blocks(len(codes), forest.n_trees, codes.shape[1] * codes.itemsize)
        parallel_map(part, blocks, self.n_threads)
        return out

    def accumulate(
        self, forest: Forest, codes: Array, trees: range, skip: Array | None, total: Array
    ) -> Array:
        walked = forest.walked(trees)
        mostly_zero = forest.baseline is not None or (
            forest.coding.is_classes and forest.leaf_values is None and not forest.shrinkage
        )
        if mostly_zero and forest.coding.n_values > DENSE_VALUES:
            begin, column, values = forest.sparse_values
        else:
            begin, column, values = *ALL_VALUES, forest.values.reshape(-1)

        def part(rows: slice) -> None:
            left_out = NONE_LEFT_OUT if skip is None else np.ascontiguousarray(skip[:, rows])
            sums = total[rows] if len(begin) else np.ascontiguousarray(total[rows].T)
            walk, columns, memory = compiled_walk(forest, codes[rows])
            added = columns, left_out, sums, begin, column
            walk(walked, values, *added, NO_LEAVES, new_group(), *memory)
            if not len(begin):
                total[rows] = sums.T

        blocks = self.row_blocks(len(codes), len(trees), codes.shape[1] * codes.itemsize)
        parallel_map(part, blocks, self.n_threads)
        return total


def search_scratch(training: Training, kinds: Array | None = None) -> tuple[Scan, Sets]:
    """Scratch of a search for splits of features of these kinds; None: for cuts of all."""
    B, C, width = training.n_codes, training.n_channels, training.hist_channels
    kinds = np.zeros(training.n_features, np.uint8) if kinds is None else kinds
    return scan_arrays(B, C), new_sets(kinds, C, width, training.n_words, B)


def joined(parts: list[tuple[Array, ...]]) -> Subtrees:
    """The subtrees of several tasks, one after another."""
    offsets, nodes, leaf_sums, set_at, words = zip(*parts, strict=True)
    leaves = np.cumsum([0, *map(len, leaf_sums)])[:-1]
    first = np.cumsum([0, *(0 if w is None else len(w) for w in words)])
    no_sets = words[0] is None
    return Subtrees(
        np.cumsum(np.concatenate([[0], *map(np.diff, offsets)])),
        np.concatenate(nodes),
        np.repeat(leaves, [len(o) - 1 for o in offsets]),
        np.concatenate(leaf_sums),
        None if no_sets else np.concatenate([a + first[i] for i, a in enumerate(set_at)]),
        None if no_sets else np.concatenate(words),
    )


def compiled_walk(forest: Forest, codes: Array) -> tuple[Kernel, Array, tuple[Any, ...]]:
    """The kernel that walks down a forest, codes [N, F] as columns [F, N], its last arguments."""
    dtype = np.dtype(np.uint16) if forest.oblique else codes.dtype
    words = np.empty(-(-codes.size * dtype.itemsize // 4), np.uint32)
    columns = words.view(dtype)[: codes.size].reshape(codes.shape[::-1])
    columns[...] = codes.T
    if forest.oblique:
        sums = by_sums.new_sums(forest.walking, forest.edges.coordinates, *columns.shape)
        return by_sums.accumulate_sums, columns, (sums,)
    return by_codes.accumulate, columns, (words, forest.sets if len(forest.sets) else None)
