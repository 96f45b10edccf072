"""The protocol between the stages and the backends: what devices do differently.

Its members stand in groups: arrays, rows, levels, subtrees, forests, boosting, memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from gpuforest.backends.booster import Booster, Boosting
from gpuforest.backends.rows import column_edges, on_host, rows_below
from gpuforest.backends.slots import distinct_rows, pairs, true_positions
from gpuforest.common.dtypes import Array as Array
from gpuforest.common.hashing import hash_at, permute
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits, Subtrees
from gpuforest.core.rules import Sampling
from gpuforest.core.training import Training
from gpuforest.kernels.bag.numpy import bag
from gpuforest.kernels.gradients.losses import Loss
from gpuforest.kernels.shared.constants import DEEP, LEAF, NONE, WIDE

# rows and weights i32[2 R], and the number that went left i64[S]
Moved = tuple[Array, Array, Array]
Active = Callable[[], AbstractContextManager[Any]]


class SplitKind(Protocol):
    """What backends ask a kind of split; splits/base.py has the base class."""

    name: str
    title: str
    has_sets: bool
    columns: int

    def runs_on(self, backend: Any) -> bool: ...

    def cpu_kernel(self, training: Any) -> Any: ...

    def cpu_scratch(self, training: Any, scratch: Any, data: Any) -> tuple[Any, ...]: ...

    def given(self, data: Any) -> tuple[Any, ...]: ...

    def written(self, slots: Any, of_kind: tuple[Any, ...]) -> None: ...


class Nodes:
    """O(nodes) work between kernels, for backends without faster code; stateless."""

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
        """Slots of depth 0 from `in_bag`'s result and keys u64[T]; no bounds or drawn features."""
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
            max_rows=rows.shape[0],
        )

    def sort_out(
        self, backend: Backend, training: Training, slots: Frontier, deep_rows: int
    ) -> tuple[Array, Frontier, Frontier]:
        """Kind of each slot, i8[S] of NONE, LEAF, DEEP and WIDE; wide slots; deep slots. Deep slots
        have at most `deep_rows` rows. Only this step of a level waits for the device."""
        xp, n_rows = backend.xp, slots.n_rows
        kind = xp.where(n_rows <= deep_rows, xp.asarray(DEEP, dtype=xp.int8), WIDE)
        kind = xp.where(slots.must_end(xp, training.rules), LEAF, kind)
        kind = xp.where(n_rows == 0, NONE, kind)
        masks = xp.stack([kind == WIDE, kind == DEEP])
        upto = xp.cumulative_sum(xp.astype(masks, xp.int64), axis=1)
        held = xp.sum(xp.where(masks, slots.local_rows[None, :], 0), axis=1)
        numbers = backend.asnumpy(xp.concat([upto[:, -1], held]))
        n_wide, n_deep, rows_wide, rows_deep = numbers.tolist()
        wide = slots.take(xp, true_positions(xp, upto[0, :], n_wide), rows_wide)
        return kind, wide, slots.take(xp, true_positions(xp, upto[1, :], n_deep), rows_deep)

    def children(
        self, backend: Backend, training: Training, wide: Frontier, splits: Splits, moved: Moved
    ) -> Frontier:
        """Two slots for each wide slot, left before right, no bounds; leaves hold no rows."""
        xp, (rows, weights, n_left) = backend.xp, moved
        size = rows.shape[0]
        begin = (wide.begin + size // 2) % max(size, 1)  # in the other half
        middle = begin + n_left
        end = begin + xp.where(splits.feature >= 0, wide.local_rows, 0)
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
            max_rows=wide.max_rows,
            allowed=wide.allowed,
        )

    def join(
        self, backend: Backend, parts: list[Frontier], rows: Array, weights: Array
    ) -> Frontier:
        """The slots of several frontiers of one wave, which hold these rows."""
        return Frontier.join(backend.xp, parts, rows, weights)

    def distinct_rows(self, backend: Backend, sums: Array) -> tuple[np.ndarray, np.ndarray]:
        """Distinct rows of `sums` i64[V, C] in canonical order; number of each row, i64[V]."""
        return distinct_rows([backend.asnumpy(sums)])


