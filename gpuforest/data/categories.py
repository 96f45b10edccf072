"""Columns of strings, or of chosen numbers, become category codes.

A column is factorized into its distinct values and their positions, so only these few values
are ever Python objects. A fit learns the list of a feature's categories, and
prediction looks values up in it. A category code is a position in this list, 0 .. n - 1; n stands
for any other value, and NaN for a missing one, see `core.bins.BinEdges`. A feature of many
categories does not list those of few rows: they are other values, in training too.
"""

from __future__ import annotations

import math
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuforest.core.bins import CATEGORY_TYPES, MAX_CATEGORIES, TargetStatistic, categories_of
from gpuforest.data.arrays import is_object_column, native_dtypes
from gpuforest.data.target_statistics import has_statistics, may_have_statistics

# A column as its distinct values and where they are: codes int[N], positions in the values, -1
# where one is missing; the values that occur, as plain Python values; all values that the dtype
# lists, if it does
Factor = tuple[np.ndarray, list[Any], tuple[Any, ...] | None]

ALWAYS_KEPT = 10  # a feature with at most this number of categories lists all of them
MOST_NUMBERED = 2**24  # categories whose codes float32 holds
IDENTIFIER = 0.9  # a column of more different values a row is taken for an identifier


@dataclass(frozen=True, eq=False)
class Tally:
    """The values of a column."""

    values: list[Any]  # the distinct ones, as plain Python values
    rows: np.ndarray  # f64[n], the rows of positive weight that hold each
    weights: np.ndarray  # f64[n], their total weight
    whole: bool  # all weights are whole numbers
    # all values that the column's dtype lists, in its order, if there is one list for all blocks
    order: tuple[Any, ...] | None
    # the rows' positions in `values` by blocks, i32[n], -1 for missing; (): not kept
    codes: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, factor: Factor, weights: np.ndarray | None, keeps: bool = False) -> Tally:
        """That of a column, whose rows have weights f64[N], or None: all are one."""
        codes, values, order = factor
        kept = (codes.astype(np.int32),) if keeps else ()

        def by_value(of_rows: np.ndarray | None) -> np.ndarray:
            return np.bincount(codes + 1, of_rows, len(values) + 1)[1:].astype(np.float64)

        if weights is None:
            return cls(values, rows := by_value(None), rows, True, order, kept)
        whole = bool((weights == np.floor(weights)).all())
        sums = by_value((weights != 0) * 1.0), by_value(weights)
        return cls(values, *sums, whole, order, kept)

    def __add__(self, other: Tally) -> Tally:
        """That of both columns, one below the other."""
        position = {value: i for i, value in enumerate(self.values)}
        moved = [position.setdefault(value, len(position)) for value in other.values]

        def both(first: np.ndarray, second: np.ndarray) -> np.ndarray:
            total = np.zeros(len(position))
            total[: len(first)] = first
            total[moved] += second
            return total

        rows, weights = both(self.rows, other.rows), both(self.weights, other.weights)
        order = self.order if self.order == other.order else None
        place = np.array([*moved, -1], np.int32)
        codes = (*self.codes, *(place[of_block] for of_block in other.codes))
        whole = self.whole and other.whole
        return Tally(list(position), rows, weights, whole, order, codes)

    def categories(self, name: str, fewest: int, split: str) -> tuple[Any, ...]:
        """The categories of the column `name`, sorted or in the order of the dtype. Categories
        without weight are left out; if there are more than `ALWAYS_KEPT`, also categories of fewer
        than `fewest` rows (a weight w counts as w rows). `split`: see `categorical_split`."""
        if len({isinstance(value, str) for value in self.values}) > 1:
            raise ValueError(
                f"{name} mixes strings and numbers as categories: make all of them strings"
            )
        counts = self.weights if self.whole else self.rows
        different = int(np.count_nonzero(counts))
        are_numbers = has_statistics(split, different)  # which shrink for few rows
        least = max(fewest, 1) if different > ALWAYS_KEPT and not are_numbers else 1
        values = [value for value, n in zip(self.values, counts, strict=True) if n >= least]
        most = MOST_NUMBERED if are_numbers else MAX_CATEGORIES
        if len(values) > most:
            others = "" if are_numbers else ", pass categorical_split='ordered_target'"
            raise ValueError(
                f"{name} has {len(values)} categories; at most {most} are supported: "
                f"raise min_category_frequency{others}, or drop it"
            )
        n = int(self.rows.sum())
        if not are_numbers and different > max(ALWAYS_KEPT, IDENTIFIER * n):
            warnings.warn(
                f"{name} has {different:,} different values in {n:,} rows: as categories, "
                "identifiers and dates teach nothing. Drop the column, or make numbers of it (of a "
                "date the year, month or weekday)",
                UserWarning,
                stacklevel=2,
            )
        if self.order is None:
            return tuple(sorted(values))
        place = {value: i for i, value in enumerate(self.order)}
        return tuple(sorted(values, key=place.__getitem__))


