"""What estimators offer besides predictions: SHAP values and reports; proximities, importances out
of bag, and how sure forests are."""

import os
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends import numpy, registry
from gpuforest.backends.base import Backend
from gpuforest.common import arguments, imports, progress
from gpuforest.core.forest import Forest
from gpuforest.data.arrays import to_host
from gpuforest.data.validation import check_table
from gpuforest.estimators import fit_scope, out_of_bag
from gpuforest.estimators.memory import room_of
from gpuforest.explain import proximities, quantile_forest, shap, uncertainty
from gpuforest.growing import predict as prediction
from gpuforest.growing.bags import drawn_rows

write_report = imports.deferred("gpuforest.tools.report.page", "write_report")


def shap_values(self: Any, X: Any, *, background: Any = None) -> np.ndarray:
    """SHAP values: what each feature adds to the prediction of each row.

    The values of a row and `expected_value_` add up to what the forest predicts: the
    probabilities of the classes, the numbers of a regression, the raw predictions of gradient
    boosting, or the shares of the trees' votes. With a background, they and
    `expected_value(background)` do. See docs/explanations.md.

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
    """
    return _explained(self, X, shap.shap_interactions)


def to_shap(self: Any, X: Any, *, background: Any = None) -> Any:
    """The SHAP values as an explanation of the package shap, for its plots."""
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
    """
    return write_report(self, X, y, path)  # type: ignore[no-any-return]


def expected_value_(self: Any) -> Any:
    """The prediction where no feature is known: a float, or f64[n_outputs] where predictions
    have several numbers. See `shap_values`."""
    check_is_fitted(self)
    try:
        check_explained(self)
        means = registry.run_on_backend(partial(shap.expected, self.forest_), self.backend)
    except (TypeError, ValueError) as error:  # there are no SHAP values: `hasattr` is False
        raise AttributeError(str(error)) from error
    return float(means[0]) if len(means) == 1 else means


def expected_value(self: Any, background: Any) -> Any:
    """The mean prediction of the rows of a background.

    Added to `shap_values(X, background=background)` it gives the predictions.
    """
    check_explained(self)
    model: Any = fit_scope.snapshot(self)

    def work(backend: Any) -> np.ndarray:
        rows = check_background(model, background, backend)
        shap.refuse(model.forest_)
        predicted = to_host(prediction.predict(model.forest_, rows, backend))
        return np.asarray(predicted.mean(axis=0))

    means = registry.run_on_backend(work, **self._chosen(background))
    return float(means[0]) if len(means) == 1 else means


def _explained(
    self: Any, X: Any, explain: Callable[..., np.ndarray], background: Any = None
) -> np.ndarray:
    """The SHAP values of X's rows that a function computes, without an axis for a single output."""
    check_explained(self)
    model: Any = fit_scope.snapshot(self)

    def work(backend: Any) -> np.ndarray:
        table = check_table(model, X, backend)
        with progress.stage("explaining"):
            if background is None:
                return explain(model.forest_, table, backend)
            rows = check_background(model, background, backend)
            return shap.background_values(model.forest_, rows, table, backend, room_of(model))

    # n_rows=0: the CPU explains, so data on the host are binned there too. A row is much work
    here = {"n_rows": 0, "n_threads": arguments.thread_count(getattr(self, "n_jobs", 1))}
    values = registry.run_on_backend(work, **self._chosen(X) | here)
    return np.asarray(values[..., 0] if values.shape[-1] == 1 else values)


def check_background(estimator: Any, background: Any, backend: Any) -> Any:
    """The rows of a background as `check_table` has them; its errors name the background."""
    try:
        return check_table(estimator, background, backend)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"background: {error}") from error


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


