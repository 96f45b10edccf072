"""Bins: where the bins of each feature end, and the matrix of codes of the training rows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gpuforest.common import dtypes
from gpuforest.common.dtypes import Array

Categories = dict[int, tuple[Any, ...]]  # of each categorical feature, see `BinEdges`


class TargetStatistic(NamedTuple):
    """The numbers that stand for a feature's categories, see data/target_statistics.py."""

    categories: tuple[Any, ...]
    values: tuple[float, ...]  # one more than categories: the last is that of all other values


Statistics = dict[int, TargetStatistic]


def categories_of(known: Any) -> tuple[Any, ...]:
    """The categories of a feature, as `BinEdges.known` has it."""
    return known.categories if isinstance(known, TargetStatistic) else known


CATEGORY_TYPES = (str, int, float, bool)  # the types that a category may have
SAMPLE_ROWS = 200_000  # quantiles of a bin of 1/255 are then known to 1.5 %
MAX_CATEGORIES = dtypes.MAX_BINS - 2  # one more bin is for other values, and see `missing_code`
TINY = float(np.finfo(np.float64).tiny)


def rounded(thresholds: np.ndarray, dtype: Any) -> np.ndarray:
    """The largest numbers of a dtype that are not above thresholds, so that each number of the
    dtype is at most the one as it is at most the other."""
    with np.errstate(over="ignore", under="ignore"):
        near = thresholds.astype(dtype)
    lower = np.nextafter(near, dtype(-np.inf))
    return np.asarray(np.where(near > thresholds, lower, near))


