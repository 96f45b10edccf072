"""What ensembles answer beside their predictions: leaves, paths, out-of-bag predictions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from gpuforest import predict as prediction
from gpuforest.backends.arrays import to_host
from gpuforest.backends.base import Backend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.binning import BinnedMatrix
from gpuforest.estimators.members import Members, template
from gpuforest.estimators.tasks import Classifier, Regressor
from gpuforest.forest import Forest
from gpuforest.inspection.oob import out_of_bag_means
from gpuforest.inspection.paths import decision_paths
from gpuforest.sampling import Sampling, draw_bags


class ManyTrees:
    """What a forest answers beside its predictions."""

    forest_: Forest
    oob_score: bool | Callable[..., float]
    _walk: Callable[..., Any]
    _sampling_: Sampling

    @cached_property
    def estimators_(self) -> Members:
        """The trees as fitted estimators, made when they are asked for."""
        check_is_fitted(self)
        return Members(self)

    @property
    def estimator_(self) -> Any:
        """The tree, not fitted, with the parameters that each was grown by."""
        check_is_fitted(self)
        return template(self)

    def __getstate__(self) -> Any:
        """What is derived need not travel."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "estimators_"}

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

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Rows of each tree's bag, int64, one as often as it was drawn; drawn again from the
        seed. Known to the estimator that was fitted, not to one that was loaded."""
        if not hasattr(self, "_sampling_"):
            raise AttributeError(
                "estimators_samples_ is known only to the estimator that was fitted"
            )
        drawn, forest, host = self._sampling_, self.forest_, NumpyBackend()
        rows = np.arange(drawn.n_rows)
        if not drawn.n_draws:
            return [rows] * forest.n_trees
        bags = (draw_bags(drawn, forest.seed, t, t + 1, host)[0] for t in range(forest.n_trees))
        return [np.repeat(rows, bag > 0 if drawn.distinct else bag) for bag in bags]


class ForestClassifier(ManyTrees, Classifier):
    """Many trees for classes."""

    def _set_oob(
        self,
        matrix: BinnedMatrix,
        coded: tuple[Any, ...],
        sampling: Sampling,
        backend: Backend,
    ) -> None:
        codes, classes = coded
        means = out_of_bag_means(self.forest_, matrix, sampling, backend)
        seen = ~np.isnan(means[:, 0])
        if isinstance(classes, list):
            parts = self.forest_.coding.split(means)
            found = [
                _labels(to_host(c), k, p, seen)
                for c, k, p in zip(codes, classes, parts, strict=True)
            ]
            y, predicted = (np.stack([pair[i] for pair in found], axis=1) for i in (0, 1))
            widest = max(p.shape[1] for p in parts)
            padded = [np.pad(p, [(0, 0), (0, widest - p.shape[1])]) for p in parts]
            self.oob_decision_function_ = np.stack(padded, axis=2)
            default = _subset_accuracy
        else:
            y, predicted = _labels(to_host(codes), classes, means, seen)
            self.oob_decision_function_, default = means, accuracy_score
        self.oob_score_ = np.nan
        if seen.any():
            self.oob_score_ = float(self._scoring(default)(y, predicted))


def _labels(
    codes: np.ndarray, classes: np.ndarray, means: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """True and predicted labels of the rows that were out of some bag."""
    return classes[codes[seen]], classes[means[seen].argmax(axis=1)]


def _subset_accuracy(y: np.ndarray, found: np.ndarray) -> float:
    """Share of the rows whose outputs are all right, as scikit-learn's `accuracy_score` where it
    takes the outputs: it refuses several of more than two classes."""
    return float(np.mean((y == found).all(axis=1)))


class ForestRegressor(ManyTrees, Regressor):
    """Many trees for real numbers."""

    def _set_oob(
        self,
        matrix: BinnedMatrix,
        coded: tuple[Any, ...],
        sampling: Sampling,
        backend: Backend,
    ) -> None:
        means = out_of_bag_means(self.forest_, matrix, sampling, backend)
        means = means[:, 0] if means.shape[1] == 1 else means
        self.oob_prediction_ = means
        seen = ~np.isnan(means if means.ndim == 1 else means[:, 0])
        self.oob_score_ = np.nan
        if seen.sum() > 1:  # R^2 of one row is undefined
            self.oob_score_ = float(self._scoring(r2_score)(to_host(coded[0])[seen], means[seen]))