class RowSampling:
    """Random rows, and bin edges from them, on the host; stateless: the backend is an argument."""

    def bag(
        self, backend: Backend, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None
    ) -> Array:
        """How often each row is drawn for each tree, i32[T, N]."""
        shares = None if cumulative is None else backend.asnumpy(cumulative)
        return backend.asarray(bag(backend.asnumpy(keys), n_rows, n_draws, shares))

    def once(self, backend: Backend, keys: Array, count: int, n: int) -> Array:
        """The `count` of n items that keys u64[T] draw without replacement, bool[T, n]: random
        orders begin with them."""
        items = backend.xp.arange(n, dtype=backend.xp.uint64)
        return permute(backend.xp, keys[:, None], items[None, :], n) < count

    def poisson(self, backend: Backend, keys: Array, ids: Array, steps: Array) -> Array:
        """How often rows with ids u64[N] count for each tree, i32[T, N]: how many of the steps
        u64[n] are at most the hash by keys u64[T]."""
        xp, point = backend.xp, hash_at(keys[:, None], ids[None, :])
        counts = xp.zeros(point.shape, dtype=xp.int32)
        for k in range(steps.shape[0]):
            counts += point >= steps[k]
        return counts

    def in_part(
        self, backend: Backend, keys: Array, numbers: Array, bags: Array, part: tuple[int, int]
    ) -> Array:
        """Bags i32[T, N] without rows whose hash by keys u64[T] and numbers u64[N], as a number
        below 2**32, does not lie in this part."""
        xp, place = backend.xp, hash_at(keys[:, None], numbers[None, :]) >> 32
        return xp.where((part[0] <= place) & (place < part[1]), bags, 0)

    def rows_below(self, backend: Backend, seed: int, n_rows: int, limit: int) -> np.ndarray:
        """The rows whose hash is below `limit`, i64[n], ascending, on the host."""
        return rows_below(seed, n_rows, limit)

    def column_edges(
        self, backend: Backend, X: Array, rows: Array | None, weights: Array | None, max_bins: int
    ) -> list[np.ndarray]:
        """Ascending edges f64[E < max_bins] of each column of X[rows], on the host.

        X : real [N, F] on the host (also sparse) or the device; rows : i64[n] (None: all) and
        weights : i32[n] > 0 (None: all one), on the host"""
        sample = take_rows(X, rows, backend)
        if not on_host(sample):
            sample = backend.asnumpy(sample.T).T  # contiguous columns, because they are read so
        return column_edges(sample, weights, max_bins, backend.n_threads)


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
        """Channel sums i64[S, C] of slots, if not given; True where targets are equal, bool[S]."""

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
        """Move each slot's rows, left first, to the other half, unless its feature is -1. Rows and
        weights may be returned as the same arrays, changed."""

    def project(
        self, training: Training, slots: Frontier, features: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        """Codes [R, k] of slots' rows in combinations i32[S, k, L]; low and shift i64[S, k] turn
        sums into codes. A backend without it grows no oblique trees."""
        raise NotImplementedError

    def level(self, training: Training, slots: Frontier) -> Splits | None:
        """The best cut or set of each slot; None: use `histogram` and `best_split`."""
        return None

    # subtrees

    def deep_rows(self, training: Training, n_rows: int) -> int:
        """Most rows of a slot for `grow_subtrees`, 0: no slot; n_rows : of all slots together.
        Kinds of split that always grow level by level, or always whole, do not ask."""
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
        """Add the leaf values that rows reach to `total` f64[N, n_values], tree after tree, and
        return it; `total` itself may change.

        skip : bool[len(trees), N], pairs to leave out, or None"""

    # boosting

    def booster(self, boosting: Boosting) -> Booster:
        """Grows the rounds of one fit of boosting. A backend without it does not boost."""
        raise NotImplementedError

    def mean_loss(
        self, loss: Loss, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None
    ) -> float:
        """The mean loss of rows on the host, with raw predictions f64[K, N]."""
        return loss.mean(y, raw, weight)

    # devices and memory

    def places(self, training: Training, n: int) -> list[tuple[Training, Backend, Active]]:
        """Up to `n` devices that grow at once: training, backend, context to use it in."""
        return [(training, self, nullcontext)]

    def waves(
        self, sampling: Sampling, C: int, n_trees: int, n_words: int = 0, bounded: bool = False
    ) -> tuple[int, Backend, int]:
        """Number of concurrent waves of `n_trees` trees with C channels, backend of each, trees of
        each. A tree needs its bag and its rows in two halves; on devices also sets of n_words
        64-bit words, and bounds if predictions are `bounded`."""
        tree = 4 * sampling.n_rows + 16 * sampling.max_bag_rows
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
    """An uninitialised array for codes [N, F]; by columns on the host: a node reads few of them."""
    if backend.on_host:
        return np.empty((n_features, n_rows), dtype).T
    return backend.xp.empty((n_rows, n_features), dtype=dtype)
