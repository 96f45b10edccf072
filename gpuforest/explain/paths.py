"""Ways down the trees: the nodes that rows pass, depths, sizes of subtrees, and path lengths
(how many splits it takes to isolate a row, Liu, Ting and Zhou 2008)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import array_api_compat.numpy as xp
import numpy as np
from scipy.sparse import csr_matrix

from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import LEAF_WORD, is_leaf, leaf_rows, unpack

BLOCK = 2**18  # leaves whose paths are written at once, in a tenth of a second


def decision_paths(forest: Forest, leaves: np.ndarray) -> Any:
    """Which nodes the rows pass, csr_matrix int64 [N, M] of ones; trees stand side by side.

    A parent has a lower number than its children, so the nodes of a row are written from each
    leaf up and ascend. Between two blocks of rows an interrupt is noticed.

    leaves : i64[N, T], the leaf that each row reaches in each tree, numbered in the tree
    """
    (N, T), roots = leaves.shape, forest.tree_offsets[:-1]
    parent = parents_of(forest)
    size = max(1, BLOCK // T)
    blocks = [slice(i, min(i + size, N)) for i in range(0, N, size)]
    lengths = np.zeros((N, T), np.int32)
    for rows in blocks:
        lengths[rows] = _lengths(parent, (leaves[rows] + roots).reshape(-1)).reshape(-1, T)
    ends = np.concatenate([[0], np.cumsum(lengths.sum(axis=1, dtype=np.int64))])
    small = max(int(ends[-1]), forest.n_nodes) <= np.iinfo(np.int32).max
    indices = np.empty(ends[-1], np.int32 if small else np.int64)
    ones = np.empty(ends[-1], np.int64)
    for rows in blocks:
        ones[ends[rows.start] : ends[rows.stop]] = 1
        at = (leaves[rows] + roots).reshape(-1)
        last = ends[rows.start] + np.cumsum(lengths[rows], dtype=np.int64) - 1
        while len(at):
            indices[last] = at
            at = parent[at]
            inside = at >= 0
            at, last = at[inside], last[inside] - 1
    return csr_matrix((ones, indices, ends.astype(indices.dtype)), (N, forest.n_nodes))


def _lengths(parent: np.ndarray, at: np.ndarray) -> np.ndarray:
    """How many nodes lie on the way from the root to each of these, i32[n]."""
    lengths, item = np.zeros(len(at), np.int32), np.arange(len(at))
    while len(at):
        lengths[item] += 1
        at = parent[at]
        inside = at >= 0
        at, item = at[inside], item[inside]
    return lengths


def parents_of(forest: Forest) -> np.ndarray:
    """The parent of each node, i64[M]; -1: a root."""
    parent = np.full(forest.n_nodes, -1)
    split = np.flatnonzero(~is_leaf(forest.nodes))
    root = np.repeat(forest.tree_offsets[:-1], np.diff(forest.tree_offsets))[split]
    left = root + unpack(xp, forest.nodes[split])[3]
    parent[left] = parent[left + 1] = split
    return parent


def tree_depths(forest: Forest) -> np.ndarray:
    """Levels below the root of each tree, i64[T]."""
    depths = np.zeros(forest.n_trees, np.int64)
    for depth, nodes in enumerate(forest.levels()):
        depths[np.searchsorted(forest.tree_offsets, nodes, side="right") - 1] = depth
    return depths


def subtree_sizes(forest: Forest, tree: int) -> np.ndarray:
    """Nodes of the subtree under each node of a tree, itself included, i64[m]."""
    root = forest.tree_offsets[tree]
    sizes = np.ones(forest.tree_offsets[tree + 1] - root, np.int64)
    levels = forest.levels(tree, tree + 1)
    for parents, children in zip(levels[-2::-1], levels[:0:-1], strict=True):
        split = parents[~is_leaf(forest.nodes[parents])]
        sizes[split - root] += sizes[children - root].reshape(-1, 2).sum(axis=1)
    return sizes


def average_path_length(n: np.ndarray) -> np.ndarray:
    """The mean path length f64[...] of a random tree that isolates each of n rows, c(n).

    0 for a row by itself and 1 for two; of more rows 2 H(n - 1) - 2 (n - 1) / n, with the
    harmonic number H(i) as ln(i) + 0.5772 (Euler's constant), as in the paper.

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
