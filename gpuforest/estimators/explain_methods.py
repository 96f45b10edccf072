"""The methods of estimators that explain their predictions: SHAP values and reports."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.registry import run_on_backend
from gpuforest.common import progress
from gpuforest.common.arguments import thread_count
from gpuforest.common.imports import deferred
from gpuforest.data.validation import check_table
from gpuforest.estimators.fit_scope import snapshot
from gpuforest.estimators.memory import room_of
from gpuforest.explain import shap

write_report = deferred("gpuforest.tools.report.page", "write_report")


def shap_values(self: Any, X: Any, *, background: Any = None) -> np.ndarray:
    """SHAP values: what each feature adds to the prediction of each row.

    The values of a row and `expected_value_` add up to what the forest predicts: the
    probabilities of the classes, the numbers of a regression, the raw predictions of gradient
    boosting, or the shares of the trees' votes. With a background, they and
    `expected_value(background)` do. See docs/explanations.md.

    Returns
    -------
    float64 ndarray of shape (n_samples, n_features), or (n_samples, n_features, n_outputs)
        if the prediction has several numbers, such as the classes' probabilities; equal to the
        values of shap's TreeExplainer

    Raises
    ------
    ValueError
        A forest that splits by combinations of features; an `AdaBoostRegressor`; a background
        without rows, or of other features.
    TypeError
        An ensemble of other estimators than gpuforest's trees, or one without predictions.

    References
    ----------
    Lundberg et al. (2020), "From local explanations to global understanding with explainable
    AI for trees". Wettenstein, Mitchell and Yu (2026), "Quadrature-TreeSHAP",
    arXiv 2605.04497.
    """
    return _explained(self, X, shap.shap_values, background)


def shap_interaction_values(self: Any, X: Any) -> np.ndarray:
    """How the SHAP values of each row come from features alone, and from pairs of them.

    The sum over one of the features is `shap_values`. The items [f, g] and [g, f] share the
    interaction of two features equally; the items [f, f] are the effects of single features.
    The values are path-dependent.

    Returns
    -------
    float64 ndarray of shape (n_samples, n_features, n_features), or (n_samples, n_features,
        n_features, n_outputs) if the prediction has several numbers

    Raises
    ------
    ValueError, TypeError
        As of `shap_values`.
    """
    return _explained(self, X, shap.shap_interactions)


def to_shap(self: Any, X: Any, *, background: Any = None) -> Any:
    """The SHAP values as an explanation of the package shap, for its plots.

    Returns
    -------
    shap.Explanation

    Raises
    ------
    ImportError
        The package shap is not installed.
    ValueError, TypeError
        As of `shap_values`.
    """
    try:
        from shap import Explanation
    except ImportError as error:
        why = "to_shap needs the package shap: pip install 'gpuforest[shap]'"
        raise ImportError(why) from error
    values = self.shap_values(X, background=background)
    mean = self.expected_value_ if background is None else self.expected_value(background)
    base = np.broadcast_to(mean, values.shape[:1] + values.shape[2:]).copy()
    names = [*getattr(self, "feature_names_in_", ())] or None
    return Explanation(values, base, np.asarray(X), feature_names=names)


def report(
    self: Any, X: Any = None, y: Any = None, path: str | os.PathLike[str] | None = None
) -> str | None:
    """A report on the fitted model for people, as one HTML file that loads nothing.

    It has the settings, sizes of the trees and importances. For the rows X it adds scores with
    intervals, errors by class or residuals, curves, partial dependence, and the differences from
    the training rows. See docs/report.md.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features), default=None
        Rows that were not in the training; None: the report is about the model alone.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Their targets; None: the report has no scores.
    path : str or path, default=None
        The file to write, which is replaced as a whole or not at all.

    Returns
    -------
    str, the HTML; None where it is written to a file

    Raises
    ------
    ValueError
        Rows that `predict` refuses, y without X, a wrong length of y, no known class in y.
    TypeError
        An ensemble of other estimators than gpuforest's trees.
    OSError
        The file cannot be written.
    """
    return write_report(self, X, y, path)  # type: ignore[no-any-return]


def expected_value_(self: Any) -> Any:
    """The prediction where no feature is known: a float, or f64[n_outputs] where predictions
    have several numbers. See `shap_values`."""
    check_is_fitted(self)
    try:
        check_explained(self)
        means = run_on_backend(partial(shap.expected, self.forest_), self.backend)
    except (TypeError, ValueError) as error:  # there are no SHAP values: `hasattr` is False
        raise AttributeError(str(error)) from error
    return float(means[0]) if len(means) == 1 else means


def expected_value(self: Any, background: Any) -> Any:
    """The mean prediction of the rows of a background.

    Added to `shap_values(X, background=background)` it gives the predictions.

    Returns
    -------
    float, or float64 ndarray of shape (n_outputs,) if predictions have several numbers

    Raises
    ------
    ValueError, TypeError
        As of `shap_values`.
    """
    check_explained(self)
    model: Any = snapshot(self)

    def work(backend: Any) -> np.ndarray:
        rows = check_background(model, background, backend)
        return shap.background_mean(model.forest_, rows, backend)

    means = run_on_backend(work, **self._chosen(background))
    return float(means[0]) if len(means) == 1 else means


def _explained(
    self: Any, X: Any, explain: Callable[..., np.ndarray], background: Any = None
) -> np.ndarray:
    """The SHAP values of X's rows that a function computes, without an axis for a single output."""
    check_explained(self)
    model: Any = snapshot(self)

    def work(backend: Any) -> np.ndarray:
        table = check_table(model, X, backend)
        with progress.stage("explaining"):
            if background is None:
                return explain(model.forest_, table, backend)
            rows = check_background(model, background, backend)
            return shap.background_values(model.forest_, rows, table, backend, room_of(model))

    # n_rows=0: the CPU explains, so data on the host are binned there too. A row is much work
    here = {"n_rows": 0, "n_threads": thread_count(getattr(self, "n_jobs", 1))}
    values = run_on_backend(work, **self._chosen(X) | here)
    return np.asarray(values[..., 0] if values.shape[-1] == 1 else values)


def check_background(estimator: Any, background: Any, backend: Any) -> Any:
    """The rows of a background as `check_table` has them; its errors name the background."""
    try:
        return check_table(estimator, background, backend)
    except TypeError as error:
        raise TypeError(f"background: {error}") from error
    except ValueError as error:
        raise ValueError(f"background: {error}") from error


def check_explained(estimator: Any) -> None:
    """Raise an error for an estimator without SHAP values."""
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if not hasattr(estimator, "forest_"):
        raise TypeError(
            f"this {name} holds other estimators than gpuforest's trees, which alone have "
            "SHAP values here: explain them with the package shap"
        )
    if not hasattr(estimator, "predict"):
        raise TypeError(f"a {name} predicts nothing, so there is nothing to explain")
