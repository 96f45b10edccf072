"""A second, simpler GPU backend: CuPy arrays, kernels in Numba CUDA, no deep phase.

It needs no warp functions, so that it runs in Numba's CUDA simulator too, on NumPy arrays.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda
from numba.core import config

from gpuforest.backends import gpu
from gpuforest.backends.base import Backend
from gpuforest.errors import BackendError
from gpuforest.frontier import Frontier, Rules, Splits
from gpuforest.kernels.bag.numba_cuda import bag
from gpuforest.kernels.best_split.numba_cuda import best_split
from gpuforest.kernels.encode.numba_cuda import encode
from gpuforest.kernels.histogram.numba_cuda import histogram
from gpuforest.kernels.partition.numba_cuda import partition
from gpuforest.kernels.totals.numba_cuda import totals
from gpuforest.kernels.traverse.numba_cuda import accumulate, apply

if TYPE_CHECKING:
    from gpuforest.binning import BinEdges, BinnedMatrix
    from gpuforest.forest import Forest
    from gpuforest.target import Target

Array = Any

THREADS = 128  # of a block
# Threads go on to the next element that no thread has, so any number of blocks will do;
# of fewer than 128 Numba warns
BLOCKS = 128, 2**16
SIMULATED = 3, 2  # blocks and threads: the simulator starts a Python thread for each


class NumbaCudaBackend(Backend):
    """Numba CUDA, a thread an element; or its simulator, with NUMBA_ENABLE_CUDASIM=1.

    Raises
    ------
    BackendError : no GPU can be used, or the simulator is on and the compiler too
    """

    name = "numba-cuda"

    def __init__(self, n_threads: int = 1, memory_budget: int = 64 * 2**20) -> None:
        super().__init__(n_threads, memory_budget)
        self.simulated = bool(config.ENABLE_CUDASIM)
        why_not = why_not_simulated() if self.simulated else why_not_here()
        if why_not is not None:
            raise BackendError(f"backend 'numba-cuda' cannot run here: {why_not}")
        self.xp = import_module(f"array_api_compat.{'numpy' if self.simulated else 'cupy'}")

    def asnumpy(self, array: Array) -> np.ndarray:
        return np.asarray(array) if self.simulated else self.xp.asnumpy(array)

    # what the kernels' tellings ask for

    def offsets(self, count: Array) -> Array:
        """Where each of several pieces begins, and where the last ends: i64[n + 1]."""
        return self.xp.cumulative_sum(count, dtype=self.xp.int64, include_initial=True)

    def launch(self, kernel: Any, n: int, *arguments: Any) -> None:
        """Run a kernel over n elements, on the stream that CuPy uses."""
        if n == 0:
            return
        if self.simulated:
            kernel[SIMULATED](*(cuda.In(a) if is_read_only(a) else a for a in arguments))
            return
        blocks = min(max(-(-n // THREADS), BLOCKS[0]), BLOCKS[1])
        stream = self.xp.cuda.get_current_stream().ptr
        kernel[blocks, THREADS, cuda.external_stream(stream) if stream else 0](*arguments)

    # kernels

    def encode(self, X: Array, edges: BinEdges) -> Array:
        values, offsets = self.asarray(edges.values), self.asarray(edges.offsets)
        return encode(self.asarray(X), values, offsets, edges.missing_code, self)

    def bag(self, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None) -> Array:
        return bag(keys, n_rows, n_draws, cumulative, self)

    def totals(
        self, target: Target, rows: Array, weights: Array, begin: Array, end: Array
    ) -> tuple[Array, Array]:
        return totals(target.y, rows, weights, begin, end, target.coding.n_channels, self)

    def histogram(
        self,
        matrix: BinnedMatrix,
        target: Target,
        frontier: Frontier,
        features: Array,
        rules: Rules,
    ) -> Array:
        f, n_channels = frontier, target.coding.n_channels
        return histogram(
            matrix.codes, target.y, f.rows, f.weights, f.begin, f.end, features,
            matrix.edges.n_codes, n_channels, rules.count_rows, self,
        )  # fmt: skip

    def best_split(
        self,
        matrix: BinnedMatrix,
        hist: Array,
        features: Array,
        need: Array,
        frontier: Frontier,
        rules: Rules,
    ) -> Splits:
        # multiway splits ask for one feature's part; the simulator takes whole arrays only
        hist, features = (self.xp.ascontiguousarray(a) for a in (hist, features))
        found = best_split(
            hist, features, need, frontier.sums, frontier.n_rows, matrix.n_bins,
            rules.criterion, rules.min_rows_leaf, rules.count_rows, rules.min_weight_leaf,
            *self.special(frontier, rules), self,
        )  # fmt: skip
        no_sets = self.xp.zeros((frontier.n_slots, 0), dtype=np.uint64)
        return Splits(*(*found, no_sets))

    def partition(
        self,
        matrix: BinnedMatrix,
        frontier: Frontier,
        feature: Array,
        bin: Array,
        missing_left: Array,
        sets: Array,
    ) -> tuple[Array, Array, Array]:
        f = frontier
        return partition(
            matrix.codes, f.rows, f.weights, f.begin, f.end,
            feature, bin, missing_left, matrix.edges.missing_code, sets, self,
        )  # fmt: skip

    def apply(self, forest: Forest, codes: Array) -> Array:
        nodes, offsets, set_at, sets = (
            self.asarray(a) for a in (forest.nodes, forest.tree_offsets, forest.set_at, forest.sets)
        )
        return apply(nodes, offsets, codes, forest.edges.missing_code, set_at, sets, self)

    def accumulate(
        self,
        forest: Forest,
        codes: Array,
        first: int,
        last: int,
        skip: Array | None,
        total: Array,
    ) -> Array:
        f, missing = forest, forest.edges.missing_code
        nodes, offsets, values, set_at, sets = (
            self.asarray(a)
            for a in (f.nodes, f.tree_offsets[first : last + 1], f.values, f.set_at, f.sets)
        )
        return accumulate(nodes, offsets, values, codes, missing, set_at, sets, skip, total, self)


def is_read_only(argument: Any) -> bool:
    """Of such an array the simulator must be told that it is not written to."""
    return isinstance(argument, np.ndarray) and not argument.flags.writeable


def why_not_simulated() -> str | None:
    """The simulator's arrays are not for compiled code, not even that of helpers."""
    return None if config.DISABLE_JIT else "Numba's simulator needs NUMBA_DISABLE_JIT=1 too"


def why_not_here() -> str | None:
    """Why Numba can use no GPU here."""
    reason = gpu.why_not()
    if reason is None and not cuda.is_available():
        return "Numba finds no driver or no libNVVM: pip install 'gpuforest[numba-cuda]'"
    return reason
