"""The two passes over blocks that make binned data: one learns what encoding needs, one encodes.

Summaries of blocks add up in any order: the sample has the rows of the lowest hashes
(`rows.row_hashes`). Target statistics are added in the order of the rows, because they keep each
row's category.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from gpuforest.backends.base import Array, Backend
from gpuforest.backends.rows import row_hashes, value_dtype
from gpuforest.common import progress
from gpuforest.core.bins import SAMPLE_ROWS, BinEdges
from gpuforest.data import arrays, blocks, survival, validation
from gpuforest.data.categories import CategoryReader, Tally, factorize, find
from gpuforest.data.labels import OF_ROWS, Labels
from gpuforest.data.target_statistics import Numbers, OrderedTarget, statistics_of
from gpuforest.growing.edges import (
    LOOK_ROWS,
    encode_blocks,
    encode_column,
    fit_edges,
    lowest,
    most_bins,
)

LABELS = "blocks take several outputs as numbers: make numbers of these labels"
NO_LIMIT = 2**64 - 1  # of hashes


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table: their numbers i64[n], ascending, and their values f32 or f64 [n, F]."""

    rows: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, table: Array, rows: np.ndarray, begin: int) -> Sample:
        """Some rows of a block that begins with the table's row `begin`."""
        values = table[rows]
        values = values.toarray() if issparse(values) else values
        return cls(begin + rows, np.asarray(values, value_dtype(table)))

    def take(self, some: Any) -> Sample:
        return Sample(self.rows[some], self.values[some])

    def with_columns(self, columns: Numbers) -> Sample:
        """The same rows with other values, of all rows of the table, of some features."""
        values = self.values.copy()
        for f, column in columns.items():
            values[:, f] = column[self.rows]
        return Sample(self.rows, values)

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
    """A summary of some rows."""

    n_rows: int
    look: Sample  # the first rows of positive weight, LOOK_ROWS and one: see `edges.most_bins`
    sample: Sample  # rows of positive weight of low hashes of `seed`, at most twice SAMPLE_ROWS
    tallies: dict[int, Tally]  # of each categorical feature
    seed: int
    limit: int = NO_LIMIT  # rows of a higher hash are not in the sample

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
            look=look.take(slice(LOOK_ROWS + 1)),
            sample=sample,
            tallies={f: tally + other.tallies[f] for f, tally in self.tallies.items()},
            limit=limit,
        )


