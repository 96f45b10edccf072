"""Out-of-bag prediction: each row by the trees that did not draw it (Breiman 2001)."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.progress import report
from gpuforest.sampling import Sampling, draw_bags

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.binning import BinnedMatrix
    from gpuforest.forest import Forest

Array = Any


def out_of_bag(
    forest: Forest, matrix: BinnedMatrix, sampling: Sampling, backend: Backend
) -> tuple[Array, Array]:
    """Sums f64[N, n_values] and counts i64[N] over the trees that did not draw each row.

    The bags are drawn again from the seed, as many at once as memory allows; the trees
    are added in their order, so this number changes no bit of the sums.
    """
    xp, N, T = backend.xp, matrix.n_rows, forest.n_trees
    sums = xp.zeros((N, forest.coding.n_values), dtype=xp.float64, device=backend.device)
    counts = xp.zeros(N, dtype=xp.int64, device=backend.device)
    size = backend.wave_trees(sampling, forest.leaf_sums.shape[1], T)
    for first in range(0, T, size):
        last = min(first + size, T)
        in_bag = draw_bags(sampling, forest.seed, first, last, backend) > 0
        counts += xp.sum(xp.astype(~in_bag, xp.int64), axis=0)
        sums = backend.accumulate(forest, matrix.codes, first, last, in_bag, sums)
        report(last, T)
    return sums, counts


def out_of_bag_means(
    forest: Forest, matrix: BinnedMatrix, sampling: Sampling, backend: Backend
) -> np.ndarray:
    """Out-of-bag predictions f64[N, n_values] on the host; NaN, with a warning, for rows
    that every tree drew."""
    sums, counts = (backend.asnumpy(a) for a in out_of_bag(forest, matrix, sampling, backend))
    if not counts.all():
        warnings.warn(
            "Some inputs do not have OOB scores. This probably means too few trees were "
            "used to compute any reliable OOB estimates.",
            UserWarning,
            stacklevel=2,
        )
    count = counts[:, None]
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)
