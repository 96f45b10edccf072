"""Quantile regression forests (Meinshausen 2006): quantiles, ranks and proximities."""

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends import base, numpy, registry
from gpuforest.core.criteria import CRITERIA
from gpuforest.core.forest import Forest
from gpuforest.data import arrays
from gpuforest.data.validation import check_numbers, check_table
from gpuforest.estimators import ensembles, fit_scope, out_of_bag, params, task
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.explain.quantile_forest import WAYS, Distribution, TrainingRows, in_bag
from gpuforest.explain.shap import host_codes
from gpuforest.growing.bags import was_drawn

KINDS = ("rank", "weak", "strict", "mean")


class QuantileForest(ensembles.ForestRegressor):
    """Predictions of a forest that keeps its training rows."""

    _rows_: TrainingRows
    min_samples_leaf_ = property(ensembles.fewest_rows)
    _family = "quantiles"

    def _validate_params(self) -> None:
        super()._validate_params()
        _asked(self.default_quantiles)

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, sparse_pickle: bool = False, *,
        groups: Any = None, blocks: Any = None,
    ) -> Self:  # fmt: skip
        """Grow the trees and keep the training rows."""
        return super().fit(X, y, sample_weight, groups=groups, blocks=blocks)

    def _keep(self, forest: Forest, plan: TrainingPlan | None = None) -> None:
        super()._keep(forest, plan)
        if plan is not None:
            training, y = plan.training, np.array(task.host_target(plan.checked), dtype=np.float64)
            codes = plan.backend.asnumpy(training.matrix.codes)[:, : training.n_features]
            judged = {f: arrays.to_host(column) for f, column in training.matrix.judged.items()}
            self._rows_ = TrainingRows(codes, y, training.sampling, judged)

    def predict(
        self, X: Any, quantiles: Any = None, *, interpolation: str = "linear",
        weighted_quantile: bool = True, weighted_leaves: bool = True,
        aggregate_leaves_first: bool = True, oob_score: bool = False, indices: Any = None,
        duplicates: Any = None,
    ) -> Any:  # fmt: skip
        """Quantiles of the targets that the training rows in X's leaves have.

        A training row's weight is the mean over the trees of its share in the leaf that the row
        of X reaches: how often the tree drew it, over the draws of all rows in the leaf.

        Parameters
        ----------
        quantiles : float, list of float or "mean", default=None
            From 0 to 1; "mean": the weighted mean of the targets; None: `default_quantiles`.
        interpolation : str, default="linear"
            If all draws weigh the same, as `numpy.quantile` of the list of all draws. In general,
            with D draws, the inverse of the distribution function has a window from
            q (D - 1) / D to (q (D - 1) + 1) / D. "linear": its mean there; "lower", "higher": its
            first, its last value; "midpoint": the middle of both; "nearest": the one of both that
            is nearer to "linear", or the lower. "inverted_cdf": the least target at which the
            distribution function reaches q (Meinshausen's definition).
        weighted_quantile, weighted_leaves : bool, default=True
            If one is False, all draws weigh the same, so that larger leaves count for more.

        Notes
        -----
        Weights are integers, rounded by less than 2**-31 of a leaf, so all results are the same
        on every backend and with any number of threads.
        """
        check_is_fitted(self)
        q = _asked(self.default_quantiles if quantiles is None else quantiles)
        if interpolation not in WAYS:
            raise ValueError(f"interpolation={interpolation!r} is unknown; there are {[*WAYS]}")
        self = fit_scope.snapshot(self)
        by_tree, by_leaf = not aggregate_leaves_first, weighted_quantile and weighted_leaves

        def stage(forest: Forest, table: Any, backend: base.Backend) -> np.ndarray:
            table, targets = self._judged(table, oob_score, indices, duplicates, backend)
            return targets.quantiles(table, q, interpolation, backend, by_tree, by_leaf)

        values = self._walk(X, stage)
        values = values[:, :, 0] if values.shape[2] == 1 else values
        return values[:, 0] if values.shape[1] == 1 else values

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, quantiles: Any = None) -> float:
        """R2 of the predictions; of several outputs the mean, weighted by their variances."""
        q = _asked(self.default_quantiles if quantiles is None else quantiles)
        if q is not None and len(q) > 1:
            raise ValueError(f"a score is of one quantile, not of {len(q)}: pass quantiles=0.5")
        predicted = arrays.to_host(self.predict(X, "mean" if q is None else q[0]))
        how = "variance_weighted"
        return float(r2_score(y, predicted, sample_weight=sample_weight, multioutput=how))

    def quantile_ranks(
        self, X: Any, y: Any, *, kind: str = "rank", aggregate_leaves_first: bool = True,
        oob_score: bool = False, indices: Any = None, duplicates: Any = None,
    ) -> np.ndarray:  # fmt: skip
        """The rank of each target among those of the training rows in X's leaves."""
        check_is_fitted(self)
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is unknown; there are {[*KINDS]}")
        self = fit_scope.snapshot(self)

        def stage(forest: Forest, table: Any, backend: base.Backend) -> np.ndarray:
            checked = check_numbers(y, table.shape[0], CRITERIA["squared_error"], backend)
            values = task.host_target(checked).astype(np.float64)
            if values.shape[1] != self.n_outputs_:
                raise ValueError(f"y has {values.shape[1]} outputs, expected {self.n_outputs_}")
            table, targets = self._judged(table, oob_score, indices, duplicates, backend)
            return targets.ranks(table, values, kind, backend, not aggregate_leaves_first)

        ranks: np.ndarray = arrays.to_host(self._walk(X, stage))
        return ranks[:, 0] if self.n_outputs_ == 1 else ranks

    def proximity_counts(
        self, X: Any, max_proximities: int | None = None, return_sorted: bool = True, *,
        oob_score: bool = False, indices: Any = None, duplicates: Any = None,
    ) -> list[list[tuple[int, int]]]:  # fmt: skip
        """How many draws of each training row are in the leaves that rows reach.

        Returns
        -------
        list of n_samples lists of (number of the training row, count)
            Only rows with a draw in some leaf. Without bootstrap counts are sums of weights, as
            the integers that trees are grown with.
        """
        check_is_fitted(self)
        n = 1 if max_proximities is None else max_proximities
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"max_proximities={n!r} must be an integer from 1 on")
        self = fit_scope.snapshot(self)

        def work(backend: base.Backend) -> list[Any]:
            table = check_table(self, X, backend)
            table, targets = self._judged(table, oob_score, indices, duplicates, backend)
            return targets.proximity_counts(table, backend)

        pairs = []
        for row, count in registry.run_on_backend(work, **self._chosen(X)):
            order = np.argsort(-count, kind="stable")[:max_proximities]
            order = order if return_sorted else np.sort(order)
            pairs.append(list(zip(row[order].tolist(), count[order].tolist(), strict=True)))
        return pairs

    def _get_unsampled_indices(self, estimator: Any) -> np.ndarray:
        """The training rows that one of `estimators_` did not draw; quantile-forest's name."""
        sampling, host = self._rows_.sampling, numpy.NumpyBackend()
        return np.flatnonzero(~was_drawn(sampling, estimator.seed_, 0, 1, host)[0])

    def _judged(
        self, table: Any, oob_score: bool, indices: Any, duplicates: Any, backend: base.Backend
    ) -> tuple[Any, Distribution]:
        """The table as trees walk it, and the targets of the training rows in the leaves."""
        forest, rows, skipped = self.forest_, self._rows_, None
        if oob_score:
            if not rows.sampling.n_draws and not hasattr(self, "_judges_"):
                raise ValueError("Out-of-bag estimation only available if bootstrap=True.")
            forest, sampling = out_of_bag.evaluation_forest(self)
            if sampling.blocks is not None:
                rows = replace(rows, sampling=sampling)
            skipped = self._drawn(table, indices, duplicates, (forest, rows), backend)
            table = self._left_out(table, indices)
            if sampling.blocks is None and skipped.all(axis=1).any():
                out_of_bag.warn_of_rows_in_all_bags(stacklevel=5)
        members = rows.members(forest, self.max_samples_leaf, backend)
        return table, Distribution(forest, rows, members, skipped)

    def _left_out(self, table: Any, indices: Any) -> Any:
        """The table, where target statistics of training rows leave out the rows themselves."""
        edges, rows = self.forest_.edges, self._rows_
        if any(known.categories for known in edges.statistics.values()) and not rows.judged:
            raise ValueError(
                "this file does not hold how training rows with target statistics are judged out "
                "of bag: fit the forest again, the same random_state gives the same trees"
            )
        at = np.arange(len(rows.y)) if indices is None else np.asarray(indices).astype(np.int64)
        return rows.judging(table, at, edges) if rows.judged else table

    def _drawn(
        self, table: Any, indices: Any, duplicates: Any, judges: tuple[Forest, TrainingRows],
        backend: base.Backend,
    ) -> np.ndarray:  # fmt: skip
        """Which of the trees that judge drew the training rows that X holds, bool[n, T]."""
        (forest, rows), at = judges, None
        N = len(rows.y)
        if indices is not None:
            at = _rows_of(indices, "indices", -1, N)
            if at.shape != (table.shape[0],):
                raise ValueError(
                    "If `indices` are not None, X and indices must be the same length."
                )
        elif table.shape[0] != N:
            why = "If `indices` are None, OOB samples must be same length as training samples."
            raise ValueError(why)
        else:
            same = host_codes(table, forest, backend) == rows.codes
            same[:, [*forest.edges.statistics]] = True  # a table has the numbers of new rows
            if not same.all():
                warnings.warn("OOB samples are not identical to training samples.", stacklevel=6)
        bags = in_bag(forest, rows.sampling)
        for numbers in () if duplicates is None else duplicates:
            same = _rows_of(numbers, "duplicates", 0, N)
            bags[same] = bags[same].any(axis=0)
        return bags if at is None else np.asarray(bags[at] & (at >= 0)[:, None])


