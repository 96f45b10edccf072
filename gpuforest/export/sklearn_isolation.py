"""Fitted isolation forests of ours as scikit-learn's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.engine.criteria import CRITERIA
from gpuforest.explain.paths import average_path_length
from gpuforest.explain.views import TreeView
from gpuforest.export.sklearn import BAG_UNKNOWN, _tree
from gpuforest.export.sklearn_adaboost import _with_known


def to_sklearn(estimator: Any) -> Any:
    """A fitted isolation forest as the fitted one of scikit-learn.

    Scores of float32 data are equal but for rounding, and so are decisions and predictions. Trees
    have all features, whatever `max_features`. The rows that they were grown from are unknown, so
    `estimators_samples_` is an error.

    Parameters
    ----------
    estimator : IsolationForest, fitted

    Returns
    -------
    sklearn.ensemble.IsolationForest

    Raises
    ------
    ValueError : an estimator that is not fitted, or has categorical features
    """
    from gpuforest.explain.sklearn_tree import unlike_sklearn

    check_is_fitted(estimator)
    forest = estimator.forest_
    if why_not := unlike_sklearn(forest):
        raise ValueError(f"scikit-learn's trees have no {why_not} to convert the model")
    found = _with_known(import_module("sklearn.ensemble._iforest").IsolationForest, estimator)
    for name in ("n_features_in_", "feature_names_in_", "max_samples_", "offset_"):
        if hasattr(estimator, name):
            setattr(found, name, getattr(estimator, name))
    n_trees, features = forest.n_trees, np.arange(estimator.n_features_in_)
    kind = import_module("sklearn.tree._classes").ExtraTreeRegressor
    found.estimator_ = kind(max_features=1)
    found.estimators_ = [_member(kind(max_features=1), forest, t) for t in range(n_trees)]
    found.estimators_features_ = [features.copy() for _ in range(n_trees)]
    found._max_features, found._max_samples = len(features), found.max_samples_
    found._seeds, found._n_samples, found._sample_weight = [BAG_UNKNOWN] * n_trees, 0, None
    trees = [member.tree_ for member in found.estimators_]
    found._average_path_length_per_tree = [average_path_length(t.n_node_samples) for t in trees]
    found._decision_path_lengths = [tree.compute_node_depths() for tree in trees]
    return found


def _member(found: Any, forest: Any, t: int) -> Any:
    """A tree as scikit-learn's."""
    found.n_features_in_, found.n_outputs_ = forest.edges.n_features, 1
    found.tree_ = _tree(TreeView(forest, t, CRITERIA["squared_error"]))
    return found
