"""The shape of trees: how deep they are, and how many nodes lie where."""

from __future__ import annotations

import numpy as np

from gpuforest.forest import Forest
from gpuforest.nodes import is_leaf


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
