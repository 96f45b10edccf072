"""Quantile regression forests (Meinshausen 2006)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.arrays import to_host
from gpuforest.backends.base import Backend
from gpuforest.criteria import CRITERIA
from gpuforest.data.validation import check_numbers
from gpuforest.estimators.ensembles import ForestRegressor
from gpuforest.estimators.refit import as_it_is
from gpuforest.estimators.settings import current_criterion, keep
from gpuforest.forest import Forest
from gpuforest.inspection.quantile_forest import (
    Distribution,
    TrainingRows,
    encoded,
    in_bag,
)
from gpuforest.kernels.quantiles.members import HIGHER, INVERTED, LINEAR, LOWER, MEAN
from gpuforest.target import CheckedTarget
from gpuforest.training import Training

# how `quantiles` is asked for an interpolation; the mean of the answers is taken
WAYS = {
    "linear": (LINEAR,),
    "lower": (LOWER,),
    "higher": (HIGHER,),
    "midpoint": (LOWER, HIGHER),
    "inverted_cdf": (INVERTED,),
}
KINDS = ("rank", "weak", "strict", "mean")


class QuantileForest(ForestRegressor):
    """Predictions of a forest that keeps its training rows."""

    default_quantiles: Any
    max_samples_leaf: int | float | None
    monotonic_cst: Any
    _rows_: TrainingRows

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ForestRegressor._parameter_constraints,
        "default_quantiles": [
            Interval(Real, 0.0, 1.0, closed="both"),
            "array-like",
            StrOptions({"mean"}),
            None,
        ],
        "max_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            None,
        ],
    }

    def _validate_params(self) -> None:
        super()._validate_params()
        _asked(self.default_quantiles)
        if self.monotonic_cst is not None:
            raise ValueError(
                "monotonic_cst bounds the means of leaves and no quantiles: leave it out, or take "
                "RandomForestRegressor or ExtraTreesRegressor for monotonic means"
            )

    def _prepared(self, data: Any, backend: Backend) -> tuple[Training, Any, CheckedTarget]:
        training, settings, checked = super()._prepared(data, backend)
        codes = training.backend.asnumpy(training.matrix.codes)[:, : training.n_features]
        y = np.array(to_host(checked.values), dtype=np.float64)
        self._rows_ = TrainingRows(codes, y.reshape(len(y), -1), training.sampling)
        return training, settings, checked

    def predict(
        self,
        X: Any,
        quantiles: Any = None,
        *,
        interpolation: str = "linear",
        oob_score: bool = False,
        indices: Any = None,
    ) -> Any:
        """Quantiles of the targets that the training rows in X's leaves have.

        A training row's weight is the mean over the trees of its share in the leaf that the row
        of X reaches: how often the tree drew it, over the draws of all rows in the leaf.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        quantiles : float, list of float or "mean", default=None
            From 0 to 1; "mean": the weighted mean of the targets; None: `default_quantiles`.
        interpolation : str, default="linear"
            "linear", "lower", "higher" and "midpoint": where all draws weigh the same, as
            `numpy.quantile` of the list of all draws. In general, with D draws, the quantile q
            is the mean of the inverse of the distribution function over the window from
            q (D - 1) / D to (q (D - 1) + 1) / D; its value where this begins; where it ends;
            or the middle of these two. "inverted_cdf": the least target at which the distribution
            function reaches q, which is Meinshausen's definition.
        oob_score : bool, default=False
            Take only trees that did not draw a row; X holds the training rows in their order.
            NaN, with a warning, for rows that every tree drew.
        indices : array-like of int of shape (n_samples,), default=None
            With oob_score, the numbers of the training rows that X holds; -1: a row that is none.

        Returns
        -------
        float64 array of shape (n_samples,), (n_samples, n_quantiles), (n_samples, n_outputs) or
        (n_samples, n_outputs, n_quantiles); on a GPU where X is on one

        Raises
        ------
        ValueError
            What other estimators refuse; quantiles out of range; oob_score without bootstrap.

        Notes
        -----
        Weights are integers whose rounding is below 2**-31 of a leaf, so their sums, and with
        them all results, are the same on every backend and with any number of threads.
        """
        check_is_fitted(self)
        q = _asked(self.default_quantiles if quantiles is None else quantiles)
        if interpolation not in WAYS:
            raise ValueError(f"interpolation={interpolation!r} is unknown; there are {[*WAYS]}")
        self = as_it_is(self)
        ways = (MEAN,) if q is None else WAYS[interpolation]
        levels = np.zeros(1) if q is None else q

        def stage(forest: Forest, table: Any, backend: Backend) -> np.ndarray:
            asked = self._distribution(table, oob_score, indices, backend)
            parts = [asked.quantiles(table, levels, how, backend) for how in ways]
            return parts[0] if len(parts) == 1 else (parts[0] + parts[1]) / 2

        found = self._walk(X, stage)
        found = found[:, :, 0] if found.shape[2] == 1 else found
        return found[:, 0] if found.shape[1] == 1 else found

    def quantile_ranks(
        self, X: Any, y: Any, *, kind: str = "rank", oob_score: bool = False, indices: Any = None
    ) -> np.ndarray:
        """The rank of each target among those of the training rows in X's leaves.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        kind : {"rank", "weak", "strict", "mean"}, default="rank"
            "weak": the weight of targets that are not above y; "strict": of those below; "mean":
            the mean of both; "rank": the same and, where some target equals y, half the mean
            weight of a draw more, which is the mean rank of the equal ones.
        oob_score, indices : as for `predict`

        Returns
        -------
        float64 ndarray of shape (n_samples,) or (n_samples, n_outputs), from 0 to 1
        """
        check_is_fitted(self)
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is unknown; there are {[*KINDS]}")
        self = as_it_is(self)

        def stage(forest: Forest, table: Any, backend: Backend) -> np.ndarray:
            known = check_numbers(y, table.shape[0], CRITERIA["squared_error"], backend)
            values = np.asarray(to_host(known.values), dtype=np.float64)
            values = values.reshape(len(values), -1)
            if values.shape[1] != self.n_outputs_:
                raise ValueError(f"y has {values.shape[1]} outputs, expected {self.n_outputs_}")
            asked = self._distribution(table, oob_score, indices, backend)
            return asked.ranks(table, values, kind, backend)

        found: np.ndarray = to_host(self._walk(X, stage))
        return found[:, 0] if self.n_outputs_ == 1 else found

    def _distribution(
        self, table: Any, oob_score: bool, indices: Any, backend: Backend
    ) -> Distribution:
        rows, skipped = self._rows_, None
        if oob_score:
            skipped = self._drawn(table, indices, backend)
            if skipped.all(axis=1).any():
                warnings.warn(
                    "Some inputs do not have OOB scores. This probably means too few trees were "
                    "used to compute any reliable OOB estimates.",
                    UserWarning,
                    stacklevel=5,
                )
        members = rows.members(self.forest_, self.max_samples_leaf, backend)
        return Distribution(self.forest_, rows, members, skipped)

    def _drawn(self, table: Any, indices: Any, backend: Backend) -> np.ndarray:
        """Which trees drew the training rows that X holds, bool[n, T]."""
        rows = self._rows_
        if not rows.sampling.n_draws:
            raise ValueError("Out-of-bag estimation only available if bootstrap=True.")
        n = table.shape[0]
        if indices is None:
            if n != len(rows.y):
                raise ValueError(
                    "If `indices` are None, OOB samples must be same length as training samples."
                )
            if not np.array_equal(encoded(table, self.forest_, backend), rows.codes):
                warnings.warn(
                    "OOB samples are not identical to training samples.", UserWarning, stacklevel=6
                )
            return in_bag(self.forest_, rows.sampling)
        at = np.asarray(indices)
        if at.shape != (n,):
            raise ValueError("If `indices` are not None, X and indices must be the same length.")
        if at.dtype.kind not in "iu" or not ((at >= -1) & (at < len(rows.y))).all():
            raise ValueError(f"indices must be integers from -1 to {len(rows.y) - 1}")
        return in_bag(self.forest_, rows.sampling, at)


def _asked(quantiles: Any) -> np.ndarray | None:
    """Quantiles f64[Q]; None: the mean.

    Raises
    ------
    ValueError : they are none
    """
    if quantiles is None or (isinstance(quantiles, str) and quantiles == "mean"):
        return None
    some = [quantiles] if np.ndim(quantiles) == 0 else list(quantiles)
    if some == ["mean"]:
        return None
    for q in some:
        if isinstance(q, bool) or not isinstance(q, Real) or not 0 <= float(q) <= 1:
            raise ValueError(f"Quantiles must be in the range [0, 1], got {q}.")
    if not some:
        raise ValueError("no quantiles are asked for: give a number from 0 to 1, or some")
    return np.array(some, dtype=np.float64)


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
