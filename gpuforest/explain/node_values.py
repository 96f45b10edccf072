"""What nodes would predict as leaves: within monotonic bounds, how impure they are, their medians.

A split of a constrained feature leaves to each side what lies on its side of the middle of the two
means. Growing refuses splits of constrained features that would leave these bounds; others may
leave them, and their leaves then predict the nearest bound.

The sums of leaves show neither how numbers spread around their mean nor their median. So a single
tree records the impurity of its leaves when it is fitted, and for medians the rows of each bag go
down their tree once more after growth.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.common.parallel import parallel_map
from gpuforest.core import criteria
from gpuforest.core.forest import Forest, tree_groups
from gpuforest.core.nodes import LEAF_WORD, is_leaf, leaf_rows, unpack
from gpuforest.core.training import Training
from gpuforest.data.arrays import to_host
from gpuforest.explain.paths import node_depths, one_tree, parents_of
from gpuforest.growing.bags import tree_weights
from gpuforest.splits.absolute.medians import halves


def clip_leaves(forest: Forest, signs: np.ndarray, criterion: criteria.Criterion) -> Forest:
    """The forest with `leaf_values`, if a leaf's mean is out of its bounds; signs : i8[F]"""
    groups = [bounded_means(forest, signs, criterion, *group) for group in tree_groups(forest)]
    means, bounded = (np.concatenate(part) for part in zip(*groups, strict=True))
    if forest.node_values is not None:
        return replace(forest, node_values=bounded[:, None])
    leaf = is_leaf(forest.nodes)
    if np.array_equal(means[leaf], bounded[leaf]):
        return forest
    forest = own_rows(forest)
    values = forest.coding.with_means(forest.leaf_sums, bounded[leaf])
    return replace(forest, leaf_values=values)


def own_rows(forest: Forest) -> Forest:
    """The forest with a row of the leaf table for each leaf, in their order."""
    nodes, leaf = forest.nodes.copy(), is_leaf(forest.nodes)
    rows, values = leaf_rows(nodes[leaf]), forest.leaf_values
    nodes[leaf] = np.arange(len(rows), dtype=np.uint64) + np.uint64(LEAF_WORD)
    values = None if values is None else values[rows]
    return replace(forest, nodes=nodes, leaf_sums=forest.leaf_sums[rows], leaf_values=values)


def shrink(forest: Forest, shrinkage: float) -> Forest:
    """The forest with hierarchical shrinkage by this lambda times the mean weight of a draw."""
    return replace(own_rows(forest) if shrinkage else forest, shrinkage=shrinkage)


