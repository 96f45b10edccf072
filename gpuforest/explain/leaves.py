"""The sums of leaves, from rows that go down trees which have grown already."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.common.dtypes import MAX_TOTAL_WEIGHT
from gpuforest.common.parallel import parallel_map
from gpuforest.core.forest import Forest, tree_groups
from gpuforest.core.nodes import is_leaf, leaf_rows
from gpuforest.core.target import TargetCoding
from gpuforest.core.training import Training
from gpuforest.explain import node_values
from gpuforest.explain.paths import one_tree
from gpuforest.growing.assemble import in_order
from gpuforest.growing.bags import tree_weights

Bags = Callable[[range, Backend], Array]


def sums_of_rows(
    forest: Forest, training: Training, backend: Backend, bags: Bags, parts: list[range]
) -> np.ndarray:
    """The sums i64[V, C] of the rows that reach each leaf; zeros where no row does. Each leaf has a
    row of the leaf table of its own.

    bags : returns the weights i32[T, N] of all rows in some trees
    parts : the numbers of the trees whose weights are asked for at once"""
    y, sums = np.asarray(backend.asnumpy(training.target.y)), np.zeros_like(forest.leaf_sums)
    codes, alone, C = training.matrix.codes, copy(backend), forest.leaf_sums.shape[1]
    # whose values nobody works out
    bare = replace(forest, leaf_sums=sums[:0], leaf_values=None, shrinkage=0.0)
    alone.n_threads = 1

    def fill(trees: range) -> None:
        for t, weights in zip(trees, np.asarray(alone.asnumpy(bags(trees, alone))), strict=True):
            if (rows := np.flatnonzero(weights)).size:
                fill_tree(t, rows, weights[rows].astype(np.int64))

    def fill_tree(t: int, rows: np.ndarray, w: np.ndarray) -> None:
        bag = alone.xp.take(codes, alone.asarray(rows), axis=0)
        node = np.asarray(alone.asnumpy(alone.apply(one_tree(bare, t), bag)))[:, 0]
        leaf = leaf_rows(forest.nodes[node + forest.tree_offsets[t]])
        if forest.coding.is_classes:
            np.add.at(sums.reshape(-1), leaf * C + y[rows, 0], w)
            return
        for c, column in enumerate([w, *(w[:, None] * y[rows]).T]):
            np.add.at(sums[:, c], leaf, column)

    parallel_map(fill, parts, backend.n_threads)
    return sums


def sums_of_bags(forest: Forest, training: Training, backend: Backend) -> np.ndarray:
    """`sums_of_rows` of the rows that each tree draws as in a fit."""

    def bags(trees: range, alone: Backend) -> Array:
        return tree_weights(training, trees.start, trees.stop, alone)

    parts = [range(t, t + 1) for t in range(forest.n_trees)]
    return sums_of_rows(forest, training, backend, bags, parts)


def weight_of(sums: np.ndarray, coding: TargetCoding) -> np.ndarray:
    """The weight i64[V] of channel sums i64[V, C]."""
    return np.asarray(sums.sum(axis=1) if coding.is_classes else sums[:, 0])


def most_held(forest: Forest) -> np.ndarray:
    """The largest channel sums of nodes, f64[C], whatever their sign."""
    groups = [np.abs(forest.node_sums(*group)).max(axis=0) for group in tree_groups(forest)]
    return np.asarray(np.max(groups, axis=0), np.float64)


def refilled(
    forest: Forest, training: Training, backend: Backend, y: Array, decay_rate: float | None
) -> Forest:
    """The forest, before shrinkage, with leaves of the training's rows, which trees draw as in a
    fit. A leaf that no row reaches keeps its sums and its value. Sums are rounded to the steps of
    the training's coding, where these are wider.

    y : targets f64[N] or f64[N, K] of a single regression tree
    decay_rate : the part of the old value of each leaf in its new one; None: sums are added up
    """
    coding, rows = training.target.coding, leaf_rows(forest.nodes[is_leaf(forest.nodes)])
    own = node_values.own_rows(replace(forest, coding=coding))
    held, shift = own.leaf_sums, int(np.log2(forest.coding.scale / coding.scale))
    if shift:
        held[:, 1:] = (held[:, 1:] + 2 ** (shift - 1)) >> shift
    sums = sums_of_bags(own, training, backend)
    reached = weight_of(sums, coding) > 0
    sums = sums + held if decay_rate is None else np.where(reached[:, None], sums, held)
    if weight_of(sums, coding).max() > MAX_TOTAL_WEIGHT:
        raise ValueError(
            f"a leaf would have rows of a weight above {MAX_TOTAL_WEIGHT}: fit anew, or call refit"
        )
    bare: dict[str, Any] = {"leaf_values": None, "leaf_impurity": None, "shrinkage": 0.0}
    if decay_rate or (forest.leaf_values is not None and not reached.all()):
        old, rate = replace(forest, combine="mean").values[rows], decay_rate or 0.0
        mixed = rate * old + (1.0 - rate) * coding.values(sums)
        values = np.where(reached[:, None], mixed, old)
        new = replace(own, leaf_sums=sums, **bare | {"leaf_values": values})
    else:
        nodes, sums = in_order(own.nodes, [sums], coding)
        new = replace(own, nodes=nodes, leaf_sums=sums, **bare)
    if forest.leaf_impurity is not None and decay_rate is not None:
        criterion, kept = training.rules.criterion, forest.leaf_impurity[rows]
        found: Any = node_values.with_leaf_impurity(new, training, backend, y, criterion)
        new = replace(found, leaf_impurity=np.where(reached, found.leaf_impurity, kept))
    return new
