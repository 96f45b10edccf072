"""Quantile regression forests (Meinshausen 2006)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuforest.estimators.quantile_methods import QuantileForest
from gpuforest.estimators.settings import current_criterion, keep


class RandomForestQuantileRegressor(QuantileForest):
    """A random forest that predicts quantiles of real targets.

    Each tree grows as in `RandomForestRegressor`. A row is predicted by the distribution of the
    targets of the training rows that share its leaves; see `predict`, and docs/uncertainty.md.

    Parameters
    ----------
    default_quantiles : float, list of float, "mean" or None, default=0.5
        What `predict` gives unless it is asked for other quantiles; None: the mean.
    max_samples_leaf : int, float or None, default=None
        The most draws that a leaf keeps, chosen at random by a hash; a float is a fraction of the
        training rows; None: all. Without bootstrap it counts rows.
    monotonic_cst : None
        Refused, because the constraints bound means and no quantiles.
    n_estimators, criterion, max_depth, min_samples_split, min_samples_leaf
        As for `RandomForestRegressor`.
    min_weight_fraction_leaf, max_features, max_leaf_nodes, min_impurity_decrease, ccp_alpha
        As for `RandomForestRegressor`.
    categorical_features, min_category_frequency, categorical_split, feature_combinations
        As for `RandomForestRegressor`.
    combination_weights, bootstrap, max_samples, oob_score, unbiased_importances
        As for `RandomForestRegressor`.
    oob_tol, max_estimators
        As for `RandomForestRegressor`.
    random_state, warm_start, n_jobs, verbose, max_bins, backend, memory_limit
        As for `RandomForestClassifier`.

    Attributes
    ----------
    As of `RandomForestRegressor`.

    Notes
    -----
    The estimator keeps the bin codes and the targets of its training rows, also in pickles and
    model files: about n_samples * (n_features + 8 * n_outputs) bytes. The training rows of
    each leaf are found from these when they are first asked for, as 12 bytes a row and tree.

    With bootstrap, sample weights are the chances of rows to be drawn, and the draws are counted;
    without it, the weights themselves take the place of numbers of draws.

    References
    ----------
    N. Meinshausen, "Quantile regression forests", JMLR 7, 2006.
    """

    def __init__(
        self,
        n_estimators: int | str = 100,
        *,
        default_quantiles: Any = 0.5,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        max_samples_leaf: int | float | None = None,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = 1 / 3,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5,
        categorical_split: str = "subset",
        feature_combinations: float | None = None,
        combination_weights: str = "binary",
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        unbiased_importances: bool = False,
        oob_tol: float = 0.005,
        max_estimators: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        max_bins: int | str = "auto",
        backend: str = "auto",
        memory_limit: int | None = None,
    ) -> None:
        keep(self, locals() | {"criterion": current_criterion(criterion)})


class ExtraTreesQuantileRegressor(QuantileForest):
    """Extremely randomized trees that predict quantiles of real targets.

    Each tree grows as in `ExtraTreesRegressor`; predictions are those of
    `RandomForestQuantileRegressor`.

    Parameters
    ----------
    default_quantiles, max_samples_leaf, monotonic_cst
        As for `RandomForestQuantileRegressor`.
    max_features, bootstrap and others
        As for `ExtraTreesRegressor`.

    Attributes
    ----------
    As of `RandomForestRegressor`.
    """

    _splitter = "random"

    def __init__(
        self,
        n_estimators: int | str = 100,
        *,
        default_quantiles: Any = 0.5,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        max_samples_leaf: int | float | None = None,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5,
        categorical_split: str = "subset",
        feature_combinations: float | None = None,
        combination_weights: str = "binary",
        bootstrap: bool = False,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        unbiased_importances: bool = False,
        oob_tol: float = 0.005,
        max_estimators: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        max_bins: int | str = "auto",
        backend: str = "auto",
        memory_limit: int | None = None,
    ) -> None:
        keep(self, locals() | {"criterion": current_criterion(criterion)})
