"""Unbiased importances as an attribute of forests that were asked for them at fit."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.common import progress
from gpuforest.engine.target import CheckedTarget
from gpuforest.engine.training import Training
from gpuforest.estimators.base import BaseTrees
from gpuforest.explain.unbiased import unbiased_importances


class UnbiasedImportances(BaseTrees):
    """What splits gain for the rows out of bag. Forests do not keep rows, so a fit finds it."""

    unbiased_importances: bool = False
    _unbiased_importances_: np.ndarray

    @property
    def unbiased_feature_importances_(self) -> np.ndarray:
        """The means of `oob_impurity_importance`, f64[n_features]: 0 on average for features that
        say nothing. They do not add up to one, and may be negative."""
        check_is_fitted(self)
        if not hasattr(self, "_unbiased_importances_"):
            raise AttributeError(
                "unbiased_feature_importances_ is there after a fit with unbiased_importances="
                "True; gpuforest.oob_impurity_importance(forest, X, y) finds the same of a forest "
                "that is fitted"
            )
        return self._unbiased_importances_

    def _look_out_of_bag(self, training: Training, checked: CheckedTarget) -> None:
        super()._look_out_of_bag(training, checked)
        if not self.unbiased_importances:
            return
        y, sampling, backend = training.target.y, training.sampling, training.backend
        with progress.stage("importances"):
            found = unbiased_importances(self.forest_, training.matrix, y, sampling, backend)
        known = found[:, ~np.isnan(found[0])]
        if known.shape[1]:
            self._unbiased_importances_ = known.mean(axis=1)
            return
        warnings.warn(
            "No row is out of any bag, so unbiased importances are unknown (NaN): lower "
            "max_samples",
            UserWarning,
            stacklevel=2,
        )
        self._unbiased_importances_ = np.full(len(found), np.nan)
