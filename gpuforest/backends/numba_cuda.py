"""A second, simpler GPU backend: CuPy arrays, kernels in Numba CUDA, no deep phase.

It needs no warp functions, so that it runs in Numba's CUDA simulator too, on NumPy arrays.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numba import cuda
from numba.core import config

from gpuforest.backends import gpu
from gpuforest.backends.base import Backend, RowSampling
from gpuforest.common.errors import BackendError
from gpuforest.compiler.types import as_tuple
from gpuforest.engine.binning import BinEdges
from gpuforest.engine.forest import Forest
from gpuforest.engine.records import Frontier, Splits, Training
from gpuforest.engine.slots import all_equal
from gpuforest.kernels.bag.numba_cuda import bag
from gpuforest.kernels.best_split.numba_cuda import best_split
from gpuforest.kernels.encode.numba_cuda import encode
from gpuforest.kernels.histogram.numba_cuda import histogram
from gpuforest.kernels.partition.numba_cuda import partition
from gpuforest.kernels.totals.numba_cuda import differs, totals
from gpuforest.kernels.traverse.numba_cuda import accumulate, apply

Array = Any

THREADS = 128  # of a block
# Threads go on to the next element that no thread has, so any number of blocks will do;
# of fewer than 128 Numba warns
BLOCKS = 128, 2**16
SIMULATED = 3, 2  # blocks and threads: the simulator starts a Python thread for each


class NumbaCudaSampling(RowSampling):
    """Bags are drawn on the device."""

    def bag(
        self, backend: Any, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None
    ) -> Array:
        return bag(keys, n_rows, n_draws, cumulative, backend)


class NumbaCudaBackend(Backend):
    """Numba CUDA, a thread an element; or its simulator, with NUMBA_ENABLE_CUDASIM=1.

    Raises
    ------
    BackendError : no GPU can be used, or the simulator is on and the compiler too
    """

    name = "numba-cuda"
    sampling = NumbaCudaSampling()

    def __init__(self, n_threads: int = 1, memory_budget: int = 64 * 2**20) -> None:
        super().__init__(n_threads, memory_budget)
        self.simulated = bool(config.ENABLE_CUDASIM)
        why_not = why_not_simulated() if self.simulated else why_not_here()
        if why_not is not None:
            raise BackendError(f"backend 'numba-cuda' cannot run here: {why_not}")
        self.xp = import_module(f"array_api_compat.{'numpy' if self.simulated else 'cupy'}")

    def asnumpy(self, array: Array) -> np.ndarray:
        return np.asarray(array) if self.simulated else self.xp.asnumpy(array)

    # what the kernels of this backend ask for

    def offsets(self, count: Array) -> Array:
        """Where each of several pieces begins, and where the last ends: i64[n + 1]."""
        return self.xp.cumulative_sum(count, dtype=self.xp.int64, include_initial=True)

    def launch(self, kernel: Any, n: int, *arguments: Any) -> None:
        """Run a kernel over n elements, on the stream that CuPy uses.

        An argument is a number, an array, or a record of such.
        """
        if n == 0:
            return
        records = [as_tuple(a, self.asarray) if is_dataclass(a) else a for a in arguments]
        if self.simulated:
            kernel[SIMULATED](*(cuda.In(a) if is_read_only(a) else a for a in records))
            return
        blocks = min(max(-(-n // THREADS), BLOCKS[0]), BLOCKS[1])
        stream = self.xp.cuda.get_current_stream().ptr
        on_stream = cuda.external_stream(stream) if stream else 0
        kernel[blocks, THREADS, on_stream](*as_numba(tuple(records)))

    # kernels

    def encode(self, X: Array, edges: BinEdges) -> Array:
        values, offsets = self.asarray(edges.values), self.asarray(edges.offsets)
        return encode(self.asarray(X), values, offsets, edges.missing_code, self)

    def totals(
        self, training: Training, rows: Array, weights: Array, begin: Array, end: Array,
        sums: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        y = training.target.y
        if sums is None:
            sums = totals(y, rows, weights, begin, end, training.n_channels, self)
        return sums, all_equal(
            training, sums, begin, end, lambda end, mean: differs(y, rows, begin, end, mean, self)
        )

    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        count_rows = training.rules.count_rows
        return histogram(training.data, slots, features, count_rows, self)

    def best_split(
        self, training: Training, slots: Frontier, hist: Array, features: Array, need: Array
    ) -> Splits:
        data, rules = training.data, training.rules
        splits: Splits = best_split(data, slots, hist, features, need, rules, self)
        return splits

    def partition(
        self, training: Training, slots: Frontier, splits: Splits
    ) -> tuple[Array, Array, Array]:
        return partition(training.data, slots, splits, self)

    def apply(self, forest: Forest, codes: Array) -> Array:
        return apply(as_tuple(forest.walked(), self.asarray), codes, self.coordinates(forest), self)

    def accumulate(
        self, forest: Forest, codes: Array, trees: range, skip: Array | None, total: Array
    ) -> Array:
        walked, values = as_tuple(forest.walked(trees), self.asarray), self.asarray(forest.values)
        return accumulate(walked, values, codes, skip, total, self.coordinates(forest), self)

    def coordinates(self, forest: Forest) -> Array:
        """The coordinates i32[F, B] that combinations of features add up; none if there are no
        combinations."""
        none = np.zeros((0, 0), np.int32)
        return self.asarray(none if forest.coordinates is None else forest.coordinates)


def as_numba(argument: Any) -> Any:
    """An argument with Numba's arrays instead of CuPy's.

    Numba's documentation says that kernels take CuPy's arrays as arguments, but not that they take
    records of them. The kernel runs on the stream that CuPy uses, so that it need not wait.
    """
    if isinstance(argument, tuple):
        parts = [as_numba(part) for part in argument]
        return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
    if cuda.is_cuda_array(argument):
        return cuda.as_cuda_array(argument, sync=False)
    return argument


def is_read_only(argument: Any) -> bool:
    """Whether it is an array of which the simulator must know that no kernel writes to it."""
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
