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
from gpuforest.backends.base import Array, Backend, Moved, RowSampling
from gpuforest.backends.slots import all_equal
from gpuforest.common import dtypes, errors
from gpuforest.compiler.types import as_tuple, new_arrays
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.training import Training
from gpuforest.kernels import numba_cuda as kernels
from gpuforest.kernels.shared.records import Cuts

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
        weights = backend.xp.zeros((len(keys), n_rows), dtype=dtypes.WEIGHT)
        shares = backend.xp.zeros(0, dtype=np.int64) if cumulative is None else cumulative
        backend.launch(kernels.draw, len(keys) * n_draws, keys, n_draws, shares, weights)
        return weights


class NumbaCudaBackend(Backend):
    """Numba CUDA, one thread an element; or its simulator, with NUMBA_ENABLE_CUDASIM=1.

    Raises
    ------
    BackendError : no GPU, or both the simulator and the compiler are on"""

    name = "numba-cuda"
    sampling = NumbaCudaSampling()

    def __init__(self, n_threads: int = 1, memory_budget: int = 64 * 2**20) -> None:
        super().__init__(n_threads, memory_budget)
        self.simulated = bool(config.ENABLE_CUDASIM)
        if not self.simulated:
            reason = gpu.why_not()
            if reason is None and not cuda.is_available():
                reason = "Numba finds no driver or no libNVVM: pip install 'gpuforest[numba-cuda]'"
        else:  # its arrays are not for compiled code, not even that of helpers
            on = config.DISABLE_JIT
            reason = None if on else "Numba's simulator needs NUMBA_DISABLE_JIT=1 too"
        if reason is not None:
            raise errors.BackendError(f"backend 'numba-cuda' cannot run here: {reason}")
        self.xp = import_module(f"array_api_compat.{'numpy' if self.simulated else 'cupy'}")

    def asnumpy(self, array: Array) -> np.ndarray:
        return np.asarray(array) if self.simulated else self.xp.asnumpy(array)

    # what the kernels of this backend ask for

    def offsets(self, count: Array) -> Array:
        """Where each of several pieces begins, and where the last ends: i64[n + 1]."""
        return self.xp.cumulative_sum(count, dtype=self.xp.int64, include_initial=True)

    def launch(self, kernel: Any, n: int, *arguments: Any) -> None:
        """Run a kernel over n elements on CuPy's stream; arguments: numbers, arrays, records."""
        if n == 0:
            return
        records = [as_tuple(a, self.asarray) if is_dataclass(a) else a for a in arguments]
        if self.simulated:
            for i, a in enumerate(records):
                if isinstance(a, np.ndarray) and not a.flags.writeable:
                    records[i] = cuda.In(a)  # the simulator must know that no kernel writes to it
            kernel[SIMULATED](*records)
            return
        blocks = min(max(-(-n // THREADS), BLOCKS[0]), BLOCKS[1])
        stream = self.xp.cuda.get_current_stream().ptr
        on_stream = cuda.external_stream(stream) if stream else 0
        kernel[blocks, THREADS, on_stream](*as_numba(tuple(records)))

    # kernels

    def encode(self, X: Array, edges: BinEdges) -> Array:
        X, missing = self.asarray(X), edges.missing_code
        codes = self.xp.empty(X.shape, dtype=edges.code_dtype)
        values, offsets = self.asarray(edges.values), self.asarray(edges.offsets)
        self.launch(kernels.encode_values, codes.size, X, values, offsets, missing, codes)
        return codes

    def totals(
        self, training: Training, rows: Array, weights: Array, begin: Array, end: Array,
        sums: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        y, xp = training.target.y, self.xp
        if sums is None:
            sums = xp.zeros((len(begin), training.n_channels), dtype=dtypes.STAT)
            first = self.offsets(end - begin)
            self.launch(kernels.add_totals, len(rows), y, rows, weights, begin, first, sums)

        def differs(end: Array, means: Array) -> Array:
            differing, first = xp.zeros(len(begin), dtype=np.bool_), self.offsets(end - begin)
            self.launch(kernels.compare_rows, len(rows), y, rows, begin, first, means, differing)
            return differing

        return sums, all_equal(self.xp, training, sums, begin, end, differs)

    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        (S, k), data, count_rows = features.shape, training.data, training.rules.count_rows
        hist = self.xp.zeros((S, k, data.n_codes, data.n_channels + count_rows), dtype=dtypes.STAT)
        first, n = self.offsets(slots.end - slots.begin), len(slots.rows) * k
        self.launch(kernels.add_histograms, n, data, slots, features, count_rows, first, hist)
        return hist

    def best_split(
        self, training: Training, slots: Frontier, hist: Array, features: Array, need: Array
    ) -> Splits:
        xp, (S, k), data = self.xp, features.shape, training.data
        hist = xp.reshape(hist, (S, k, -1))
        score, varies, bins, missing_left = (
            xp.zeros((S, k), dtype=t) for t in (dtypes.SCORE, np.bool_, np.int32, np.bool_)
        )
        left = xp.empty((S, k, data.n_channels), dtype=dtypes.STAT)
        cuts = Cuts(score, varies, bins, missing_left, left)
        splits = Splits(**new_arrays(Splits, xp.zeros, S=S, C=data.n_channels, W=0))
        splits.score[...], splits.feature[...] = -np.inf, -1
        P = data.n_codes + 1
        scratch = xp.empty((S, k, 5, P), dtype=np.int64), xp.empty((S, k, P), dtype=dtypes.SCORE)
        arguments = data, slots, hist, features, training.rules, *scratch, cuts
        self.launch(kernels.scan_features, S * k, *arguments)
        self.launch(kernels.choose_features, S, features, need, cuts, splits)
        return splits

    def partition(self, training: Training, slots: Frontier, splits: Splits) -> Moved:
        """Changes rows and weights in place."""
        xp, rows, weights, begin = self.xp, slots.rows, slots.weights, slots.begin
        R, sets = len(rows) // 2, xp.reshape(splits.sets, (-1,))
        first = self.offsets(xp.where(splits.feature < 0, 0, slots.end - begin))
        left = xp.zeros(R, dtype=np.int64)
        self.launch(kernels.choose_sides, R, training.data, slots, splits, sets, first, left)
        rank = self.offsets(left)
        self.launch(kernels.move, R, rows, weights, begin, first, rank)
        return rows, weights, rank[first[1:]] - rank[first[:-1]]

    def apply(self, forest: Forest, codes: Array) -> Array:
        trees = as_tuple(forest.walked(), self.asarray)
        out = self.xp.empty((len(codes), forest.n_trees), dtype=np.int64)
        self.launch(kernels.walk_rows, out.size, trees, codes, out)
        return out

    def accumulate(
        self, forest: Forest, codes: Array, trees: range, skip: Array | None, total: Array
    ) -> Array:
        walked, values = as_tuple(forest.walked(trees), self.asarray), self.asarray(forest.values)
        left_out = self.xp.zeros((0, 0), dtype=np.bool_) if skip is None else skip
        self.launch(kernels.add_leaves, len(codes), walked, values, codes, left_out, total)
        return total


def as_numba(argument: Any) -> Any:
    """An argument with Numba's arrays in place of CuPy's, which Numba may not take in records. The
    kernel runs on CuPy's stream, so that it need not wait."""
    if isinstance(argument, tuple):
        parts = [as_numba(part) for part in argument]
        return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
    if cuda.is_cuda_array(argument):
        return cuda.as_cuda_array(argument, sync=False)
    return argument
