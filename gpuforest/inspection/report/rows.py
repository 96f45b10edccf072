"""The rows that a report is about, read once and predicted often."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.backends.registry import run_on_backend
from gpuforest.binning import bin_matrix, draw_rows
from gpuforest.criteria import CRITERIA
from gpuforest.data.arrays import to_host
from gpuforest.data.validation import check_labels, check_numbers, check_table
from gpuforest.inspection.report.labels import Labels, aligned

SEED = 0  # of what is drawn: the same report for the same model and rows


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as a fitted estimator reads them.

    estimator : fitted
    table : real [N, F], dense or by rows; NaN is missing, categories are codes
    numbers : f64[N, n_outputs] of a regression, else None
    labels : of a classifier, those of each output, else None
    """

    estimator: Any
    table: Any
    numbers: np.ndarray | None = None
    labels: list[Labels] | None = None

    @classmethod
    def read(cls, estimator: Any, X: Any, y: Any) -> Rows:
        """Check rows and, unless y is None, their targets.

        Raises
        ------
        ValueError : other features than in training, infinities; a wrong length of y, missing
            targets, no class that the estimator knows
        """
        host = NumpyBackend()
        table = check_table(estimator, to_host(X), host)
        n = table.shape[0]
        if y is None:
            return cls(estimator, table)
        y, n_outputs = to_host(y), estimator.n_outputs_
        if is_classifier(estimator):
            checked = check_labels(y, n, host)
            _check_outputs(len(checked.values), n_outputs)
            known = estimator.classes_ if n_outputs > 1 else [estimator.classes_]
            given = [
                c[codes] for codes, c in zip(checked.values, checked.classes or [], strict=True)
            ]
            return cls(
                estimator, table, labels=[aligned(*p) for p in zip(known, given, strict=True)]
            )
        numbers = check_numbers(y, n, CRITERIA["squared_error"], host).values
        numbers = numbers.reshape(n, -1)
        _check_outputs(numbers.shape[1], n_outputs)
        return cls(estimator, table, numbers=numbers)

    @property
    def n(self) -> int:
        return int(self.table.shape[0])

    @property
    def has_targets(self) -> bool:
        return self.labels is not None or self.numbers is not None

    @cached_property
    def codes(self) -> np.ndarray:
        """The bins of the values, [N, F]."""
        found: np.ndarray = bin_matrix(
            self.table, self.estimator.forest_.edges, NumpyBackend()
        ).codes
        return found[:, : self.estimator.n_features_in_]

    def sample(self, most: int) -> Rows:
        """At most so many of the rows, drawn by the hash."""
        return self if self.n <= most else self.take(draw_rows(SEED, self.n, most))

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        labels = None if self.labels is None else [own.take(rows) for own in self.labels]
        return Rows(self.estimator, self.table[rows], numbers, labels)

    def column(self, feature: int) -> np.ndarray:
        """The values of a feature, f64[N]."""
        found = self.table[:, [feature]]
        found = found.toarray() if issparse(found) else found
        return np.asarray(found, np.float64)[:, 0]

    @cached_property
    def dense(self) -> np.ndarray:
        """The table as a new array, f64[N, F]."""
        table = self.table.toarray() if issparse(self.table) else self.table
        return np.array(table, np.float64)

    def predictor(self) -> Any:
        """The estimator, as one that takes tables as `table` is, and predicts medians in place of
        several quantiles."""
        found = copy(self.estimator)
        if np.ndim(found.__dict__.get("default_quantiles", 0)):
            found.default_quantiles = 0.5

        def walk(table: Any, stage: Callable[..., Any]) -> Any:
            return run_on_backend(
                lambda backend: stage(found.forest_, table, backend), **found._chosen(table)
            )

        found.__dict__["_walk"] = walk
        return found


def _check_outputs(found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f"y has {found} outputs, and the model predicts {expected}")
