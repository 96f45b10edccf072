"""Random forests (Breiman 2001)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from gpuforest import predict as prediction
from gpuforest.backends.arrays import to_host
from gpuforest.backends.base import Backend
from gpuforest.binning import BinnedMatrix
from gpuforest.estimators.base import Array, Classifier, Regressor
from gpuforest.estimators.settings import (
    FOREST_CONSTRAINTS,
    TREE_CONSTRAINTS,
    criterion_constraint,
)
from gpuforest.inspection.oob import out_of_bag_means
from gpuforest.sampling import Sampling


class RandomForestClassifier(Classifier):
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
    oob_score : bool, default=False
        Predict each row by the trees that did not draw it. Needs bootstrap.
    random_state : int, RandomState or None, default=None
        An int is the seed as it is; None draws one from NumPy's global state.
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
    oob_score_ : float, accuracy over the rows that are out of some bag
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
        oob_score: bool = False,
        random_state: int | np.random.RandomState | None = None,
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
        self.n_jobs = n_jobs
        self.max_bins = max_bins
        self.backend = backend

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
            self.oob_score_ = float(
                accuracy_score(to_host(coded[0])[seen], means[seen].argmax(axis=1))
            )


class RandomForestRegressor(Regressor):
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
    random_state, n_jobs, max_bins, backend
        As for `RandomForestClassifier`.

    Attributes
    ----------
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), of frames with string names
    feature_importances_ : float64 ndarray of shape (n_features_in_,)
    oob_score_ : float, R^2 over the rows that are out of some bag
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
        oob_score: bool = False,
        random_state: int | np.random.RandomState | None = None,
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
        self.n_jobs = n_jobs
        self.max_bins = max_bins
        self.backend = backend

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
            self.oob_score_ = float(r2_score(to_host(coded[0])[seen], means[seen]))
