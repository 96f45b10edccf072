"""Influence of training rows: what a forest would predict without each of them.

Each row is left out by a fit of all others; only what the row changes is grown, see
growing/left_out.py. Bins and fixed point stay those of the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuforest.backends import registry
from gpuforest.backends.base import Backend
from gpuforest.common import progress
from gpuforest.core.forest import Forest
from gpuforest.data import arrays
from gpuforest.data.binned import FitInput
from gpuforest.estimators import fit_scope, forgetting, kept
from gpuforest.estimators.prepare import prepare
from gpuforest.growing.left_out import LeavingOut, Trees
from gpuforest.growing.upper import Changes

MOST_ROWS = 1024  # that are left out at once, because they share much of what changes
VALUES_AT_ONCE = 2**24  # of predictions without them
GROWN_AT_ONCE = 2**22  # rows of nodes
MOST_BYTES = 2**31  # of tables that are made for one call
FEWEST_ROWS = 512  # of a block: many rows are left out
LEAST_SHARE = 1e-15  # whose logarithm is taken, as scikit-learn's log_loss


def influence(
    self: Any, X_test: Any, y_test: Any = None, row_ids: Any = None, X: Any = None, y: Any = None,
    sample_weight: Any = None,
) -> np.ndarray:  # fmt: skip
    """What leaving out each of some training rows changes, by true fits of the others.

    Bins, and the fixed point of numbers, stay as they are, as if they were given; all else is that
    of a fit without the row. Leave-one-out influence is Cook's ("Detection of influential
    observation in linear regression", Technometrics 19, 1977).

    Parameters
    ----------
    X_test : array-like of shape (n_test, n_features)
    y_test : array-like of shape (n_test,), default=None
        None: changes of predictions; else of the mean loss, which is the log loss for classes and
        the squared error for numbers.
    row_ids : int or array-like of ints of shape (n,), default=None
        The rows that are left out, each by itself; None: all rows of the fit.
    X, y, sample_weight : as of the fit; not needed if it was told to `keep_bytes`

    Returns
    -------
    change : float64 array
        Without the row minus with it: of the loss, of shape (n,), where a negative one says that
        the row does harm; or of predictions, of shape (n, n_test), or (n, n_test, n_classes)

    Raises
    ------
    ValueError
        The bags are not of `bootstrap="poisson"`, the forest is shrunk or has several outputs,
        ids are unknown, or X is None and needed.
    """
    forest: Forest = self.forest_
    at = _numbers(self, row_ids)
    mixed = forest.shrinkage or forest.leaf_values is not None or forest.coding.priors is not None
    if mixed or forest.coding.n_outputs > 1:
        raise ValueError(
            "influence adds up what leaves of one output change: fit without shrinkage, "
            "monotonic_cst and priors"
        )
    tables = self._kept_ if X is None and hasattr(self, "_kept_") else None
    if tables is None and X is None:
        kept.known_ids(self)  # which says what is needed
    codes = forgetting.codes_of(self, X_test)
    score = None if y_test is None else _loss_of(self, y_test, len(codes))

    def work(backend: Backend) -> np.ndarray:
        of = tables or _tables_now(self, X, y, sample_weight, backend)
        at_once = np.clip(VALUES_AT_ONCE // (len(codes) * forest.coding.n_values), 64, MOST_ROWS)
        parts = np.array_split(at, -(-len(at) // at_once))
        with progress.stage("leaving out"):
            found = [_changes(of, forest, codes, part, score) for part in parts]
        return np.concatenate(found)

    result: np.ndarray = registry.run_on_backend(work, **self._chosen(X_test if X is None else X))
    return result


def _numbers(estimator: Any, row_ids: Any) -> np.ndarray:
    """The places i64[n] of rows among those of the fit."""
    known = forgetting.ids_of(estimator)
    if row_ids is None:
        return np.arange(len(known))
    ids, order = forgetting.checked_ids(row_ids, known), np.argsort(known, kind="stable")
    forgetting.check_known(ids, known)
    return np.asarray(order[np.searchsorted(known[order], ids)])


def _loss_of(estimator: Any, y_test: Any, n_rows: int) -> Callable[[np.ndarray], np.ndarray]:
    """A function of predictions f64[..., n_rows, n_values] that gives their mean loss f64[...]."""
    y = arrays.host_array(arrays.to_host(y_test, "y_test"), "y_test")
    if y.shape != (n_rows,):
        raise ValueError(f"y_test must have {n_rows} values, one for each row of X_test: {y.shape}")
    classes, rows = estimator.forest_.coding.classes, np.arange(n_rows)
    if classes is None:
        if not np.isfinite(y).all():
            raise ValueError("y_test must hold finite numbers")
        return lambda values: np.mean((values[..., 0] - y) ** 2, axis=-1)
    code = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    if (strange := classes[code] != y).any():
        raise ValueError(f"y_test has classes that the forest does not know: {y[strange][:3]}")

    def log_loss(shares: np.ndarray) -> np.ndarray:
        return np.asarray(-np.log(np.maximum(shares[..., rows, code], LEAST_SHARE)).mean(axis=-1))

    return log_loss


def _tables_now(self: Any, X: Any, y: Any, sample_weight: Any, backend: Backend) -> kept.Tables:
    """Tables of all rows of a fit."""
    given = FitInput.of(X, y, sample_weight, row_ids=self.row_ids_)
    plan = prepare(fit_scope.snapshot(self), given, self.seed_, backend)
    edges, coding = plan.training.matrix.edges, plan.training.target.coding
    same = fit_scope.same_edges(edges, self.forest_.edges)
    if not same or not fit_scope.same_coding(coding, self.forest_.coding):
        raise ValueError("X, y and sample_weight must be those of the last fit, and they are not")
    return kept.tables_of(plan, self.forest_, given, MOST_BYTES, FEWEST_ROWS)


def _changes(
    tables: kept.Tables, forest: Forest, codes: np.ndarray, at: np.ndarray, score: Any
) -> np.ndarray:
    """What leaving out each of some training rows i64[m] changes of the predictions of rows with
    codes [n, F], or of their score."""
    plan, numbers = tables.plan, tables.numbers[at]
    training, backend, drawn = plan.training, plan.backend, plan.drawn
    weights = -forgetting.bag_weights(forest.seed, forest.n_trees, drawn, drawn.row_keys[at])
    if drawn.weights is not None:
        weights = weights * drawn.weights[at]
    of_rows = training.matrix.codes[numbers], training.target.y[numbers], weights
    sums = np.zeros((len(codes), forest.values.shape[1]))
    sums = backend.accumulate(forest, codes, range(forest.n_trees), None, sums)
    change = np.zeros((len(at), *sums.shape))
    leaves = backend.apply(forest, codes) + forest.tree_offsets[:-1]
    row = np.repeat(np.arange(len(codes)), forest.n_trees)
    trees = Trees.of(forest, tables.upper, row, leaves.reshape(-1))
    # no more rows than in all bags, whose histograms fit the memory
    at_once = min(GROWN_AT_ONCE, int(tables.upper.slots.n_rows[tables.upper.root].sum()))
    leaving = LeavingOut(training, backend, tables.most_rows, at_once, codes, change)
    leaving.add(trees, Changes(numbers, *of_rows))
    both = [forest.combined(s.reshape(-1, sums.shape[1])) for s in (sums, sums + change)]
    before, after = both[0], both[1].reshape(change.shape)
    if score is not None:
        return np.asarray(score(after) - score(before))
    return np.asarray(after - before if forest.coding.is_classes else (after - before)[..., 0])
