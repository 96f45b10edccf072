"""A tree as arrays: those of scikit-learn's `tree_`, and those of a boosted model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import array_api_compat.numpy as xp
import numpy as np
from scipy.sparse import issparse

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import run_on_backend
from gpuforest.boosting.model import node_gains
from gpuforest.engine import predict as prediction
from gpuforest.engine.criteria import Criterion
from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import combined, is_leaf, leaf_rows, unpack
from gpuforest.explain.importances import gains_by_features
from gpuforest.explain.node_values import bounded_means, node_impurity
from gpuforest.explain.paths import decision_paths, one_tree, upward

TREE_LEAF, TREE_UNDEFINED = -1, -2  # scikit-learn's marks in the arrays of leaves


@dataclass(frozen=True, eq=False)
class TreeView:
    """One tree of a forest, with the attributes of scikit-learn's `tree_`.

    Arrays are made when they are first asked for. Nodes are numbered as in `apply` and
    `decision_path`. A node's weight is that of its rows in the tree's bag: where sample or
    class weights are used without bootstrap it is not their count, and `n_node_samples`,
    which is the same number, is not either; weights that are no whole numbers are scaled.
    Splits between present (left) and missing values have the threshold +inf.

    Parameters
    ----------
    forest : Forest
    tree : int, its number
    criterion : what `impurity` is measured by; of the trees of a regression forest it is the
        part that the splits below a node explain, see `node_impurity`
    backend : str, what rows are walked down the tree on
    signs : i8[F] or None, within whose bounds values are, see `bounded_means`
    """

    forest: Forest = field(repr=False)
    tree: int
    criterion: Criterion
    backend: str = "auto"
    signs: np.ndarray | None = field(default=None, repr=False)

    @cached_property
    def _forest(self) -> Forest:
        return one_tree(self.forest, self.tree)

    @cached_property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return unpack(xp, self._forest.nodes)

    @cached_property
    def _sums(self) -> np.ndarray:
        return self._forest.node_sums(0, 1)

    @property
    def node_count(self) -> int:
        return self._forest.n_nodes

    @property
    def max_depth(self) -> int:
        return self._forest.depth

    @property
    def n_features(self) -> int:
        return self.forest.edges.n_features

    @property
    def n_outputs(self) -> int:
        return self.forest.coding.n_outputs

    @property
    def max_n_classes(self) -> int:
        return int(self.n_classes.max())

    @property
    def n_classes(self) -> np.ndarray:
        """i64[n_outputs]; 1: a number"""
        coding = self.forest.coding
        if coding.several:
            return np.array([len(labels) for labels in coding.several])
        return np.full(self.n_outputs, coding.n_values // self.n_outputs)

    @cached_property
    def feature(self) -> np.ndarray:
        """i64[node_count], -2: a leaf"""
        return np.where(self._parts[0] < 0, TREE_UNDEFINED, self._parts[0])

    @cached_property
    def threshold(self) -> np.ndarray:
        """f64[node_count]: x <= threshold goes left; -2.0: a leaf; NaN: a split by a combination of
        features, of which `feature` is the first, see `export_text` and `tree_nodes`"""
        feature, bin, _, _ = self._parts
        thresholds = self.forest.edges.threshold(np.maximum(feature, 0), bin)
        if self.forest.oblique:
            thresholds[combined(self._forest.nodes) > 0] = np.nan
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
        coding, widest = self.forest.coding, self.max_n_classes
        if self._forest.node_values is not None:
            return self._forest.node_values[:, :, None].copy()
        if self.signs is not None and len(self.signs):
            means = bounded_means(self._forest, self.signs, self.criterion, 0, 1)[1]
            values = self.forest.counted(coding.of_means(means))
        else:
            values, leaf = self.forest.counted(coding.values(self._sums)), self._parts[0] < 0
            values[leaf] = self.forest.values[self._parts[3][leaf]]
        if not coding.several:
            return values.reshape(self.node_count, self.n_outputs, -1)
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
        return node_impurity(self.forest, self.tree, self.criterion)

    def compute_feature_importances(self, normalize: bool = True) -> np.ndarray:
        """Decrease of impurity by each feature's splits, f64[n_features]; adds up to one if
        normalised."""
        total = self.weighted_n_node_samples * self.impurity
        split = np.flatnonzero(self.feature >= 0)
        total[split] -= total[self.children_left[split]] + total[self.children_right[split]]
        gains = gains_by_features(self._forest, 0, 1, total)[0]
        scale = gains.sum() if normalize else self.weighted_n_node_samples[0]
        return np.asarray(gains / (scale or 1.0))

    def predict(self, X: Any) -> np.ndarray:
        """`value` of the leaf that each row reaches.

        X : array-like or SciPy's sparse of shape (n_samples, n_features), NaN is missing

        float64 array of shape (n_samples, max_n_classes), or of several outputs
        (n_samples, n_outputs, max_n_classes)
        """
        values: np.ndarray = self.value[self.apply(X)]
        return values[:, 0] if self.n_outputs == 1 else values

    def apply(self, X: Any) -> np.ndarray:
        """The number of the leaf that each row of X reaches, int64 of shape (n_samples,)."""
        X = X.tocsr() if issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features or X.dtype.kind not in "biuf":
            raise ValueError(
                f"X has the shape {X.shape} and the dtype {X.dtype}: pass real numbers of "
                f"{self.n_features} features"
            )

        def work(backend: Backend) -> np.ndarray:
            return np.asarray(prediction.apply(self._forest, X, backend)[:, 0])

        return run_on_backend(work, self.backend, n_rows=X.shape[0])

    def decision_path(self, X: Any) -> Any:
        """The nodes that each row of X passes, csr_matrix of shape (n_samples, node_count)."""
        return decision_paths(self._forest, self.apply(X)[:, None])


@dataclass(frozen=True, eq=False)
class BoostedView:
    """What the nodes of a tree of a boosted model hold, as arrays by their numbers.

    round : int, the round that grew it; the first one is 1
    output : int, which raw prediction it adds to: of several classes the number of the class
    n_samples : i64[m], rows
    gradients, hessians : f64[m], their sums over the rows
    gain : f64[m], what the split gains, the difference of G^2 / (H + l2); 0 at leaves
    value : f64[m], what a leaf adds to the raw prediction, with the learning rate; above it the
        mean of the leaves below, weighted by hessians: of a Newton step without l2 and bounds, what
        the node would add if it were a leaf
    """

    round: int
    output: int
    n_samples: np.ndarray
    gradients: np.ndarray
    hessians: np.ndarray
    gain: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, forest: Forest, tree: int) -> BoostedView:
        """The tree of this number."""
        coding: Any = forest.coding
        assert forest.leaf_values is not None
        sums, (g, h) = forest.node_sums(tree, tree + 1), coding.units[tree]
        number, output = divmod(tree, coding.n_values)
        hessians = sums[:, 2] * h
        return cls(
            round=number + 1,
            output=output,
            n_samples=sums[:, 0],
            gradients=sums[:, 1] * g,
            hessians=hessians,
            gain=node_gains(forest, tree, tree + 1),
            value=_values(forest, tree, forest.leaf_values[:, output], hessians),
        )


def _values(forest: Forest, tree: int, added: np.ndarray, hessians: np.ndarray) -> np.ndarray:
    """The values f64[m] of nodes, from what the rows of the leaf table add f64[V]."""
    begin, end = forest.tree_offsets[tree], forest.tree_offsets[tree + 1]
    leaf = is_leaf(forest.nodes[begin:end])
    value = np.zeros(end - begin)
    value[leaf] = added[leaf_rows(forest.nodes[begin:end][leaf])] + 0.0  # no -0
    for split, left in upward(forest, tree, tree + 1):
        right = left + 1
        weighted = value[left] * hessians[left] + value[right] * hessians[right]
        value[split] = weighted / hessians[split]
    return value
