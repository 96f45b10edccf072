"""Impurity importances: how much each feature's splits gained (Breiman 2001)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.engine.criteria import Criterion
from gpuforest.engine.forest import Forest, tree_groups
from gpuforest.engine.nodes import FEATURE_SHIFT, unpack
from gpuforest.explain.gains import gains_by_errors, gains_by_levels
from gpuforest.splits.oblique.terms import all_terms

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend

Array = Any


def impurity_importances(forest: Forest, criterion: Criterion, backend: Backend) -> np.ndarray:
    """Importances f64[F] that add up to one; all zero where nothing was gained.

    Each tree's importances are normalised, averaged over the trees that have a split (boosted
    trees by their weights), and normalised again, as scikit-learn does.
    """
    F = forest.edges.n_features
    total = np.zeros(F)
    weights = np.ones(forest.n_trees)
    if forest.tree_weights is not None and forest.tree_weights.any():
        weights = forest.tree_weights
    leaf_sums = backend.asarray(forest.leaf_sums)
    for first, last in tree_groups(forest):
        gains = tree_gains(forest, leaf_sums, criterion, first, last, backend)
        each = gains.sum(axis=1, keepdims=True)
        total += (gains / np.maximum(each, 1) * weights[first:last, None]).sum(axis=0)
    return np.divide(total, total.sum() or 1.0, out=total)


def tree_gains(
    forest: Forest, leaf_sums: Array, criterion: Criterion, first: int, last: int, backend: Backend
) -> np.ndarray:
    """Score gained by each feature's splits in the trees first .. last - 1, i64[t, F].

    As whole numbers of some power of two, so that they add up the same in any order.
    """
    xp, F = backend.xp, forest.edges.n_features
    offsets = forest.tree_offsets[first : last + 1] - forest.tree_offsets[first]
    most = int(np.diff(offsets).max())
    nodes = forest.nodes[forest.tree_offsets[first] : forest.tree_offsets[last]]
    nodes, offsets = backend.asarray(nodes), backend.asarray(offsets)
    if forest.node_errors is not None:
        splits, gains = map(backend.asarray, gains_by_errors(forest, first, last))
    else:
        splits, gains = gains_by_levels(nodes, offsets[:-1], leaf_sums, criterion, xp)
    if not splits.shape[0]:
        return np.zeros((last - first, F), np.int64)
    tree = xp.searchsorted(offsets, splits, side="right") - 1
    keys = tree * F + unpack(xp, xp.take(nodes, splits))[0]
    largest = float(backend.asnumpy(xp.max(gains)))
    bits = 62 - most.bit_length() - math.frexp(largest)[1]
    whole = xp.astype(xp.floor(gains * math.ldexp(1.0, min(bits, 1000)) + 0.5), xp.int64)
    if forest.oblique:
        splits, whole, tree = map(backend.asnumpy, (splits, whole, tree))
        return shared_gains(forest, forest.tree_offsets[first] + splits, whole, tree, last - first)
    order = xp.argsort(keys, stable=True)
    upto = xp.cumulative_sum(xp.take(whole, order), include_initial=True)
    each_key = xp.arange((last - first) * F + 1, dtype=xp.int64)
    upto = xp.take(upto, xp.searchsorted(xp.take(keys, order), each_key))
    return backend.asnumpy(upto[1:] - upto[:-1]).reshape(last - first, F)


def shared_gains(
    forest: Forest, splits: np.ndarray, gains: np.ndarray, tree: np.ndarray, n_trees: int
) -> np.ndarray:
    """The gains i64[n] of splits by combinations, shared among the features by their weights: for
    each tree and feature i64[n_trees, F]. What a division leaves over is the first feature's."""
    at, feature, weight = all_terms(forest, splits)
    total = np.zeros(len(splits), np.int64)
    np.add.at(total, at, weight)
    share = gains[at] // total[at] * weight
    rest = gains.copy()
    np.subtract.at(rest, at, share)
    found = np.zeros((n_trees, forest.edges.n_features), np.int64)
    np.add.at(found, (tree[at], feature), share)
    first = (forest.nodes[splits] >> np.uint64(FEATURE_SHIFT)).astype(np.int64)
    np.add.at(found, (tree, first), rest)
    return found
