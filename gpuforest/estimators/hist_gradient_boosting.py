"""Histogram gradient boosting for classes and for numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from gpuforest.backends.base import Backend
from gpuforest.data.arrays import to_host
from gpuforest.data.validation import check_labels, check_numbers
from gpuforest.engine.criteria import CRITERIA
from gpuforest.engine.forest import Forest
from gpuforest.estimators import params
from gpuforest.estimators.boosting import HistGradientBoosting
from gpuforest.estimators.class_weights import class_weights_of


@params.parameters(params.BOOSTING, params.OF_BOOSTING)
class HistGradientBoostingClassifier(ClassifierMixin, HistGradientBoosting):  # type: ignore[misc]
    """Gradient boosting for classes, on histograms of integers.

    Each round grows one tree for two classes, or one for each of several, from the gradients of
    the log loss, and adds what their leaves predict (Friedman 2001). The same data and
    `random_state` give the same model, bit for bit, on every backend and with any number of
    threads. Parameters are those of scikit-learn's class of this name, and the last four.

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


@params.parameters(
    params.BOOSTING,
    params.BOOSTING_OF_NUMBERS,
    params.OF_BOOSTING,
)
class HistGradientBoostingRegressor(RegressorMixin, HistGradientBoosting):  # type: ignore[misc]
    """Gradient boosting for numbers, on histograms of integers.

    Each round grows a tree from the gradients of the loss, and adds what its leaves predict
    (Friedman 2001). The same data and `random_state` give the same model, bit for bit, on every
    backend and with any number of threads. Parameters are those of scikit-learn's class of this
    name, and the last four.

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
