"""Paths of trees: splits, depths, subtrees, nodes that rows pass, and lengths of paths.

A path length is the number of splits that isolate a row (Liu, Ting and Zhou 2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import array_api_compat.numpy as xp
import numpy as np
from scipy.sparse import csr_matrix

from gpuforest.backends.base import Backend
from gpuforest.common.progress import report
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import LEAF_WORD, is_leaf, leaf_rows, unpack
from gpuforest.growing.edges import encode_blocks

BLOCK = 2**18  # leaves whose paths are written at once, in a tenth of a second
WALKED_AT_ONCE = 2**20  # leaves i64 of a block of rows and all trees: 8 MB


def one_tree(forest: Forest, tree: int) -> Forest:
    """A tree as a forest of its own."""
    return some_trees(forest, tree, tree + 1)


def some_trees(forest: Forest, first_tree: int, last_tree: int) -> Forest:
    """The trees first_tree .. last_tree - 1 as a forest that shares all arrays except offsets."""
    offsets = forest.tree_offsets[first_tree : last_tree + 1]
    begin, end = offsets[0], offsets[-1]
    first = last = 0
    if len(forest.sets):
        first, last = np.append(forest.set_at, len(forest.sets))[[begin, end]]
    weights = forest.tree_weights
    of_nodes = {name: getattr(forest, name) for name in ("nodes", "node_values", "node_errors")}
    of_nodes = {name: a[begin:end] for name, a in of_nodes.items() if a is not None}
    weights = None if weights is None else weights[first_tree:last_tree]
    sets, offsets = forest.sets[first:last], offsets - begin
    part = replace(forest, tree_offsets=offsets, sets=sets, tree_weights=weights, **of_nodes)
    # the leaf table is the same, so what follows from it is worked out once for all trees
    vars(part)["values"] = forest.values
    if "sparse_values" in vars(forest):
        vars(part)["sparse_values"] = forest.sparse_values
    return part


def split_nodes(
    forest: Forest, first: int = 0, last: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Splits of the trees first .. last - 1, and left children, from the first root: i64[n]."""
    offsets = forest.tree_offsets[first : None if last is None else last + 1]
    nodes = forest.nodes[offsets[0] : offsets[-1]]
    split = np.flatnonzero(~is_leaf(nodes))
    root = np.repeat(offsets[:-1] - offsets[0], np.diff(offsets))[split]
    return split, root + unpack(xp, nodes[split])[3]


def parents_of(forest: Forest) -> np.ndarray:
    """The parent of each node, i64[M]; -1: a root."""
    parent = np.full(forest.n_nodes, -1)
    split, left = split_nodes(forest)
    parent[left] = parent[left + 1] = split
    return parent


def node_depths(forest: Forest) -> np.ndarray:
    """The depth of each node, i64[M]."""
    depths = np.zeros(forest.n_nodes, np.int64)
    for depth, nodes in enumerate(forest.levels()):
        depths[nodes] = depth
    return depths


def tree_depths(forest: Forest) -> np.ndarray:
    """Levels below the root of each tree, i64[T]."""
    return np.maximum.reduceat(node_depths(forest), forest.tree_offsets[:-1])


def subtree_sizes(forest: Forest, tree: int) -> np.ndarray:
    """Nodes of the subtree under each node of a tree, itself included, i64[m]."""
    leaves = np.ones(forest.tree_offsets[tree + 1] - forest.tree_offsets[tree], np.int64)
    return 2 * forest.added_up(leaves, tree, tree + 1) - 1  # n leaves hang on n - 1 splits


def leaf_blocks(forest: Forest, X: Any, backend: Backend) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of the rows of X, and the nodes of the forest that are their leaves, i64[n, T]."""
    first, step = forest.tree_offsets[:-1], max(1, WALKED_AT_ONCE // forest.n_trees)
    for begin, end, codes in encode_blocks(X, forest.edges, backend):
        for i in range(begin, end, step):
            rows = slice(i, min(i + step, end))
            leaves = backend.apply(forest, codes[i - begin : rows.stop - begin, ...])
            yield rows, backend.asnumpy(leaves) + first
        report(end, X.shape[0])


def decision_paths(forest: Forest, leaves: np.ndarray) -> Any:
    """The nodes that rows pass, csr_matrix int64 [N, M] of ones; trees stand side by side.

    leaves : i64[N, T], each row's leaf, numbered in the tree"""
    (N, T), roots = leaves.shape, forest.tree_offsets[:-1]
    parent, depths = parents_of(forest), node_depths(forest).astype(np.int32)
    size = max(1, BLOCK // T)
    blocks = [slice(i, min(i + size, N)) for i in range(0, N, size)]
    lengths = np.zeros((N, T), np.int32)
    for rows in blocks:
        lengths[rows] = depths[leaves[rows] + roots] + 1
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


def average_path_length(n: np.ndarray) -> np.ndarray:
    """The mean path length f64[...] of a random tree that isolates each of n rows, c(n). 0 for a
    row by itself and 1 for two; of more rows 2 H(n - 1) - 2 (n - 1) / n, with the harmonic number
    H(i) as ln(i) + 0.5772 (Euler's constant), as in the paper."""
    n = np.asarray(n, np.float64)
    more = np.maximum(n, 3)
    mean = 2.0 * (np.log(more - 1.0) + np.euler_gamma) - 2.0 * (more - 1.0) / more
    return np.where(n > 2, mean, np.where(n == 2, 1.0, 0.0))


def with_path_lengths(forest: Forest) -> Forest:
    """The forest whose leaves predict path lengths: depth plus c(n) of its n rows. Leaves of equal
    depth and size share a row of the leaf table, which keeps their weight."""
    leaf = is_leaf(forest.nodes)
    size = forest.leaf_sums[leaf_rows(forest.nodes[leaf]), 0]
    depth_and_size = np.stack([node_depths(forest)[leaf], size], axis=1)
    pairs, row = np.unique(depth_and_size, axis=0, return_inverse=True)
    nodes = forest.nodes.copy()
    nodes[leaf] = row.reshape(-1).astype(np.uint64) + np.uint64(LEAF_WORD)
    sums = np.stack([pairs[:, 1], np.zeros(len(pairs), np.int64)], axis=1)
    lengths = pairs[:, 0] + average_path_length(pairs[:, 1])
    return replace(forest, nodes=nodes, leaf_sums=sums, leaf_values=lengths[:, None])
