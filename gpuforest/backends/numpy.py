"""The reference backend: NumPy arrays and vectorised NumPy kernels."""

from __future__ import annotations

from functools import partial

import array_api_compat.numpy
import numpy as np

from gpuforest.backends.base import Array, Backend, Moved
from gpuforest.backends.booster import Boosting
from gpuforest.backends.boosters import NumpyBooster
from gpuforest.backends.slots import all_equal
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.training import Training
from gpuforest.kernels.best_split.numpy import best_split
from gpuforest.kernels.encode.numpy import encode
from gpuforest.kernels.histogram.numpy import histogram
from gpuforest.kernels.partition.numpy import partition
from gpuforest.kernels.project.numpy import project
from gpuforest.kernels.totals.numpy import differs, totals
from gpuforest.kernels.traverse.numpy import accumulate, apply


class NumpyBackend(Backend):
    """Vectorised NumPy code, the specification of every other backend."""

    name = "numpy"
    on_host = True
    xp = array_api_compat.numpy

    def booster(self, boosting: Boosting) -> NumpyBooster:
        return NumpyBooster(boosting)

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
        unlike = partial(differs, y, rows, begin)
        return sums, all_equal(self.xp, training, sums, begin, end, unlike)

    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        return histogram(training.data, slots, features, training.rules.count_rows)

    def best_split(
        self, training: Training, slots: Frontier, hist: Array, features: Array, need: Array
    ) -> Splits:
        return best_split(training.data, slots, hist, features, need, training.rules)

    def partition(self, training: Training, slots: Frontier, splits: Splits) -> Moved:
        return partition(training.data, slots, splits)

    def project(
        self, training: Training, slots: Frontier, features: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        c = training.combining
        return project(training.data, slots, features, weights, c.coordinates, c.n_bins)

    def apply(self, forest: Forest, codes: Array) -> Array:
        return apply(forest.walked(), codes)

    def accumulate(
        self, forest: Forest, codes: Array, trees: range, skip: Array | None, total: Array
    ) -> Array:
        return accumulate(forest.walked(trees), forest.values, codes, skip, total)


HOST = NumpyBackend()
