"""A tree as arrays: those of scikit-learn's `tree_`, and those of a boosted model."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.core.criteria import Criterion
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import is_leaf, leaf_rows, unpack
from gpuforest.explain import node_values, paths
from gpuforest.growing.boosted import node_gains

TREE_LEAF, TREE_UNDEFINED = -1, -2  # scikit-learn's marks in the arrays of leaves


class TreeView:
    """The arrays of one tree of a forest, under the names of scikit-learn's `tree_`.

    Arrays are made when they are first asked for. Nodes are numbered as in `apply` and
    `decision_path`. A node's weight is that of its rows in the tree's bag: where sample or
    class weights are used without bootstrap it is not their count, and `n_node_samples`,
    which is the same number, is not either; weights that are no whole numbers are scaled.
    Splits between present (left) and missing values have the threshold +inf.

    criterion : what `impurity` is measured by; of the trees of a regression forest it is the
        part that the splits below a node explain, see `node_impurity`
    signs : i8[F] or None, within whose bounds values are, see `bounded_means`
    """

    def __init__(
        self, forest: Forest, tree: int, criterion: Criterion, signs: np.ndarray | None = None
    ) -> None:
        self.forest, self.tree, self.criterion, self.signs = forest, tree, criterion, signs

    @cached_property
    def alone(self) -> Forest:
        """The tree as a forest of its own"""
        return paths.one_tree(self.forest, self.tree)

    @cached_property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return unpack(xp, self.alone.nodes)

    @cached_property
    def _sums(self) -> np.ndarray:
        return self.alone.node_sums(0, 1)

    @property
    def node_count(self) -> int:
        return self.alone.n_nodes

    @property
    def n_classes(self) -> np.ndarray:
        """i64[n_outputs]; 1: a number"""
        coding = self.forest.coding
        if coding.several:
            return np.array([len(labels) for labels in coding.several])
        return np.full(coding.n_outputs, coding.n_values // coding.n_outputs)

    @cached_property
    def feature(self) -> np.ndarray:
        """i64[node_count], -2: a leaf"""
        return np.where(self._parts[0] < 0, TREE_UNDEFINED, self._parts[0])

    @cached_property
    def threshold(self) -> np.ndarray:
        """f64[node_count]: x <= threshold goes left; -2.0: leaf; NaN: a combination of features,
        whose first is in `feature`"""
        feature, bin, _, _ = self._parts
        thresholds = self.forest.edges.threshold(np.maximum(feature, 0), bin)
        thresholds[self.alone.n_summed(self.alone.nodes) > 0] = np.nan
        return np.where(feature < 0, float(TREE_UNDEFINED), thresholds)

    @cached_property
    def missing_go_to_left(self) -> np.ndarray:
        """u8[node_count]"""
        return self._parts[2].astype(np.uint8)

    @cached_property
    def children_left(self) -> np.ndarray:
        """i64[node_count], -1: a leaf"""
        return np.where(self._parts[0] < 0, TREE_LEAF, self._parts[3])

    @cached_property
    def children_right(self) -> np.ndarray:
        """i64[node_count], -1: a leaf"""
        return np.where(self._parts[0] < 0, TREE_LEAF, self._parts[3] + 1)

    @cached_property
    def value(self) -> np.ndarray:
        """Shares of the classes, means or medians: f64[node_count, n_outputs, max_n_classes]"""
        coding, widest = self.forest.coding, int(self.n_classes.max())
        if self.alone.node_values is not None:
            return self.alone.node_values[:, :, None].copy()
        if self.signs is not None and len(self.signs):
            means = node_values.bounded_means(self.alone, self.signs, self.criterion, 0, 1)[1]
            values = self.forest.counted(coding.of_means(means))
        else:
            values, leaf = self.forest.counted(coding.values(self._sums)), self._parts[0] < 0
            values[leaf] = self.forest.values[self._parts[3][leaf]]
        if not coding.several:
            return values.reshape(self.node_count, coding.n_outputs, -1)
        parts = [np.pad(p, [(0, 0), (0, widest - p.shape[1])]) for p in coding.split(values)]
        return np.stack(parts, axis=1)

    @cached_property
    def n_node_samples(self) -> np.ndarray:
        """i64[node_count], the weight of the node's rows"""
        sums = self._sums
        return sums.sum(axis=1) if self.forest.coding.is_classes else sums[:, 0].copy()

    @cached_property
    def weighted_n_node_samples(self) -> np.ndarray:
        """f64[node_count]"""
        return self.n_node_samples.astype(np.float64)

    @cached_property
    def impurity(self) -> np.ndarray:
        """f64[node_count]"""
        return node_values.node_impurity(self.forest, self.tree, self.criterion)


def boosted_columns(forest: Forest, tree: int) -> dict[str, np.ndarray]:
    """What the nodes of a tree of a boosted model hold, by their numbers.

    n_samples : i64[m], rows
    gradients, hessians : f64[m], their sums over the rows
    gain : f64[m], what the split gains, the difference of G^2 / (H + l2); 0 at leaves
    value : f64[m], what a leaf adds to the raw prediction, with the learning rate; above it the
        mean of the leaves below, weighted by hessians: of a Newton step without l2 and bounds, what
        the node would add if it were a leaf
    """
    coding: Any = forest.coding
    assert forest.leaf_values is not None
    sums, (g, h) = forest.node_sums(tree, tree + 1), coding.units[tree]
    hessians = sums[:, 2] * h
    nodes = forest.nodes[forest.tree_offsets[tree] : forest.tree_offsets[tree + 1]]
    leaf, value = is_leaf(nodes), np.zeros(len(nodes))
    added = forest.leaf_values[leaf_rows(nodes[leaf]), tree % coding.n_values]
    value[leaf] = added + 0.0  # no -0
    for split, left in paths.upward(forest, tree, tree + 1):
        right = left + 1
        weighted = value[left] * hessians[left] + value[right] * hessians[right]
        value[split] = weighted / hessians[split]
    return {
        "n_samples": sums[:, 0],
        "gradients": sums[:, 1] * g,
        "hessians": hessians,
        "gain": node_gains(forest, tree, tree + 1),
        "value": value,
    }


def need_numbers(forest: Forest, features: Any) -> None:
    """Raise ValueError where one of these features is categorical."""
    if set(np.asarray(features).tolist()) & set(forest.edges.known):
        raise ValueError(
            "the partial dependence on a categorical feature needs method='brute': there are "
            "no thresholds to compare the grid with"
        )
