"""The impurity of nodes, as scikit-learn has it in `tree_.impurity`.

Of classes it follows from a node's channel sums. Of numbers the sums know the mean of a leaf
but not how its rows spread around it: a single tree records that when it is fitted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import xlogy

from gpuforest.backends.arrays import to_host
from gpuforest.criteria import ENTROPY, GINI, INFORMATION, SQUARED_ERROR, Criterion
from gpuforest.forest import Forest
from gpuforest.impurity import entropy, gini, misclassification
from gpuforest.nodes import is_leaf, leaf_rows

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.binning import BinnedMatrix
    from gpuforest.sampling import Sampling

Array = Any


def with_leaf_impurity(
    forest: Forest,
    matrix: BinnedMatrix,
    y: Array,
    sampling: Sampling,
    criterion: Criterion,
    backend: Backend,
) -> Forest:
    """A single regression tree that knows the impurity of the leaf table's rows.

    It is the weighted mean of the squared deviation from the leaf's mean, or of half the
    Poisson deviance, added up on the host in the order of the rows, so that every backend
    finds the same.

    Parameters
    ----------
    matrix, y, sampling : the training rows, their targets f64[N] or f64[N, K], and their
        weights
    """
    y, nodes = (
        to_host(y).reshape(len(matrix.codes), -1),
        backend.asnumpy(backend.apply(forest, matrix.codes))[:, 0],
    )
    leaf = leaf_rows(forest.nodes[nodes])
    mean, V = forest.values[leaf], len(forest.leaf_sums)
    weights = np.ones(len(y)) if sampling.weights is None else sampling.weights
    y = np.where((weights > 0)[:, None], y, mean)  # rows that never count may lie anywhere
    with np.errstate(over="ignore"):  # a spread beyond all numbers is infinite
        # of a leaf's deviance the other terms add up to zero
        each = (y - mean) ** 2 if criterion.id == SQUARED_ERROR else xlogy(y, y / mean)
        total = np.bincount(leaf, weights * each.mean(axis=1), minlength=V)
    # no leaf is without weight; a deviance of zero may come out below it by rounding
    found = np.maximum(total / np.bincount(leaf, weights, minlength=V), 0.0)
    return replace(forest, leaf_impurity=found)


def node_impurity(forest: Forest, tree: int, criterion: Criterion) -> np.ndarray:
    """Impurity f64[m] of each node of a tree, in scikit-learn's unit: entropy in bits.

    Of a regression tree that holds no `leaf_impurity`, as those of forests, it is what the
    tree explains: leaves have none, and above them lies what the splits gained.
    """
    sums = forest.node_sums(tree, tree + 1)
    coding = replace(forest.coding, votes=False)
    values = coding.values(sums)
    if coding.is_classes:
        return _class_impurity(values, criterion)
    if coding.several:
        each = [_class_impurity(shares, criterion) for shares in coding.split(values)]
        return np.asarray(np.mean(each, axis=0))
    weight, mean = sums[:, 0].astype(np.float64), values
    if forest.node_errors is not None:
        errors = forest.node_errors[forest.tree_offsets[tree] : forest.tree_offsets[tree + 1]]
        return np.asarray(errors / weight * coding.decrease(1.0, criterion))
    begin = forest.tree_offsets[tree]
    nodes = forest.nodes[begin : forest.tree_offsets[tree + 1]]
    leaf = is_leaf(nodes)
    total = np.zeros(len(nodes))  # impurity times weight
    if forest.leaf_impurity is not None:
        total[leaf] = forest.leaf_impurity[leaf_rows(nodes[leaf])] * weight[leaf]
    levels = forest.levels(tree, tree + 1)
    for parents, children in zip(levels[-2::-1], levels[:0:-1], strict=True):
        at = parents[~leaf[parents - begin]] - begin
        left, right = children[0::2] - begin, children[1::2] - begin
        gain = _total_gain(weight, mean, at, left, right, criterion)
        total[at] = total[left] + total[right] + gain
    return np.maximum(total / weight, 0.0)


def _total_gain(
    weight: np.ndarray,
    mean: np.ndarray,
    at: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    criterion: Criterion,
) -> np.ndarray:
    """What the splits of the nodes `at` take off impurity times weight, f64[...]."""
    if criterion.id == SQUARED_ERROR:
        # not a difference of squares: deep nodes would lose all digits
        share = weight[left] * weight[right] / weight[at]
        with np.errstate(over="ignore"):
            return np.asarray(share * ((mean[left] - mean[right]) ** 2).mean(axis=1))
    sides = (
        weight[side] * xlogy(mean[side], mean[side] / mean[at]).mean(axis=1)
        for side in (left, right)
    )
    return np.asarray(sum(sides))


def _class_impurity(shares: np.ndarray, criterion: Criterion) -> np.ndarray:
    """f64[m] from the classes' shares f64[m, C]."""
    if criterion.id in (GINI, SQUARED_ERROR):  # of several outputs, as moments
        return np.asarray(gini(shares))
    if criterion.id in (ENTROPY, INFORMATION):
        return np.asarray(entropy(shares))
    return np.asarray(misclassification(shares))
