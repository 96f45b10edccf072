"""The reference backend: NumPy arrays and vectorised NumPy kernels."""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy
import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.backends.boosters import Booster
from gpuforest.backends.host_memory import deep_wave_bytes, level_wave_bytes
from gpuforest.boosting.rounds import Boosting
from gpuforest.engine.binning import BinEdges
from gpuforest.engine.forest import Forest
from gpuforest.engine.memory import Fit
from gpuforest.engine.records import Frontier, Splits, Training
from gpuforest.engine.slots import Nodes, all_equal
from gpuforest.kernels.best_split.numpy import best_split
from gpuforest.kernels.encode.numpy import encode
from gpuforest.kernels.histogram.numpy import histogram
from gpuforest.kernels.partition.numpy import partition
from gpuforest.kernels.totals.numpy import differs, totals
from gpuforest.kernels.traverse.numpy import accumulate, apply

Array = Any


class NumpyNodes(Nodes):
    """The specification, which says what NumPy's kernels take."""

    def wave_bytes(self, backend: Backend, fit: Fit, n_trees: int) -> float:
        if fit.kind.cpu_only:
            return deep_wave_bytes(fit, backend.n_threads, n_trees)
        return level_wave_bytes(fit, backend.memory_budget, n_trees)


class NumpyBackend(Backend):
    """Vectorised NumPy code, the specification of every other backend."""

    name = "numpy"
    on_host = True
    nodes: Nodes = NumpyNodes()
    xp = array_api_compat.numpy

    def booster(self, boosting: Boosting) -> Booster:
        return Booster(boosting)

    def asnumpy(self, array: Array) -> np.ndarray:
        return np.asarray(array)

    def encode(self, X: Array, edges: BinEdges) -> Array:
        return encode(X, edges.values, edges.offsets, edges.missing_code)

    def totals(
        self, training: Training, rows: Array, weights: Array, begin: Array, end: Array,
        sums: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        y = training.target.y
        if sums is None:
            sums = totals(y, rows, weights, begin, end, training.n_channels)
        return sums, all_equal(
            training, sums, begin, end, lambda end, mean: differs(y, rows, begin, end, mean)
        )

    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        count_rows = training.rules.count_rows
        return histogram(training.data, slots, features, count_rows)

    def best_split(
        self, training: Training, slots: Frontier, hist: Array, features: Array, need: Array
    ) -> Splits:
        return best_split(training.data, slots, hist, features, need, training.rules)

    def partition(
        self, training: Training, slots: Frontier, splits: Splits
    ) -> tuple[Array, Array, Array]:
        return partition(training.data, slots, splits)

    def project(
        self, training: Training, slots: Frontier, features: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        return training.kind.project(training, slots, features, weights)

    def apply(self, forest: Forest, codes: Array) -> Array:
        return apply(forest.walked(), codes)

    def accumulate(
        self, forest: Forest, codes: Array, trees: range, skip: Array | None, total: Array
    ) -> Array:
        return accumulate(forest.walked(trees), forest.values, codes, skip, total)
