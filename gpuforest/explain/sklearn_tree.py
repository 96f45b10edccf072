"""A tree as scikit-learn's own `Tree`; imported on demand, because its import is slow."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.tree._tree import NODE_DTYPE, Tree

from gpuforest.backends import base, registry
from gpuforest.explain import importances, paths, views
from gpuforest.growing import predict as prediction

NO_THRESHOLDS = (
    "a tree with categorical features has no thresholds that scikit-learn's trees could have, so "
    "tools for those cannot read it: train with numbers in place of categories (OneHotEncoder, "
    "OrdinalEncoder), or use gpuforest's own export_text, tree_nodes and plot_tree"
)


class SklearnTree(Tree):  # type: ignore[misc]
    """`tree_` of a single tree: scikit-learn's nodes, and our way for rows, which is not bound to
    float32 and knows categories. A pickle of it is a plain `Tree`.

    view : the tree
    backend : str, what rows are walked down the tree on"""

    view: views.TreeView
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
            return np.asarray(prediction.apply(self.view.alone, X, backend)[:, 0])

        return registry.run_on_backend(work, self.backend, n_rows=X.shape[0])

    def decision_path(self, X: Any) -> Any:
        """The nodes that each row of X passes, csr_matrix of shape (n_samples, node_count)."""
        return paths.decision_paths(self.view.alone, self.apply(X)[:, None])

    def predict(self, X: Any) -> np.ndarray:
        """`value` of each row's leaf, float64 (n_samples, [n_outputs,] max_n_classes).

        X : array-like or SciPy's sparse of shape (n_samples, n_features), NaN is missing"""
        values: np.ndarray = self.view.value[self.apply(X)]
        return values[:, 0] if self.n_outputs == 1 else values

    def compute_feature_importances(self, normalize: bool = True) -> np.ndarray:
        """Decrease of impurity by each feature, f64[n_features]; sums to one if normalised."""
        view = self.view
        weight = view.n_node_samples.astype(np.float64)
        total = weight * view.impurity
        split = np.flatnonzero(view.feature >= 0)
        total[split] -= total[view.children_left[split]] + total[view.children_right[split]]
        gains = importances.gains_by_features(view.alone, 0, 1, total)[0]
        scale = gains.sum() if normalize else weight[0]
        return np.asarray(gains / (scale or 1.0))

    def compute_partial_dependence(self, X: Any, target_features: Any, out: Any) -> None:
        """Add the mean prediction over the other features to `out`, as scikit-learn does."""
        views.need_numbers(self.view.forest, target_features)
        super().compute_partial_dependence(X, target_features, out)


def sklearn_tree(view: views.TreeView, backend: str | None = None) -> Any:
    """A `Tree` with the view's nodes, or a `SklearnTree` where there is a backend."""
    nodes = np.zeros(view.node_count, NODE_DTYPE)
    nodes["left_child"], nodes["right_child"] = view.children_left, view.children_right
    for name in NODE_DTYPE.names[2:]:
        nodes[name] = getattr(view, name)
    forest, n_classes = view.forest, view.n_classes.astype(np.intp)
    kind = Tree if backend is None else SklearnTree
    tree = kind(forest.edges.n_features, n_classes, forest.coding.n_outputs)
    state = {"max_depth": view.alone.depth, "node_count": view.node_count}
    tree.__setstate__({**state, "nodes": nodes, "values": np.ascontiguousarray(view.value)})
    if backend is not None:
        tree.view, tree.backend = view, backend
    return tree


def partial_dependence(trees: list[Any], grid: Any, target_features: Any) -> np.ndarray:
    """Mean partial dependence f64[n_points] of trees at a grid [n_points, n_target_features]."""
    views.need_numbers(trees[0].forest_, target_features)
    grid = np.asarray(grid, np.float32, order="C")
    features = np.asarray(target_features, np.intp, order="C")
    out = np.zeros(len(grid))
    for tree in trees:
        tree.tree_.compute_partial_dependence(grid, features, out)
    return out / len(trees)
