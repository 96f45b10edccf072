"""Path lengths: how many splits it takes to isolate a row (Liu, Ting and Zhou 2008)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpuforest.forest import Forest
from gpuforest.nodes import LEAF_WORD, is_leaf, leaf_rows


def average_path_length(n: np.ndarray) -> np.ndarray:
    """The mean path length f64[...] of a random tree that isolates each of n rows, c(n).

    0 for a row by itself and 1 for two; of more rows 2 H(n - 1) - 2 (n - 1) / n, with the
    harmonic number H(i) as ln(i) + 0.5772 (Euler's constant), as in the paper.

    Example
    -------
    n = 256: 2 (ln 255 + 0.5772) - 2 * 255 / 256 = 10.24477092
    """
    n = np.asarray(n, np.float64)
    more = np.maximum(n, 3)
    mean = 2.0 * (np.log(more - 1.0) + np.euler_gamma) - 2.0 * (more - 1.0) / more
    return np.where(n > 2, mean, np.where(n == 2, 1.0, 0.0))


def with_path_lengths(forest: Forest) -> Forest:
    """The forest whose leaves predict path lengths: a leaf's depth, and c(n) of its n rows.

    Leaves of the same depth and size share a row of the leaf table. It keeps the weight of
    leaves, and no targets.
    """
    depth = np.zeros(forest.n_nodes, np.int64)
    for level, nodes in enumerate(forest.levels()):
        depth[nodes] = level
    leaf = is_leaf(forest.nodes)
    size = forest.leaf_sums[leaf_rows(forest.nodes[leaf]), 0]
    pairs, row = np.unique(np.stack([depth[leaf], size], axis=1), axis=0, return_inverse=True)
    nodes = forest.nodes.copy()
    nodes[leaf] = row.reshape(-1).astype(np.uint64) + np.uint64(LEAF_WORD)
    sums = np.stack([pairs[:, 1], np.zeros(len(pairs), np.int64)], axis=1)
    lengths = pairs[:, 0] + average_path_length(pairs[:, 1])
    return replace(forest, nodes=nodes, leaf_sums=sums, leaf_values=lengths[:, None])
