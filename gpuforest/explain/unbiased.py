"""Unbiased impurity importances: what splits gain for the rows out of bag.

A split is chosen because it gains much for the rows of its bag, and features of many values have
more splits to choose from: so impurity importances favour them. The rows out of bag had no part
in the choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.common.progress import report
from gpuforest.data.arrays import to_host
from gpuforest.engine.binning import BinnedMatrix
from gpuforest.engine.forest import Forest, tree_groups
from gpuforest.engine.memory import walked_at_once
from gpuforest.engine.nodes import is_leaf, unpack
from gpuforest.engine.sampling import Sampling, draw_bags
from gpuforest.explain.views import some_trees

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend


def unbiased_importances(
    forest: Forest, matrix: BinnedMatrix, y: Any, sampling: Sampling, backend: Backend
) -> np.ndarray:
    """The gain of each feature's splits for the rows out of bag, f64[F, T]; see `oob_gains`. NaN
    for trees whose bag has all rows.

    Parameters
    ----------
    y : i32[N, 1] class codes or i64[N, K] moments, as in `Target`
    sampling : the bags; rows of weight zero do not count
    """
    y, T = to_host(y), forest.n_trees
    counts = np.ones(sampling.n_rows, bool) if sampling.weights is None else sampling.weights > 0
    found = np.zeros((forest.edges.n_features, T))
    for begin, end in tree_groups(forest):
        step = walked_at_once(sampling.n_rows, backend.memory_budget)
        for first in range(begin, end, step):
            last = min(first + step, end)
            bags = to_host(draw_bags(sampling, forest.seed, first, last, backend))
            out = (bags == 0) & counts
            leaves = to_host(backend.apply(some_trees(forest, first, last), matrix.codes))
            sums = leaf_sums_of(forest, first, last, leaves, out, y)
            gains = gains_by_features(forest, first, last, oob_gains(forest, first, last, sums))
            n_out = out.sum(axis=1)
            found[:, first:last] = np.where(n_out, gains.T / np.maximum(n_out, 1), np.nan)
            report(last, T)
    return found


def leaf_sums_of(
    forest: Forest, first: int, last: int, leaves: np.ndarray, out: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """The channel sums of the marked rows in each leaf of the trees first .. last - 1, i64[m, C];
    zero for other nodes.

    Parameters
    ----------
    leaves : i64[N, t], the leaf that each row reaches, numbered in its tree
    out : bool[t, N], the rows that count
    y : see `unbiased_importances`
    """
    offsets = forest.tree_offsets
    m, C = int(offsets[last] - offsets[first]), forest.leaf_sums.shape[1]
    tree, row = np.nonzero(out)
    node = leaves[row, tree] + (offsets[first:last] - offsets[first])[tree]
    if forest.coding.is_classes:
        return np.bincount(node * C + y[row, 0], minlength=m * C).reshape(m, C)
    sums = np.zeros((m, C), np.int64)
    sums[:, 0] = np.bincount(node, minlength=m)
    for k in range(C - 1):
        np.add.at(sums[:, k + 1], node, y[row, k])  # integers: bincount would round them
    return sums


def oob_gains(forest: Forest, first: int, last: int, sums: np.ndarray) -> np.ndarray:
    """What each split of the trees first .. last - 1 gains for other rows, f64[m], 0 for leaves.

    With p for the shares of classes in the bag, and o for those of the other rows, of which n are
    in the node, a node's impurity is 1 - sum(p o). A split gains

        n_left sum(p_left o_left) + n_right sum(p_right o_right) - n sum(p o).

    Of numbers p and o are the means of the targets less the mean of the tree's bag. For classes
    this is the measure of Zhou and Hooker (2021) and, the same, MDI-oob of Li et al. (2019), which
    defines it for numbers too. With the bag's own rows as the others it is the usual gain of
    Gini's impurity or the squared error, times n.

    Example
    -------
    A node of 4 rows of the bag, 2 of either class, is split into pure sides. Of 3 rows out of bag
    2 go left, both of class 0, and one goes right, of class 0 too.

        2 * (1 * 1 + 0 * 0) + 1 * (0 * 1 + 1 * 0) - 3 * (1/2 * 1 + 1/2 * 0) = 1/2

    Parameters
    ----------
    sums : i64[m, C], channel sums of the other rows in leaves
    """
    others = forest.added_up(sums, first, last).astype(np.float64)
    own = forest.node_sums(first, last).astype(np.float64)
    if forest.coding.is_classes:
        each = (others * (own / own.sum(axis=1, keepdims=True))).sum(axis=1)
    else:
        means = own[:, 1:] / own[:, :1]
        sizes = np.diff(forest.tree_offsets[first : last + 1])
        roots = np.repeat(forest.tree_offsets[first:last] - forest.tree_offsets[first], sizes)
        middle = means[roots]
        deviations = (others[:, 1:] - others[:, :1] * middle) * (means - middle)
        each = deviations.mean(axis=1) if not forest.coding.several else deviations.sum(axis=1)
        each /= forest.coding.scale**2
        each /= forest.coding.n_outputs if forest.coding.several else 1
    nodes = forest.nodes[forest.tree_offsets[first] : forest.tree_offsets[last]]
    gains, split = np.zeros(len(nodes)), np.flatnonzero(~is_leaf(nodes))
    sizes = np.diff(forest.tree_offsets[first : last + 1])
    root = np.repeat(forest.tree_offsets[first:last] - forest.tree_offsets[first], sizes)[split]
    left = root + unpack(np, nodes[split])[3]
    gains[split] = each[left] + each[left + 1] - each[split]
    return gains


def gains_by_features(forest: Forest, first: int, last: int, gains: np.ndarray) -> np.ndarray:
    """The sums over each feature's splits of gains f64[m] of the nodes of the trees
    first .. last - 1, f64[t, F]. Combinations share theirs by their weights."""
    F, begin = forest.edges.n_features, forest.tree_offsets[first]
    split = np.flatnonzero(~is_leaf(forest.nodes[begin : forest.tree_offsets[last]]))
    tree = np.searchsorted(forest.tree_offsets, begin + split, side="right") - 1 - first
    found = np.zeros((last - first, F))
    at, feature, weight = forest.terms(begin + split)
    total = np.bincount(at, weight, minlength=len(split))
    np.add.at(found, (tree[at], feature), gains[split][at] * weight / total[at])
    return found
