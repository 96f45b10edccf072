"""What tools read of scikit-learn's gradient boosting, from ours: its private attributes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


class Converted:
    """The trees of gradient boosting as scikit-learn has them: whole, and part by part."""

    _fitted_with_sw = False  # scikit-learn's name: whether rows were weighted

    def to_sklearn(self) -> Any:
        """The same trees as a fitted estimator of scikit-learn; see `export.sklearn_boosting`."""
        from gpuforest.export.sklearn_boosting import to_sklearn

        return to_sklearn(self)

    @cached_property
    def _converted_(self) -> Any:
        check_is_fitted(self)
        return self.to_sklearn()

    @property
    def _predictors(self) -> Any:
        return self._converted_._predictors

    @property
    def _baseline_prediction(self) -> Any:
        return self._converted_._baseline_prediction

    @property
    def _bin_mapper(self) -> Any:
        return self._converted_._bin_mapper

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> np.ndarray:
        """Called by `sklearn.inspection.partial_dependence(method="recursion")`."""
        from gpuforest.export.sklearn_boosting import partial_dependence

        if self._fitted_with_sw:
            raise NotImplementedError(
                f"{type(self).__name__} does not support partial dependence plots with the "
                "'recursion' method when sample weights were given during fit time: pass "
                "method='brute'."
            )
        return partial_dependence(self, grid, target_features)
