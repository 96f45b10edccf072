"""Leaves of boosted trees are filled anew from other rows, round by round."""

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends import base, boosters, registry
from gpuforest.core.forest import Forest
from gpuforest.data import arrays, validation
from gpuforest.data.binned import BinnedData, FitInput
from gpuforest.estimators import fit_scope, prepare
from gpuforest.growing import boosted, edges


def refit_leaves(
    self: Any, X: Any, y: Any, sample_weight: Any = None, decay_rate: float = 0.0, *,
    groups: Any = None, exposure: Any = None,
) -> Any:  # fmt: skip
    """Fill the leaves anew from these rows, round by round: the splits stay.

    On the rows of a fit without early stopping this gives the same model, bit for bit. Leaves
    that no row reaches stay as they are. LightGBM calls it `refit`, which is a parameter here.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), with all classes of the fit
    sample_weight : array-like of shape (n_samples,), default=None
    decay_rate : float, default=0.0
        The share of its earlier value that each leaf keeps.
    groups, exposure : as in `fit`, default=None

    Raises
    ------
    ValueError
        The model was fitted with init_score or target statistics, or y has other classes. The
        model is then as it was.
    """
    check_is_fitted(self)
    if not isinstance(decay_rate, Real) or not 0 <= decay_rate <= 1:
        raise ValueError(f"decay_rate={decay_rate!r} must be a number from 0 to 1")
    model = clone(self).set_params(early_stopping=False, refit=False, warm_start=False)
    if isinstance(X, BinnedData):
        raise ValueError("leaves are filled from arrays and frames, and X is BinnedData")
    given = FitInput(X, y, sample_weight, groups, exposure=exposure)
    forest = _refilled(model, fit_scope.snapshot(self), given, float(decay_rate))
    with fit_scope.replacing(self) as fitted:
        known = ("n_features_in_", "feature_names_in_", "backend_", "do_early_stopping_")
        vars(fitted).update({n: v for n, v in vars(self).items() if n in known})
        fitted.train_score_ = fitted.validation_score_ = np.zeros(0)
        fitted._fitted_with_sw = sample_weight is not None
        fitted._keep(forest)
    return self


def _refilled(model: Any, fitted: Any, given: FitInput, decay_rate: float) -> Forest:
    """The forest of a fitted estimator, whose leaves take these rows; `model`: an estimator of the
    same parameters that stops at no round."""
    forest, backend = fitted.forest_, registry.get_host_backend(fitted._n_threads(1, 1))
    if forest.coding.has_offset or forest.edges.statistics:
        raise ValueError(
            "leaves are filled anew for models without init_score and target statistics: fit anew"
        )
    plan = prepare.prepare_rounds(model, given, None, forest.seed, backend)
    table = validation.check_table(fitted, given.X, backend)
    weight = None if given.sample_weight is None else arrays.to_host(given.sample_weight)
    if weight is not None:
        table = base.take_rows(table, np.flatnonzero(weight), backend)
    classes: list[Any] = [plan.train.classes, forest.coding.classes]
    if not np.array_equal(*classes):
        raise ValueError("y must have the classes of the fit, and all of them: fit anew")
    boosting = replace(plan.boosting, matrix=edges.bin_matrix(table, forest.edges, backend))
    refilling = boosters.Refilling(boosting, forest, decay_rate)
    raw, done = np.repeat(forest.baseline[:, None], boosting.n_rows, axis=1), list[Any]()
    for number in range(forest.n_trees // forest.coding.round_trees):
        done.append(refilling.round(raw, number))
        if done[-1] is None:
            raise ValueError("gradients lie beyond float64: divide y or the weights by a constant")
    return boosted.forest_of(done, forest.edges, forest.coding, forest.seed)
