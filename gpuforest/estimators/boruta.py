"""Boruta (Kursa and Rudnicki 2010): all features that say something, not the fewest that do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import run_on_backend
from gpuforest.common import hashing, progress
from gpuforest.common.arguments import draw_seed
from gpuforest.data.arrays import to_host
from gpuforest.data.binned import BinnedData, target_and_weight
from gpuforest.estimators import params
from gpuforest.estimators.base import FitData
from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor
from gpuforest.estimators.fits import replacing
from gpuforest.estimators.permutation import oob_impurity_importance, oob_permutation_importance
from gpuforest.explain.importances import decided, round_key, with_shadows

OUT_OF_BAG = {
    "oob_impurity": oob_impurity_importance,
    "oob_permutation": oob_permutation_importance,
}


@params.parameters(params.BORUTA, params.OF_BORUTA)
class BorutaSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Selects all features that say something about the target.

    In each round a forest sees the features and their shadows, which hold the same values in a
    random order. A feature that is more important than every shadow scores a hit. After each
    round features with more hits than chance gives are confirmed, and those with fewer are
    rejected and leave. Values are binned once; shadows are permuted bin codes.

    Attributes
    ----------
    support_ : bool ndarray of shape (n_features,), the confirmed features
    support_weak_ : bool ndarray of shape (n_features,), those that are neither confirmed nor
        rejected after `max_iter` rounds: tentative
    ranking_ : int64 ndarray of shape (n_features,)
        1: confirmed, 2: tentative, from 3 on: rejected, by their mean importance
    n_features_ : int, confirmed features
    n_iter_ : int, rounds
    importance_history_ : float64 ndarray of shape (n_iter_, n_features)
        Importances in each round; NaN for features that had left.
    shadow_max_ : float64 ndarray of shape (n_iter_,), the largest importance of a shadow
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), of frames with string names

    Notes
    -----
    `transform` keeps the confirmed features. Features that hold the same information are all
    confirmed. What is confirmed is related to the target in these rows, which may be by chance: a
    feature is compared with features that are not related, not with other rows.

    References
    ----------
    M. B. Kursa and W. R. Rudnicki, "Feature selection with the Boruta package", Journal of
    Statistical Software 36(11), 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuforest import BorutaSelector, RandomForestClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 6))
    >>> forest = RandomForestClassifier(50, max_depth=5)
    >>> BorutaSelector(forest, random_state=0).fit(X, X[:, 1] + X[:, 4] > 0).get_support(True)
    array([1, 4])
    """

    def fit(self, X: Any, y: Any = None) -> BorutaSelector:
        """Find the features that say something.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features), or BinnedData
            Numbers, categories and missing values, as for the forest's `fit`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Only `BinnedData` may bring their own.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            An estimator that is no forest of gpuforest.
        ValueError
            A parameter out of its range; what the forest refuses; importances by rows out of bag
            of a forest without bags.
        """
        self._validate_params()
        forest = self._checked_forest()
        y, _ = target_and_weight(X, y, None)
        seed = draw_seed(self.random_state)
        data = _binned(forest, X, y, seed)
        if data.shape[0] < 2:
            raise ValueError(
                f"Found array with {data.shape[0]} sample(s) (shape={data.shape}) while a minimum "
                "of 2 is required by BorutaSelector."
            )
        with replacing(self) as fitted:
            fitted._select(forest, data, y, seed)
        return self

    def _select(self, forest: Any, data: BinnedData, y: Any, seed: int) -> None:
        """Set what a fit finds."""
        self.n_features_in_ = data.shape[1]
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, object)
        confirmed, rejected = self._run(forest, data, y, seed)
        self.support_, self.support_weak_ = confirmed, ~(confirmed | rejected)
        self.n_features_, self.n_iter_ = int(confirmed.sum()), len(self.shadow_max_)
        self.ranking_ = np.where(confirmed, 1, 2)
        if rejected.any():
            means = np.nanmean(self.importance_history_[:, rejected], axis=0)
            self.ranking_[rejected] = 2 + rankdata(-means, method="min")

    def _run(
        self, forest: Any, data: BinnedData, y: Any, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Play rounds until all features are decided: the confirmed and the rejected, bool[F]."""
        n, at_most = data.shape[1], int(self.max_iter)
        confirmed, rejected, hits = np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, np.int64)
        history: list[np.ndarray] = []
        best: list[float] = []
        with progress.stage("boruta"):
            while len(best) < at_most and not (confirmed | rejected).all():
                found, shadow = self._round(forest, data, y, ~rejected, len(best), seed)
                # a feature that no tree uses has 0, which may be more than five poor shadows have
                hits += np.nan_to_num(found, nan=-np.inf) > max(shadow, 0.0)
                history.append(found)
                best.append(shadow)
                more, less = decided(hits, len(best), self.alpha)
                undecided = ~(confirmed | rejected)
                confirmed |= more & undecided
                rejected |= less & undecided
                progress.report(len(best), at_most)
        self.importance_history_, self.shadow_max_ = np.array(history), np.array(best)
        return confirmed, rejected

    def _checked_forest(self) -> Any:
        forest = self.estimator
        if not isinstance(forest, ForestClassifier | ForestRegressor):
            kind = type(forest)
            raise TypeError(
                "BorutaSelector takes a RandomForest*, ExtraTrees* or Bagging* of gpuforest as "
                f"estimator, not a {kind.__name__} of {kind.__module__.partition('.')[0]}"
            )
        if self.importance in OUT_OF_BAG and not forest.bootstrap:
            raise ValueError(
                f"importance={self.importance!r} needs rows out of bag: set bootstrap=True of the "
                "estimator, or importance='impurity'"
            )
        return forest

    def _round(
        self, forest: Any, data: BinnedData, y: Any, left: np.ndarray, number: int, seed: int
    ) -> tuple[np.ndarray, float]:
        """The importances f64[F] of the features left, NaN of others, and the largest importance
        of their shadows."""
        key, features = round_key(seed, number), np.flatnonzero(left)
        codes, edges, sources = with_shadows(data.by_feature, data.edges, features, key)
        data = replace(data, by_feature=codes, edges=edges, feature_names=None)
        grown = clone(forest).set_params(random_state=int(hashing.hash_at(key, 0)[0] % 2**32))
        if getattr(forest, "monotonic_cst", None) is not None:
            grown.set_params(monotonic_cst=np.asarray(forest.monotonic_cst)[sources])
        grown.fit(data, y)
        if self.importance in OUT_OF_BAG:
            found = OUT_OF_BAG[self.importance](grown, data, y).importances_mean
        else:
            found = grown.feature_importances_
        importances = np.full(len(left), np.nan)
        importances[features] = found[: len(features)]
        return importances, float(found[len(features) :].max())

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _binned(forest: Any, X: Any, y: Any, seed: int) -> BinnedData:
    """X as the forest would bin it, and its names; X and y are checked as in the forest's fit."""
    if isinstance(X, BinnedData):
        return X
    forest = clone(forest)
    forest._validate_params()

    def work(backend: Backend) -> BinnedData:
        matrix = forest._prepared(FitData(X, y, None, seed, None), backend)[0].matrix
        codes = to_host(matrix.codes)[:, : matrix.edges.n_features]
        names = getattr(forest, "feature_names_in_", None)
        return BinnedData(
            by_feature=np.ascontiguousarray(codes.T),
            edges=matrix.edges,
            y=None,
            sample_weight=None,
            feature_names=None if names is None else names.tolist(),
            max_bins=forest.max_bins,
            categorical_features=forest.categorical_features,
            min_category_frequency=forest.min_category_frequency,
            seed=seed,
            dtype=np.dtype(np.float32),
        )

    found: BinnedData = run_on_backend(work, **forest._chosen(X))
    return found
