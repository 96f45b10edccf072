"""Histogram gradient boosting for classes and for numbers."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from gpuforest.backends.arrays import to_host
from gpuforest.backends.base import Backend
from gpuforest.boosting.losses import NUMBERS
from gpuforest.criteria import CRITERIA
from gpuforest.data.validation import check_labels, check_numbers
from gpuforest.estimators.boosting import HistGradientBoosting
from gpuforest.estimators.boosting_settings import CONSTRAINTS
from gpuforest.estimators.class_weights import class_weights_of
from gpuforest.estimators.settings import keep
from gpuforest.forest import Forest


class HistGradientBoostingClassifier(ClassifierMixin, HistGradientBoosting):  # type: ignore[misc]
    """Gradient boosting for classes, on histograms of integers.

    Each round grows one tree for two classes, or one for each of several, from the gradients of
    the log loss, and adds what their leaves predict (Friedman 2001). The same data and
    `random_state` give the same model, bit for bit, on every backend and with any number of
    threads. Parameters are those of scikit-learn's class of this name, and the last four.

    Parameters
    ----------
    loss : {"log_loss"}, default="log_loss"
    learning_rate : float, default=0.1
        What the values of leaves are multiplied by; 1: no shrinkage.
    max_iter : int, default=100
        Rounds, at most.
    max_leaf_nodes : int or None, default=31
        Leaves of a tree, at most: of all nodes the one whose split gains most is split next.
    max_depth : int or None, default=None
        Levels below the root.
    min_samples_leaf : int, default=20
        Rows that either side of a split must have.
    l2_regularization : float, default=0.0
        Added to the sum of hessians of a node.
    max_features : float, default=1.0
        The part of the features that each node tries, drawn at random.
    max_bins : int, default=255
        Bins of a feature, at most, without the one for missing values.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Features whose values are categories: a mask of shape (n_features,), indices, or names of
        columns. "from_dtype": columns of a frame that hold strings or are of a categorical
        dtype. None: no feature is.
    monotonic_cst : array-like of int of shape (n_features,), dict or None, default=None
        1: the prediction must not fall as the feature rises, -1: it must not rise, 0: either. A
        dict has them by name. For two classes.
    interaction_cst : {"pairwise", "no_interactions"}, list or tuple of sets, default=None
        Sets of features that may meet on a path; features in none of them are one more set.
    warm_start : bool, default=False
        Whether `fit` adds rounds to those of the fit before.
    early_stopping : "auto" or bool, default="auto"
        Whether rounds end when scores no longer improve; "auto": from 10,001 rows on.
    scoring : str, callable or None, default="loss"
        What early stopping judges by.
    validation_fraction : int, float or None, default=0.1
        Rows that are set aside for early stopping; None: the rows that trees grow from serve.
    n_iter_no_change : int, default=10
        Rounds end when none of so many last ones has a better score than the one before them.
    tol : float, default=1e-7
        By how much a score must be higher to be better.
    verbose : int, default=0
    random_state : int, RandomState or None, default=None
    class_weight : dict, "balanced" or None, default=None
    subsample : float, default=1.0
        The part of the rows that a round grows from, drawn without replacement (Friedman 2002).
    backend : {"auto", "numpy", "numba"} or a registered name, default="auto"
    n_jobs : int or None, default=-1
        Threads; -1: all processors; None: 1.
    memory_limit : int or None, default=None
        Bytes that a fit may take, about, beside X and y: histograms have what is left of it, and
        are computed again where that is little; the model is the same. None: they have 256 MiB.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    do_early_stopping_ : bool
    n_iter_ : int
    n_trees_per_iteration_ : int
    train_score_, validation_score_ : float64 arrays of shape (n_iter_ + 1,)
        Scores before the first round and after each; empty without early stopping.
    is_categorical_ : bool array of shape (n_features,), or None
    feature_importances_ : float64 array of shape (n_features,)
    n_features_in_, feature_names_in_
    seed_ : int
        Grows the same model, as `random_state`.
    backend_ : str

    References
    ----------
    Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics
    29(5), 2001; "Stochastic gradient boosting", Computational Statistics and Data Analysis 38(4),
    2002. Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NIPS 2017.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "loss": [StrOptions({"log_loss"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: Any = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        class_weight: Any = None,
        subsample: float = 1.0,
        backend: str = "auto",
        n_jobs: int | None = -1,
        memory_limit: int | None = None,
    ) -> None:
        keep(self, {k: v for k, v in locals().items() if k != "__class__"})

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class; the first among equals.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._labels_of(self._raw_predict(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, float64 array of shape (n_samples, n_classes)."""
        raw = to_host(self._raw_predict(X))
        coding: Any = self.forest_.coding
        found: np.ndarray = coding.loss.predictions(raw)
        return found

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba(X)`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def decision_function(self, X: Any) -> np.ndarray:
        """Raw predictions: log odds of the second of two classes, float64 array of shape
        (n_samples,); of several classes (n_samples, n_classes)."""
        return _flat(to_host(self._raw_predict(X)))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """`predict(X)` after each round."""
        for raw in self._staged_raw_predict(X):
            yield self._labels_of(raw)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """`predict_proba(X)` after each round."""
        coding: Any = self.forest_.coding
        for raw in self._staged_raw_predict(X):
            yield coding.loss.predictions(raw)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """`decision_function(X)` after each round."""
        for raw in self._staged_raw_predict(X):
            yield _flat(raw)

    def _labels_of(self, raw: np.ndarray) -> np.ndarray:
        raw = to_host(raw)
        best = raw[:, 0] > 0 if raw.shape[1] == 1 else raw.argmax(axis=1)
        found: np.ndarray = self.classes_[best.astype(np.int64)]
        return found

    def _check_y(
        self, y: Any, n_rows: int, backend: Backend
    ) -> tuple[np.ndarray, np.ndarray | None]:
        checked = check_labels(y, n_rows, backend)
        assert checked.classes is not None
        if len(checked.classes) > 1:
            raise ValueError("y should be a 1d array: boosting has one output")
        return np.asarray(to_host(checked.values[0])), checked.classes[0]

    def _check_known_y(
        self, y: Any, n_rows: int, classes: np.ndarray | None, backend: Backend
    ) -> np.ndarray:
        assert classes is not None
        codes, found = self._check_y(y, n_rows, backend)
        assert found is not None
        if unknown := [label for label in found.tolist() if label not in set(classes.tolist())]:
            raise ValueError(f"y contains previously unseen labels: {unknown}")
        return np.asarray(np.searchsorted(classes, found)[codes])

    def _weigh(
        self, y: np.ndarray, classes: np.ndarray | None, weight: np.ndarray | None
    ) -> np.ndarray | None:
        if self.class_weight is None:
            return weight
        assert classes is not None
        own = class_weights_of(self.class_weight, y, classes)[y]
        return np.asarray(own if weight is None else weight * own)

    def _keep(self, forest: Forest) -> None:
        super()._keep(forest)
        coding: Any = forest.coding
        self.classes_ = coding.classes


class HistGradientBoostingRegressor(RegressorMixin, HistGradientBoosting):  # type: ignore[misc]
    """Gradient boosting for numbers, on histograms of integers.

    Each round grows a tree from the gradients of the loss, and adds what its leaves predict
    (Friedman 2001). The same data and `random_state` give the same model, bit for bit, on every
    backend and with any number of threads. Parameters are those of scikit-learn's class of this
    name, and the last four.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "gamma", "poisson", "quantile"}, \
            default="squared_error"
        "gamma" needs y > 0, "poisson" y >= 0; both predict exp(raw prediction).
    quantile : float, default=None
        Of the loss "quantile"; and of the absolute residuals beyond which "huber" counts a row
        as an outlier (None: 0.9).
    learning_rate, max_iter, max_leaf_nodes, max_depth, min_samples_leaf, l2_regularization, \
    max_features, max_bins, categorical_features, monotonic_cst, interaction_cst, warm_start, \
    early_stopping, scoring, validation_fraction, n_iter_no_change, tol, verbose, random_state, \
    subsample, backend, n_jobs, memory_limit
        As of `HistGradientBoostingClassifier`.

    Attributes
    ----------
    do_early_stopping_ : bool
    n_iter_ : int
    n_trees_per_iteration_ : int
    train_score_, validation_score_ : float64 arrays of shape (n_iter_ + 1,)
        Scores before the first round and after each; empty without early stopping.
    is_categorical_ : bool array of shape (n_features,), or None
    feature_importances_ : float64 array of shape (n_features,)
    n_features_in_, feature_names_in_
    seed_ : int
        Grows the same model, as `random_state`.
    backend_ : str

    References
    ----------
    As of `HistGradientBoostingClassifier`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "loss": [StrOptions(set(NUMBERS))],
        "quantile": [Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        quantile: float | None = None,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: Any = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        subsample: float = 1.0,
        backend: str = "auto",
        n_jobs: int | None = -1,
        memory_limit: int | None = None,
    ) -> None:
        keep(self, {k: v for k, v in locals().items() if k != "__class__"})

    def predict(self, X: Any) -> np.ndarray:
        """Predictions, float64 array of shape (n_samples,).

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        """
        raw = to_host(self._raw_predict(X))
        coding: Any = self.forest_.coding
        found: np.ndarray = coding.loss.predictions(raw)
        return found

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """`predict(X)` after each round."""
        for raw in self._staged_raw_predict(X):
            coding: Any = self.forest_.coding
            yield coding.loss.predictions(raw)

    def _check_y(
        self, y: Any, n_rows: int, backend: Backend
    ) -> tuple[np.ndarray, np.ndarray | None]:
        checked = check_numbers(y, n_rows, CRITERIA["squared_error"], backend)
        if checked.values.ndim > 1:
            raise ValueError("y should be a 1d array: boosting has one output")
        if self.loss == "quantile" and self.quantile is None:
            raise ValueError("loss='quantile' needs quantile: a number between 0 and 1")
        return np.asarray(to_host(checked.values)), None

    def _check_known_y(
        self, y: Any, n_rows: int, classes: np.ndarray | None, backend: Backend
    ) -> np.ndarray:
        return self._check_y(y, n_rows, backend)[0]


def _flat(raw: np.ndarray) -> np.ndarray:
    return raw[:, 0] if raw.shape[1] == 1 else raw
