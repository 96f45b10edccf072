"""The median of each node's rows, and their absolute error around it.

Neither follows from the sums that leaves hold; so after growth the rows of each bag go down
their tree once more, and every level of it takes them in the order of their targets.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.common.parallel import parallel_map
from gpuforest.data.arrays import to_host
from gpuforest.engine.forest import Forest
from gpuforest.engine.records import Training
from gpuforest.engine.sampling import tree_weights
from gpuforest.explain.paths import parents_of
from gpuforest.explain.views import one_tree
from gpuforest.splits.absolute.medians import halves

Array = Any


def with_medians(forest: Forest, training: Training, y: Array, first: int) -> Forest:
    """The forest with `node_values` and `node_errors`.

    Medians are those of the targets themselves, not of their moments: what scikit-learn's
    trees hold. Errors are whole numbers of the moments' unit.

    Parameters
    ----------
    forest : the trees from the number `first` on under its seed, with all their splits
    training, y : what they grew from, and the targets f64[N] or f64[N, K]
    """
    matrix, target, backend = training.matrix, training.target, training.backend
    moments, T = np.asarray(backend.asnumpy(target.y)), forest.n_trees
    y = np.asarray(to_host(y)).reshape(moments.shape)
    orders = [np.argsort(column, kind="stable") for column in y.T]
    values, errors = np.zeros((forest.n_nodes, y.shape[1])), np.zeros(forest.n_nodes)
    alone = copy(backend)
    alone.n_threads = 1

    def look(t: int) -> None:
        bag = tree_weights(training.on(alone), first + t, first + t + 1)
        weights = np.asarray(alone.asnumpy(bag))[0]
        tree, own = one_tree(forest, t), slice(*forest.tree_offsets[t : t + 2])
        leaf = np.asarray(alone.asnumpy(alone.apply(tree, matrix.codes)))[:, 0]
        for k, factor in enumerate(target.coding.error_factors):
            rows = orders[k][weights[orders[k]] > 0]
            found = _medians(tree, leaf[rows], y[rows, k], moments[rows, k], weights[rows])
            values[own, k] = found[0]
            errors[own] += factor * found[1]

    parallel_map(look, range(T), backend.n_threads)
    return replace(forest, node_values=values, node_errors=errors)


def _medians(
    tree: Forest, leaf: np.ndarray, y: np.ndarray, q: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Medians f64[m] and errors i64[m] of the nodes of a tree, of one output.

    Parameters
    ----------
    leaf : i64[n], where each row ends; y, q, weights : [n], the rows' targets, ascending
    """
    parent, levels = parents_of(tree), tree.levels()
    depth = np.zeros(tree.n_nodes, np.int64)
    for d, nodes in enumerate(levels):
        depth[nodes] = d
    values, errors = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes, np.int64)
    at = leaf.copy()
    for d in range(len(levels) - 1, -1, -1):
        here = np.flatnonzero(depth[at] == d)
        here = here[np.argsort(at[here], kind="stable")]
        node, w = at[here], weights[here]
        begin, lower, upper = halves(node, w)
        values[node[begin]] = (y[here[lower]] + y[here[upper]]) / 2
        middle = np.repeat(q[here[lower]], np.diff(begin, append=len(here)))
        errors[node[begin]] = np.add.reduceat(w * np.abs(q[here] - middle), begin)
        at[here] = parent[node]
    return values, errors
