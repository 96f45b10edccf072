"""The two phases of growing on a CUDA device: how much at once, and in which memory.

`CupyBackend` runs this on a GPU. Tests run the same code with NumPy arrays and kernels
built for the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from gpuforest.backends.cuda_kernels import THREADS, CudaKernels
from gpuforest.binning import value_dtype
from gpuforest.errors import BackendError
from gpuforest.frontier import Frontier, Rules, Splits, Subtrees

if TYPE_CHECKING:
    from gpuforest.binning import BinnedMatrix
    from gpuforest.sampling import Sampling
    from gpuforest.target import Target

Array = Any

EDGE_THREADS = 1024  # of edges': few columns must fill a device, and each has much to read
MOST_DEEP_ROWS = 8192  # places of a sparse block are 16 bits


@dataclass(frozen=True)
class DeepPlan:
    """How the deep phase uses a block's shared memory.

    rows : of a slot at the most; 0: no deep phase
    bytes : of shared memory
    stride : bytes of a row of codes there; 0: codes are read where they are
    has_counts : every warp can count rows by their codes, to sort them
    """

    rows: int
    bytes: int
    stride: int
    has_counts: bool


class CudaBackend(CudaKernels):
    """All kernels on a device; what is O(nodes) is array-API code, as everywhere."""

    def draw_rows(self, seed: int, n_rows: int, count: int) -> np.ndarray:
        rows = self.empty(count, self.xp.int64)
        arguments = (np.uint64(seed), n_rows, count, rows)
        self.launch("level", "draw_rows", (self.blocks(count, THREADS),), arguments)
        return self.asnumpy(self.xp.sort(rows))

    def column_edges(
        self, X: Array, rows: np.ndarray | None, weights: np.ndarray | None, max_bins: int
    ) -> list[np.ndarray]:
        """As many columns at once as the budget holds; only their edges come to the host."""
        # weights would have to be sorted along, and sparse columns made dense: left to the host
        if weights is not None or issparse(X):
            return super().column_edges(X, rows, weights, max_bins)
        sample = self.take_rows(X, rows)
        xp, (n, F), dtype = self.xp, sample.shape, value_dtype(sample)
        places = min(max_bins, n)
        # of a column: it and its sort's copies; a number and two measures of each value
        each = n * (4 * np.dtype(dtype).itemsize + 20) + 8 * places
        size, found = max(1, self.memory_budget // each), []
        for f in range(0, F, size):
            part = self.asarray(sample[:, f : f + size])
            columns = xp.sort(xp.ascontiguousarray(part.T, dtype=dtype), axis=1)
            k = columns.shape[0]
            first, n_edges = self.empty((k, n + 1), xp.int32), self.empty(k, xp.int64)
            rank, spread = (self.empty((k, n), xp.float64) for _ in range(2))
            edges = self.empty((k, places), xp.float64)
            arguments = (columns, n, max_bins, places, first, rank, spread, edges, n_edges)
            self.launch(
                "edges", "edges", (k,), arguments,
                macros={"VALUE": "float" if dtype == np.float32 else "double"},
                threads=EDGE_THREADS,
            )  # fmt: skip
            counts = self.asnumpy(n_edges).tolist()
            found += [e[:c] for e, c in zip(self.asnumpy(edges), counts, strict=True)]
        return found

    def wave_trees(self, sampling: Sampling, n_channels: int, n_trees: int) -> int:
        """As many as free memory holds: bags, rows twice, nodes and leaves with gaps."""
        free = self.free_bytes() - self.memory_budget
        each = 4 * sampling.n_rows + (56 + 12 * n_channels) * sampling.bag_rows
        if each > free:
            raise BackendError(
                f"one tree of {sampling.n_rows} rows needs about {each + self.memory_budget} "
                f"bytes of device memory, of which {self.free_bytes()} are free: lower "
                "max_samples, free memory, or use backend='numba'"
            )
        if self.room is not None:
            free = min(free, self.room - self.memory_budget)
        return max(1, min(n_trees, free // each))

    def level(
        self, matrix: BinnedMatrix, target: Target, frontier: Frontier, rules: Rules
    ) -> Splits:
        """As the default, without asking whether enough features were tried.

        All rounds are launched; a slot that needs no more has nothing to do in them. Where
        features are categorical it is the default, which puts their bins in order.
        """
        if matrix.edges.most_words:
            return super().level(matrix, target, frontier, rules)
        best, S = self.no_splits(frontier), frontier.n_slots
        if not S:
            return best
        xp, k, F = self.xp, rules.n_tried, matrix.n_features
        need = xp.full((S,), k, dtype=xp.int64, device=self.device)
        tile, n_tiles, first = self.tiles_of(frontier.n_rows, frontier.n_held)
        B, channels = matrix.edges.n_codes, target.coding.n_channels + rules.count_rows
        size = max(1, min(S, self.memory_budget // (k * (8 * B * channels + 16))))
        hist = self.empty((size, k, B, channels), xp.int64)
        for s in range(0, S, size):
            chunk = slice(s, min(s + size, S))
            slots, more = frontier.part(chunk), need[chunk]
            part = Splits(*(a[chunk, ...] for a in vars(best).values()))
            tiles, own = (tile, n_tiles, first[s : chunk.stop + 1]), hist[: chunk.stop - s, ...]
            for position in range(0, F, k):
                features = self.draw_features(slots, position, k, F, more, own)
                self.add_rows(matrix, target, slots, features, rules, tiles, own)
                self.improve(matrix, own, features, more, slots, rules, part)
        return best

    def draw_features(
        self, slots: Frontier, first: int, k: int, F: int, need: Array, hist: Array
    ) -> Array:
        """Features to try next, i32[S, k], -1 for none; those tried get empty histograms."""
        S = slots.n_slots
        features = self.empty((S, k), self.xp.int32)
        width = hist.shape[2] * hist.shape[3]
        arguments = (
            slots.key, first, k, F, S, need, *self.allowed(slots), width, features, hist,
        )  # fmt: skip
        self.launch("level", "draw_features", (self.blocks(S * k, THREADS // 32),), arguments)
        return features

    def allowed(self, slots: Frontier) -> tuple[bool, Array, Array]:
        """Whether features were drawn for each tree, the slots' trees, and the features."""
        some = slots.allowed is not None
        return some, slots.tree, slots.allowed if some else self.nothing(self.xp.bool)

    def deep_rows(self, matrix: BinnedMatrix, target: Target, n_rows: int) -> int:
        C = target.coding.n_channels
        if self.shared_limit < 16 * C:
            raise BackendError(
                f"{C} classes or outputs are too many for this GPU, which takes "
                f"{self.shared_limit // 16}: use backend='numba'"
            )
        return self.deep_plan(matrix, target).rows

    def deep_plan(self, matrix: BinnedMatrix, target: Target) -> DeepPlan:
        """Half of a processor's shared memory if it holds many rows, else all of it.

        Two blocks, as many as their registers allow, hide each other's waiting. Where rows
        are so wide that few fit, their codes stay in global memory.
        """
        itemsize, coding = matrix.codes.itemsize, target.coding
        C, B, warps = coding.n_channels, matrix.edges.n_codes, THREADS // 32
        # an odd number of words, so that rows begin in different banks
        stride = (-(-matrix.n_features * itemsize // 4) | 1) * 4
        y_bytes = 4 if coding.is_classes else 8 * (C - 1)
        counts = 4 * warps * B
        for share, least in ((2, 512), (1, 256), (2, 64)):
            limit, scratch = self.shared_share(share), warps * 24 * C
            has_counts = 6 * counts <= limit
            here = share == 1 or least > 64
            each = y_bytes + 18 + (stride if here else 4)
            # parts begin at multiples of 16
            left = limit - scratch - counts * has_counts - 256
            rows = min(MOST_DEEP_ROWS, left // each)
            if rows >= least:
                return DeepPlan(rows, limit, stride if here else 0, has_counts)
        return DeepPlan(0, 0, 0, False)

    def grow_subtrees(
        self, matrix: BinnedMatrix, target: Target, frontier: Frontier, rules: Rules
    ) -> Subtrees:
        xp, f, D = self.xp, frontier, frontier.n_slots
        if not D:
            return super().grow_subtrees(matrix, target, frontier, rules)
        plan, C = self.deep_plan(matrix, target), target.coding.n_channels
        fewest = max(rules.min_rows_split, 2 * rules.min_rows_leaf)
        first = xp.cumulative_sum(f.n_rows, include_initial=True)
        sparse = self.zeros(2 * f.n_held, xp.uint64)
        sparse_sums = self.empty((f.n_held, C), xp.int64)
        counts = self.empty((D, 2), xp.int64)
        arguments: tuple[Any, ...] = (
            matrix.codes, target.y, f.rows, f.weights, f.begin, f.end, f.key, f.depth,
            *self.allowed(f), matrix.n_bins, matrix.n_features, matrix.codes.shape[1],
            matrix.edges.n_codes, C, rules.n_tried, rules.max_depth, fewest, rules.min_rows_leaf,
            float(rules.min_gain), self.table(), D,
            plan.rows, plan.stride // matrix.codes.itemsize, plan.has_counts, first,
            sparse, sparse_sums, counts,
        )  # fmt: skip
        macros = self.macros(matrix, CRITERION=str(rules.criterion), SPECIAL=str(int(rules.random)))
        self.launch(
            "grow_subtrees", "grow_subtrees", (self.blocks(D),), arguments,
            macros=macros, shared=plan.bytes,
        )  # fmt: skip
        offsets, leaf_offsets = (
            xp.cumulative_sum(counts[:, i], include_initial=True) for i in range(2)
        )
        n_nodes, n_leaves = self.asnumpy(xp.stack([offsets[-1], leaf_offsets[-1]])).tolist()
        nodes = self.empty(n_nodes, xp.uint64)
        leaf_sums = self.empty((n_leaves, C), xp.int64)
        arguments = (sparse, sparse_sums, first, D, C, offsets, leaf_offsets, nodes, leaf_sums)
        self.launch(
            "grow_subtrees", "collect", (self.blocks(D),), arguments,
            macros=macros, shared=4 * plan.rows,
        )  # fmt: skip
        return Subtrees(offsets, nodes, leaf_offsets[:-1], leaf_sums)
