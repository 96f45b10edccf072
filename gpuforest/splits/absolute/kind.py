"""Splits by absolute error: cuts of numeric features that bring rows nearest to their medians.

Medians need the rows themselves, so there are no histograms and no deep phase. The search is
compiled for the CPU; other backends hand these fits over to it.
"""

from __future__ import annotations

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.common.parallel import cut_evenly, cut_pieces, parallel_map
from gpuforest.compiler.types import new_arrays
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.training import Training
from gpuforest.kernels.shared.records import Cuts
from gpuforest.splits.absolute.medians import slot_medians
from gpuforest.splits.absolute.numba import AbsoluteScratch, absolute_split
from gpuforest.splits.base import Kind

TASK_ROWS = 2**12  # rows of slots that one task takes: some milliseconds of work


class Absolute(Kind):
    """Cuts of numeric features, chosen by the absolute error around the medians of the sides."""

    name = "absolute"
    title = "criterion='absolute_error'"
    cpu_only = whole_rows = True
    grows_whole = False
    row_bytes = 80  # of rows by feature and by target

    def slot_bytes(self, training: Training) -> int:
        return 8 * training.rules.n_tried * 4 * (training.n_channels + 1)

    def best(
        self, backend: Backend, training: Training, slots: Frontier, features: Array, need: Array
    ) -> Splits:
        cuts = self.cuts(backend, training, slots, features)
        tried = cuts.varies & (np.cumsum(cuts.varies, axis=1) <= need[:, None])
        score = np.where(tried, cuts.score, -np.inf)
        at = np.arange(slots.n_slots), np.argmax(score, axis=1)  # of equal scores the first wins
        return Splits(
            score[at],
            np.where(score[at] > -np.inf, features[at], -1),
            cuts.bin[at],
            cuts.missing_left[at],
            cuts.left[at],
            np.count_nonzero(tried, axis=1),
            np.zeros((slots.n_slots, 0), np.uint64),
        )

    def cuts(self, backend: Backend, training: Training, slots: Frontier, features: Array) -> Cuts:
        """The cut of each slot by each feature i32[S, k] that lowers the absolute error most."""
        factors = training.target.coding.error_factors
        S, k = features.shape
        data, rules = training.columns, training.rules
        cuts = Cuts(
            np.full((S, k), -np.inf),
            np.zeros((S, k), np.bool_),
            np.zeros((S, k), np.int32),
            np.zeros((S, k), np.bool_),
            np.zeros((S, k, 1 + len(factors)), np.int64),
        )
        features = np.ascontiguousarray(features)
        pieces = cut_pieces(S, k, backend.n_threads)

        def part(some: slice) -> None:
            most = int(slots.local_rows[pieces[some, 0]].max())
            sizes = {"n": most, "m": most + 1, "K": len(factors), "S": 4, "C": data.n_codes + 1}
            scratch = AbsoluteScratch(**new_arrays(AbsoluteScratch, np.empty, **sizes))
            absolute_split(data, slots, features, rules, factors, pieces[some], cuts, scratch)

        parallel_map(part, cut_evenly(slots.n_rows[pieces[:, 0]], TASK_ROWS), backend.n_threads)
        return cuts

    def side_values(self, backend: Backend, training: Training, below: Frontier) -> Array:
        y = training.target.y[:, 0]
        return slot_medians(y, below.rows, below.weights, below.begin, below.end)
