"""What forests offer besides predictions: proximities, unbiased importances, and how sure they
are."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends import base, numpy
from gpuforest.core.forest import Forest
from gpuforest.data.arrays import to_host
from gpuforest.estimators import fit_scope, memory, out_of_bag, predictors
from gpuforest.explain import proximities, quantile_forest, uncertainty
from gpuforest.growing import predict as prediction
from gpuforest.growing.bags import drawn_rows


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

    Parameters
    ----------
    Y : array-like or frame of shape (n_others, n_features); None: X
    oob : bool, default=False
        For training rows: count only the trees that drew neither row, because rows of a bag are
        nearer to each other and further from other rows.

    Returns
    -------
    float64 csr_array of shape (n_samples, n_others), from 0 to 1; no zeros are stored

    Raises
    ------
    ValueError
        oob=True with Y, without bags, with other data than in training, or for a `Bagging*`
        from a file, which does not know its bags.

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
    return proximities.proximity_matrix(leaves, leaves if Y is None else _leaves(self, Y), out)


def neighbours(self: Any, X: Any, k: int = 5, Y: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of Y that are most similar to each row by proximity.

    Parameters
    ----------
    k : int
    Y : array-like or frame of shape (n_others, n_features), such as the training data; None: the
        other rows of X

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
    leaves = to_host(self._walk(X, prediction.apply))
    return np.asarray(leaves + self.forest_.tree_offsets[:-1])


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
    """The calibration for a method of this name; a ValueError says why there is none, or what is
    wrong with the coverage."""
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

    Returns
    -------
    bool ndarray of shape (n_samples, n_classes), in the order of `classes_`, or a list with
    one for each of several outputs

    Raises
    ------
    ValueError
        The forest was fitted without oob_score=True, or grows without bootstrap.

    Notes
    -----
    `RandomForestRegressor.predict_interval` states the guarantee and its limits. The coverage
    is over all rows, not within each class. If the accuracy is above the coverage, each set has
    one class, and the true coverage is higher.
    """
    calibration = known_errors(self, "predict_set", coverage)
    probabilities, coding = to_host(self._walk(X, prediction.predict)), self.forest_.coding
    limits = calibration.limit(coverage)
    parts = coding.split(probabilities) if coding.several else [probabilities]
    of_outputs = [uncertainty.sets(limit, part) for limit, part in zip(limits, parts, strict=True)]
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
    if not return_std:
        return predictors.Regressor.predict(self, X)
    model = fit_scope.snapshot(self)
    means, products = predictors.Regressor.predict(model, X), model._products_

    def stage(forest: Forest, table: Any, backend: base.Backend) -> np.ndarray:
        return uncertainty.standard_errors(forest, model._sampling_, products, table, backend)

    errors = to_host(model._walk(X, stage))
    return means, errors[:, 0] if model.n_outputs_ == 1 else errors


def products_of(self: Any) -> np.ndarray:
    """See `products`; computed when standard errors are first needed."""
    sampling = getattr(self, "_sampling_", None)
    if sampling is None:
        raise ValueError("return_std needs the draws of rows, which this model file lacks")
    if not sampling.n_draws or sampling.distinct:
        raise ValueError(
            "return_std compares trees that drew rows more or less often, with replacement: "
            "fit with bootstrap=True"
        )
    needed, room = uncertainty.products_bytes(self.forest_, sampling), memory.room_of(self)
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

    Returns
    -------
    float64 ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2): lower and upper
    ends; infinite if fewer than coverage / (1 - coverage) rows were out of some bag

    Raises
    ------
    ValueError
        The forest was fitted without oob_score=True, or grows without bootstrap.

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

    def stage(forest: Forest, table: Any, backend: base.Backend) -> np.ndarray:
        predicted = to_host(prediction.predict(uncertainty.with_squares(forest), table, backend))
        mean, spread = uncertainty.mean_and_spread(forest, predicted)
        return uncertainty.intervals(calibration, mean, spread, coverage)

    ends: np.ndarray = to_host(self._walk(X, stage))
    return ends[:, 0] if self.n_outputs_ == 1 else ends
