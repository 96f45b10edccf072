"""Splits by a set of categories: the codes in the set go left."""

from __future__ import annotations

from dataclasses import replace

from gpuforest.backends.base import Array, Backend
from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.training import Training
from gpuforest.kernels.sets.order import as_sets, in_order
from gpuforest.splits.base import Kind

IN_ORDER = 8  # times a histogram's memory, which ordering the bins of categories takes


class Sets(Kind):
    """Some features are categorical, and are split by sets; the others by cuts."""

    name = "sets"
    title = "sets of categories"
    by_level = True

    def slot_bytes(self, training: Training) -> int:
        # the scatter matrix of classes has C^2 numbers
        matrices = max(1, training.n_channels // training.n_codes)
        return super().slot_bytes(training) * IN_ORDER * matrices

    def best(
        self, backend: Backend, training: Training, slots: Frontier, features: Array, need: Array
    ) -> Splits:
        """Bins of categories are put in the order in which their best set is a cut."""
        matrix, rules = training.matrix, training.rules
        xp, is_set = backend.xp, backend.asarray(matrix.edges.kinds == CATEGORICAL)
        keys = slots.key if rules.random else slots.key[:0]
        hist = backend.histogram(training, slots, features)
        hist, order = in_order(xp, hist, features, is_set, training.n_channels, rules, keys)
        # missing values are a category like the others
        n_bins = matrix.n_bins + xp.astype(is_set, matrix.n_bins.dtype)
        with_missing = replace(training, matrix=replace(matrix, n_bins=n_bins))
        splits = backend.best_split(with_missing, slots, hist, features, need)
        return as_sets(
            xp, splits, hist, order, features, is_set, matrix.n_bins, training.n_words, rules
        )
