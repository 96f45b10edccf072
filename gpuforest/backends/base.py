"""The protocol between the stages and the backends: what devices do differently.

It lies below the stages, which take a `Backend` as an argument; so it names their records in
annotations only, and imports the default of a member where a backend asks for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gpuforest.backends.booster import Booster, Boosting
    from gpuforest.backends.rows import RowSampling
    from gpuforest.backends.slots import Nodes
    from gpuforest.core.bins import BinEdges
    from gpuforest.core.forest import Forest
    from gpuforest.core.frontier import Frontier, Splits, Subtrees
    from gpuforest.core.rules import Sampling
    from gpuforest.core.training import Training

Array = Any  # of the library whose functions are a backend's `xp`
# rows and weights i32[2 R], and the number that went left i64[S]
Moved = tuple[Array, Array, Array]
Active = Callable[[], AbstractContextManager[Any]]


class Backend(ABC):
    """Kernels on one kind of array.

    Parameters
    ----------
    n_threads : int, threads on the CPU
    memory_budget : int, bytes; limits the trees of a wave and the slots of a chunk
    """

    name: str
    xp: Any  # an array-API namespace, whose functions make arrays where the kernels read them
    on_host = False  # whether it works in the host's memory, which threads can share

    def __init__(self, n_threads: int = 1, memory_budget: int = 64 * 2**20) -> None:
        self.n_threads = n_threads
        self.memory_budget = memory_budget
        self.room: int | None = None  # bytes of a device's memory for waves; None: all free ones

    @property
    def nodes(self) -> Nodes:
        """The O(nodes) work between kernels, by default in the array API."""
        from gpuforest.backends.slots import Nodes

        return Nodes()

    @property
    def sampling(self) -> RowSampling:
        """Rows drawn at random, and bin edges chosen from them, by default on the host."""
        from gpuforest.backends.rows import RowSampling

        return RowSampling()

    def asarray(self, host: np.ndarray) -> Array:
        """Copy a host array to the device."""
        return self.xp.asarray(host)

    @abstractmethod
    def asnumpy(self, array: Array) -> np.ndarray:
        """Copy a device array to the host."""

    def places(self, training: Training, n: int) -> list[tuple[Training, Active]]:
        """The training on each of the devices, at most `n`, that grow trees at the same time, and
        the context inside which a thread uses that device."""
        return [(training, nullcontext)]

    # kernels

    @abstractmethod
    def encode(self, X: Array, edges: BinEdges) -> Array:
        """Bin codes [N, F] of X f32 or f64 [N, F]."""

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

    # what not all backends have

    def project(
        self, training: Training, slots: Frontier, features: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        """Codes [R, k] of the rows of all slots in combinations i32[S, k, L], and how sums become
        codes, low and shift i64[S, k]."""
        raise NotImplementedError

    def booster(self, boosting: Boosting) -> Booster:
        """What grows the rounds of one fit of boosting."""
        raise NotImplementedError

    def level(self, training: Training, slots: Frontier) -> Splits | None:
        """The best split of each of the slots; None for kinds of split of which it does not search
        whole levels, but chunks by `histogram` and `best_split`."""
        return None

    def deep_rows(self, training: Training, n_rows: int) -> int:
        """The most rows of a slot that `grow_subtrees` takes, of slots with `n_rows` in all; 0: it
        takes none. Kinds of split that always grow level by level, or always whole, do not ask."""
        return 0

    def grow_subtrees(self, training: Training, slots: Frontier) -> Subtrees:
        """Grow the whole subtree of each slot, of which there is one at least; by default on the
        CPU, for kinds of split that grow whole on every backend that has them."""
        from gpuforest.backends.numba import NumbaBackend

        return NumbaBackend(self.n_threads).grow_subtrees(training, slots)

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