@dataclass(eq=False)
class Reader(BaseEstimator):  # type: ignore[misc]
    """Reads blocks of a table with the first one's columns; parameters as of the estimators."""

    max_bins: int | str = "auto"
    categorical_features: Any = "from_dtype"
    min_category_frequency: int = 1
    categorical_split: str = "subset"
    seed: int = 0
    # whether y holds classes, or what says so; None: unless it holds floats
    by_class: bool | Callable[[Any], bool] | None = None
    features: frozenset[int] | None = None  # the categorical ones, once a block was read
    names: list[Any] | None = None  # of the columns

    @classmethod
    def of(cls, estimator: Any, seed: int, by_class: Any) -> Reader:
        """That of an estimator's parameters."""
        names = "max_bins", "categorical_features", "min_category_frequency", "categorical_split"
        return cls(*(getattr(estimator, name) for name in names), seed, by_class)

    def summary(
        self, X: Any, weight: np.ndarray | None, begin: int, backend: Backend, limit: int = NO_LIMIT
    ) -> Summary:
        """That of a block whose first row is the table's row `begin`; `limit`: see `Summary`."""
        is_first = self.features is None
        if not is_first and arrays.is_frame(X) == (self.names is None):
            raise ValueError("some blocks are frames with column names, and others are arrays")
        wanted, features = self.categorical_features, self.features
        counter = CategoryReader(
            wanted, weights=weight, only_counts=True, features=features,
            split=self.categorical_split,
        )  # fmt: skip
        table, names = validation.read_table(self, X, backend, counter, reset=is_first)
        if is_first:
            self.features, self.names = counter.features, names
        n, seed = table.shape[0], self.seed
        rows = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
        look = Sample.of(table, rows[: LOOK_ROWS + 1], begin)
        rows = rows[row_hashes(seed, begin + rows) <= np.uint64(limit)]
        if len(rows) > SAMPLE_ROWS:
            rows = rows[lowest(row_hashes(seed, begin + rows), SAMPLE_ROWS)]
        return Summary(n, look, Sample.of(table, rows, begin), counter.tallies, seed, limit)

    def read(
        self, X: Any, edges: BinEdges, ordered: Numbers, begin: int, backend: Backend
    ) -> Array:
        """A block as numbers [n, F], whose first row is the table's row `begin`."""
        known = CategoryReader(known=edges.known)
        table, _ = validation.read_table(self, X, backend, known, reset=False)
        for f, values in ordered.items():
            table[:, f] = values[begin : begin + len(table)]
        return table

    def edges(
        self, summary: Summary, y: Any, weights: np.ndarray | None, groups: np.ndarray | None,
        backend: Backend,
    ) -> tuple[BinEdges, Numbers, Numbers]:  # fmt: skip
        """The edges that `fit_edges` chooses from the summary of all rows, target statistics, and
        the codes [N] of the latter's features by which rows are judged out of bag.

        weights, groups : i32[N] or None"""
        fewest, split = self.min_category_frequency, self.categorical_split
        categories = {
            f: tally.categories(validation.column_name(f, self.names), fewest, split)
            for f, tally in summary.tallies.items()
        }

        def column(f: int) -> np.ndarray:
            tally = summary.tallies[f]
            factor = np.concatenate(tally.codes), tally.values, None
            return find(factor, categories[f], validation.column_name(f, self.names))

        target = partial(self.ordered_target, y, weights, groups)
        found = [*statistics_of(categories, split, target, column)]
        ordered = {f: numbers for f, numbers, _, _ in found}
        statistics = {f: statistic for f, *_, statistic in found}
        sample = summary.sample.of_lowest_hashes(self.seed).with_columns(ordered)
        look = summary.look.with_columns(ordered).values
        categories = {f: known for f, known in categories.items() if f not in statistics}
        edges = fit_edges(
            sample.values,
            max_bins=most_bins(look, self.max_bins, None, categories, backend),
            weights=None if weights is None else weights[sample.rows],
            seed=self.seed,
            sample_rows=len(sample.rows),
            backend=backend,
            categories=categories,
        )
        numbers = {f: left_out for f, _, left_out, _ in found if left_out is not None}
        judged = {f: encode_column(x, edges, f) for f, x in numbers.items()}
        return replace(edges, statistics=statistics), ordered, judged

    def has_classes(self, y: Any) -> bool:
        """Whether the target holds classes."""
        if self.by_class is None:
            return isinstance(y, Labels) or y.dtype.kind != "f"
        return self.by_class(y) if callable(self.by_class) else self.by_class

    def ordered_target(
        self, y: Any, weights: np.ndarray | None, groups: np.ndarray | None
    ) -> OrderedTarget:
        """What target statistics are made of."""
        if y is None:
            raise ValueError(
                f"categorical_split={self.categorical_split!r} needs y: pass it with the blocks"
            )
        n_classes = 0
        if isinstance(y, Labels):
            y, n_classes = y.codes, len(y.classes)
        elif self.has_classes(y):
            classes, y = np.unique(y, return_inverse=True)
            n_classes = len(classes)
        return OrderedTarget(y, n_classes, weights, self.seed, groups, judges=True)


def summarised(source: blocks.Blocks, reader: Reader, rows: Rows, backend: Backend) -> Summary:
    """The summary of all blocks; `rows` collects what the blocks have besides X."""
    summary: Summary | None = None
    for block in source:
        with blocks.named(block.name):
            weight = rows.add(Rows(block))
            if summary is None:
                summary = reader.summary(block.X, weight, 0, backend)
            else:
                summary += reader.summary(block.X, weight, summary.n_rows, backend, summary.limit)
        progress.report(summary.n_rows, max(source.n_rows, summary.n_rows))
    if summary is None:
        raise ValueError("the blocks have no rows")
    return summary


def write_codes(
    source: blocks.Blocks, reader: Reader, edges: BinEdges, ordered: Numbers,
    codes: np.ndarray, backend: Backend,
) -> None:  # fmt: skip
    """Write the codes [F, N] of all blocks."""
    begin, N = 0, codes.shape[1]
    for block in source:
        with blocks.named(block.name):
            if begin + len(block.X) > N:
                raise ValueError("the second pass over the blocks finds more rows than the first")
            X = reader.read(block.X, edges, ordered, begin, backend)
            for first, last, part in encode_blocks(X, edges, backend):
                codes[:, begin + first : begin + last] = part.T
        begin += len(block.X)
        progress.report(begin, N)
    if begin < N:
        raise ValueError(f"the second pass over the blocks finds {begin:,} rows, the first {N:,}")


