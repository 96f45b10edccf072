"""Fitted AdaBoost estimators of ours as scikit-learn's."""

from __future__ import annotations

from importlib import import_module
from numbers import Integral
from typing import Any

from sklearn.utils.validation import check_is_fitted

from gpuforest.engine.criteria import CRITERIA
from gpuforest.export.sklearn import HOMES, SOURCES


def to_sklearn(estimator: Any) -> Any:
    """A fitted AdaBoost estimator as the fitted one of scikit-learn of the same name.

    Its trees are those that `to_sklearn` of each tree gives. Predictions of float32 data are equal
    but for rounding, and, in a classifier, but for rows on which the votes are tied.

    Parameters
    ----------
    estimator : AdaBoostClassifier or AdaBoostRegressor, fitted, of gpuforest's trees

    Returns
    -------
    sklearn.ensemble.AdaBoostClassifier or AdaBoostRegressor

    Raises
    ------
    ValueError : an estimator that is not fitted, has categorical features, or boosts others
    """
    check_is_fitted(estimator)
    if estimator._is_theirs:
        raise ValueError(
            f"an ensemble of {type(estimator.estimator).__name__} was fitted by scikit-learn: "
            "only trees of gpuforest's are converted"
        )
    trees = [tree.to_sklearn() for tree in estimator.estimators_]
    ensembles = import_module("sklearn.ensemble._weight_boosting")
    found = _with_known(getattr(ensembles, type(estimator).__name__), estimator)
    found.estimator = None if estimator.estimator is None else _unfitted(estimator.estimator)
    found.estimator_, found.estimators_ = _unfitted(estimator.estimator_), trees
    for name in (
        "estimator_weights_",
        "estimator_errors_",
        "n_features_in_",
        "feature_names_in_",
        "classes_",
        "n_classes_",
    ):
        if hasattr(estimator, name):
            setattr(found, name, getattr(estimator, name))
    return found


def _unfitted(tree: Any) -> Any:
    """scikit-learn's tree with the parameters that both know."""
    name = type(tree).__name__
    found = _with_known(getattr(import_module(SOURCES[HOMES[name]]), name), tree)
    return found.set_params(criterion=CRITERIA[tree.criterion].sklearn or tree.criterion)


def _with_known(kind: Any, estimator: Any) -> Any:
    """An estimator of a class, with the parameters of another that it knows."""
    known = kind._get_param_names()
    params = estimator.get_params(deep=False).items()
    found = kind(**{name: value for name, value in params if name in known})
    if isinstance(found.random_state, Integral):
        found.random_state = int(found.random_state) % 2**32  # the most that scikit-learn takes
    return found
