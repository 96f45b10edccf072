"""The reference backend: NumPy arrays and vectorised NumPy kernels."""

from __future__ import annotations

import array_api_compat.numpy
import numpy as np

from gpuforest.backends.base import Array, Backend, Moved, Nodes
from gpuforest.backends.booster import Boosting
from gpuforest.backends.boosters import NumpyBooster
from gpuforest.backends.slots import all_equal
from gpuforest.core.bins import BinEdges
from gpuforest.core.fit import MIB, Fit
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.training import Training
from gpuforest.kernels.best_split.numpy import best_split
from gpuforest.kernels.encode.numpy import encode
from gpuforest.kernels.grow_subtrees.scratch import CACHE_BYTES, block_rows
from gpuforest.kernels.histogram.numpy import histogram
from gpuforest.kernels.partition.numpy import partition
from gpuforest.kernels.project.numpy import project
from gpuforest.kernels.totals.numpy import differs, totals
from gpuforest.kernels.traverse.numpy import accumulate, apply

DEEP_ROWS = 2**16  # rows of the trees that a thread grows one after another in one scratch


class NumpyNodes(Nodes):
    """The specification, which says what NumPy's kernels take."""

    def wave_bytes(self, backend: Backend, fit: Fit, n_trees: int) -> float:
        """Rows, histograms and levels of trees that grow level by level."""
        slot = 8 * fit.rules.n_tried * fit.n_codes * (fit.n_channels + 1)
        # the widest level has at most half as many slots as there are leaves
        chunk, level = max(backend.memory_budget, slot), slot * n_trees * fit.leaves[0] / 2
        # both sides and the scores of all cuts, maybe also of the chunk before
        histograms = 13 * chunk if level > chunk else 9 * level
        kept = fit.level_bytes(
            n_trees, fit.kind.split_words(fit)[1]
        )  # a third of it until trees are put together
        growing = histograms + 110 * n_trees * fit.expected_bag_rows + kept / 3
        return max(growing, kept, fit.pruning_bytes(n_trees))


class NumpyBackend(Backend):
    """Vectorised NumPy code, the specification of every other backend."""

    name = "numpy"
    on_host = True
    nodes: Nodes = NumpyNodes()
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
        return sums, all_equal(
            self.xp,
            training,
            sums,
            begin,
            end,
            lambda end, mean: differs(y, rows, begin, end, mean),
        )

    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        count_rows = training.rules.count_rows
        return histogram(training.data, slots, features, count_rows)

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


def deep_wave_bytes(fit: Fit, n_threads: int, n_trees: int) -> float:
    """Bytes of a wave in Numba: scratch of threads, nodes and leaves several times, pruned
    trees."""
    F, R, C = fit.n_features, fit.expected_bag_rows, fit.n_channels
    leaves, _ = fit.leaves
    alone = n_threads == 1
    most = R if alone else max(n_trees * R // (4 * n_threads), min(R, MIB // F))
    scratch = fit.kind.scratch_bytes(fit, most) + MIB
    row = F * fit.code_bytes
    # copies of codes; MIB has room for the copies that stay in the cache
    scratch += max(0, row * sum(block_rows(row, fit.n_rows, int(most))) - CACHE_BYTES)
    together = min(n_trees, DEEP_ROWS / R)
    if alone:
        together = max(1.0, together)
    sums = 8 * C * fit.leaf_rows(together, growing=True)
    # nodes as threads grow them, together and in their places, and the sums of leaves twice
    unordered: float = n_trees * leaves * 2 * 8 * 3 + 2 * sums * n_trees / together
    if fit.is_pure:
        scratch += sums
    unordered += fit.kind.wave_bytes(fit, n_trees)
    if fit.prunes:
        scratch += (2 * 8 + 8 * C) * leaves * together
    return n_threads * scratch + max(unordered, fit.pruning_bytes(n_trees))
