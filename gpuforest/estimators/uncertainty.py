"""How sure a forest is: intervals, sets of classes and standard errors."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.data.arrays import to_host
from gpuforest.engine import predict as prediction
from gpuforest.engine.forest import Forest
from gpuforest.estimators.fits import as_it_is
from gpuforest.estimators.memory import room_of
from gpuforest.estimators.tasks import Regressor
from gpuforest.explain.uncertainty import (
    Calibration,
    intervals,
    mean_and_spread,
    products,
    products_bytes,
    sets,
    standard_errors,
    with_squares,
)


def known_errors(self: Any, what: str, coverage: Any) -> Calibration:
    """The calibration for a method of this name.

    Raises
    ------
    ValueError : there is none, or a coverage that is none
    """
    check_is_fitted(self)
    if isinstance(coverage, bool) or not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
        raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1")
    if not hasattr(self, "forest_"):
        raise ValueError(f"{what} needs trees of gpuforest, not those of another estimator")
    if not hasattr(self, "_calibration_"):
        if not getattr(self, "bootstrap", True):
            raise ValueError(
                f"{what} is calibrated on rows that trees did not draw, and with "
                "bootstrap=False every tree has all rows: fit with bootstrap=True and "
                "oob_score=True"
            )
        raise ValueError(f"{what} is calibrated on out-of-bag predictions: fit with oob_score=True")
    calibration: Calibration = self._calibration_
    return calibration


def predict_set(self: Any, X: Any, coverage: float = 0.9) -> Any:
    """The classes that may be true: sets that hold the true class as often as asked.

    A class belongs to the set if its probability is not below a limit, which the
    out-of-bag probabilities of the training rows' true classes set; the likeliest class
    always does. Sets of several classes mark rows that the forest is unsure about.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
    coverage : float, default=0.9
        Share of new rows, of the kind of the training rows, whose set has their class.

    Returns
    -------
    bool ndarray of shape (n_samples, n_classes), in the order of `classes_`; a list of
    them, one for each of several outputs

    Raises
    ------
    ValueError
        The forest was fitted without oob_score=True, or grows without bootstrap.

    Notes
    -----
    The guarantee and its limits are those of `RandomForestRegressor.predict_interval`. The
    coverage is over all rows, and not within each class. If the forest is right more often
    than asked, sets have one class, and cover more.
    """
    known = known_errors(self, "predict_set", coverage)
    found, coding = to_host(self._walk(X, prediction.predict)), self.forest_.coding
    limits = known.limit(coverage)
    parts = coding.split(found) if coding.several else [found]
    each = [sets(limit, part) for limit, part in zip(limits, parts, strict=True)]
    return each if coding.several else each[0]


def predict_with_std(self: Any, X: Any, return_std: bool = False) -> Any:
    """Mean over the trees of the mean target in the leaves, or of the median.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
    return_std : bool, default=False
        Return the standard errors of the predictions as well: how much they would vary if
        the forest were grown from other training rows. They say nothing of how far single
        targets lie from their mean: see `predict_interval`.

    Returns
    -------
    float64 array of shape (n_samples,) or (n_samples, n_outputs); on a GPU where X is on
    one. With return_std, a tuple of it and of a float64 ndarray of the same shape

    Raises
    ------
    ValueError
        Other features than in training, infinities, no numbers; X on another GPU
        than the current one; return_std without bootstrap, or where it takes more memory
        than `memory_limit` allows or the machine has.

    Notes
    -----
    Standard errors are those of the infinitesimal jackknife with the correction for a finite
    number of trees (S. Wager, T. Hastie and B. Efron, "Confidence intervals for random
    forests: the jackknife and the infinitesimal jackknife", JMLR 15, 2014). The correction
    takes away noise in the mean only: take hundreds of trees, and more for more rows; 0 is
    returned where less than nothing was left.
    """
    if not return_std:
        return Regressor.predict(self, X)
    model = as_it_is(self)
    found, products_ = Regressor.predict(model, X), model._products_

    def stage(forest: Forest, table: Any, backend: Backend) -> np.ndarray:
        return standard_errors(forest, model._sampling_, products_, table, backend)

    errors = to_host(model._walk(X, stage))
    return found, errors[:, 0] if model.n_outputs_ == 1 else errors


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
    needed, room = products_bytes(self.forest_, sampling), room_of(self)
    if room is not None and needed > room:
        raise ValueError(
            f"return_std draws the rows of all trees again, {self.forest_.n_trees} times "
            f"{sampling.n_rows}, which takes {needed / 1e6:.0f} MB, and there are "
            f"{room / 1e6:.0f} MB: raise memory_limit, or train on fewer rows"
        )
    return products(self.forest_, sampling)


def predict_interval(self: Any, X: Any, coverage: float = 0.9) -> np.ndarray:
    """Intervals that hold the true target as often as asked.

    An interval is the prediction, plus and minus a multiple of the standard deviation s of
    the trees' predictions for the row (and half of its mean over the training rows). The
    multiple is a quantile, over the training rows, of the same ratio: the distance of the
    target from its out-of-bag prediction, over their own s.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
    coverage : float, default=0.9
        Share of new rows, of the kind of the training rows, whose interval has their target.

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
    If training and new rows are exchangeable (drawn alike, in any order), and out-of-bag
    predictions were as good as those for new rows, the coverage over all rows would be exact.
    They are a little worse, because fewer trees give them: intervals are a little wide. There
    is no guarantee for single rows or groups of rows, none for each output together with
    the others, and none where new rows differ from the training rows, such as later times.
    Rows count alike, whatever their sample weights. See docs/uncertainty.md.

    References
    ----------
    U. Johansson, H. Bostrom, T. Lofstrom and H. Linusson, "Regression conformal prediction
    with random forests", Machine Learning 97, 2014.
    """
    known = known_errors(self, "predict_interval", coverage)

    def stage(forest: Forest, table: Any, backend: Backend) -> np.ndarray:
        found = to_host(prediction.predict(with_squares(forest), table, backend))
        return intervals(known, *mean_and_spread(forest, found), coverage)

    ends: np.ndarray = to_host(self._walk(X, stage))
    return ends[:, 0] if self.n_outputs_ == 1 else ends
