"""Combinations of features on a CUDA device: their codes, see oblique.py, and what the deep phase
draws them from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuforest.backends.cuda_kernels import CudaKernels, codes_of
from gpuforest.kernels.grow_subtrees.structs import Combining
from gpuforest.kernels.shared import structs

if TYPE_CHECKING:
    from gpuforest.engine.frontier import Frontier
    from gpuforest.engine.training import Training

Array = Any

MOST_SHIFT = 24  # sums have fewer bits


class CudaOblique(CudaKernels):
    """The kernels over rows and combinations."""

    def project(
        self, training: Training, slots: Frontier, features: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        xp, c, (S, k, L), matrix = self.xp, training.combining, features.shape, training.matrix
        features, weights = (
            xp.ascontiguousarray(xp.astype(a, xp.int32)) for a in (features, weights)
        )
        own = structs.Combined(features, weights, c.coordinates, k, L, c.n_bins)
        tiles, n_tiles = self.slot_tiles(slots)
        rows: tuple[Any, ...] = codes_of(training), slots, tiles, own
        least, greatest = (xp.full((S, k), end, dtype=xp.int32) for end in (2**31 - 1, -(2**31)))
        grid, macros = (self.blocks(n_tiles), min(k, 65535)), self.macros(matrix)
        self.launch("project", "ends", grid, (*rows, least, greatest), macros=macros)
        some = (greatest >= least) & (features[:, :, min(1, L - 1)] >= 0)
        if L == 1:
            some = xp.zeros_like(some)
        low = xp.where(some, xp.astype(least, xp.int64), 0)
        spread = xp.where(some, xp.astype(greatest, xp.int64) - low, 0)
        shift = xp.zeros_like(low)
        for bits in range(MOST_SHIFT):
            shift = shift + xp.astype(spread >> bits >= c.n_bins, xp.int64)
        count = slots.n_stored
        first = xp.cumulative_sum(count) - count
        codes = self.empty((int(xp.sum(count)), k), matrix.codes.dtype)
        self.launch("project", "columns", grid, (*rows, first, low, shift, codes), macros=macros)
        return codes, low, shift

    def drawn_from(self, training: Training) -> Combining:
        """What the deep phase draws combinations from."""
        if not training.kind.combines:
            return Combining(None, None, None, None, 0, 0, 0, 0)
        c = training.combining
        arrays = c.coordinates, c.chances, c.numeric, c.position
        return Combining(
            *arrays, int(c.chances.shape[0]), int(c.numeric.shape[0]), c.heaviest, c.n_bins
        )
