"""The protocol between the stages and the backends: what devices do differently.

Its members stand in groups: arrays, rows, levels, subtrees, forests, boosting, memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from gpuforest.backends.booster import Booster, Boosting
from gpuforest.backends.rows import column_edges, on_host, rows_below
from gpuforest.backends.slots import distinct_rows, pairs, true_positions
from gpuforest.common.dtypes import Array as Array
from gpuforest.common.hashing import hash_at
from gpuforest.core.bins import BinEdges
from gpuforest.core.fit import Fit
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits, Subtrees
from gpuforest.core.kind import SplitKind
from gpuforest.core.rules import Sampling
from gpuforest.core.training import Training
from gpuforest.kernels.bag.numpy import bag
from gpuforest.kernels.shared.constants import DEEP, LEAF, NONE, WIDE

# rows and weights i32[2 R], and the number that went left i64[S]
Moved = tuple[Array, Array, Array]
Active = Callable[[], AbstractContextManager[Any]]


class Nodes:
    """The O(nodes) work between kernels, for every backend that has no faster one. It holds
    nothing: the backend is an argument."""

    def in_bag(self, backend: Backend, bags: Array) -> tuple[Array, Array, Array]:
        """Rows and weights i32[R] of bags i32[T, N], tree by tree, and offsets i64[T + 1]."""
        xp = backend.xp
        drawn = bags > 0
        count = xp.astype(xp.count_nonzero(drawn, axis=1), xp.int64)
        rows = xp.astype(xp.nonzero(drawn)[1], xp.int32)
        return rows, bags[drawn], xp.cumulative_sum(count, include_initial=True)

    def roots(
        self, backend: Backend, training: Training, held: tuple[Array, Array, Array], keys: Array
    ) -> Frontier:
        """The slots of depth 0, from what `in_bag` returned and the roots' keys u64[T], without
        bounds or features drawn for trees."""
        xp, (rows, weights, offsets) = backend.xp, held
        begin, end, T = offsets[:-1], offsets[1:], keys.shape[0]
        sums, constant = backend.totals(training, rows, weights, begin, end)
        return Frontier(
            tree=xp.arange(T, dtype=xp.int32),
            key=keys,
            n_rows=end - begin,
            begin=begin,
            end=end,
            sums=sums,
            constant=constant,
            depth=xp.zeros(T, dtype=xp.int32),
            rows=rows,
            weights=weights,
            n_held=rows.shape[0],
        )

    def sort_out(
        self, backend: Backend, training: Training, slots: Frontier, deep_rows: int
    ) -> tuple[Array, Frontier, Frontier]:
        """The kind of each slot, i8[S] of NONE, LEAF, DEEP and WIDE, and the wide and the deep
        slots, which have at most `deep_rows` rows. Nothing else in a level waits for the device."""
        xp, n_rows = backend.xp, slots.n_rows
        kind = xp.where(n_rows <= deep_rows, xp.asarray(DEEP, dtype=xp.int8), WIDE)
        kind = xp.where(slots.must_end(xp, training.rules), LEAF, kind)
        kind = xp.where(n_rows == 0, NONE, kind)
        masks = xp.stack([kind == WIDE, kind == DEEP])
        upto = xp.cumulative_sum(xp.astype(masks, xp.int64), axis=1)
        held = xp.sum(xp.where(masks, slots.n_stored[None, :], 0), axis=1)
        numbers = backend.asnumpy(xp.concat([upto[:, -1], held]))
        n_wide, n_deep, rows_wide, rows_deep = numbers.tolist()
        wide = slots.take(xp, true_positions(xp, upto[0, :], n_wide), rows_wide)
        return kind, wide, slots.take(xp, true_positions(xp, upto[1, :], n_deep), rows_deep)

    def children(
        self, backend: Backend, training: Training, wide: Frontier, splits: Splits, moved: Moved
    ) -> Frontier:
        """Two slots for each wide slot, left before right, without bounds, from what
        `Backend.partition` returned; they hold no rows if it is a leaf."""
        xp, (rows, weights, n_left) = backend.xp, moved
        size = rows.shape[0]
        begin = (wide.begin + size // 2) % max(size, 1)  # in the other half
        middle = begin + n_left
        end = begin + xp.where(splits.feature >= 0, wide.n_stored, 0)
        begin, end = pairs(xp, begin, middle), pairs(xp, middle, end)
        sums = pairs(xp, splits.left, wide.sums - splits.left)
        sides = xp.arange(2, dtype=xp.uint64)
        return Frontier(
            tree=xp.repeat(wide.tree, 2),
            key=xp.reshape(hash_at(wide.key[:, None], sides[None, :]), (-1,)),
            n_rows=end - begin,
            begin=begin,
            end=end,
            sums=sums,
            constant=backend.totals(training, rows, weights, begin, end, sums)[1],
            depth=xp.repeat(wide.depth + 1, 2),
            rows=rows,
            weights=weights,
            n_held=wide.n_held,
            allowed=wide.allowed,
        )

    def join(
        self, backend: Backend, parts: list[Frontier], rows: Array, weights: Array
    ) -> Frontier:
        """The slots of several frontiers of one wave, which hold these rows."""
        return Frontier.join(backend.xp, parts, rows, weights)

    def distinct_rows(self, backend: Backend, sums: Array) -> tuple[np.ndarray, np.ndarray]:
        """The distinct rows of `sums` i64[V, C] in a canonical order, and the number of each row
        among them, i64[V], both on the host: see slots.py."""
        return distinct_rows([backend.asnumpy(sums)])

    def wave_bytes(self, backend: Backend, fit: Fit, n_trees: int) -> float:
        """Bytes of a wave of trees while it grows or is pruned, without bags and grown trees: a
        level takes the budget, the rows in two halves, and the nodes."""
        return backend.memory_budget + n_trees * fit.bag_rows * (48 + 12 * fit.n_channels)


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


class Backend(ABC):
    """Kernels on one kind of array.

    Parameters
    ----------
    n_threads : int, threads on the CPU
    memory_budget : int, bytes; limits the trees of a wave and the slots of a chunk
    """

    name: str
    xp: Any  # an array-API namespace, whose functions make arrays where the kernels read them
    nodes: Nodes = Nodes()
    sampling: RowSampling = RowSampling()
    on_host = False  # whether it works in the host's memory, which threads can share

    def __init__(self, n_threads: int = 1, memory_budget: int = 64 * 2**20) -> None:
        self.n_threads = n_threads
        self.memory_budget = memory_budget
        self.room: int | None = None  # bytes of a device's memory for waves; None: all free ones

    def asarray(self, host: np.ndarray) -> Array:
        """Copy a host array to the device."""
        return self.xp.asarray(host)

    @abstractmethod
    def asnumpy(self, array: Array) -> np.ndarray:
        """Copy a device array to the host."""

    # rows

    @abstractmethod
    def encode(self, X: Array, edges: BinEdges) -> Array:
        """Bin codes [N, F] of X f32 or f64 [N, F]."""

    # levels

    @abstractmethod
    def totals(
        self, training: Training, rows: Array, weights: Array, begin: Array, end: Array,
        sums: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Channel sums i64[S, C] of the rows of slots, which may be known already, and whether all
        targets of a slot are equal, bool[S]."""

    @abstractmethod
    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        """Channel sums by bin, i64[S, k, B, C (+ 1)]."""

    @abstractmethod
    def best_split(
        self, training: Training, slots: Frontier, hist: Array, features: Array, need: Array
    ) -> Splits:
        """The best cut of each slot from its histogram."""

    @abstractmethod
    def partition(self, training: Training, slots: Frontier, splits: Splits) -> Moved:
        """Move each slot's rows to the other half, left ones first, unless its feature is -1. Rows
        and weights may be returned as the same arrays, changed."""

    def project(
        self, training: Training, slots: Frontier, features: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        """Codes [R, k] of the rows of all slots in combinations i32[S, k, L], and how sums become
        codes, low and shift i64[S, k]. A backend without it grows no oblique trees."""
        raise NotImplementedError

    def level(self, training: Training, slots: Frontier) -> Splits | None:
        """The best split of each slot by a cut or a set; None if the backend searches the slots in
        chunks, by `histogram` and `best_split`."""
        return None

    # subtrees

    def deep_rows(self, training: Training, n_rows: int) -> int:
        """The most rows of a slot that `grow_subtrees` takes, of slots with `n_rows` in all; 0: it
        takes none. Kinds of split that always grow level by level, or always whole, do not ask."""
        return 0

    def grow_subtrees(self, training: Training, slots: Frontier, kind: SplitKind) -> Subtrees:
        """Grow the whole subtree of each slot; there is at least one slot."""
        raise NotImplementedError

    # forests

    @abstractmethod
    def apply(self, forest: Forest, codes: Array) -> Array:
        """The leaf that each row reaches in each tree, i64[N, T]."""

    @abstractmethod
    def accumulate(
        self, forest: Forest, codes: Array, trees: range, skip: Array | None, total: Array
    ) -> Array:
        """Add the values of the leaves that rows reach to total f64[N, n_values], and return it.

        Trees of consecutive numbers are added in their order; `skip` bool[len(trees), N] marks
        pairs of tree and row to leave out. `total` itself may be changed.
        """

    # boosting

    def booster(self, boosting: Boosting) -> Booster:
        """Grows the rounds of one fit of boosting. A backend without it does not boost."""
        raise NotImplementedError

    # devices and memory

    def places(self, training: Training, n: int) -> list[tuple[Training, Backend, Active]]:
        """At most `n` devices that grow trees at the same time: the training there, its backend,
        and the context inside which a thread uses that device."""
        return [(training, self, nullcontext)]

    def waves(
        self, sampling: Sampling, C: int, n_trees: int, n_words: int = 0, bounded: bool = False
    ) -> tuple[int, Backend, int]:
        """How many waves of `n_trees` trees of C channels grow at the same time, the backend of
        each, and the trees of a wave.

        Each tree takes memory for a bag, and for its rows in two halves; on a device also for split
        sets of at most `n_words` 64-bit words, and for bounds where its predictions are `bounded`.
        """
        tree = 4 * sampling.n_rows + 16 * sampling.bag_rows
        return 1, self, evenly(n_trees, self.memory_budget // max(tree, 1))


def evenly(n_trees: int, most: int) -> int:
    """Trees of a wave, from one to `most`, so that all waves have about equally many."""
    n_waves = -(-n_trees // max(1, most))
    return -(-n_trees // n_waves)


def has(backend: Backend, operation: str) -> bool:
    """Whether the backend has this operation, which not all backends have."""
    return getattr(type(backend), operation) is not getattr(Backend, operation)


def take_rows(X: Array, rows: np.ndarray | None, backend: Backend) -> Array:
    """X[rows] where X is; rows : i64[n] on the host, or None: all."""
    if rows is None:
        return X
    return X[rows] if on_host(X) else backend.xp.take(X, backend.asarray(rows), axis=0)


def new_codes(n_rows: int, n_features: int, dtype: Any, backend: Backend) -> Array:
    """An uninitialised array for codes [N, F]; on the host its columns are contiguous, because a
    node reads few of them."""
    if backend.on_host:
        return np.empty((n_features, n_rows), dtype).T
    return backend.xp.empty((n_rows, n_features), dtype=dtype)
