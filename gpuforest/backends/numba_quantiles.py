"""Quantiles of the targets in leaves: blocks of rows on threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuforest.common.parallel import parallel_map
from gpuforest.kernels.quantiles.members import MEAN, Members
from gpuforest.kernels.quantiles.numba import new_scratch, quantiles, weights_below

Array = Any

ROWS = 1024  # of a block at most, so that threads end together
FEWEST = 64  # rows of a block at least: its scratch takes some microseconds


class ThreadedQuantiles:
    """The operations of kernels/quantiles on compiled code."""

    n_threads: int

    def quantiles(self, members: Members, leaves: Array, y: Array, q: Array, how: int) -> Array:
        out = np.empty((len(leaves), len(y), 1 if how == MEAN else len(q)))

        def part(rows: slice) -> None:
            quantiles(members, leaves[rows], y, q, how, new_scratch(y.shape[1]), out[rows])

        parallel_map(part, self._blocks(len(leaves)), self.n_threads)
        return out

    def weights_below(self, members: Members, leaves: Array, low: Array, high: Array) -> Array:
        out = np.zeros((*low.shape, 4), np.int64)

        def part(rows: slice) -> None:
            weights_below(members, leaves[rows], low[rows], high[rows], out[rows])

        parallel_map(part, self._blocks(len(leaves)), self.n_threads)
        return out

    def _blocks(self, n_rows: int) -> list[slice]:
        size = max(FEWEST, min(ROWS, -(-n_rows // (4 * self.n_threads))))
        return [slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size)]
