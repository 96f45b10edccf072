"""Ordered target statistics: a category is replaced by the mean target of its rows.

    a training row      (prior + the targets of the category's rows before it) / (their weights)
    the same, judged    (prior + the targets of the category's other parts) / (their weights)
    any other row       (prior + the targets of all the category's training rows) / (their weights)

The rows are ordered by their hashes. A row's own target has no part in its number, so trees cannot
read it there. All rows of a group, such as those of a patient, stand where the first of them does,
so a number holds no target of the row's own group. The prior is one for all rows. Rows of weight
zero are not numbered, and change nothing. Sums are of integers: no order of summation, partition or
thread changes a number.

Out of bag a row is judged as a new one, by the number of all rows of its category but its part. The
n rows of a category are cut, in their order, into parts of sqrt(n / 2) rows: of one row below 8. A
number without one row of many lies off that of the category by a little that tells the row's
target. Numbers of later rows hold this target and lie as near, and small leaves tell them apart.

Four rows of one category in their order, where the prior is 1 of weight 2:

    group  weight  target  number                judged          without groups  judged
      p       1       0    1 / 2                 (1+1+0) / 4     1 / 2           (1+1+2+0) / 6
      q       1       1    (1+0+2*1) / (2+1+2)   (1+0+2*1) / 5   (1+0) / 3       (1+0+2+0) / 6
      p       2       1    1 / 2                 (1+1+0) / 4     (1+0+1) / 4     (1+0+1+0) / 5
      q       1       0    (1+0+2*1) / (2+1+2)   (1+0+2*1) / 5   (1+0+1+2) / 6   (1+0+1+2) / 6

References
----------
L. Prokhorenkova, G. Gusev, A. Vorobev, A. V. Dorogush and A. Gulin, "CatBoost: unbiased boosting
with categorical features", NeurIPS 2018, section 3. The prior is that of a one-way analysis of
variance: S. R. Searle, G. Casella and C. E. McCulloch, Variance Components, 1992, section 3.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpuforest.common import hashing
from gpuforest.common.sums import blocks, exact_sum
from gpuforest.core.bins import Categories, Statistics, TargetStatistic
from gpuforest.core.target import CheckedTarget
from gpuforest.data.arrays import to_host
from gpuforest.growing.targets import encode_moments

FROM = 30  # categorical_split="auto": a feature of more categories than this has statistics
LEVEL = 1.645  # the 5 % quantile of a normal distribution, of the test whether means differ
ITERATIONS = 50  # of the power method
STEPS = 1024  # of the score of a class
ONE_OUTPUT = "target statistics are of one output: pass categorical_split='subset'"
LATER = (
    "target statistics of categories know the targets of later blocks: pass "
    "categorical_split='subset', or no blocks"
)

OTHER = (
    "the target statistics of X and y are not those of the forest: pass the data that it was "
    "fitted to, or the same as BinnedData; if class weights or other weights differ in unit, fit "
    "with unbiased_importances=True"
)
Numbers = dict[int, np.ndarray]  # features with target statistics: the numbers of rows f32[N]


def may_have_statistics(categorical_split: str) -> bool:
    """Whether a feature may be split by target statistics."""
    return categorical_split in ("ordered_target", "auto")


def has_statistics(categorical_split: str, n_categories: int) -> bool:
    """Whether a feature of so many categories is split by target statistics."""
    is_auto = categorical_split == "auto" and n_categories > FROM
    return is_auto or categorical_split == "ordered_target"


@dataclass(frozen=True, eq=False)
class OrderedTarget:
    """The target that statistics are made of."""

    y: np.ndarray  # class codes i64[N], or numbers f64[N]
    n_classes: int  # 0: y holds numbers
    weights: np.ndarray | None  # i32[N], or None: all are one
    seed: int  # of the order of the rows
    groups: np.ndarray | None = None  # i32[N], numbers of groups
    judges: bool = False  # whether rows need numbers by which they are judged out of bag

    @classmethod
    def of(
        cls, checked: CheckedTarget, weights: np.ndarray | None, seed: int,
        groups: np.ndarray | None, judges: bool = False,
    ) -> OrderedTarget:  # fmt: skip
        """That of a checked target, which has one output."""
        several = checked.classes is not None and len(checked.classes) > 1
        y = np.asarray(to_host(checked.values if checked.classes is None else checked.values[0]))
        if several or y.size > len(y):
            raise ValueError(ONE_OUTPUT)
        n_classes = 0 if checked.classes is None else len(checked.classes[0])
        return cls(y.reshape(-1), n_classes, weights, seed, groups, judges)

    @cached_property
    def weight(self) -> np.ndarray:
        """The weights i64[N]."""
        return np.ones(len(self.y), np.int64) if self.weights is None else self.weights.astype("i8")

    @cached_property
    def counted(self) -> np.ndarray:
        """The rows of positive weight, i64[n], ascending."""
        return np.flatnonzero(self.weight)

    @cached_property
    def order(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows in their order i64[N], and each row's place i64[N]. Counted rows are sorted by
        the hash of their number, groups stand at the least place of their rows, rows of weight zero
        come last."""
        n = len(self.counted)
        key = hashing.hash_at(np.full(1, self.seed, np.uint64), hashing.ORDERED)
        counted = self.counted[np.argsort(hashing.hash_at(key, np.arange(n, dtype=np.uint64)))]
        rows, place = np.append(counted, np.flatnonzero(self.weight == 0)), np.full(len(self.y), n)
        place[counted] = np.arange(n)
        if self.groups is not None:
            of_group = np.full(int(self.groups.max()) + 1, n)
            np.minimum.at(of_group, self.groups, place)
            place = of_group[self.groups]
            rows = rows[np.argsort(place[rows], kind="stable")]
        return rows, place

    @cached_property
    def moments(self) -> tuple[np.ndarray, float]:
        """Numbers as integers i64[N], zero for uncounted rows, and a power of two above their
        sizes. Divided by the power they lie between -1 and 1, where float32 is finest."""
        y, total = self.y[self.counted].astype(np.float64)[:, None], 4 * int(self.weight.sum())
        moments = np.zeros(len(self.y), np.int64)
        moments[self.counted] = encode_moments(y, total)[1][:, 0]
        return moments, float(2 ** int(np.abs(moments).max()).bit_length())

    @cached_property
    def labels(self) -> tuple[np.ndarray, int]:
        """Class codes i64[N] among the classes of counted rows, and the number of these."""
        present = np.unique(self.y[self.counted])
        return np.minimum(np.searchsorted(present, self.y), len(present) - 1), len(present)

    def integers(self, codes: np.ndarray, n: int) -> tuple[np.ndarray, float]:
        """What is averaged for a feature of n categories: integers i64[N], and their scale. Two
        classes are 0 and 1. More have the scores by which the categories' shares of them differ
        most, as for splits by sets: the first principal direction of the shares."""
        if not self.n_classes:
            return self.moments
        y, n_classes = self.labels
        if n_classes < 3:
            return y, 1.0
        known = codes >= 0
        cells = codes[known] * n_classes + y[known]
        table = np.bincount(cells, self.weight[known], n * n_classes)
        return class_scores(table.reshape(n, -1))[y], float(STEPS)

    def statistic(
        self, codes: np.ndarray, categories: tuple[object, ...]
    ) -> tuple[np.ndarray, np.ndarray | None, TargetStatistic]:
        """Numbers f32[N] of the training rows, those by which they are judged (None: the same, or
        nothing asks for them), and the statistic of the categories.

        codes : i64[N], positions in `categories`; len(categories): another value, -1: missing"""
        n = len(categories) + 1
        integers, scale = self.integers(codes, n)
        rows, place = self.order
        rows = rows[codes[rows] >= 0]
        rows = rows[np.argsort(codes[rows], kind="stable")]
        first = np.searchsorted(codes[rows], np.arange(n + 1))  # where each category begins
        weights = np.append(0, np.cumsum(self.weight[rows]))
        sums = np.append(0, np.cumsum(self.weight[rows] * integers[rows]))
        squares = self.weight[rows] * integers[rows].astype(np.float64) ** 2
        of_category = np.diff(weights[first]), np.diff(sums[first])
        n_rows = int(np.count_nonzero(self.weight[rows]))
        prior = prior_of(*of_category, exact_sum(squares[b] for b in blocks(len(rows))), n_rows)

        def mean_of(weight: Any, total: Any) -> np.ndarray:
            return np.asarray(total / np.maximum(weight, 1) / scale, np.float32)

        values = np.full(len(codes), np.nan, np.float32)
        if prior is None:
            values[rows] = mean = mean_of(weights[-1], sums[-1])
            return values, None, TargetStatistic((), (float(mean),))
        category, place = codes[rows], place[rows]
        # where the rows of the category begin, and those of them that stand at the row's place
        begin, here = first[category], run_begins(category, place)
        before = weights[here] - weights[begin], sums[here] - sums[begin]
        values[rows] = mean_of(before[0] + prior[0], before[1] + prior[1])
        whole = of_category[0] + prior[0], of_category[1] + prior[1]
        statistic = TargetStatistic(categories, tuple(mean_of(*whole).tolist()))
        if not self.judges:
            return values, None, statistic
        counts = np.append(0, np.cumsum(self.weight[rows] > 0))
        size = np.maximum(np.sqrt(np.diff(counts[first]) // 2).astype(np.int64), 1)
        part = run_begins(category, (counts[here] - counts[begin]) // size[category])
        end = np.searchsorted(part, part, side="right")
        own = weights[end] - weights[part], sums[end] - sums[part]
        judged = np.full(len(codes), np.nan, np.float32)
        judged[rows] = mean_of(whole[0][category] - own[0], whole[1][category] - own[1])
        return values, judged, statistic


def run_begins(category: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Where the run of equal pairs i64[n] begins that each of them lies in."""
    at = np.arange(len(category))
    at[1:] *= (np.diff(category) != 0) | (np.diff(number) != 0)
    return np.maximum.accumulate(at)


def prior_of(
    weights: np.ndarray, sums: np.ndarray, squares: float, n_rows: int
) -> tuple[int, int] | None:
    """Weight of the prior, and weight times the mean of all rows, as integers; None: categories do
    not differ significantly. The weight is the ratio of the variance within categories to the
    variance between them, in rows.

    weights, sums : i64[n], of the categories
    squares : the sum of all squares
    n_rows : rows of positive weight"""
    some = weights > 0
    total, whole, n = int(weights.sum()), int(sums.sum()), int(np.count_nonzero(some))
    if n < 2 or n_rows <= n:
        return None
    row = total / n_rows  # the weight of a row
    counts, means = weights[some] / row, sums[some] / weights[some]
    within = max(squares / row - exact_sum([counts * means**2]), 0.0) / (n_rows - n)
    between = exact_sum([counts * (means - whole / total) ** 2]) / (n - 1)
    chance = 1 + LEVEL * math.sqrt(2 / (n - 1) + 2 / (n_rows - n))
    if between <= within * chance:
        return None
    size = (n_rows - exact_sum([counts**2]) / n_rows) / (n - 1)  # of a category, about
    weight = min(max(round(within * size / (between - within) * row), 1), total)
    return weight, round(weight * whole / total)


def class_scores(table: np.ndarray) -> np.ndarray:
    """A score i64[K] for each class, -STEPS to STEPS, from weights f64[n, K] of n categories."""
    weight = table.sum(axis=1)
    table, weight = table[weight > 0], weight[weight > 0, None]
    if not len(table):
        return np.zeros(table.shape[1], np.int64)
    off = table / weight - table.sum(axis=0) / weight.sum()
    scatter = np.stack([(weight * off * off[:, [k]]).sum(axis=0) for k in range(off.shape[1])])
    way = off[np.argmax((weight * off**2).sum(axis=1))]
    for _ in range(ITERATIONS):
        turned = (scatter * way).sum(axis=1)
        way = turned / np.abs(turned).max() if turned.any() else way
    largest = way[np.argmax(np.abs(way))]
    return np.asarray(np.rint(way / largest * STEPS if largest else way), np.int64)


def codes_of(column: np.ndarray) -> np.ndarray:
    """Category codes as integers i64[N], -1 for NaN."""
    return np.asarray(np.where(np.isnan(column), -1, column), np.int64)


def statistics_of(
    categories: Categories, categorical_split: str, make_target: Callable[[], OrderedTarget],
    column: Callable[[int], np.ndarray],
) -> Iterator[tuple[int, np.ndarray, np.ndarray | None, TargetStatistic]]:  # fmt: skip
    """Each feature that uses statistics, and what `OrderedTarget.statistic` makes of it.

    column : the category codes of a feature's rows, NaN for missing ones"""
    chosen = [f for f, known in categories.items() if has_statistics(categorical_split, len(known))]
    if chosen:
        target = make_target()
        for f in chosen:
            yield f, *target.statistic(codes_of(column(f)), categories[f])


def replace_categories(
    X: np.ndarray, categories: Categories, categorical_split: str,
    make_target: Callable[[], OrderedTarget],
) -> tuple[Categories, Statistics, Numbers]:  # fmt: skip
    """Write statistics over the codes of categorical features of X [N, F] that use statistics.
    Returns the categories of the other features, the statistics, and numbers that judge."""
    statistics, judged = Statistics(), Numbers()
    found = statistics_of(categories, categorical_split, make_target, lambda f: X[:, f])
    for f, numbers, left_out, statistic in found:
        X[:, f], statistics[f] = numbers, statistic
        judged |= {} if left_out is None else {f: left_out}
    others = {f: known for f, known in categories.items() if f not in statistics}
    return others, statistics, judged


def judged_again(X: np.ndarray, statistics: Statistics, target: OrderedTarget) -> Numbers:
    """The numbers by which training rows X [N, F], with codes of categories, are judged; a
    ValueError if they do not give these statistics."""
    numbers = Numbers()
    for f, known in statistics.items():
        if known.categories:
            _, left_out, found = target.statistic(codes_of(X[:, f]), known.categories)
            same = len(found.values) == len(known.values)
            if left_out is None or not (same and np.allclose(found.values, known.values, 1e-4)):
                raise ValueError(OTHER)
            numbers[f] = left_out
    return numbers


def with_numbers(X: np.ndarray, statistics: Statistics) -> np.ndarray:
    """A copy of other rows X [N, F], in which numbers replace the codes of categories."""
    X = X.copy()
    for f, statistic in statistics.items():
        numbers = np.array([*statistic.values, np.nan], np.float32)
        # a statistic that says nothing knows no category; -1, of missing values, takes the last
        X[:, f] = numbers[np.minimum(codes_of(X[:, f]), len(statistic.values) - 1)]
    return X