@dataclass(frozen=True, eq=False)
class BinEdges:
    """Where each feature's bins end: host arrays, plain data."""

    values: np.ndarray  # f64[E], each feature's ascending edges, one feature after another
    offsets: np.ndarray  # i64[F + 1], feature f's edges are values[offsets[f]:offsets[f + 1]]
    kinds: np.ndarray  # u8[F], NUMERIC or CATEGORICAL
    # for each categorical feature, the categories (strings, numbers or truth values) of the codes
    # 0 .. n - 1; code n stands for any other value, such as a rare one or one that training never
    # saw. So the edges are 0 .. n - 1
    categories: Categories = field(default_factory=dict)
    # categorical features whose categories became numbers: their edges lie among these numbers
    statistics: Statistics = field(default_factory=dict)

    @classmethod
    def of(cls, columns: list[np.ndarray], categories: Categories | None = None) -> BinEdges:
        """The bins of features with these edges; a categorical feature's edges are its codes."""
        columns, kinds, categories = [*columns], np.zeros(len(columns), np.uint8), categories or {}
        for f, values in categories.items():
            columns[f], kinds[f] = np.arange(len(values), dtype=np.float64), dtypes.CATEGORICAL
        offsets = np.cumsum([0, *map(len, columns)]).astype(dtypes.OFFSET)
        return cls(np.concatenate(columns), offsets, kinds, categories)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is derived from them is not pickled."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def n_features(self) -> int:
        return len(self.offsets) - 1

    @property
    def known(self) -> dict[int, Any]:
        """The categories, or the statistic, of each feature whose values are categories."""
        return {**self.categories, **self.statistics}

    @cached_property
    def n_bins(self) -> np.ndarray:
        """Bins of each feature, i32[F]: one more than its edges."""
        return (np.diff(self.offsets) + 1).astype(np.int32)

    @cached_property
    def rounded(self) -> np.ndarray:
        """The edges as f32[E], rounded down, so that any float32 has the same code by them."""
        return rounded(self.values, np.float32)

    @cached_property
    def missing_code(self) -> int:
        """Code of missing values, above all bins. Above the bins of a categorical feature one more
        is free: missing is one more category in any order."""
        return int((self.n_bins + (self.kinds == dtypes.CATEGORICAL)).max())

    @property
    def n_codes(self) -> int:
        """B: the bins of a histogram, including the one for missing values."""
        return self.missing_code + 1

    @property
    def code_dtype(self) -> type[np.unsignedinteger[Any]]:
        return dtypes.CODE8 if self.n_codes <= 256 else dtypes.CODE16

    @cached_property
    def set_words(self) -> np.ndarray:
        """The 64-bit words that a set of a feature's bins takes, i64[F]; 0 for numeric ones."""
        words = (self.n_bins.astype(np.int64) + 63) // 64
        return np.where(self.kinds == dtypes.CATEGORICAL, words, 0)

    @property
    def most_words(self) -> int:
        """W: the most words that a set takes; zero if no feature is categorical."""
        return int(self.set_words.max(initial=0))

    @cached_property
    def coordinates(self) -> np.ndarray:
        """Place of each bin between the feature's first and last, 0 to 65,534: i32[F, B]. Codes for
        categories, 0 for missing values; else from `middles`, neighbours at least one apart."""
        coordinates = np.zeros((self.n_features, self.n_codes), np.int32)
        for f, n in enumerate(self.n_bins):
            number = np.arange(n)
            if n == 1 or self.kinds[f] == dtypes.CATEGORICAL:
                coordinates[f, :n] = number
                continue
            at, _ = self.middles(f)
            at = np.rint((at - at[0]) / max(at[-1] - at[0], TINY) * dtypes.MOST_COORDINATE)
            at = np.maximum.accumulate(at.astype(np.int64) - number) + number
            coordinates[f, :n] = np.minimum(at, dtypes.MOST_COORDINATE - number[::-1])
        return coordinates

    def middles(self, f: int) -> tuple[np.ndarray, float]:
        """Middles of a numeric feature's bins f64[n_bins > 1] over the second result, to stay
        finite. The first and last bin, with one edge, lie as far from it as the middle of the bin
        beside."""
        e = self.values[self.offsets[f] : self.offsets[f + 1]]
        unit = max(abs(float(e[0])), abs(float(e[-1])), TINY)
        e = e / unit
        if len(e) == 1:
            return np.array([e[0] - 0.5, e[0] + 0.5]), unit
        inner = (e[1:] + e[:-1]) / 2
        ends = [2 * e[0] - inner[0]], [2 * e[-1] - inner[-1]]
        return np.concatenate([ends[0], inner, ends[1]]), unit

    def threshold(self, feature: np.ndarray, bin: np.ndarray) -> np.ndarray:
        """Thresholds f64[...]: x <= threshold goes left; with +inf all but missing values do."""
        last = bin >= self.n_bins[feature] - 1
        at = np.minimum(self.offsets[feature] + bin, max(len(self.values) - 1, 0))
        values = self.values if len(self.values) else np.zeros(1)
        return np.where(last, np.inf, values[at])


@dataclass(frozen=True, eq=False)
class BinnedMatrix:
    """Training data: codes u8 or u16 [N, F] in the backend's memory order, rows possibly padded."""

    codes: Array
    n_bins: Array  # i32[F], on the backend's device
    edges: BinEdges
    # what the backend keeps of each target whose trees grow from these codes
    targets: WeakKeyDictionary[Any, Any] = field(default_factory=WeakKeyDictionary)
    scratch: deque[Any] | None = None  # memory that subtrees grew in, to be used again
    # the codes of features with target statistics by which rows are judged out of bag, u8 or u16
    # [N] each: see data/target_statistics.py
    judged: dict[int, Array] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return int(self.codes.shape[0])

    def judged_column(self, f: int) -> Array:
        """The codes of a feature by which rows are judged out of bag."""
        return self.judged[f] if f in self.judged else self.codes[:, f]

    def judged_codes(self, xp: Any, rows: Array) -> Array:
        """A copy of the codes [n, F] by which rows i64[n] are judged out of bag."""
        codes = xp.take(self.codes, rows, axis=0)
        for f, column in self.judged.items():
            codes[:, f] = xp.take(column, rows)
        return codes

    @property
    def n_features(self) -> int:
        return self.edges.n_features
