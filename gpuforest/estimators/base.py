"""What all four estimators share: one pipeline of stages, and their results."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from gpuforest import predict as prediction
from gpuforest import progress
from gpuforest.backends import get_backend
from gpuforest.backends.base import Backend
from gpuforest.binning import BinnedMatrix, bin_matrix, fit_edges
from gpuforest.criteria import CRITERIA
from gpuforest.estimators.settings import draw_seed, rules_of, sampling_of, thread_count
from gpuforest.estimators.validation import (
    check_labels,
    check_numbers,
    check_table,
    check_weights,
)
from gpuforest.forest import Forest
from gpuforest.grow import grow
from gpuforest.inspection.importances import impurity_importances
from gpuforest.sampling import Sampling
from gpuforest.target import Target, TargetCoding, encode_classes, encode_moments

Array = Any


class Trees(BaseEstimator):  # type: ignore[misc]
    """Trees over the stages: a thin shell. `Classifier` and `Regressor` add the target."""

    forest_: Forest
    seed_: int
    criterion_: str
    n_features_in_: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow the trees.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Real numbers; NaN (null in a frame) means missing. NumPy arrays of any
            layout and real dtype, pandas, polars and other frames.
        y : array-like of shape (n_samples,)
            Class labels of any kind that sorts, or real numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0. With bootstrap they are the chances of a row to be drawn,
            without it they weigh the row in every statistic.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter out of its range; infinities, complex numbers or no numbers in
            X; a wrong length; missing values in y; negative or no weights.
        BackendError
            The backend cannot run on this machine.
        """
        self._validate_params()
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a fit that fails must leave no half of an earlier one
        params = self.get_params(deep=False)
        with progress.stage("checking"):
            X = check_table(self, X, reset=True)
            coded = self._check_target(y, len(X))
            weights = check_weights(sample_weight, len(X))
            sampling = sampling_of(params, len(X), weights)
            backend = self._backend()
            seed = draw_seed(self.random_state)
        with progress.stage("binning"):
            edges = fit_edges(
                X,
                max_bins=self.max_bins,
                weights=sampling.weights,
                seed=seed,
                n_threads=backend.n_threads,
            )
            matrix = bin_matrix(X, edges, backend)
            coding, codes = self._encode_target(coded, sampling)
            target = Target(coding, backend.asarray(codes))
        with progress.stage("growing"):
            rules = rules_of(params, X.shape[1], sampling, coding)
            n_trees = int(params.get("n_estimators", 1))
            forest = grow(matrix, target, sampling, rules, n_trees, seed, backend)
        self._keep(forest, coded)
        if params.get("oob_score", False):
            with progress.stage("out of bag"):
                self._set_oob(matrix, coded, sampling, backend)
        return self

    def _keep(self, forest: Forest, coded: tuple[np.ndarray, ...]) -> None:
        self.forest_, self.seed_, self.criterion_ = forest, forest.seed, self.criterion
        self.n_outputs_ = 1

    def _check_target(self, y: Any, n_rows: int) -> tuple[np.ndarray, ...]:
        raise NotImplementedError

    def _encode_target(
        self, coded: tuple[np.ndarray, ...], sampling: Sampling
    ) -> tuple[TargetCoding, np.ndarray]:
        raise NotImplementedError

    def _set_oob(
        self,
        matrix: BinnedMatrix,
        coded: tuple[np.ndarray, ...],
        sampling: Sampling,
        backend: Backend,
    ) -> None:
        raise NotImplementedError

    def _backend(self) -> Backend:
        return get_backend(self.backend, n_threads=thread_count(getattr(self, "n_jobs", 1)))

    def _values(self, X: Any) -> np.ndarray:
        """Mean leaf values f64[N, n_values] of X's rows."""
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with progress.stage("predicting"):
            return prediction.predict(self.forest_, X, self._backend())

    def _leaves(self, X: Any) -> np.ndarray:
        """Leaves i64[N, T] of X's rows."""
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with progress.stage("predicting"):
            return prediction.apply(self.forest_, X, self._backend())

    @cached_property
    def feature_importances_(self) -> np.ndarray:
        """Impurity importances f64[n_features], which add up to one.

        The total decrease of impurity by the splits of each feature, normalised in
        each tree, then averaged. All zero where no tree has a split that gains.
        """
        check_is_fitted(self)
        return impurity_importances(self.forest_, CRITERIA[self.criterion_])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that `gpuforest.load` reads.

        Parameters
        ----------
        path : str or path
            Replaced as a whole if it exists: never left half written.

        Raises
        ------
        ValueError
            Class labels that are neither numbers nor strings.
        """
        from gpuforest.model_file import save

        check_is_fitted(self)
        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class Classifier(ClassifierMixin, Trees):  # type: ignore[misc]
    """Adds class targets."""

    classes_: np.ndarray
    n_classes_: int

    def predict(self, X: Any) -> np.ndarray:
        """The class of the highest mean probability; the first among equals.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), of the dtype of `classes_`

        Raises
        ------
        ValueError
            Other features than in training, infinities, no numbers.
        """
        best = np.argmax(self._values(X), axis=1)
        labels: np.ndarray = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Mean over the trees of the class proportions in the leaves.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        float64 ndarray of shape (n_samples, n_classes), in the order of `classes_`

        Raises
        ------
        ValueError
            Other features than in training, infinities, no numbers.
        """
        return self._values(X)

    def _check_target(self, y: Any, n_rows: int) -> tuple[np.ndarray, ...]:
        return check_labels(y, n_rows)

    def _encode_target(
        self, coded: tuple[np.ndarray, ...], sampling: Sampling
    ) -> tuple[TargetCoding, np.ndarray]:
        return encode_classes(*coded)

    def _keep(self, forest: Forest, coded: tuple[np.ndarray, ...]) -> None:
        super()._keep(forest, coded)
        self.classes_, self.n_classes_ = coded[1], len(coded[1])


class Regressor(RegressorMixin, Trees):  # type: ignore[misc]
    """Adds real targets."""

    def predict(self, X: Any) -> np.ndarray:
        """Mean over the trees of the mean target in the leaves.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        float64 ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            Other features than in training, infinities, no numbers.
        """
        return self._values(X)[:, 0]

    def _check_target(self, y: Any, n_rows: int) -> tuple[np.ndarray, ...]:
        return (check_numbers(y, n_rows, self.criterion),)

    def _encode_target(
        self, coded: tuple[np.ndarray, ...], sampling: Sampling
    ) -> tuple[TargetCoding, np.ndarray]:
        y = coded[0]
        if sampling.weights is not None and not sampling.weights.all():
            # rows that never count must not widen the range of the fixed point
            y = np.where(sampling.weights > 0, y, y[np.argmax(sampling.weights > 0)])
        return encode_moments(y[:, None], sampling.bag_weight, centred=self.criterion != "poisson")
