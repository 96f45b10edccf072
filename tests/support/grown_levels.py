"""Levels of waves that never grew."""

import numpy as np

from gpuforest.engine.levels import Level
from gpuforest.engine.slots import DEEP, NONE, WIDE


def some_levels(rng: np.random.Generator, n_trees: int) -> tuple[list[Level], np.ndarray]:
    """Levels of slots of random kinds, and sizes of the subtrees of the deep ones."""
    levels, live = [], np.ones(n_trees, bool)
    for depth in range(6):
        share = [0, 0.3, 0.2, 0.5] if depth < 5 else [0, 0.5, 0.5, 0]
        kind = np.where(live, rng.choice(4, len(live), p=share), NONE).astype(np.int8)
        wide, deep = np.flatnonzero(kind == WIDE), kind == DEEP
        rank = np.where(deep, np.cumsum(deep), np.cumsum(kind == WIDE)) - 1
        feature = rng.integers(-1, 3, len(wide)).astype(np.int32)
        none = np.zeros(len(wide), np.int32)
        levels.append(
            Level(
                kind=kind, tree=none, sums=none, rank=rank, wide=wide, feature=feature, bin=none,
                missing_left=none, sets=none, n_deep=int(deep.sum()),
            )
        )  # fmt: skip
        live = np.repeat(feature >= 0, 2)
        if not len(live):
            break
    return levels, rng.integers(1, 50, sum(level.n_deep for level in levels))
