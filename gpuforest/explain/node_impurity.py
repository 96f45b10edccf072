"""The impurity of nodes, as scikit-learn has it in `tree_.impurity`.

Of classes it follows from a node's channel sums. Of numbers the sums know the mean of a leaf
but not how its rows spread around it: a single tree records that when it is fitted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.data.arrays import to_host
from gpuforest.engine.criteria import Criterion
from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import is_leaf, leaf_rows
from gpuforest.engine.records import Training

Array = Any


def with_leaf_impurity(
    forest: Forest, training: Training, y: Array, criterion: Criterion
) -> Forest:
    """A single regression tree that knows the impurity of the leaf table's rows.

    It is the weighted mean of the squared deviation from the leaf's mean, or of half the
    Poisson deviance, added up on the host in the order of the rows, so that every backend
    finds the same.

    Parameters
    ----------
    training, y : what it grew from, and the targets f64[N] or f64[N, K]
    """
    matrix, sampling, backend = training.matrix, training.sampling, training.backend
    y = to_host(y).reshape(len(matrix.codes), -1)
    nodes = backend.asnumpy(backend.apply(forest, matrix.codes))[:, 0]
    leaf = leaf_rows(forest.nodes[nodes])
    assert criterion.spread is not None
    mean, V = forest.values[leaf], len(forest.leaf_sums)
    weights = np.ones(len(y)) if sampling.weights is None else sampling.weights
    y = np.where((weights > 0)[:, None], y, mean)  # rows that never count may lie anywhere
    with np.errstate(over="ignore"):  # a spread beyond all numbers is infinite
        each = criterion.spread(y, mean).mean(axis=1)
        total = np.bincount(leaf, weights * each, minlength=V)
    # no leaf is without weight; a deviance of zero may come out below it by rounding
    found = np.maximum(total / np.bincount(leaf, weights, minlength=V), 0.0)
    return replace(forest, leaf_impurity=found)


def node_impurity(forest: Forest, tree: int, criterion: Criterion) -> np.ndarray:
    """Impurity f64[m] of each node of a tree, in scikit-learn's unit: entropy in bits.

    Of a regression tree that holds no `leaf_impurity`, as those of forests, it is what the
    tree explains: leaves have none, and above them lies what the splits gained.
    """
    sums = forest.node_sums(tree, tree + 1)
    coding, values = forest.coding, forest.coding.values(sums)
    if criterion.impurity is not None:
        parts = coding.split(values) if coding.several else [values]
        return np.asarray(np.mean([criterion.impurity(shares) for shares in parts], axis=0))
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
    assert criterion.drop is not None
    levels = forest.levels(tree, tree + 1)
    for parents, children in zip(levels[-2::-1], levels[:0:-1], strict=True):
        at = parents[~leaf[parents - begin]] - begin
        left, right = children[0::2] - begin, children[1::2] - begin
        drop = criterion.drop(*((weight[side], mean[side]) for side in (left, right, at)))
        total[at] = total[left] + total[right] + drop
    return np.maximum(total / weight, 0.0)
