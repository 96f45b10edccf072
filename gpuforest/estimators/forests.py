"""Random forests (Breiman 2001)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import StrOptions

from gpuforest import predict as prediction
from gpuforest.backends.arrays import to_host
from gpuforest.backends.base import Backend
from gpuforest.binning import BinnedMatrix
from gpuforest.estimators.base import Array, Classifier, Regressor
from gpuforest.estimators.settings import (
    CLASS_WEIGHT,
    FOREST_CONSTRAINTS,
    TREE_CONSTRAINTS,
    criterion_constraint,
)
from gpuforest.forest import Forest
from gpuforest.inspection.oob import out_of_bag_means
from gpuforest.inspection.paths import decision_paths
from gpuforest.sampling import Sampling


class ManyTrees:
    """What a forest answers beside its predictions."""

    forest_: Forest
    oob_score: bool | Callable[..., float]
    _walk: Callable[..., Any]

    def _scoring(self, default: Callable[..., float]) -> Callable[..., float]:
        """Of out-of-bag predictions."""
        return self.oob_score if callable(self.oob_score) else default

    def apply(self, X: Any) -> Any:
        """The leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        int64 array of shape (n_samples, n_estimators), numbers of nodes in their tree;
        on a GPU where X is on one
        """
        return self._walk(X, prediction.apply)

    def decision_path(self, X: Any) -> Any:
        """The nodes that each row passes, from the root to its leaf.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        indicator : sparse int64 matrix of shape (n_samples, n_nodes), ones where a row passes
            a node; the trees stand side by side
        n_nodes_ptr : int64 array of shape (n_estimators + 1,), where each tree begins
        """
        leaves = to_host(self._walk(X, prediction.apply))
        return decision_paths(self.forest_, leaves), self.forest_.tree_offsets.copy()


class RandomForestClassifier(ManyTrees, Classifier):
    """A random forest for classes.

    The same data and `random_state` give the same forest, bit for bit, on every backend
    and with any number of threads.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    criterion : {"gini", "entropy", "log_loss", "misclassification"}, default="gini"
    max_depth : int or None, default=None
        Levels below the root; None: until leaves are pure or may not be split.
    min_samples_split : int or float, default=2
        Rows of a node that may be split; a float is a fraction of the rows.
    min_samples_leaf : int or float, default=1
        Rows that either side of a split must have; a float is a fraction of the rows.
    max_features : "sqrt", "log2", int, float or None, default="sqrt"
        Features, among those that vary in the node, tried at a split; None: all.
    min_impurity_decrease : float, default=0.0
        Least decrease of impurity, weighted by the node's share of the rows.
    bootstrap : bool, default=True
        Each tree sees rows drawn with replacement; False: all rows.
    max_samples : int, float or None, default=None
        Rows drawn for a tree; a float is a fraction of the total weight; None: as many
        as there are rows. Needs bootstrap.
    oob_score : bool or callable, default=False
        Predict each row by the trees that did not draw it. Needs bootstrap. A callable takes
        the true and the predicted targets of these rows and gives the score.
    class_weight : {"balanced", "balanced_subsample"}, dict or None, default=None
        What each row of a class adds to the statistics: {label: weight}, or "balanced",
        rows / (classes * rows of the class); "balanced_subsample" counts the
        rows drawn for each tree.
    random_state : int, RandomState or None, default=None
        An int is the seed as it is; None draws one from NumPy's global state.
    warm_start : bool, default=False
        A later fit of the same data with more `n_estimators` adds trees; the forest is the same
        as if all had been grown at once.
    n_jobs : int or None, default=None
        Threads on the CPU; None: one (or joblib's context), -1: all.
    max_bins : int, default=255
        Bins of a feature at the most, 2 to 65535; above 255 codes take two bytes.
    backend : str, default="auto"
        See `gpuforest.available_backends`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), of frames with string names
    feature_importances_ : float64 ndarray of shape (n_features_in_,)
    oob_score_ : float, accuracy (or `oob_score`) over the rows that are out of some bag
    oob_decision_function_ : float64 ndarray of shape (n_samples, n_classes)
        NaN where a row was never out of bag.
    seed_ : int, what random draws came from
    criterion_ : str, what the trees were grown with
    backend_ : str, the name of the backend that grew them
    forest_ : gpuforest.forest.Forest

    Examples
    --------
    >>> from gpuforest import RandomForestClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, ["a", "a", "b", "b"] * 5
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> forest.predict([[0.5], [2.5]]).tolist()
    ['a', 'b']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TREE_CONSTRAINTS,
        **FOREST_CONSTRAINTS,
        **criterion_constraint("classification"),
        "class_weight": [StrOptions({"balanced", "balanced_subsample"}), *CLASS_WEIGHT],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        max_features: str | int | float | None = "sqrt",
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        class_weight: dict[Any, float] | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_bins: int = 255,
        backend: str = "auto",
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.class_weight = class_weight
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_bins = max_bins
        self.backend = backend

    def _set_oob(
        self,
        matrix: BinnedMatrix,
        coded: tuple[Array, ...],
        sampling: Sampling,
        backend: Backend,
    ) -> None:
        means = out_of_bag_means(self.forest_, matrix, sampling, backend)
        self.oob_decision_function_ = means
        seen = ~np.isnan(means[:, 0])
        self.oob_score_ = np.nan
        if seen.any():
            labels = (coded[1][to_host(coded[0])[seen]], coded[1][means[seen].argmax(axis=1)])
            self.oob_score_ = float(self._scoring(accuracy_score)(*labels))


class RandomForestRegressor(ManyTrees, Regressor):
    """A random forest for real numbers.

    The same data and `random_state` give the same forest, bit for bit, on every backend
    and with any number of threads.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    criterion : {"squared_error", "poisson"}, default="squared_error"
        "poisson" is for counts: y >= 0, not all zero.
    max_features : "sqrt", "log2", int, float or None, default=1/3
        Features, among those that vary in the node, tried at a split; None: all.
    max_depth, min_samples_split, min_samples_leaf, min_impurity_decrease
        As for `RandomForestClassifier`.
    bootstrap, max_samples, oob_score
        As for `RandomForestClassifier`.
    random_state, warm_start, n_jobs, max_bins, backend
        As for `RandomForestClassifier`.

    Attributes
    ----------
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), of frames with string names
    feature_importances_ : float64 ndarray of shape (n_features_in_,)
    oob_score_ : float, R^2 (or `oob_score`) over the rows that are out of some bag
    oob_prediction_ : float64 ndarray of shape (n_samples,)
        NaN where a row was never out of bag.
    seed_ : int, what random draws came from
    criterion_ : str, what the trees were grown with
    backend_ : str, the name of the backend that grew them
    forest_ : gpuforest.forest.Forest
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TREE_CONSTRAINTS,
        **FOREST_CONSTRAINTS,
        **criterion_constraint("regression"),
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        max_features: str | int | float | None = 1 / 3,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_bins: int = 255,
        backend: str = "auto",
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_bins = max_bins
        self.backend = backend

    def _set_oob(
        self,
        matrix: BinnedMatrix,
        coded: tuple[Array, ...],
        sampling: Sampling,
        backend: Backend,
    ) -> None:
        means = out_of_bag_means(self.forest_, matrix, sampling, backend)[:, 0]
        self.oob_prediction_ = means
        seen = ~np.isnan(means)
        self.oob_score_ = np.nan
        if seen.sum() > 1:  # R^2 of one row is undefined
            self.oob_score_ = float(self._scoring(r2_score)(to_host(coded[0])[seen], means[seen]))