class Rows:
    """y, weights, groups and times of blocks; an error if they do not fit X or earlier blocks."""

    def __init__(self, block: blocks.Block | None = None) -> None:
        self.n_rows = 0 if block is None else len(block.X)
        self._parts: dict[str, list[np.ndarray]] = {name: [] for name in OF_ROWS}
        self._ordered: dict[str, tuple[Any, ...]] = {}  # the values of an ordered type of labels
        self._codes: dict[Any, int] = {}  # of labels
        self._label_type: Any = None
        if block is None or not self.n_rows:
            return
        for values, name in zip(block[2:], OF_ROWS, strict=True):
            if values is not None:
                if len(values) != self.n_rows:
                    raise ValueError(f"X has {self.n_rows} rows, {name} has {len(values)}")
                self._parts[name].append(self._checked(name, values))

    @property
    def n_counted(self) -> int:
        """Rows of positive weight."""
        weights = self._parts["sample_weight"]
        return int(sum(map(np.count_nonzero, weights))) if weights else self.n_rows

    def add(self, other: Rows) -> np.ndarray | None:
        """Add the rows of a later block, and return its weights."""
        for name, parts in self._parts.items():
            if self.n_rows and bool(parts) != bool(other._parts[name]):
                raise ValueError(f"some blocks have {name}, and others have not")
        targets, later = self._parts["y"], other._parts["y"]
        if targets and (self._label_type is None) != (other._label_type is None):
            raise ValueError("y holds labels in some blocks, and numbers in others")
        if len({part.dtype.names for part in (*targets[:1], *later)}) > 1:
            raise ValueError("y says what is the event, and what its time, in some blocks only")
        for name, values in self._ordered.items():
            if values != other._ordered[name]:
                raise ValueError(f"{name} are ordered otherwise than in earlier blocks")
        self.n_rows, self._label_type = self.n_rows + other.n_rows, other._label_type
        self._ordered |= other._ordered
        table = [self._codes.setdefault(label, len(self._codes)) for label in other._codes]
        moved = np.array(table, np.int32)
        other._parts["y"] = [moved[codes] for codes in later] if table else later
        for name, parts in self._parts.items():
            parts += other._parts[name]
        return next(iter(other._parts["sample_weight"]), None)

    def _checked(self, name: str, values: Any) -> np.ndarray:
        """The values of a block."""
        if name == "y":
            return self._numbers(values)
        if name == "sample_weight":
            weight = np.asarray(arrays.to_host(values, name))
            if weight.dtype.kind not in "biuf" or (weight != 0).any():  # else this block has none
                weight = np.asarray(validation.check_weights(weight, self.n_rows))
            return weight.astype(np.float64)
        labels, self._ordered[name] = validation.read_labels(values, self.n_rows, name)
        validation.number_labels(labels, name)  # no value is missing
        return labels

    def _numbers(self, y: Any) -> np.ndarray:
        """The targets, or codes of the labels."""
        if survival.is_pair(y):
            problem = "y must hold one target, or an event and its time as two numbers"
            pairs = survival.pairs_of(y, problem)
            if not (survival.are_ends(pairs) or np.isfinite(pairs.view((float, 2))).all()):
                raise ValueError("y contains NaN or infinity: every row needs a finite target")
            return pairs
        column = y if hasattr(y, "implementation") else np.asarray(arrays.to_host(y, "y"))
        if not isinstance(column, np.ndarray) and (
            column.dtype.is_numeric() or column.dtype.is_boolean()
        ):
            if column.null_count():
                raise ValueError(f"y is missing in {column.null_count()} rows")
            column = column.to_numpy()
        if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
            if column.dtype.kind == "f" and not np.isfinite(column).all():
                raise ValueError("y contains NaN or infinity: every row needs a finite target")
            return column
        if getattr(column, "ndim", 1) > 1:
            raise ValueError(LABELS)
        is_text = isinstance(column, np.ndarray) and column.dtype.kind == "U"
        self._label_type = np.str_ if is_text else object
        codes, labels, _ = factorize(column, "y")
        if (codes < 0).any():
            raise ValueError("y contains NaN or None: every row needs a label")
        self._codes = {label: code for code, label in enumerate(labels)}
        return codes.astype(np.int32)

    def target(self) -> Any:
        """y [N], `Labels`, or None."""
        y = self._all("y")
        if y is None:
            return None
        if self._label_type is None:
            return survival.settled(y) if y.dtype.names and not survival.are_ends(y) else y
        if len({isinstance(value, str) for value in self._codes}) > 1:
            raise ValueError("Unknown label type: y mixes strings and numbers")
        classes = sorted(self._codes)
        place = {label: i for i, label in enumerate(classes)}
        moved = np.array([place[label] for label in self._codes], np.int32)
        if not isinstance(classes[0], str):  # Python numbers are numbers
            return np.array(classes)[moved[y]]
        return Labels(moved[y], np.array(classes, self._label_type))

    def checked_weights(self) -> np.ndarray | None:
        """All weights f64[N], see `check_weights`."""
        return validation.check_weights(self._all("sample_weight"), self.n_rows)

    def labels(self, name: str) -> np.ndarray | None:
        """The numbers i32[N] of all rows' groups, or blocks of time, or None."""
        kinds, labels = {part.dtype.kind for part in self._parts[name]}, self._all(name)
        if labels is not None and labels.dtype.kind == "U" and kinds != {"U"}:
            raise ValueError(f"{name} holds strings in some blocks, and numbers in others")
        # of an ordered type these are numbers
        return validation.check_groups(labels, self.n_rows, name)

    def _all(self, name: str) -> np.ndarray | None:
        """The values of all rows, whose parts go, to free memory."""
        parts = self._parts[name]
        values = np.concatenate(parts) if parts else None
        parts.clear()
        return values