def estimators_samples_(self: Any) -> list[np.ndarray]:
    """Rows of each tree's bag, ascending int32, repeated as often as they were drawn.

    They are drawn again from the seed. Bagging* and IsolationForest from files do not know them.
    Rows of other estimators stand in the order in which they were drawn.
    """
    if not hasattr(self, "_sampling_"):
        raise AttributeError("estimators_samples_ is known only to the estimator that was fitted")
    sampling, forest, host = self._sampling_, self.forest_, numpy.NumpyBackend()
    pool = getattr(self, "_pool", None)  # of isolation forests: the rows that trees draw from
    rows = (np.arange(sampling.n_rows) if pool is None else pool).astype(np.int32)  # MAX_ROWS fit
    if not sampling.n_draws:
        return [rows] * forest.n_trees
    return [rows[drawn_rows(sampling, forest.seed, t, host)] for t in range(forest.n_trees)]


def proximity(self: Any, X: Any, Y: Any = None, oob: bool = False) -> Any:
    """The share of trees in which two rows reach the same leaf.

    A pair that shares a leaf takes 12 bytes of memory. Larger leaves have more pairs.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001; L. Breiman and A. Cutler, "Manual
    on setting up, using, and understanding random forests V4.0", 2003.
    """
    leaves, out = _leaves(self, X), None
    if oob and Y is not None:
        raise ValueError("oob=True is for the training rows among themselves: omit Y")
    if oob:
        sampling = out_of_bag.known_bags(self)
        out_of_bag.check_rows(sampling, len(leaves))
        out = ~quantile_forest.in_bag(self.forest_, sampling)
    others = leaves if Y is None else _leaves(self, Y)
    blocks = [block for _, block in proximities.proximity_blocks(leaves, others, out)]
    return sparse.vstack(blocks, format="csr")


