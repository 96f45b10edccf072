"""The way of each row down each tree, as a sparse matrix of rows and nodes."""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy as xp
import numpy as np
from scipy.sparse import csr_matrix

from gpuforest.forest import Forest
from gpuforest.nodes import is_leaf, unpack


def decision_paths(forest: Forest, leaves: np.ndarray) -> Any:
    """Which nodes the rows pass, csr_matrix int64 [N, M] of ones; trees stand side by side.

    Parameters
    ----------
    leaves : i64[N, T], the leaf that each row reaches in each tree, numbered in the tree
    """
    N, T = leaves.shape
    parent = parents_of(forest)
    at = (leaves + forest.tree_offsets[:-1]).reshape(-1)
    row = np.repeat(np.arange(N), T)
    rows, nodes = [], []
    while len(at):
        rows.append(row)
        nodes.append(at)
        up = parent[at]
        inside = up >= 0
        at, row = up[inside], row[inside]
    places = np.concatenate(rows), np.concatenate(nodes)
    paths = csr_matrix((np.ones(len(places[0]), np.int64), places), (N, forest.n_nodes))
    paths.sort_indices()
    return paths


def parents_of(forest: Forest) -> np.ndarray:
    """The parent of each node, i64[M]; -1: a root."""
    parent = np.full(forest.n_nodes, -1)
    split = np.flatnonzero(~is_leaf(forest.nodes))
    root = np.repeat(forest.tree_offsets[:-1], np.diff(forest.tree_offsets))[split]
    left = root + unpack(xp, forest.nodes[split])[3]
    parent[left] = parent[left + 1] = split
    return parent
