"""The rows that a report is about, read once, and the hashes by which rows are known again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.backends.rows import draw_rows
from gpuforest.common import hashing
from gpuforest.core.criteria import CRITERIA
from gpuforest.data import arrays, binned, frames, survival, validation
from gpuforest.explain.model_facts import is_survival
from gpuforest.export.model_tables import reader_of_codes
from gpuforest.growing.edges import bin_matrix

SEED = 0  # of what is drawn: the same report for the same model and rows
MOST_ROWS = 20_000
HASHES = 64  # of training rows, that a model keeps


@dataclass(frozen=True, eq=False)
class Labels:
    """Sorted labels [L]; where among these the model's classes i64[C] and the rows' i64[N] are."""

    names: np.ndarray
    known: np.ndarray
    codes: np.ndarray

    @property
    def unknown(self) -> np.ndarray:
        """Labels that the model does not know, i64[...]."""
        return np.setdiff1d(np.arange(len(self.names)), self.known)

    @property
    def counts(self) -> np.ndarray:
        """Rows of each label, i64[L]."""
        return np.bincount(self.codes, minlength=len(self.names))

    def predicted(self, proba: np.ndarray) -> np.ndarray:
        """The label i64[N] of the highest of each row's probabilities f64[N, C]."""
        return np.asarray(self.known[proba.argmax(axis=1)])

    def confusion(self, proba: np.ndarray) -> np.ndarray:
        """Rows i64[L, L] of each label (first axis) that are predicted as each."""
        L = len(self.names)
        return np.bincount(self.codes * L + self.predicted(proba), minlength=L * L).reshape(L, L)


def aligned(known: np.ndarray, y: Any) -> Labels:
    """Labels y [N] together with the classes of a model [C]. Only equal ones are the same class."""
    y = np.asarray(y)
    if (known.dtype.kind in "OU") != (y.dtype.kind in "OU") or not np.isin(y, known).any():
        raise ValueError(
            f"the target holds {frames.listed([str(v) for v in np.unique(y)])}, "
            f"and the model's classes are {frames.listed([str(c) for c in known])}"
        )
    if known.dtype.kind in "OU":  # objects, because labels may be longer than the model's
        known, y = known.astype(object), y.astype(object)
    else:  # 1.0 is the class 1, and 1.5 is another
        same = y.astype(known.dtype)
        y = same if (same == y).all() else y
        known = known.astype(np.result_type(known, y))
    names, codes = np.unique(np.concatenate([known, y]), return_inverse=True)
    return Labels(names, codes[: len(known)], codes[len(known) :])


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as a fitted estimator reads them: a table, dense or by rows (NaN is missing, categories
    are codes); the numbers f64[N, n_outputs] of a regression, of survival [time, cause or 0]; of a
    classifier the labels of each output."""

    estimator: Any
    table: Any
    numbers: np.ndarray | None = None
    labels: list[Labels] | None = None

    @classmethod
    def read(cls, estimator: Any, X: Any, y: Any) -> Rows:
        """Check rows and, unless y is None, their targets."""
        host = NumpyBackend()
        table = validation.check_table(estimator, arrays.to_host(X), host)
        n = table.shape[0]
        if y is None:
            return cls(estimator, table)
        if is_survival(estimator):
            return cls(estimator, table, survival.check_survival(y, n))
        y, expected, is_class = arrays.to_host(y), estimator.n_outputs_, is_classifier(estimator)
        if is_class:
            checked = validation.check_labels(y, n, host)
            outputs = checked.values
        else:
            checked = validation.check_numbers(y, n, CRITERIA["squared_error"], host)
            outputs = checked.values.reshape(n, -1).T
        if len(outputs) != expected:
            raise ValueError(f"y has {len(outputs)} outputs, and the model predicts {expected}")
        if not is_class:
            return cls(estimator, table, numbers=outputs.T)
        classes = estimator.classes_ if expected > 1 else [estimator.classes_]
        known = zip(classes, checked.classes or [], outputs, strict=True)
        return cls(estimator, table, labels=[aligned(c, names[y]) for c, names, y in known])

    @property
    def n(self) -> int:
        return int(self.table.shape[0])

    def sample(self, most: int) -> Rows:
        """A sample of at most `most` rows, drawn by the hash."""
        if self.n <= most:
            return self
        rows = draw_rows(SEED, self.n, most)
        numbers = None if self.numbers is None else self.numbers[rows]
        labels = self.labels and [replace(of, codes=of.codes[rows]) for of in self.labels]
        return Rows(self.estimator, self.table[rows], numbers, labels)

    def dense(self, features: Any = slice(None)) -> np.ndarray:
        """The values of features, f64[N, F], as a new array."""
        table = self.table[:, features]
        return np.array(table.toarray() if issparse(table) else table, np.float64)

    def predictor(self) -> Any:
        """The estimator, for tables as `table` is; of several quantiles it predicts medians."""
        model = reader_of_codes(self.estimator)
        if np.ndim(model.__dict__.get("default_quantiles", 0)):
            model.default_quantiles = 0.5
        return model


def row_hashes(estimator: Any, X: Rows | binned.BinnedData) -> np.ndarray:
    """Hashes u32[N], ascending, of the bins of rows, in any order; equal rows have one each. Empty:
    codes are target statistics of the training."""
    edges, n_features = estimator.forest_.edges, estimator.n_features_in_
    if isinstance(X, binned.BinnedData):
        columns = X.by_feature[:, : 0 if edges.statistics else None]
    else:
        columns = bin_matrix(X.table, edges, NumpyBackend()).codes.T[:n_features]
    key, sums = np.full(1, SEED, np.uint64), np.zeros(columns.shape[1], np.uint64)
    for f, column in enumerate(columns):
        sums += column * hashing.hash_at(key, f)
    sums.sort()
    again = np.arange(len(sums), dtype=np.uint64) - np.searchsorted(sums, sums).astype(np.uint64)
    return np.sort((hashing.hash_at(sums, again) >> 32).astype(np.uint32))