def neighbours(self: Any, X: Any, k: int = 5, Y: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of Y that are most similar to each row by proximity.

    Returns
    -------
    proximities : float64 array of shape (n_samples, k), falling
    indices : int64 array of shape (n_samples, k), rows of Y; -1, with a proximity of 0, where
        fewer rows share a leaf
    """
    if k < 1:
        raise ValueError(f"k={k} neighbours are none: pass 1 or more")
    leaves = _leaves(self, X)
    return proximities.nearest(leaves, leaves if Y is None else _leaves(self, Y), k, same=Y is None)


def _leaves(self: Any, X: Any) -> np.ndarray:
    """The leaf of each row in each tree, i64[N, T], as numbers among the nodes of all trees."""
    return np.asarray(to_host(self._walk(X, prediction.apply)) + self.forest_.tree_offsets[:-1])


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


def known_errors(estimator: Any, what: str, coverage: Any) -> uncertainty.Calibration:
    """The calibration for a method of this name; a ValueError says why there is none."""
    check_is_fitted(estimator)
    if isinstance(coverage, bool) or not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
        raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1")
    if not hasattr(estimator, "forest_"):
        raise ValueError(f"{what} needs trees of gpuforest, not those of another estimator")
    if hasattr(estimator, "_calibration_"):
        return estimator._calibration_  # type: ignore[no-any-return]
    if not getattr(estimator, "bootstrap", True):
        raise ValueError(
            f"{what} is calibrated on rows that trees did not draw, and with bootstrap=False every "
            "tree has all rows: fit with bootstrap=True and oob_score=True"
        )
    raise ValueError(f"{what} is calibrated on out-of-bag predictions: fit with oob_score=True")


def predict_set(self: Any, X: Any, coverage: float = 0.9) -> Any:
    """Sets of classes that hold the true class with the given frequency.

    A class belongs to the set if its probability reaches a limit, which comes from the
    out-of-bag probabilities of the training rows' true classes. The likeliest class is
    always in the set. Sets of several classes mark rows that the forest is unsure about.

    Notes
    -----
    `RandomForestRegressor.predict_interval` states the guarantee and its limits. The coverage
    is over all rows, not within each class. If the accuracy is above the coverage, each set has
    one class, and the true coverage is higher.
    """
    calibration = known_errors(self, "predict_set", coverage)
    probabilities, coding = to_host(self._walk(X, prediction.predict)), self.forest_.coding
    limits = calibration.limit(coverage)
    parts = zip(limits, coding.split(probabilities), strict=True)
    of_outputs = [uncertainty.sets(limit, part) for limit, part in parts]
    return of_outputs if coding.several else of_outputs[0]


def predict(self: Any, X: Any, return_std: bool = False) -> Any:
    """The mean over the trees of what their leaves predict.

    Parameters
    ----------
    return_std : bool, default=False
        Also return the standard errors of the predictions: their variation between forests
        grown from other training rows. `predict_interval` gives intervals for targets.

    Returns
    -------
    float64 array of shape (n_samples,) or (n_samples, n_outputs), on a GPU where X is on one;
    with return_std a tuple of it and of a float64 ndarray of the same shape

    Raises
    ------
    ValueError
        Other features than in training, infinities, no numbers; X on another GPU than the
        current one; return_std without bootstrap, or with too little memory.

    Notes
    -----
    The standard errors come from the infinitesimal jackknife with the correction for a finite
    number of trees (S. Wager, T. Hastie and B. Efron, "Confidence intervals for random
    forests: the jackknife and the infinitesimal jackknife", JMLR 15, 2014). The correction
    removes noise only on average: take hundreds of trees, and more for more rows. A negative
    corrected variance becomes 0.
    """
    model = fit_scope.snapshot(self) if return_std else self
    means = prediction.flat(model._walk(X, prediction.predict))
    if not return_std:
        return means
    products = model._products_

    def stage(forest: Forest, table: Any, backend: Backend) -> np.ndarray:
        return uncertainty.standard_errors(forest, model._sampling_, products, table, backend)

    return means, prediction.flat(to_host(model._walk(X, stage)))


def products_of(self: Any) -> np.ndarray:
    """See `products`; computed when standard errors are first needed."""
    sampling = getattr(self, "_sampling_", None)
    if sampling is None:
        raise ValueError("return_std needs the draws of rows, which this model file lacks")
    if not sampling.n_draws or sampling.distinct or sampling.rate:
        raise ValueError(
            "return_std compares trees that drew rows more or less often, with replacement: "
            "fit with bootstrap=True"
        )
    needed, room = uncertainty.products_bytes(self.forest_, sampling), room_of(self)
    if room is not None and needed > room:
        raise ValueError(
            f"return_std draws the rows of all trees again, {self.forest_.n_trees} times "
            f"{sampling.n_rows}, which takes {needed / 1e6:.0f} MB, and there are "
            f"{room / 1e6:.0f} MB: raise memory_limit, or train on fewer rows"
        )
    return uncertainty.products(self.forest_, sampling)


def predict_interval(self: Any, X: Any, coverage: float = 0.9) -> np.ndarray:
    """Intervals that hold the true target with the given frequency.

    An interval is the prediction plus and minus c * s. For each row, s is the standard
    deviation of the trees' predictions (plus half of its mean over the training rows). For
    each training row, the ratio is the distance of the target from its out-of-bag prediction
    divided by its s; c is a quantile of these ratios.

    Notes
    -----
    The coverage over all rows would be exact if training and new rows were exchangeable (drawn
    alike, in any order), and out-of-bag predictions as good as predictions of new rows. They
    come from fewer trees and are a little worse, so intervals are a little wide. Nothing is
    guaranteed for single rows, for groups of rows, for all outputs at once, or for new rows
    that differ from the training rows, such as rows of later times. Sample weights do not
    weigh the rows here. See docs/uncertainty.md.

    References
    ----------
    U. Johansson, H. Bostrom, T. Lofstrom and H. Linusson, "Regression conformal prediction
    with random forests", Machine Learning 97, 2014.
    """
    calibration = known_errors(self, "predict_interval", coverage)

    def stage(forest: Forest, table: Any, backend: Backend) -> np.ndarray:
        predicted = to_host(prediction.predict(uncertainty.with_squares(forest), table, backend))
        mean, spread = uncertainty.mean_and_spread(forest, predicted)
        return uncertainty.intervals(calibration, mean, spread, coverage)

    return np.asarray(prediction.flat(to_host(self._walk(X, stage))))
