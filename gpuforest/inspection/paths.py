"""The way of each row down each tree, as a sparse matrix of rows and nodes."""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy as xp
import numpy as np
from scipy.sparse import csr_matrix

from gpuforest.forest import Forest
from gpuforest.nodes import is_leaf, unpack

BLOCK = 2**18  # leaves whose paths are written at once, in a tenth of a second


def decision_paths(forest: Forest, leaves: np.ndarray) -> Any:
    """Which nodes the rows pass, csr_matrix int64 [N, M] of ones; trees stand side by side.

    A parent has a lower number than its children, so the nodes of a row are written from each
    leaf up and ascend. Between two blocks of rows an interrupt is noticed.

    Parameters
    ----------
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
    """The nodes from the root to each of these, i32[n]."""
    found, item = np.zeros(len(at), np.int32), np.arange(len(at))
    while len(at):
        found[item] += 1
        at = parent[at]
        inside = at >= 0
        at, item = at[inside], item[inside]
    return found


def parents_of(forest: Forest) -> np.ndarray:
    """The parent of each node, i64[M]; -1: a root."""
    parent = np.full(forest.n_nodes, -1)
    split = np.flatnonzero(~is_leaf(forest.nodes))
    root = np.repeat(forest.tree_offsets[:-1], np.diff(forest.tree_offsets))[split]
    left = root + unpack(xp, forest.nodes[split])[3]
    parent[left] = parent[left + 1] = split
    return parent