def bounded_means(
    forest: Forest, signs: np.ndarray, criterion: criteria.Criterion, first: int, last: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (second channel) or median of each node, and the nearest number in bounds: f64[m]."""
    begin, end = forest.tree_offsets[first], forest.tree_offsets[last]
    feature = unpack(xp, forest.nodes[begin:end])[0]
    if forest.node_values is not None:
        mean = forest.node_values[begin:end, 0]
    else:
        mean = criterion.side_value(xp, forest.node_sums(first, last))
    low, high = np.full(end - begin, -np.inf), np.full(end - begin, np.inf)
    for split, left in reversed(list(forest.upward(first, last))):
        middle, sign = (mean[left] + mean[left + 1]) * 0.5, signs[feature[split]]
        for side, way in ((left, 1), (left + 1, -1)):
            low[side] = np.where(sign == -way, middle, low[split])
            high[side] = np.where(sign == way, middle, high[split])
    return mean, np.clip(mean, low, high)


def with_leaf_impurity(
    forest: Forest, training: Training, backend: Backend, y: Array, criterion: criteria.Criterion
) -> Forest:
    """A regression tree with the impurity of its leaves; y : targets f64[N] or f64[N, K]. Impurity
    is the weighted mean of squared deviations, or half the Poisson deviance, summed on the host in
    the order of the rows, so every backend finds the same."""
    matrix, sampling = training.matrix, training.sampling
    y = to_host(y).reshape(len(matrix.codes), -1)
    nodes = backend.asnumpy(backend.apply(forest, matrix.codes))[:, 0]
    leaf = leaf_rows(forest.nodes[nodes])
    assert criterion.spread is not None
    mean, V = forest.values[leaf], len(forest.leaf_sums)
    weights = np.ones(len(y)) if sampling.weights is None else sampling.weights
    y = np.where((weights > 0)[:, None], y, mean)  # rows that never count may lie anywhere
    with np.errstate(over="ignore"):  # a spread beyond all numbers is infinite
        spread = criterion.spread(y, mean).mean(axis=1)
        total = np.bincount(leaf, weights * spread, minlength=V)
    # new rows may leave out a leaf; a deviance of zero may come out below it by rounding
    impurity = np.maximum(total / np.maximum(np.bincount(leaf, weights, minlength=V), 1), 0.0)
    return replace(forest, leaf_impurity=impurity)


def node_impurity(forest: Forest, tree: int, criterion: criteria.Criterion) -> np.ndarray:
    """Impurity f64[m] of each node of a tree, in scikit-learn's unit: entropy in bits. Without
    `leaf_impurity` (regression forests), leaves have 0 and nodes the gains of the splits below."""
    sums, inside = forest.node_sums(tree, tree + 1), slice(*forest.tree_offsets[tree : tree + 2])
    coding = forest.coding
    values = coding.shares(sums) if coding.is_classes else coding.values(sums)
    if criterion.impurity is not None:
        shares = coding.split(values)
        return np.asarray(np.mean([criterion.impurity(part) for part in shares], axis=0))
    weight = sums[:, 0].astype(np.float64)
    if forest.node_errors is not None:
        return np.asarray(forest.node_errors[inside] / weight * coding.decrease(1.0, criterion))
    nodes = forest.nodes[inside]
    total = np.zeros(len(nodes))  # impurity times weight
    if forest.leaf_impurity is not None:
        leaf = is_leaf(nodes)
        total[leaf] = forest.leaf_impurity[leaf_rows(nodes[leaf])] * weight[leaf]
    assert criterion.drop is not None
    for split, left in forest.upward(tree, tree + 1):
        right = left + 1
        drop = criterion.drop(*((weight[at], values[at]) for at in (left, right, split)))
        total[split] = total[left] + total[right] + drop
    return np.maximum(total / weight, 0.0)


def with_node_values(
    forest: Forest, training: Training, backend: Backend, y: Array, first: int
) -> Forest:
    """The forest, of trees from number `first` on, with medians and absolute errors of its nodes.
    Medians are of the targets f64[N] or f64[N, K], as in scikit-learn; errors are in the moments'
    unit."""
    matrix, target = training.matrix, training.target
    moments, T = np.asarray(backend.asnumpy(target.y)), forest.n_trees
    y = np.asarray(to_host(y)).reshape(moments.shape)
    orders = [np.argsort(column, kind="stable") for column in y.T]
    values, errors = np.zeros((forest.n_nodes, y.shape[1])), np.zeros(forest.n_nodes)
    alone = copy(backend)
    alone.n_threads = 1

    def fill(t: int) -> None:
        bag = tree_weights(training, first + t, first + t + 1, alone)
        weights = np.asarray(alone.asnumpy(bag))[0]
        tree, inside = one_tree(forest, t), slice(*forest.tree_offsets[t : t + 2])
        leaf = np.asarray(alone.asnumpy(alone.apply(tree, matrix.codes)))[:, 0]
        for k, factor in enumerate(target.coding.error_factors):
            rows = orders[k][weights[orders[k]] > 0]
            values[inside, k], error = _medians(
                tree, leaf[rows], y[rows, k], moments[rows, k], weights[rows]
            )
            errors[inside] += factor * error

    parallel_map(fill, range(T), backend.n_threads)
    return replace(forest, node_values=values, node_errors=errors)


def _medians(
    tree: Forest, leaf: np.ndarray, y: np.ndarray, q: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Medians f64[m] and errors i64[m] of a tree's nodes for one output.

    leaf, y, q : [n], of rows whose targets y and moments q ascend"""
    parent, depth = parents_of(tree), node_depths(tree)
    values, errors = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes, np.int64)
    at = leaf.copy()
    for d in range(int(depth.max()), -1, -1):
        rows = np.flatnonzero(depth[at] == d)
        rows = rows[np.argsort(at[rows], kind="stable")]
        node, w = at[rows], weights[rows]
        begin, lower, upper = halves(node, w)
        values[node[begin]] = (y[rows[lower]] + y[rows[upper]]) / 2
        middle = np.repeat(q[rows[lower]], np.diff(begin, append=len(rows)))
        errors[node[begin]] = np.add.reduceat(w * np.abs(q[rows] - middle), begin)
        at[rows] = parent[node]
    return values, errors
