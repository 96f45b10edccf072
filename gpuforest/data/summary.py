"""What a fit must know about all rows before it encodes the first one: how many there are, the
categories, and a sample from which bin edges are chosen.

Summaries of blocks add up to that of the table, in any order and on any machine: the sample is
those rows whose numbers have the lowest hashes (`binning.row_hashes`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from gpuforest.data.categories import CategoryReader, factorize
from gpuforest.data.tables import is_frame
from gpuforest.data.tallies import Tally
from gpuforest.data.validation import read_table
from gpuforest.engine.binning import (
    LOOK_ROWS,
    SAMPLE_ROWS,
    BinEdges,
    fit_edges,
    lowest,
    most_bins,
    row_hashes,
    value_dtype,
)

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend

Array = Any


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table, in ascending order.

    rows : i64[n], their numbers in the table
    values : f32 or f64 [n, F]
    """

    rows: np.ndarray
    values: np.ndarray

    def take(self, some: np.ndarray) -> Sample:
        return Sample(self.rows[some], self.values[some])

    def __add__(self, other: Sample) -> Sample:
        rows = np.concatenate([self.rows, other.rows])
        values = np.concatenate([self.values, other.values])
        return Sample(rows, values).take(np.argsort(rows, kind="stable"))

    def of_lowest_hashes(self, seed: int) -> Sample:
        if len(self.rows) <= SAMPLE_ROWS:
            return self
        return self.take(lowest(row_hashes(seed, self.rows), SAMPLE_ROWS))


@dataclass(frozen=True, eq=False)
class Summary:
    """A summary of some rows.

    n_rows : all of them
    look : the first rows of positive weight, one more than LOOK_ROWS; see `binning.most_bins`
    sample : rows of positive weight, at most twice SAMPLE_ROWS, by the hashes of `seed`
    tallies : of each categorical feature
    limit : rows of a higher hash are not in the sample
    """

    n_rows: int
    look: Sample
    sample: Sample
    tallies: dict[int, Tally]
    seed: int
    limit: int = 2**64 - 1

    def __add__(self, other: Summary) -> Summary:
        """That of both. Samples of twice the size need no cut yet, so that few cuts are made."""
        look, sample = self.look + other.look, self.sample + other.sample
        limit = min(self.limit, other.limit)
        if len(sample.rows) > 2 * SAMPLE_ROWS:
            sample = sample.of_lowest_hashes(self.seed)
            limit = int(row_hashes(self.seed, sample.rows).max())
        return replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            look=look.take(np.arange(len(look.rows))[: LOOK_ROWS + 1]),
            sample=sample,
            tallies={f: tally + other.tallies[f] for f, tally in self.tallies.items()},
            limit=limit,
        )

    def edges(
        self,
        max_bins: int | str,
        weights: np.ndarray | None,
        categories: dict[int, tuple[Any, ...]],
        backend: Backend,
    ) -> BinEdges:
        """The edges that `binning.fit_edges` chooses from all rows.

        weights : i32[N] of the whole table, as integers, or None
        """
        sample = self.sample.of_lowest_hashes(self.seed)
        max_bins = most_bins(self.look.values, max_bins, None, categories, backend)
        return fit_edges(
            sample.values,
            max_bins=max_bins,
            weights=None if weights is None else weights[sample.rows],
            seed=self.seed,
            sample_rows=len(sample.rows),
            backend=backend,
            categories=categories,
        )


@dataclass(eq=False)
class Reader(BaseEstimator):  # type: ignore[misc]
    """Reads the blocks of a table, which all have the columns of the first one.

    categorical_features, min_category_frequency : as of the estimators
    features : the categorical ones, once a block was read
    names : of the columns, or None
    """

    categorical_features: Any = "from_dtype"
    min_category_frequency: int = 1
    features: frozenset[int] | None = None
    names: list[Any] | None = field(default=None)

    def summary(
        self,
        X: Any,
        weight: np.ndarray | None,
        begin: int,
        seed: int,
        backend: Backend,
        limit: int = 2**64 - 1,
    ) -> Summary:
        """That of a block whose first row is the table's row `begin`; `limit`: see `Summary`."""
        if self.features is not None and is_frame(X) == (self.names is None):
            raise ValueError("some blocks are frames with column names, and others are arrays")
        counter = _Counter(self, weight)
        table, names = read_table(self, X, backend, counter, reset=self.features is None)
        if self.features is None:
            self.features, self.names = counter.features, names
        rows = np.arange(begin, begin + table.shape[0])
        own = np.arange(len(rows)) if weight is None else np.flatnonzero(weight > 0)
        few = own[: LOOK_ROWS + 1]
        own = own[row_hashes(seed, rows[own]) <= np.uint64(limit)]
        if len(own) > SAMPLE_ROWS:
            own = own[lowest(row_hashes(seed, rows[own]), SAMPLE_ROWS)]
        look, sample = (Sample(rows[some], _values(table, some)) for some in (few, own))
        return Summary(len(rows), look, sample, counter.tallies, seed, limit)

    def read(self, X: Any, categories: dict[int, tuple[Any, ...]], backend: Backend) -> Array:
        """A block as numbers [n, F]."""
        known = CategoryReader(None, known=categories)
        return read_table(self, X, backend, known, reset=False)[0]

    def categories(self, tallies: dict[int, Tally]) -> dict[int, tuple[Any, ...]]:
        """The categories of the whole table, from its tallies."""
        return {
            f: tally.categories(self._name(f), self.min_category_frequency)
            for f, tally in tallies.items()
        }

    def _name(self, feature: int) -> str:
        return f"column {feature if self.names is None else repr(self.names[feature])}"


class _Counter(CategoryReader):
    """Counts the values of categorical columns instead of encoding them."""

    def __init__(self, reader: Reader, weight: np.ndarray | None) -> None:
        super().__init__(reader.categorical_features)
        self._known, self._weight = reader.features, weight
        self.tallies: dict[int, Tally] = {}

    def choose(self, n_features: int, frame: Any = None) -> None:
        if self._known is None:
            super().choose(n_features, frame)
        else:
            self.features = self._known

    def codes(self, feature: int, column: Any, name: str) -> np.ndarray:
        factor = factorize(column, name)
        tally = Tally.of(factor.codes, factor.values, factor.order, self._weight)
        self.tallies[feature] = tally
        return np.zeros(len(factor.codes), np.float32)


def _values(table: Array, rows: np.ndarray) -> np.ndarray:
    found = table[rows]
    return np.asarray(found.toarray() if issparse(found) else found, value_dtype(table))
