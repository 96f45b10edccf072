"""Splits by absolute error on the compiled CPU backend, for pieces of slots and features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.common.parallel import cut_evenly, parallel_map
from gpuforest.engine.frontier import Frontier
from gpuforest.kernels.absolute_split.numba import absolute_split
from gpuforest.kernels.absolute_split.scratch import absolute_arrays
from gpuforest.kernels.shared.records import Cuts

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.engine.training import Training

Array = Any

TASK_ROWS = 2**12  # rows of slots that one task takes: some milliseconds of work


def best_cuts(
    backend: Backend, training: Training, slots: Frontier, features: Array, pieces: Array
) -> Cuts:
    """See `Backend.absolute_split`.

    pieces : i64[p, 3], each a slot and its features first .. last - 1
    """
    (S, k), factors = features.shape, training.target.coding.error_factors
    features = np.ascontiguousarray(features)
    data, rules = training.columns, training.rules
    cuts = Cuts(
        np.full((S, k), -np.inf),
        np.zeros((S, k), np.bool_),
        np.zeros((S, k), np.int32),
        np.zeros((S, k), np.bool_),
        np.zeros((S, k, 1 + len(factors)), np.int64),
    )

    def part(own: slice) -> None:
        most = int(slots.n_stored[pieces[own, 0]].max())
        scratch = absolute_arrays(most, data.y.shape[1], data.n_codes)
        absolute_split(data, slots, features, rules, factors, pieces[own], cuts, scratch)

    work = cut_evenly(slots.n_rows[pieces[:, 0]], TASK_ROWS)
    parallel_map(part, work, backend.n_threads)
    return cuts