@dataclass(eq=False)
class CategoryReader:
    """Turns columns into category codes, and learns the categories where they are not known."""

    wanted: Any = None  # what a user passes as `categorical_features`, for features to learn
    known: dict[int, Any] | None = None  # the categories of a fitted forest
    fewest: int = 1  # see `Tally.categories`, as `split`
    weights: Any = None  # [N], as the user passes them, or None
    only_counts: bool = False  # columns are not encoded: `tallies` count their values
    features: Any = None  # frozenset[int], the categorical ones; None: `choose` says
    split: str = "subset"

    def __post_init__(self) -> None:
        self.is_learning = self.known is None
        self.tallies: dict[int, Tally] = {}
        self.is_choosing = self.is_learning and self.features is None
        self.categories: dict[int, Any] = {} if self.known is None else self.known
        self.features = self.features or frozenset(self.categories)

    def choose(self, n_features: int, frame: Any = None) -> None:
        """Decide in a fit which features are categorical, of a frame of narwhals or an array."""
        if self.is_choosing:
            names = None if frame is None else list(frame.columns)
            if isinstance(self.wanted, str) and self.wanted == "from_dtype":
                features = [] if frame is None else columns_of_categories(frame)
            else:
                features = chosen_features(self.wanted, n_features, names)
            self.features = frozenset(features)

    def codes(self, feature: int, column: Any, name: str) -> np.ndarray:
        """Category codes f32[N] of a column (array [N] or series); `name` is for messages."""
        factor = factorize(column, name)
        if self.is_learning:
            n_rows = len(factor[0])
            keeps = self.only_counts and may_have_statistics(self.split)
            tally = Tally.of(factor, _numbers(self.weights, n_rows), keeps)
            if self.only_counts:
                self.tallies[feature] = tally
                return np.zeros(n_rows, np.float32)
            self.categories[feature] = tally.categories(name, self.fewest, self.split)
        return find(factor, self.categories[feature], name)


def columns_of_categories(frame: Any) -> list[int]:
    """Which columns of a frame of narwhals hold strings, or are categorical by their dtype."""
    import narwhals.stable.v2 as nw

    def holds_categories(column: Any, native: Any) -> bool:
        if native is None or not is_object_column(column.dtype, native):
            return isinstance(column.dtype, nw.Categorical | nw.Enum | nw.String)
        from pandas.api.types import infer_dtype  # narwhals would look at the first values only

        return bool(infer_dtype(column.to_native(), skipna=True) == "string")

    columns = zip(frame.iter_columns(), native_dtypes(frame), strict=True)
    return [i for i, column in enumerate(columns) if holds_categories(*column)]


def chosen_features(wanted: Any, n_features: int, names: list[Any] | None) -> list[int]:
    """The features that a mask, indices or names mean, in the words of scikit-learn's errors."""
    if wanted is None:
        return []
    chosen = np.asarray(wanted)
    if chosen.ndim != 1:
        raise ValueError(
            f"categorical_features must be one-dimensional, a mask, indices or names: {wanted!r}"
        )
    if chosen.size == 0:
        return []
    types = {type(value) for value in chosen.tolist()}
    if len(types) > 1 or not types <= {bool, int, str}:
        raise ValueError(
            "categorical_features must be an array-like of bool, int or str, got: "
            + ", ".join(sorted(kind.__name__ for kind in types))
        )
    if types == {str}:
        return _named(chosen.tolist(), names)
    if types == {bool}:
        if len(chosen) != n_features:
            raise ValueError(
                "categorical_features set as a boolean mask must have shape (n_features,), "
                f"got: {chosen.shape} for {n_features} features"
            )
        return np.flatnonzero(chosen).tolist()
    if min(chosen) < 0 or max(chosen) >= n_features:
        raise ValueError(
            "categorical_features set as integer indices must be in [0, n_features - 1], "
            f"got: {chosen.tolist()} for {n_features} features"
        )
    return list(chosen.tolist())


def _named(wanted: list[str], names: list[Any] | None) -> list[int]:
    if names is None:
        raise ValueError(
            "categorical_features should be passed as an array of integers or as a boolean mask "
            "when the model is fitted on data without feature names."
        )
    position = {name: i for i, name in enumerate(names)}
    for name in wanted:
        if name not in position:
            raise ValueError(
                f"categorical_features has an item value {name!r} which is not a valid feature "
                f"name of the training data. Observed feature names: {names}"
            )
    return [position[name] for name in wanted]


def factorize(column: Any, name: str) -> Factor:
    """Distinct values and positions of a column (array [N] or series of narwhals). Only object
    arrays make a Python object of each row. A value that is no string, finite number or truth value
    is an error that names the column."""
    try:
        if isinstance(column, np.ndarray):
            codes, values = _factorize_array(column)
        elif column.implementation.is_pandas():
            codes, values = (column := column.to_native()).factorize()
        else:
            codes, values = _factorize_series(column, name)
    except (TypeError, NotImplementedError) as error:  # such as of lists or dicts
        raise TypeError(
            f"{name} holds no categories ({error}): each argument must be a string, a number or a "
            "boolean; convert it to strings, or drop it"
        ) from error
    order = getattr(column.dtype, "categories", None)
    return codes, _plain(values, name), None if order is None else tuple(order)


