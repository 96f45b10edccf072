"""Which rows each tree sees, and how often: recomputed from the seed, never stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest import hashing

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend

Array = Any


@dataclass(frozen=True, eq=False)
class Sampling:
    """How bags are drawn: plain data.

    n_rows : rows of the training data
    n_draws : rows drawn with replacement for each tree; 0: every row, once
    weights : i32[N] or None. With draws they are the chances of a row to be drawn, as
        in scikit-learn >= 1.9 and ranger; without, they enter the statistics.
    """

    n_rows: int
    n_draws: int
    weights: np.ndarray | None

    @property
    def bag_weight(self) -> int:
        """Total weight of a tree's rows, the same for every tree."""
        if self.n_draws:
            return self.n_draws
        return self.n_rows if self.weights is None else int(self.weights.sum(dtype=np.int64))

    @property
    def bag_rows(self) -> int:
        """The most rows that a bag can hold."""
        return min(self.n_rows, self.n_draws) if self.n_draws else self.n_rows


def draw_bags(sampling: Sampling, seed: int, first: int, last: int, backend: Backend) -> Array:
    """Weights i32[last - first, N] of every row in the bags of these trees.

    Draw j of a tree is the row in whose share of the cumulative weights the hash
    (bag key, j), seen as a fraction of 2**64, falls. Weight 0: out of bag.
    """
    xp, n = backend.xp, sampling.n_rows
    if not sampling.n_draws:
        row = np.ones(n, np.int32) if sampling.weights is None else sampling.weights
        return xp.broadcast_to(backend.asarray(row), (last - first, n))
    keys = hashing.hash_at(hashing.tree_keys(xp, seed, first, last, backend.device), hashing.BAG)
    cumulative = None
    if sampling.weights is not None:
        cumulative = backend.asarray(np.cumsum(sampling.weights, dtype=np.int64))
    return backend.bag(keys, n, sampling.n_draws, cumulative)
