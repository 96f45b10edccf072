"""Splits by absolute error on the compiled CPU backend: pieces of slots and features on threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.frontier import Frontier, Rules
from gpuforest.kernels.absolute_split.numba import absolute_split
from gpuforest.parallel import cut_evenly, parallel_map

if TYPE_CHECKING:
    from gpuforest.binning import BinnedMatrix
    from gpuforest.target import Target

Array = Any

TASK_ROWS = 2**12  # rows of slots that one task takes: some milliseconds of work


def best_cuts(
    matrix: BinnedMatrix,
    target: Target,
    f: Frontier,
    features: Array,
    rules: Rules,
    special: tuple[Array, Array, Array],
    pieces: Array,
    n_threads: int,
) -> tuple[Array, ...]:
    """See `Backend.absolute_split`.

    special : as `Backend.special` has it
    pieces : i64[p, 3], slots and the features first .. last - 1 of each
    """
    (S, k), factors = features.shape, target.coding.error_factors
    score, varies = np.full((S, k), -np.inf), np.zeros((S, k), np.bool_)
    cut, missing_left = np.zeros((S, k), np.int32), np.zeros((S, k), np.bool_)
    left = np.zeros((S, k, 1 + len(factors)), np.int64)

    def part(own: slice) -> None:
        absolute_split(
            matrix.codes, target.y, f.rows, f.weights, f.begin, f.end, features,
            matrix.n_bins, matrix.edges.missing_code, factors, rules.min_rows_leaf,
            rules.min_weight_leaf, *special, *pieces[own].T,
            score, varies, cut, missing_left, left,
        )  # fmt: skip

    parallel_map(part, cut_evenly(f.n_rows[pieces[:, 0]], TASK_ROWS), n_threads)
    return score, varies, cut, missing_left, left
