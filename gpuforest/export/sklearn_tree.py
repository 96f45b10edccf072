"""A tree as scikit-learn's own `Tree`; imported on demand, because its import is slow."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.tree._tree import NODE_DTYPE, TREE_LEAF, TREE_UNDEFINED, Tree

from gpuforest.backends import base, registry
from gpuforest.explain import importances, paths
from gpuforest.export.views import TreeView, need_numbers
from gpuforest.growing import predict as prediction

NO_THRESHOLDS = (
    "a tree with categorical features has no thresholds that scikit-learn's trees could have, so "
    "tools for those cannot read it: train with numbers in place of categories (OneHotEncoder, "
    "OrdinalEncoder), or use gpuforest's own export_text, tree_nodes and plot_tree"
)


class SklearnTree(Tree):  # type: ignore[misc]
    """`tree_` of a single tree: scikit-learn's nodes, and our way for rows, which is not bound to
    float32 and knows categories. A pickle of it is a plain `Tree`.

    Nodes are numbered as in `apply` and `decision_path`. A node's weight is that of its rows in the
    tree's bag: where sample or class weights are used without bootstrap it is not their count, and
    `n_node_samples`, which is the same number, is not either; weights that are no whole numbers are
    scaled. Splits between present (left) and missing values have the threshold +inf.

    view : the tree
    backend : str, what rows are walked down the tree on"""

    view: TreeView
    backend: str

    def __reduce__(self) -> Any:
        if self.view.forest.edges.categories:
            raise ValueError(NO_THRESHOLDS)
        return super().__reduce__()

    @property
    def threshold(self) -> np.ndarray:
        """f64[node_count]: x <= threshold goes left; -2.0: a leaf"""
        if self.view.forest.edges.categories:
            raise ValueError(NO_THRESHOLDS)
        return np.asarray(super().threshold)

    def apply(self, X: Any) -> np.ndarray:
        """The number of the leaf that each row of X reaches, int64 of shape (n_samples,)."""
        X = X.tocsr() if issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features or X.dtype.kind not in "biuf":
            raise ValueError(
                f"X has the shape {X.shape} and the dtype {X.dtype}: pass real numbers of "
                f"{self.n_features} features"
            )

        def work(backend: base.Backend) -> np.ndarray:
            return np.asarray(prediction.apply(self.view.forest, X, backend)[:, 0])

        return registry.run_on_backend(work, self.backend, n_rows=X.shape[0])

    def decision_path(self, X: Any) -> Any:
        """The nodes that each row of X passes, csr_matrix of shape (n_samples, node_count)."""
        return paths.decision_paths(self.view.forest, self.apply(X)[:, None])

    def predict(self, X: Any) -> np.ndarray:
        """`value` of each row's leaf, float64 (n_samples, [n_outputs,] max_n_classes).

        X : array-like or SciPy's sparse of shape (n_samples, n_features), NaN is missing"""
        values: np.ndarray = self.view.columns["value"][self.apply(X)]
        return values[:, 0] if self.n_outputs == 1 else values

    def compute_feature_importances(self, normalize: bool = True) -> np.ndarray:
        """Decrease of impurity by each feature, f64[n_features]; sums to one if normalised."""
        forest, weight = self.view.forest, self.weighted_n_node_samples
        total = weight * self.impurity
        split, left = paths.split_nodes(forest)
        total[split] -= total[left] + total[left + 1]
        gains = importances.gains_by_features(forest, 0, 1, total)[0]
        scale = gains.sum() if normalize else weight[0]
        return np.asarray(gains / (scale or 1.0))

    def compute_partial_dependence(self, X: Any, target_features: Any, out: Any) -> None:
        """Add the mean prediction over the other features to `out`, as scikit-learn does."""
        need_numbers(self.view.forest, target_features)
        super().compute_partial_dependence(X, target_features, out)


def sklearn_tree(view: TreeView, backend: str | None = None) -> Any:
    """A `Tree` with the view's nodes, or a `SklearnTree` where there is a backend."""
    forest, columns, leaf = view.forest, view.columns, view.feature < 0
    nodes, coding = np.zeros(forest.n_nodes, NODE_DTYPE), forest.coding
    for name, of_splits, of_leaves in (
        ("left_child", view.child, TREE_LEAF),
        ("right_child", view.child + 1, TREE_LEAF),
        ("feature", view.feature, TREE_UNDEFINED),
        ("threshold", view.threshold, TREE_UNDEFINED),
    ):
        nodes[name] = np.where(leaf, of_leaves, of_splits)
    nodes["threshold"][[*view.sums]] = np.nan  # a combination of features, the first in `feature`
    nodes["impurity"], nodes["n_node_samples"] = columns["impurity"], columns["n_samples"]
    nodes["weighted_n_node_samples"] = columns["n_samples"]
    nodes["missing_go_to_left"] = view.missing_left
    n_classes = [*map(len, coding.labels)] or [1] * coding.n_outputs
    kind = Tree if backend is None else SklearnTree
    tree = kind(forest.edges.n_features, np.array(n_classes, np.intp), coding.n_outputs)
    state = {"max_depth": forest.depth, "node_count": forest.n_nodes, "nodes": nodes}
    tree.__setstate__({**state, "values": np.ascontiguousarray(columns["value"])})
    if backend is not None:
        tree.view, tree.backend = view, backend
    return tree
