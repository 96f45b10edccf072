"""Unbiased importances as an attribute of forests that were asked for them at fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.common import progress
from gpuforest.engine.records import Training
from gpuforest.explain.unbiased import unbiased_importances


def unbiased_feature_importances_(self: Any) -> Any:
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


def keep_unbiased_importances(self: Any, training: Training) -> None:
    """Set what `unbiased_feature_importances_` gives."""
    y, sampling, backend = training.target.y, training.sampling, training.backend
    with progress.stage("importances"):
        found = unbiased_importances(self.forest_, training.matrix, y, sampling, backend)
    known = found[:, ~np.isnan(found[0])]
    if known.shape[1]:
        self._unbiased_importances_ = known.mean(axis=1)
        return
    warnings.warn(
        "No row is out of any bag, so unbiased importances are unknown (NaN): lower max_samples",
        UserWarning,
        stacklevel=2,
    )
    self._unbiased_importances_ = np.full(len(found), np.nan)
