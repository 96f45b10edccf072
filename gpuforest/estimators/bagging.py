"""Bagging (Breiman 1996) draws rows and features for each tree. scikit-learn bags all estimators
that are not trees of this package."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common import hashing
from gpuforest.engine.sampling import tree_features
from gpuforest.estimators import params
from gpuforest.estimators.ensembles import (
    BaseForest,
    ForestClassifier,
    ForestRegressor,
    described_tree,
    estimators_samples_,
    of_tree,
)
from gpuforest.estimators.fits import replacing
from gpuforest.estimators.settings import Settings
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor


def _has_decisions(bag: Any) -> bool:
    """Whether scikit-learn's bag of these estimators has a `decision_function`."""
    return not bag._grows_trees and hasattr(bag._theirs(), "decision_function")


class Bagging(BaseForest):
    """Both bagging estimators: the tree says how each is grown, and the bag what it grows from."""

    _home, _mark = "_bagging", "estimators_features_"
    max_features: int | float
    bootstrap: bool
    bootstrap_features: bool
    estimator: Any = None
    estimator_params: Any = ()
    estimator_ = property(described_tree)
    criterion, max_bins, backend, memory_limit = map(
        of_tree, ("criterion", "max_bins", "backend", "memory_limit")
    )
    class_weight, categorical_features, min_category_frequency = map(
        of_tree, ("class_weight", "categorical_features", "min_category_frequency")
    )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Grow the trees, or fit other estimators as scikit-learn does.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            As in the fit of a forest. Of other estimators the chances of a row to be drawn.
        **fit_params : what is routed to the fit of other estimators (metadata routing)

        Returns
        -------
        self

        Raises
        ------
        ValueError : as the fit of a forest; what other estimators and scikit-learn refuse
        TypeError : `fit_params` of trees
        """
        if self._grows_trees:
            if fit_params:
                raise TypeError(f"trees take no {', '.join(fit_params)} in fit")
            return super().fit(X, y, sample_weight)
        if getattr(self, "voting", "soft") != "soft":
            raise ValueError(
                "voting='hard' is for bags of gpuforest's trees: set voting='soft', or use an "
                "estimator without predict_proba, which votes"
            )
        given = self.max_samples
        with replacing(self) as fitted:
            if self._is_theirs and self.warm_start:
                for name, known in vars(self).items():  # lists are added to in place
                    fitted.__dict__[name] = copy(known) if isinstance(known, list) else known
            fitted.__dict__.setdefault("estimator_params", ())  # which its constructor sets
            theirs = fitted._theirs()
            if given is None and None not in type(theirs)._parameter_constraints["max_samples"]:
                theirs.max_samples = 1.0  # what None means, which scikit-learn takes from 1.9 on
            theirs.fit(X, y, sample_weight, **fit_params)
            theirs.max_samples = given
        return self

    def __len__(self) -> int:
        """Estimators."""
        return len(self.estimators_) if self._is_theirs else super().__len__()

    def predict(self, X: Any, **params: Any) -> Any:
        """Predict as a forest does, with its `params`; those of other estimators are routed.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        Array of shape (n_samples,) or (n_samples, n_outputs)
        """
        if self._is_theirs:
            return self._theirs().predict(X, **params)
        return super().predict(X, **params)

    @available_if(_has_decisions)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any, **params: Any) -> Any:
        """The mean decision function of estimators that have one, as scikit-learn gives it.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        float64 array of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._theirs().decision_function(X, **params)

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Rows drawn for each tree, as of a forest; for other estimators they stand in the order in
        which they were drawn."""
        if self._is_theirs:
            return list(self._theirs().estimators_samples_)
        return estimators_samples_(self)

    def _tree_params(self) -> dict[str, Any]:
        return dict(self.estimator_.get_params(deep=False))

    def _settings(self, n_features: int) -> Settings:
        drawn = self._features_drawn(n_features)
        if drawn == n_features and not self.bootstrap_features:
            drawn = 0  # all of them
        own = {name: getattr(self, name) for name in self._get_param_names()}
        del own["max_features"]  # which are those drawn for a tree; a tree's are tried at a split
        found, once = Settings.of(self._tree_params() | own), not self.bootstrap
        return replace(found, is_single=False, without_replacement=once, features_drawn=drawn)

    def _features_drawn(self, n_features: int) -> int:
        """Features drawn for a tree."""
        n = self.max_features
        drawn = int(n) if isinstance(n, Integral) else max(1, int(n * n_features))
        if drawn > n_features:
            raise ValueError(f"max_features={n} must be <= n_features={n_features}")
        return drawn

    @property
    def estimators_features_(self) -> list[np.ndarray]:
        """Features drawn for each tree, int64, ascending, each once; drawn again from the seed.

        A tree looks at no others, but takes and counts them all. Other estimators take these
        features and no others, in the order in which they were drawn.
        """
        if self._is_theirs:
            return list(vars(self)["estimators_features_"])
        forest, F = self.forest_, self.n_features_in_
        host, drawn = NumpyBackend(), self._features_drawn(F)
        if drawn == F and not self.bootstrap_features:
            return [np.arange(F)] * forest.n_trees
        keys = hashing.tree_keys(np, forest.seed, 0, forest.n_trees)
        allowed = tree_features(keys, drawn, self.bootstrap_features, F, host)
        return [np.flatnonzero(some) for some in allowed]


@params.parameters(params.BAGGING, params.OF_BAGS)
class BaggingClassifier(Bagging, ForestClassifier):
    """Bagged decision trees for classes, or other classifiers, bagged by scikit-learn.

    Attributes
    ----------
    estimator_ : what each one is made from, not fitted
    estimators_features_ : list of int64 ndarray, the features drawn for each tree
    others : as of `RandomForestClassifier`

    References
    ----------
    L. Breiman, "Bagging predictors", Machine Learning 24, 1996; T. Ho, "The random subspace
    method for constructing decision forests", IEEE TPAMI 20, 1998; G. Louppe and P. Geurts,
    "Ensembles on random patches", ECML 2012.
    """

    _tree, _kind = DecisionTreeClassifier, "BaggingClassifier"

    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Class proportions as of a forest; other estimators give their mean, or shares of votes.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        float64 array of shape (n_samples, n_classes), in the order of `classes_`
        """
        if self._is_theirs:
            return self._theirs().predict_proba(X, **params)
        return super().predict_proba(X)

    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """The logarithm of `predict_proba(X)`, -inf where that is 0.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        float64 array of shape (n_samples, n_classes)
        """
        if self._is_theirs:
            return self._theirs().predict_log_proba(X, **params)
        return super().predict_log_proba(X)


@params.parameters(params.BAGGING, params.OF_BAGS, params.NO_CLASSES)
class BaggingRegressor(Bagging, ForestRegressor):  # type: ignore[misc]
    """Bagged decision trees for real numbers, or other regressors, bagged by scikit-learn.

    Attributes
    ----------
    estimator_ : what each one is made from, not fitted
    estimators_features_ : list of int64 ndarray, the features drawn for each tree
    others : as of `RandomForestRegressor`
    """

    _tree, _kind = DecisionTreeRegressor, "BaggingRegressor"
