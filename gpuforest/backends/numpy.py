"""The reference backend: NumPy arrays, vectorised NumPy kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import array_api_compat.numpy
import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.frontier import Frontier, Rules, Splits
from gpuforest.kernels.absolute_split.numpy import absolute_split
from gpuforest.kernels.bag.numpy import bag
from gpuforest.kernels.best_split.numpy import best_split
from gpuforest.kernels.encode.numpy import encode
from gpuforest.kernels.histogram.numpy import histogram
from gpuforest.kernels.partition.numpy import partition
from gpuforest.kernels.totals.numpy import totals
from gpuforest.kernels.traverse.numpy import accumulate, apply

if TYPE_CHECKING:
    from gpuforest.binning import BinEdges, BinnedMatrix
    from gpuforest.forest import Forest
    from gpuforest.target import Target

Array = Any


class NumpyBackend(Backend):
    """NumPy, vectorised; the specification of every other backend."""

    name = "numpy"
    medians = True
    on_host = True
    xp = array_api_compat.numpy

    def asnumpy(self, array: Array) -> np.ndarray:
        return np.asarray(array)

    def encode(self, X: Array, edges: BinEdges) -> Array:
        return encode(X, edges.values, edges.offsets, edges.missing_code)

    def bag(self, keys: Array, n_rows: int, n_draws: int, cumulative: Array | None) -> Array:
        return bag(keys, n_rows, n_draws, cumulative)

    def totals(
        self, target: Target, rows: Array, weights: Array, begin: Array, end: Array
    ) -> tuple[Array, Array]:
        return totals(target.y, rows, weights, begin, end, target.coding.n_channels)

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
            matrix.edges.n_codes, n_channels, rules.count_rows,
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
        found = best_split(
            hist, features, need, frontier.sums, frontier.n_rows, matrix.n_bins,
            rules.criterion, rules.min_rows_leaf, rules.count_rows, rules.min_weight_leaf,
            *self.special(frontier, rules),
        )  # fmt: skip
        return Splits(*(*found, np.zeros((frontier.n_slots, 0), np.uint64)))

    def absolute_split(
        self,
        matrix: BinnedMatrix,
        target: Target,
        frontier: Frontier,
        features: Array,
        rules: Rules,
    ) -> tuple[Array, ...]:
        f = frontier
        return absolute_split(
            matrix.codes, target.y, f.rows, f.weights, f.begin, f.end, features, matrix.n_bins,
            matrix.edges.missing_code, target.coding.error_factors, rules.min_rows_leaf,
            rules.min_weight_leaf, *self.special(f, rules),
        )  # fmt: skip

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
            feature, bin, missing_left, matrix.edges.missing_code, sets,
        )  # fmt: skip

    def apply(self, forest: Forest, codes: Array) -> Array:
        missing = forest.edges.missing_code
        return apply(forest.nodes, forest.tree_offsets, codes, missing, forest.set_at, forest.sets)

    def accumulate(
        self,
        forest: Forest,
        codes: Array,
        first: int,
        last: int,
        skip: Array | None,
        total: Array,
    ) -> Array:
        offsets, missing = forest.tree_offsets[first : last + 1], forest.edges.missing_code
        return accumulate(
            forest.nodes, offsets, forest.values, codes, missing, forest.set_at, forest.sets,
            skip, total,
        )  # fmt: skip
