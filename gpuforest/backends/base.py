"""The protocol between the stages and the backends.

`asarray` and `asnumpy` are the only functions that move arrays between host and device. The
abstract methods are the kernels. The methods after them are derived from the kernels; a backend
overrides one only if a benchmark shows a gain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

import numpy as np

from gpuforest.boosting.rounds import Boosting, GrowsRounds
from gpuforest.engine import binning
from gpuforest.engine.assembly import distinct_rows
from gpuforest.engine.binning import BinEdges
from gpuforest.engine.criteria import Criterion
from gpuforest.engine.forest import Forest
from gpuforest.engine.memory import Fit, WorkingMemory
from gpuforest.engine.records import Frontier, Rules, Splits, Subtrees, Training
from gpuforest.engine.sampling import WaveRequest
from gpuforest.engine.slots import children, roots, sort_out

Array = Any


class Backend(ABC):
    """Kernels on one kind of array.

    Parameters
    ----------
    n_threads : int, threads on the CPU
    memory_budget : int, bytes; limits the trees of a wave and the slots of a chunk
    """

    name: str
    xp: Any  # an array-API namespace
    on_host = False  # whether it works in the host's memory, which threads can share
    device: Any = None  # what `xp`'s functions take as device=
    level_kinds: Collection[str] = ()  # the kinds of split whose levels `level` searches
    deep_limits = False  # whether `grow_subtrees` keeps the limits of cuts, see `Rules.limited`

    def __init__(self, n_threads: int = 1, memory_budget: int = 64 * 2**20) -> None:
        self.n_threads = n_threads
        self.memory_budget = memory_budget
        self.room: int | None = None  # bytes of a device's memory for waves; None: all free ones

    # copies between host and device

    def asarray(self, host: np.ndarray) -> Array:
        """Copy a host array to the device."""
        return self.xp.asarray(host, device=self.device)

    @abstractmethod
    def asnumpy(self, array: Array) -> np.ndarray:
        """Copy a device array to the host."""

    # kernels

    @abstractmethod
    def encode(self, X: Array, edges: BinEdges) -> Array:
        """Bin codes [N, F] of X f32 or f64 [N, F]."""

    @abstractmethod
    def bag(self, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None) -> Array:
        """How often each row is drawn for each tree, i32[T, N]."""

    @abstractmethod
    def totals(
        self, training: Training, rows: Array, weights: Array, begin: Array, end: Array
    ) -> Array:
        """Channel sums i64[S, C] of the rows of slots."""

    @abstractmethod
    def differs(
        self, training: Training, rows: Array, begin: Array, end: Array, values: Array
    ) -> Array:
        """Whether some row of a slot has moments that differ from values[s] i64[K], bool[S]."""

    @abstractmethod
    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        """Channel sums by bin, i64[S, k, B, C (+ 1)]."""

    @abstractmethod
    def best_split(
        self, training: Training, slots: Frontier, hist: Array, features: Array, need: Array
    ) -> Splits:
        """The best cut of each slot from its histogram."""

    @abstractmethod
    def partition(
        self, training: Training, slots: Frontier, splits: Splits
    ) -> tuple[Array, Array, Array]:
        """Move each slot's rows to the other half, left ones first, unless its feature is -1.

        Returns rows and weights i32[2 R], which may be the same arrays, changed, and the number
        of rows that went left i64[S].
        """

    def project(
        self, training: Training, slots: Frontier, features: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        """Codes [R, k] of the rows of all slots in combinations i32[S, k, L], and how sums become
        codes, low and shift i64[S, k]."""
        raise NotImplementedError

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

    def booster(self, boosting: Boosting) -> GrowsRounds:
        """What grows the rounds of one fit of boosting."""
        raise NotImplementedError

    # derived

    def supports(self, criterion: Criterion) -> bool:
        """Whether this backend's kernels know the criterion's number."""
        return criterion.number is not None

    def draw_rows(self, seed: int, n_rows: int, count: int) -> np.ndarray:
        """A random sample of `count` < n_rows rows, i64[count], ascending, on the host."""
        return binning.draw_rows(seed, n_rows, count)

    def rows_below(self, seed: int, n_rows: int, limit: int) -> np.ndarray:
        """The rows whose hash is below `limit`, i64[n], ascending, on the host."""
        return binning.rows_below(seed, n_rows, limit)

    def column_edges(
        self, X: Array, rows: np.ndarray | None, weights: np.ndarray | None, max_bins: int
    ) -> list[np.ndarray]:
        """Ascending edges f64[E < max_bins] of each column of X[rows], on the host.

        Parameters
        ----------
        X : real array [N, F], on the host (also sparse) or the device
        rows : i64[n], on the host, or None: all
        weights : i32[n] > 0, on the host, or None: all are one
        """
        sample = binning.take_rows(X, rows, self)
        if not binning.on_host(sample):
            sample = self.asnumpy(sample.T).T  # contiguous columns, because they are read so
        return binning.column_edges(sample, weights, max_bins, self.n_threads)

    def for_one_fit(self) -> Backend:
        """This backend, with scratch that is kept between calls that grow from the same data."""
        return self

    def waves(self, wanted: WaveRequest) -> tuple[int, Backend, int]:
        """How many waves grow at the same time, the backend of each, and the trees of a wave.

        Each tree takes memory for a bag, and for its rows in two halves; on a device also for sets
        and bounds.
        """
        each = 4 * wanted.sampling.n_rows + 16 * wanted.sampling.bag_rows
        return 1, self, evenly(wanted.n_trees, self.memory_budget // max(each, 1))

    def bytes_for(self, fit: Fit, n_trees: int) -> WorkingMemory:
        """Bytes of the backend's working memory for a wave of `n_trees` trees.

        By default, edges are chosen on the host, and a level takes the budget, the rows in two
        halves, and the nodes.
        """
        edges = min(self.n_threads, fit.n_features) * fit.sample_rows * (fit.value_bytes + 80)
        rows = n_trees * fit.bag_rows * (48 + 12 * fit.n_channels)
        return WorkingMemory(edges, self.memory_budget + rows)

    def in_bag(self, bags: Array) -> tuple[Array, Array, Array]:
        """Rows and weights i32[R] of bags i32[T, N], tree by tree, and offsets i64[T + 1]."""
        xp = self.xp
        some = bags > 0
        count = xp.astype(xp.count_nonzero(some, axis=1), xp.int64)
        rows = xp.astype(xp.nonzero(some)[1], xp.int32)
        return rows, bags[some], xp.cumulative_sum(count, include_initial=True)

    def roots(
        self, training: Training, rows: Array, weights: Array, offsets: Array, keys: Array
    ) -> Frontier:
        """The root slots of trees, from what `in_bag` returned and the roots' keys u64[T]."""
        return roots(training, rows, weights, offsets, keys)

    def sort_out(
        self, slots: Frontier, rules: Rules, deep_rows: int
    ) -> tuple[Array, Frontier, Frontier]:
        """Sort the slots by kind; deep ones have at most `deep_rows` rows."""
        return sort_out(self, slots, rules, deep_rows)

    def children(
        self,
        training: Training,
        wide: Frontier,
        splits: Splits,
        rows: Array,
        weights: Array,
        n_left: Array,
    ) -> Frontier:
        """The slots below `wide`, without bounds, from what `partition` returned."""
        return children(training, wide, splits, rows, weights, n_left)

    def level(self, training: Training, slots: Frontier) -> Splits:
        """The best split of each of the slots, for the kinds of split in `level_kinds`."""
        raise NotImplementedError

    def join(self, parts: list[Frontier], rows: Array, weights: Array) -> Frontier:
        """The slots of several frontiers of one wave, which hold these rows."""
        return Frontier.join(self.xp, parts, rows, weights)

    def distinct_rows(self, sums: Array) -> tuple[np.ndarray, np.ndarray]:
        """The distinct rows of `sums` i64[V, C] in a canonical order, and the number of each row
        among them, i64[V], both on the host: see assembly.py."""
        return distinct_rows([self.asnumpy(sums)])

    def deep_rows(self, training: Training, n_rows: int) -> int:
        """The most rows of a slot that `grow_subtrees` takes; 0: it takes none.

        It may be 0 for categorical features (`training.n_words` > 0). It is not called if
        `Rules.limited` holds, but for backends with `deep_limits`; nor by kinds of split that
        always grow level by level, or always whole.

        n_rows : number of rows of all slots together
        """
        return 0

    def grow_subtrees(self, training: Training, slots: Frontier) -> Subtrees:
        """Grow the whole subtree of each slot; by default on the CPU, for kinds of split that grow
        whole on every backend that has them."""
        xp = self.xp
        if slots.n_slots:
            from gpuforest.backends.numba_deep import grow_parts

            return grow_parts(training, slots)
        zero = xp.zeros(1, dtype=xp.int64, device=self.device)
        nodes = xp.zeros(0, dtype=xp.uint64, device=self.device)
        return Subtrees(zero, nodes, zero[:0], slots.sums[:0, ...])


def evenly(n_trees: int, most: int) -> int:
    """Trees of a wave, from one to `most`, so that all waves have about equally many."""
    n_waves = -(-n_trees // max(1, most))
    return -(-n_trees // n_waves)