def _factorize_series(column: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Codes and distinct values as of `_factorize_array`, of a series that is not pandas'."""
    import narwhals.stable.v2 as nw

    dtype, missing = column.dtype, column.is_null().to_numpy()
    if dtype.is_numeric() or isinstance(dtype, nw.Boolean):
        codes = np.full(len(column), -1)  # in a column with nulls, integers would be floats
        codes[~missing], values = _factorize_array(column.drop_nulls().to_numpy())
        return codes, values
    if not (isinstance(dtype, nw.String | nw.Categorical | nw.Enum | nw.Object) or missing.all()):
        raise ValueError(_refusal(f"{name} holds {dtype}"))
    if missing.all():
        return np.full(len(column), -1), np.empty(0, object)
    if column.implementation.is_pyarrow():
        return _factorize_arrow(column.to_native())
    if column.implementation.is_polars() and not isinstance(dtype, nw.Object):
        values = column.drop_nulls().unique()
        numbered = values.to_native(), range(len(values))
        codes = column.to_native().replace_strict(*numbered, default=-1)
        return codes.to_numpy(), values.to_numpy()
    objects = column.to_numpy().astype(object)
    objects[missing] = None
    return _factorize_array(objects)


def _factorize_arrow(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Codes and distinct values of a column of strings or a dictionary of Arrow, whose dictionary
    may hold a value twice, or a null."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    parts = encoded.indices.fill_null(-1), encoded.dictionary
    codes, values = (part.to_numpy(zero_copy_only=False) for part in parts)
    return codes, values


def _refusal(what: str) -> str:
    return f"{what}: categories are strings, numbers or booleans; convert it to strings, or drop it"


def _factorize_array(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes i64[N] and distinct values of an array of any layout and byte order."""
    kind = column.dtype.kind
    if kind == "f":
        column = column.astype(np.float64)
    elif kind in "biu":
        column = column.astype(column.dtype.newbyteorder("="))
    elif kind != "O":
        column = column.astype(object)
    # quicker, but not imported for it
    factorize = getattr(sys.modules.get("pandas"), "factorize", _factorize_plain)
    codes, values = factorize(column)
    return codes, np.asarray(values)


def _factorize_plain(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The result of pandas.factorize, except for the order of the values."""
    if column.dtype.kind != "O":
        values, codes = np.unique(column, return_inverse=True)
        if column.dtype.kind == "f" and len(values) and np.isnan(values[-1]):
            return np.where(codes == len(values) - 1, -1, codes), values[:-1]
        return codes, values
    code: dict[Any, int] = {}
    codes = np.empty(len(column), np.int64)
    for i, value in enumerate(column.tolist()):
        is_missing = value is None or value != value  # NaN and NaT do not equal themselves
        codes[i] = -1 if is_missing else code.setdefault(value, len(code))
    values = np.empty(len(code), object)
    values[:] = list(code)
    return codes, values


def _plain(values: Any, name: str) -> list[Any]:
    """Distinct values as Python's own."""
    plain = [v.item() if isinstance(v, np.generic) else v for v in values.tolist()]
    for value in plain:
        if type(value) not in CATEGORY_TYPES:
            raise ValueError(_refusal(f"{name} holds {value!r} of type {type(value).__name__}"))
        if isinstance(value, float) and math.isinf(value):
            raise ValueError(
                f"Input X contains infinity: {name}; NaN means missing, infinities must be replaced"
            )
    return plain


def _numbers(weights: Any, n_rows: int) -> np.ndarray | None:
    """Weights f64[N]; None also for invalid input, which is rejected later."""
    with suppress(TypeError, ValueError):
        numbers = np.asarray(weights, np.float64)
        return numbers if numbers.shape == (n_rows,) else None
    return None


def find(factor: Factor, known: Any, name: str) -> np.ndarray:
    """Category codes f32[N] of a column, or the numbers of its statistic. If no value is known, and
    the known categories are of another type, that is an error."""
    of_rows, values, _ = factor
    categories = categories_of(known)
    n, position = len(categories), {value: i for i, value in enumerate(categories)}
    codes = [position.get(value, n) for value in values]
    if n and codes and min(codes) == n:
        now, before = ({isinstance(v, str) for v in both} for both in (values, categories))
        if now.isdisjoint(before):
            words = {True: "strings", False: "numbers"}
            raise ValueError(
                f"{name} holds {words[now.pop()]}, but its categories in training were "
                f"{words[before.pop()]}: convert it to these"
            )
    numbers = known.values if isinstance(known, TargetStatistic) else range(n + 1)
    # a code of -1 takes the last
    table = np.array([*(numbers[c] for c in codes), np.nan], np.float32)
    return np.asarray(table[of_rows])