def _rows_of(numbers: Any, name: str, least: int, n_rows: int) -> np.ndarray:
    """Numbers of training rows as integers, i64[n]; a ValueError if they are others."""
    rows = np.asarray(numbers)
    if rows.dtype.kind == "f" and (rows == np.rint(rows)).all():
        rows = rows.astype(np.int64)
    if rows.dtype.kind not in "iu" or not ((rows >= least) & (rows < n_rows)).all():
        raise ValueError(f"{name} must be integers from {least} to {n_rows - 1}")
    return rows


def _asked(quantiles: Any) -> np.ndarray | None:
    """Quantiles f64[Q], or None for the mean; a ValueError if they are neither."""
    listed = [quantiles] if np.ndim(quantiles) == 0 else list(quantiles)
    if quantiles is None or listed == ["mean"]:
        return None
    for q in listed:
        if isinstance(q, bool) or not isinstance(q, Real) or not 0 <= float(q) <= 1:
            raise ValueError(f"Quantiles must be in the range [0, 1], got {q}.")
    if not listed:
        raise ValueError("no quantiles are asked for: give a number from 0 to 1, or some")
    return np.array(listed, dtype=np.float64)


@params.parameters(params.QUANTILE_FOREST, params.OF_NUMBERS, max_features=1 / 3)
class RandomForestQuantileRegressor(QuantileForest):
    """A random forest that predicts quantiles of real targets.

    Each tree grows as in `RandomForestRegressor`. The prediction for a row is the distribution of
    the targets of the training rows in its leaves; see `predict`, and docs/uncertainty.md.

    Notes
    -----
    The estimator keeps the bin codes and the targets of its training rows, also in pickles and
    model files: about n_samples * (n_features + 8 * n_outputs) bytes. From these it finds the
    training rows of each leaf when they are first needed, which takes 12 bytes a row and tree.

    With bootstrap, sample weights are the chances of rows to be drawn, and the draws are counted;
    without it, the weights themselves take the place of numbers of draws.

    References
    ----------
    N. Meinshausen, "Quantile regression forests", JMLR 7, 2006.
    """


@params.parameters(params.QUANTILE_FOREST, params.OF_NUMBERS, max_features=1.0, bootstrap=False)
class ExtraTreesQuantileRegressor(QuantileForest):
    """Extremely randomized trees that predict quantiles of real targets.

    Each tree grows as in `ExtraTreesRegressor`; predictions are those of
    `RandomForestQuantileRegressor`.
    """

    _splitter = "random"
